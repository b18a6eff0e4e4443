"""Which tasks optimisers are compared on, and how they are grouped."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.hpo.problems import DEVELOPMENT_TASKS, NAS, SYNTHETIC, tables
from benchmarks.hpo.problems.surrogate import surrogates_are_there

ALL_TASKS = (*DEVELOPMENT_TASKS, *SYNTHETIC, *tables())
"""Those on which methods may be developed; of recorded trainings, those whose tables are there."""

CLOCK_TASKS = (*DEVELOPMENT_TASKS, *tables())
"""Those of them whose training times are known."""

QUICK_TASKS = (
    "lcbench 3945",
    "lcbench 7593",
    "lcbench 168908",
    "rbv2_xgboost 16",
    "rbv2_xgboost 41146",
    "hartmann6",
)
"""A few of each kind."""

QUICK_TASKS_WITHOUT_DATA = (
    "logistic_regression digits table",
    "svm digits table",
    "gradient_boosting breast_cancer table",
    "branin",
    "hartmann6",
    *(task for task in tables() if task.startswith(NAS)),
)
"""Those of them that need nothing fetched, and recorded trainings instead of the others."""


def quick_tasks(data: Path | str | None = None) -> tuple[str, ...]:
    """What a quick comparison is of, with the surrogates in YAHPO's folder or without any."""
    return QUICK_TASKS if surrogates_are_there(data) else QUICK_TASKS_WITHOUT_DATA


ACCURACIES = frozenset({"LCBench", "rbv2_xgboost", "scikit-learn", "NAS"})
"""Kinds of tasks whose values are all accuracies in percent, and so have points in common."""


def grouped(tasks: Iterable[str]) -> dict[str, list[str]]:
    """Tasks by their kind.

    Examples
    --------
    >>> grouped(["lcbench 3945", "branin", "lcbench 7593"])
    {'LCBench': ['lcbench 3945', 'lcbench 7593'], 'synthetic': ['branin']}
    """
    groups: dict[str, list[str]] = {}
    for task in tasks:
        groups.setdefault(_group_of(task), []).append(task)
    return groups


def _group_of(task: str) -> str:
    if task.startswith("lcbench "):
        return "LCBench"
    if task.startswith("rbv2_xgboost "):
        return "rbv2_xgboost"
    if task.startswith(NAS):
        return "NAS"
    return "scikit-learn" if " " in task.partition(",")[0] else "synthetic"


def label_of(task: str, sigma: float | None, workers: int | None = None) -> str:
    """The name under which records keep a task with other noise than usual, or on a clock.

    Examples
    --------
    >>> label_of("lcbench 3945", sigma=0.5, workers=16)
    'lcbench 3945, sigma 0.5, workers 16'
    """
    noise = "" if sigma is None else f", sigma {sigma:g}"
    return f"{task}{noise}" + ("" if workers is None else f", workers {workers}")
