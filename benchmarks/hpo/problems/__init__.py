"""Problems to tune, by name."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.hpo.problem import Problem
from benchmarks.hpo.problems.families import FAMILIES, family_problem
from benchmarks.hpo.problems.scikit_learn import DATA_SETS, MODELS, LiveProblem
from benchmarks.hpo.problems.synthetic import SYNTHETIC, Synthetic
from benchmarks.hpo.problems.table import FOLDER, Table, TableProblem, table_file

__all__ = ["DEVELOPMENT_TASKS", "LIVE", "NAS", "RECORDED", "SYNTHETIC", "problem_named", "tables"]

DEVELOPMENT_TASKS = tuple(
    f"{name} {task}" for name, family in FAMILIES.items() for task in family.development
)
"""Surrogates on which methods may be developed; other tasks are kept to judge them."""

LIVE = tuple(f"{model} {data_set}" for model in MODELS for data_set in DATA_SETS)
"""Models that are trained; with " table" behind the name, their recorded trainings."""

NAS = "nas digits"
"""Architectures of small networks; only their table can be played."""

RECORDED = (*LIVE, NAS)
"""What there may be tables of."""


def tables(folder: Path = FOLDER) -> tuple[str, ...]:
    """Names of the problems whose tables are there."""
    return tuple(f"{name} table" for name in RECORDED if table_file(name, folder).is_file())


def problem_named(
    name: str,
    data: Path | str | None = None,
    sigma: float | None = None,
    levels: Sequence[float] | None = None,
) -> Problem:
    """The problem of a name.

    Parameters
    ----------
    name
        "FAMILY TASK" of a surrogate, such as "lcbench 3945"; one of `SYNTHETIC`, such as "branin";
        one of `LIVE`, such as "svm digits"; one of `RECORDED` with " table" behind it.
    data
        YAHPO's folder, holding lcbench/ and others; by default that in the data folder.
    sigma
        Standard deviation of the noise; each problem has a default. What is trained has noise of
        its own, and cannot be given any.
    levels
        Levels of the fidelity, cheapest first; each problem has a default, and a table has no
        others.

    Raises
    ------
    FileNotFoundError
        If its files are missing.
    ValueError
        If there is no problem of this name, or an option does not suit it.

    Examples
    --------
    >>> problem = problem_named("hartmann3", levels=[0.1, 1.0])
    >>> problem.fidelity.levels
    (0.1, 1.0)
    >>> sorted(problem.space.parameters)
    ['x1', 'x2', 'x3']
    """
    if levels is not None and not levels:
        raise ValueError("levels must hold at least one level, got none.")
    if levels is not None and sorted(set(levels)) != list(levels):
        raise ValueError(f"levels must increase strictly, got {levels!r}; sort them.")
    given = {"sigma": sigma, "levels": None if levels is None else tuple(map(float, levels))}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    family, _, rest = name.partition(" ")
    if family in FAMILIES:
        return family_problem(family, rest, data, **options)
    if name in SYNTHETIC:
        return Synthetic(name, **options)
    recorded = name.removesuffix(" table")
    if recorded not in (LIVE if recorded == name else RECORDED):
        raise ValueError(f"no problem is named {name!r}: see problem_named for what there is.")
    if sigma is not None:
        raise ValueError(f"sigma={sigma!r} cannot be set for {name!r}: it has noise of its own.")
    if recorded == name:
        return LiveProblem(family, rest, **options)
    if levels is not None:
        raise ValueError(f"levels={levels!r} cannot be set for {name!r}: they are recorded.")
    return TableProblem(_table(recorded))


@cache
def _table(name: str) -> Table:
    file = table_file(name)
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} is missing: build it by python -m benchmarks.hpo.tables --problems {name!r}."
        )
    return Table.load(file)
