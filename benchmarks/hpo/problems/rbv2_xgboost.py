"""XGBoost in a conditional space, the share of the data as the fidelity, by surrogate (rbv2)."""

from pathlib import Path

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.surrogate import SurrogateProblem, scenario_folder

DEVELOPMENT_TASKS = ("16", "1501", "40981", "41146")
"""OpenML data sets on which methods may be developed; the others are kept to judge them."""

LEVELS = (1 / 27, 1 / 9, 1 / 3, 1.0)
"""Shares of the data that is trained on."""

_CONTINUOUS = (
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
    "trainsize",
    "repl",
)
_CATEGORICAL = ("task_id", "booster", "num.impute.selected.cpo")
_OUTPUT = (0, 6, 100.0)  # acc, between 0 and 1; timetrain
_REPLICATIONS = 10  # of the surrogate's data: the mean over as many as it has


def rbv2_xgboost(
    task: str,
    data: Path | str | None = None,
    sigma: float = 0.5,
    levels: tuple[float, ...] = LEVELS,
) -> SurrogateProblem:
    """Tune XGBoost on one of rbv2's data sets: accuracy in percent.

    Parameters
    ----------
    task
        OpenML's number of the data set.
    data
        Folder that holds rbv2_xgboost/; by default ``$MFHPO_DATA/yahpo``.
    sigma
        Standard deviation of the noise, in percent.
    levels
        Shares of the data, between .03 and 1 and increasing.

    Raises
    ------
    FileNotFoundError
        If a file of the surrogate is missing.
    ValueError
        If the task or the levels are not the surrogate's.
    """
    if not all(0.03 <= level <= 1.0 for level in levels):
        raise ValueError(f"levels must be shares of the data in .03 to 1, got {levels!r}.")
    return SurrogateProblem(
        f"rbv2_xgboost {task}",
        scenario_folder("rbv2_xgboost", data),
        FidelitySpace("trainsize", levels, continues=False),
        {"task_id": task, "repl": _REPLICATIONS},
        _CONTINUOUS,
        _CATEGORICAL,
        _OUTPUT,
        sigma,
    )
