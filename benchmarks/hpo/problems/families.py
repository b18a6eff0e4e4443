"""The families of YAHPO Gym's surrogates that can be tuned here, and the problem of each task."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.surrogate import (
    SurrogateProblem,
    file_of,
    is_there,
    scenario_folder,
)

_SHARES = FidelitySpace("trainsize", (1 / 27, 1 / 9, 1 / 3, 1.0), continues=False)
_FEWER_SHARES = FidelitySpace("trainsize", (1 / 9, 1 / 3, 1.0), continues=False)
_OF_XGBOOST = (
    "nrounds",
    "eta",
    "gamma",
    "lambda",
    "alpha",
    "subsample",
    "max_depth",
    "min_child_weight",
    "colsample_bytree",
    "colsample_bylevel",
    "rate_drop",
    "skip_drop",
)


@dataclass(frozen=True)
class Family:
    """A model that was tuned on many data sets; all values are accuracies in percent.

    Parameters
    ----------
    model
        What is tuned, in words.
    fidelity
        With the levels that are used by default.
    task
        Name of the input that says which data set it is.
    continuous, categorical
        Names of the surrogate's inputs, in its order.
    output
        Index of the value among the surrogate's outputs, that of the seconds that a training
        takes, and the value's unit in percent; negative where the output is an error.
    development
        Tasks that methods may be developed on; the others are kept to judge them.
    fixed
        Values of inputs that are neither tuned nor the task.
    """

    model: str
    fidelity: FidelitySpace
    task: str
    continuous: tuple[str, ...]
    categorical: tuple[str, ...]
    output: tuple[int, int, float]
    development: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def _rbv2(
    model: str, *continuous: str, categorical: tuple[str, ...] = (), development: Any = ()
) -> Family:
    """A family of rbv2 (Binder et al., 2020): the share of the data is its fidelity."""
    return Family(
        model,
        _SHARES,
        "task_id",
        (*continuous, "trainsize", "repl"),
        ("task_id", *categorical, "num.impute.selected.cpo"),
        (0, 6, 100.0),  # acc, between 0 and 1; timetrain
        development,
        MappingProxyType({"repl": 10}),  # the mean over as many replications as there are
    )


def _iaml(model: str, *continuous: str, categorical: tuple[str, ...] = ()) -> Family:
    """A family of iaml: the share of the data is its fidelity."""
    return Family(
        model,
        _FEWER_SHARES,  # its data begin at a twentieth
        "task_id",
        (*continuous, "trainsize"),
        ("task_id", *categorical),
        (0, 7, -100.0),  # mmce, the share of errors; timetrain
    )


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "lcbench": Family(
            "networks on tabular data (Zimmer et al., 2021)",
            FidelitySpace("epoch", (2.0, 6.0, 17.0, 52.0), continues=True),
            "OpenML_task_id",
            (
                "epoch",
                "batch_size",
                "learning_rate",
                "momentum",
                "weight_decay",
                "num_layers",
                "max_units",
                "max_dropout",
            ),
            ("OpenML_task_id",),
            (1, 0, 1.0),  # val_accuracy, in percent; time
            ("167168", "189873", "189906", "3945", "7593", "34539", "168330", "168908"),
        ),
        "rbv2_xgboost": _rbv2(
            "XGBoost, in a conditional space",
            *_OF_XGBOOST,
            categorical=("booster",),
            development=("16", "1501", "40981", "41146"),
        ),
        "rbv2_svm": _rbv2(
            "support vector machines",
            *("cost", "gamma", "tolerance", "degree"),
            categorical=("kernel",),
        ),
        "rbv2_ranger": _rbv2(
            "random forests",
            *("num.trees", "sample.fraction", "mtry.power", "min.node.size", "num.random.splits"),
            categorical=("respect.unordered.factors", "splitrule"),
        ),
        "rbv2_rpart": _rbv2("decision trees", "cp", "maxdepth", "minbucket", "minsplit"),
        "rbv2_glmnet": _rbv2("elastic nets", "alpha", "s"),
        "rbv2_aknn": _rbv2(
            "approximate nearest neighbours",
            *("k", "M", "ef", "ef_construction"),
            categorical=("distance",),
        ),
        "iaml_xgboost": _iaml("XGBoost", *_OF_XGBOOST, categorical=("booster",)),
        "iaml_rpart": _iaml("decision trees", "cp", "maxdepth", "minbucket", "minsplit"),
        "iaml_glmnet": _iaml("elastic nets", "alpha", "s"),
    }
)
"""By YAHPO Gym's name of the scenario. Inputs and outputs are in the order of its release 1.0."""


def families_there(data: Path | str | None = None) -> tuple[str, ...]:
    """Names of the families whose files are there.

    Parameters
    ----------
    data
        Folder that holds the scenarios; by default YAHPO's in the data folder.
    """
    return tuple(name for name in FAMILIES if is_there(scenario_folder(name, data)))


def tasks_of(family: str, data: Path | str | None = None) -> tuple[str, ...]:
    """Numbers of all tasks of a family, as its config_space.json has them.

    Raises
    ------
    FileNotFoundError
        If that file is missing.
    """
    return tuple(_parameter(family, FAMILIES[family].task, data)["choices"])


def family_problem(
    family: str,
    task: str,
    data: Path | str | None = None,
    sigma: float = 0.5,
    levels: tuple[float, ...] | None = None,
) -> SurrogateProblem:
    """Tune a family's model on one of its tasks: accuracy in percent.

    Parameters
    ----------
    family
        One of `FAMILIES`.
    task
        OpenML's number of it.
    data
        Folder that holds the scenarios; by default YAHPO's in the data folder.
    sigma
        Standard deviation of the noise, in percent.
    levels
        Increasing, within what the surrogate was made for; each family has a default.

    Raises
    ------
    FileNotFoundError
        If a file of the surrogate is missing.
    ValueError
        If the task or the levels are not the surrogate's.
    """
    one = FAMILIES[family]
    fidelity = one.fidelity
    if levels is not None:
        _check(levels, _parameter(family, fidelity.name, data))
        fidelity = FidelitySpace(fidelity.name, levels, fidelity.continues)
    return SurrogateProblem(
        f"{family} {task}",
        scenario_folder(family, data),
        fidelity,
        {one.task: task, **one.fixed},
        one.continuous,
        one.categorical,
        one.output,
        sigma,
    )


def _parameter(family: str, name: str, data: Path | str | None) -> dict[str, Any]:
    file = file_of(scenario_folder(family, data), "config_space.json")
    described = json.loads(file.read_text(encoding="utf-8"))["hyperparameters"]
    [found] = [given for given in described if given["name"] == name]
    return dict(found)


def _check(levels: tuple[float, ...], given: Mapping[str, Any]) -> None:
    whole = given["type"] == "uniform_int"
    low, high = given["lower"], given["upper"]
    if not all(low <= level <= high and (not whole or level == int(level)) for level in levels):
        kind = "whole numbers of epochs" if whole else "shares of the data"
        raise ValueError(f"levels must be {kind} in {low:g} to {high:g}, got {levels!r}.")
