"""The sources of each portfolio, and the data sets that it is checked on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problems.families import FAMILIES, family_problem, tasks_of
from benchmarks.hpo.problems.scikit_learn import DATA_SETS
from benchmarks.hpo.problems.table import FOLDER, Table, table_file
from benchmarks.hpo.space import ConfigurationSpace, Float, Integer
from benchmarks.hpo.tasks import judged_tasks
from benchmarks.portfolios import recordings
from benchmarks.portfolios.tasks import OfLightGBM, OfSurrogate, OfTable, Task

_RANDOM = 10_000  # candidates for surrogates
_CARPS = ("24", "300", "375", "458", "40498", "40685", "41162", "41163")
"""Data sets of rbv2_xgboost that CARPS has among its multi-fidelity tasks."""

_PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
_THIS = "this project's recorded trainings"
_YAHPO = "YAHPO Gym (Pfisterer et al., 2022), slds-lmu/yahpo_data"


@dataclass(frozen=True)
class Family:
    """A model of a library.

    Parameters
    ----------
    default
        The library's own configuration.
    task
        Called with the name of a data set.
    made_from, checked_on
        Names of data sets. Without any to check on, each is left out in turn.
    sources
        Where the values are from: from, licence and perhaps more.
    candidates
        Gives all configurations that may be chosen, without the default.
    """

    default: Mapping[str, Any]
    task: Callable[[str], Task]
    made_from: tuple[str, ...]
    checked_on: tuple[str, ...]
    sources: tuple[Mapping[str, str], ...]
    candidates: Callable[[], list[dict[str, Any]]]


def rounded(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration whose numbers have three digits, and whole ones all of theirs."""
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value
        for name, value in configuration.items()
    }


def _surrogate(
    scenario: str, default: Mapping[str, Any], names: Mapping[str, str], fixed: Mapping[str, Any]
) -> Family:
    """Made from what neither judges methods nor is for their development; checked on the latter."""
    known_as = {name: names.get(name, name) for name in default}
    task = cache(lambda name: OfSurrogate(family_problem(scenario, name), known_as, fixed))
    development = FAMILIES[scenario].development
    judged = {one.partition(" ")[2] for one in judged_tasks() if one.startswith(f"{scenario} ")}
    left_out = judged | {*development} | ({*_CARPS} if scenario == "rbv2_xgboost" else set())
    made_from = tuple(sorted({*tasks_of(scenario)} - left_out, key=int))

    def candidates() -> list[dict[str, Any]]:
        rng = np.random.default_rng(0)
        space = task(made_from[0]).space
        return [rounded(space.draw(rng)) for _ in range(_RANDOM)]

    source = {"from": f"{_YAHPO}, {scenario}", "licence": "Apache-2.0"}
    return Family(default, task, made_from, development, (source,), candidates)


def _recorded(
    model: str, default: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path
) -> Family:
    space = ConfigurationSpace(parameters)

    def task(data_set: str) -> Task:
        return OfTable(Table.load(table_file(f"{model} {data_set}", folder)), space)

    def candidates() -> list[dict[str, Any]]:
        table = Table.load(table_file(f"{model} {DATA_SETS[0]}", folder))
        return [rounded(one) for one in table.configurations]

    source = {"from": f"{_THIS} of {model}", "licence": "MIT"}
    return Family(default, cache(task), DATA_SETS, (), (source,), candidates)


def _lightgbm() -> Family:
    default = {
        "n_estimators": 100,
        "num_leaves": 31,
        "min_child_samples": 20,
        "learning_rate": 0.1,
        "max_bin": 255,
        "colsample_bytree": 1.0,
        "reg_alpha": 0.0,
        "reg_lambda": 0.0,
        "extra_trees": False,
    }
    sources = tuple({key: one[key] for key in one if key != "configurations"} for one in _PUBLISHED)
    data_sets = DATA_SETS[1:]  # digits would take most of the time
    return Family(default, cache(OfLightGBM), data_sets, (), sources, partial(_published, default))


def _published(default: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what others publish, by LightGBM's names, and its values where they say none.

    Rounds are left out where early stopping has chosen them.
    """
    names = {"feature_fraction": "colsample_bytree", "min_data_in_leaf": "min_child_samples"}
    found = []
    for source in _PUBLISHED:
        for one in source["configurations"]:
            given = {names.get(name, name): value for name, value in one.items()}
            if "log_max_bin" in given:  # FLAML's name for this
                given["max_bin"] = 2 ** given.pop("log_max_bin") - 1
            found.append(
                rounded(
                    {
                        name: given.get(name, usual)
                        for name, usual in default.items()
                        if name in given or name != "n_estimators"
                    }
                )
            )
    return found


def _elastic_nets() -> Family:
    return _recorded(
        "elastic_net",
        {"C": 1.0, "l1_ratio": 0.0},
        {"C": Float(1e-3, 1e3, log=True), "l1_ratio": Float(0.0, 1.0)},
        recordings.FOLDER,
    )


def _forests() -> Family:
    return _recorded(
        "random_forest",
        {"max_features": "sqrt", "min_samples_leaf": 1, "max_samples": 1.0},
        {
            "max_features": Float(0.05, 1.0, log=True),
            "min_samples_leaf": Integer(1, 20, log=True),
            "max_samples": Float(0.3, 1.0),
        },
        recordings.FOLDER,
    )


def _svms() -> Family:
    ranges = dict.fromkeys(("C", "gamma"), Float(2**-10, 2**10, log=True))
    return _recorded("svm", {"C": 1.0, "gamma": "scale"}, ranges, FOLDER)


def _networks() -> Family:
    default = {  # of scikit-learn's MLPClassifier
        "batch_size": 200,
        "learning_rate": 0.001,
        "momentum": 0.9,
        "weight_decay": 0.0001,
        "num_layers": 1,
        "max_units": 100,
        "max_dropout": 0.0,
    }
    return _surrogate("lcbench", default, {}, {})


def _xgboost() -> Family:
    default = {
        "n_estimators": 100,
        "learning_rate": 0.3,
        "max_depth": 6,
        "min_child_weight": 1,
        "gamma": 0,
        "subsample": 1,
        "colsample_bytree": 1,
        "colsample_bylevel": 1,
        "reg_alpha": 0,
        "reg_lambda": 1,
    }
    names = {
        "n_estimators": "nrounds",
        "learning_rate": "eta",
        "reg_alpha": "alpha",
        "reg_lambda": "lambda",
    }
    fixed = {"booster": "gbtree", "num.impute.selected.cpo": "impute.mean"}
    return _surrogate("rbv2_xgboost", default, names, fixed)


FAMILIES_OF: Mapping[str, Callable[[], Family]] = {
    "elastic_net": cache(_elastic_nets),
    "lightgbm": cache(_lightgbm),
    "mlp": cache(_networks),
    "random_forest": cache(_forests),
    "svm": cache(_svms),
    "xgboost": cache(_xgboost),
}
"""Makers of each model's family; those of surrogates need YAHPO's files."""
