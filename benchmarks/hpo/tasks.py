"""Which tasks optimisers are compared on, and how they are grouped."""

from collections.abc import Iterable

from benchmarks.hpo.problems import DEVELOPMENT_TASKS, SYNTHETIC, tables

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


ACCURACIES = frozenset({"LCBench", "rbv2_xgboost", "scikit-learn"})
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
