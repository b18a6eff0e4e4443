"""Which tasks methods are developed on and which judge them, and how tasks are grouped."""

import argparse
import hashlib
from collections.abc import Iterable
from pathlib import Path

from benchmarks.hpo.problems import DEVELOPMENT_TASKS, NAS, tables
from benchmarks.hpo.problems.families import FAMILIES, families_there, tasks_of
from benchmarks.hpo.problems.surrogate import surrogates_are_there

NAS_TASKS = tuple(task for task in tables() if task.startswith(NAS))
"""Architectures, which are a comparison of their own; methods are not developed on them."""

RECORDED_TASKS = tuple(task for task in tables() if task not in NAS_TASKS)
"""scikit-learn's models, whose trainings are recorded with the project; nothing is fetched."""

CLOCK_TASKS = (*DEVELOPMENT_TASKS, *RECORDED_TASKS)
"""Those whose training times are known."""

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
    *NAS_TASKS,
)
"""Tasks that need nothing fetched, and recorded trainings instead of the others."""


def quick_tasks(data: Path | str | None = None) -> tuple[str, ...]:
    """What a quick comparison is of, with the surrogates in YAHPO's folder or without any."""
    there = surrogates_are_there(data, families_of(QUICK_TASKS))
    return QUICK_TASKS if there else QUICK_TASKS_WITHOUT_DATA


_JUDGED = 12  # of each family, so that none outweighs the others

_LCBENCH = "LCBench"
ACCURACIES = frozenset({_LCBENCH, *FAMILIES, "scikit-learn", "NAS"} - {"lcbench"})
"""Kinds of tasks whose values are all accuracies in percent, and so have points in common."""


def judged_tasks(data: Path | str | None = None) -> tuple[str, ...]:
    """Tasks that judge the methods: none of them was developed on.

    They are those of every family of surrogates that is there. Of a family's tasks without those
    for development it takes the first twelve in the order of their names' SHA-256, which nobody
    has chosen.

    Parameters
    ----------
    data
        YAHPO's folder; by default that in the data folder.
    """
    return tuple(
        f"{family} {task}"
        for family in families_there(data)
        for task in sorted(
            set(tasks_of(family, data)) - set(FAMILIES[family].development),
            key=lambda task: hashlib.sha256(f"{family} {task}".encode()).digest(),
        )[:_JUDGED]
    )


def is_kept_for_judging(task: str) -> bool:
    """Whether methods must not be developed on a task.

    Examples
    --------
    >>> is_kept_for_judging("lcbench 126025"), is_kept_for_judging("lcbench 3945")
    (True, False)
    >>> is_kept_for_judging("nas digits table"), is_kept_for_judging("branin")
    (True, False)
    >>> is_kept_for_judging("lcbench 3945, sigma 0.5, workers 16")
    False
    """
    task = task.partition(",")[0]  # of a label
    return task in NAS_TASKS or judges_releases(task)


def judges_releases(task: str) -> bool:
    """Whether a task is of those that are played once per release."""
    return task.partition(" ")[0] in FAMILIES and task not in DEVELOPMENT_TASKS


def development_task(name: str) -> str:
    """An argument of a command line that names a task on which methods may be developed."""
    if judges_releases(name):
        raise argparse.ArgumentTypeError(
            f"{name!r} is kept to judge releases, by python -m benchmarks.hpo run --judged"
        )
    return name


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
    family = task.partition(" ")[0]
    if family in FAMILIES:
        return _LCBENCH if family == "lcbench" else family
    if task.startswith(NAS):
        return "NAS"
    return "scikit-learn" if " " in task.partition(",")[0] else "synthetic"


def families_of(tasks: Iterable[str]) -> list[str]:
    """The families of surrogates that tasks need.

    Examples
    --------
    >>> families_of(["lcbench 3945", "branin", "lcbench 7593"])
    ['lcbench']
    """
    return sorted({task.partition(" ")[0] for task in tasks} & set(FAMILIES))


def label_of(task: str, sigma: float | None, workers: int | None = None) -> str:
    """The name under which records keep a task with other noise than usual, or on a clock.

    Examples
    --------
    >>> label_of("lcbench 3945", sigma=0.5, workers=16)
    'lcbench 3945, sigma 0.5, workers 16'
    """
    noise = "" if sigma is None else f", sigma {sigma:g}"
    return f"{task}{noise}" + ("" if workers is None else f", workers {workers}")
