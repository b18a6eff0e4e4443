"""Recorded trainings, replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problem import Evaluation, FidelitySpace
from benchmarks.hpo.problems.known import KnownProblem, checked_level, require_valid
from benchmarks.hpo.space import Configuration, ConfigurationSpace, Integer
from mfhpo.knowledge.arrays import FloatArray

FOLDER = Path(__file__).parents[1] / "tables"
"""Where tables are looked for, and where the command that builds them puts them."""


@dataclass(frozen=True)
class Table:
    """Trainings of every configuration of a grid.

    Parameters
    ----------
    name
        Of the problem that was recorded, such as "svm digits".
    grid
        By parameter its values in increasing order. Rows are in the order of `configurations_of`.
    fidelity
        Levels.
    values
        Accuracy in percent, shape (configurations, levels, seeds).
    seconds
        CPU time of a training, the mean over seeds, shape (configurations, levels).
    """

    name: str
    grid: Mapping[str, tuple[float, ...]]
    fidelity: FidelitySpace
    values: FloatArray
    seconds: FloatArray

    def __post_init__(self) -> None:
        configurations = int(np.prod([len(values) for values in self.grid.values()]))
        expected = configurations, len(self.fidelity.levels)
        if self.values.shape[:2] != expected or self.values.ndim != 3:
            raise ValueError(f"values must have shape {(*expected, 'seeds')}.")
        if self.seconds.shape != expected:
            raise ValueError(f"seconds must have shape {expected}, got {self.seconds.shape}.")

    def save(self, file: Path) -> None:
        """Write a compressed file of NumPy's."""
        described = {
            "name": self.name,
            "grid": self.grid,
            "fidelity": [self.fidelity.name, self.fidelity.levels, self.fidelity.continues],
        }
        with file.open("wb") as stream:
            np.savez_compressed(
                stream,
                described=np.array(json.dumps(described)),
                values=self.values.astype(np.float32),
                seconds=self.seconds.astype(np.float32),
            )

    @classmethod
    def load(cls, file: Path) -> Table:
        """Read what `save` wrote."""
        with np.load(file) as stored:
            described = json.loads(str(stored["described"]))
            name, levels, continues = described["fidelity"]
            return cls(
                described["name"],
                {key: tuple(values) for key, values in described["grid"].items()},
                FidelitySpace(name, tuple(levels), continues),
                stored["values"].astype(np.float64),
                stored["seconds"].astype(np.float64),
            )


def configurations_of(grid: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """All configurations of a grid; the last parameter changes fastest."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def table_file(name: str, folder: Path = FOLDER) -> Path:
    """The file of the table of a problem, such as "svm digits"."""
    return folder / f"{name.replace(' ', '-')}.npz"


class TableProblem(KnownProblem):
    """A table in which a configuration is named by places on the grid of its parameters.

    A run replays one of the recorded seeds, which its own seed draws, at all levels; the cost is
    the mean CPU time, in seconds. The true value is the mean over the recorded seeds, so the best
    value is known exactly. The full cost is that of the median configuration at the target level.

    Parameters
    ----------
    table
        What was recorded.

    Examples
    --------
    >>> from benchmarks.hpo.problems import problem_named
    >>> problem = problem_named("logistic_regression digits table")
    >>> problem.space.parameters["eta0"]
    Integer(low=0, high=10, log=False)
    >>> problem.true_value({"alpha": 0, "eta0": 6}) <= problem.best_value
    True
    """

    best_value: float

    def __init__(self, table: Table) -> None:
        self.name = f"{table.name} table"
        self.table = table
        self.fidelity = table.fidelity
        self._lengths = tuple(len(values) for values in table.grid.values())
        self.space = ConfigurationSpace(
            {name: Integer(0, len(values) - 1) for name, values in table.grid.items()}
        )
        self.full_cost = self.seconds = float(np.median(table.seconds[:, -1]))
        self._true = table.values[:, -1].mean(axis=1)
        self.best_value = float(self._true.max())

    @property
    def mean_costs(self) -> tuple[float, ...]:
        """Mean cost of a training at each level over the configurations, in full costs; increasing.

        That is what a user learns from a few trainings of each kind.
        """
        means = np.maximum.accumulate(self.table.seconds.mean(axis=0)) / self.full_cost
        # Levels that cost the same still have to be told apart.
        return tuple((means * (1.0 + 1e-9 * np.arange(len(means)))).tolist())

    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        """Look up what a recorded training gave, and what trainings cost on average."""
        level = checked_level(self.fidelity, fidelity)
        require_valid(self.space, configuration)
        row = self._rows([configuration])[0]
        values = self.table.values[row, level]
        recorded = np.random.default_rng(seed).integers(len(values))
        return Evaluation(float(values[recorded]), float(self.table.seconds[row, level]))

    def true_values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Means over the recorded seeds at the target level."""
        values: FloatArray = self._true[self._rows(configurations)]
        return values

    def _rows(self, configurations: Sequence[Configuration]) -> np.ndarray[Any, np.dtype[np.intp]]:
        places = np.array(
            [[given[name] for name in self.space.parameters] for given in configurations]
        )
        return np.atleast_1d(np.ravel_multi_index(tuple(places.T), self._lengths))
