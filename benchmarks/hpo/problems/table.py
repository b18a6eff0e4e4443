"""Recorded trainings, replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problem import Evaluation, FidelitySpace
from benchmarks.hpo.problems.known import KnownProblem, checked_level, require_valid
from benchmarks.hpo.space import (
    Categorical,
    Condition,
    Configuration,
    ConfigurationSpace,
    Integer,
    Parameter,
    same_configuration,
)
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
        By parameter its values: numbers in increasing order, or words. Rows are in the order of
        `configurations_of`.
    fidelity
        Levels.
    values
        Accuracy in percent, shape (configurations, levels, seeds).
    seconds
        CPU time of a training, the mean over seeds, shape (configurations, levels).
    log_loss
        In nats, of the shape of values; None where it was not recorded.
    conditions
        Which parameters apply only where another one has some of its values.
    """

    name: str
    grid: Mapping[str, tuple[Any, ...]]
    fidelity: FidelitySpace
    values: FloatArray
    seconds: FloatArray
    log_loss: FloatArray | None = None
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expected = len(self.configurations), len(self.fidelity.levels)
        if self.values.shape[:2] != expected or self.values.ndim != 3:
            raise ValueError(f"values must have shape {(*expected, 'seeds')}.")
        if self.log_loss is not None and self.log_loss.shape != self.values.shape:
            raise ValueError(f"log_loss must have the shape of values, got {self.log_loss.shape}.")
        if self.seconds.shape != expected:
            raise ValueError(f"seconds must have shape {expected}, got {self.seconds.shape}.")

    @cached_property
    def configurations(self) -> list[dict[str, Any]]:
        """What the rows are."""
        return configurations_of(self.grid, self.conditions)

    def place(self, name: str, value: Any) -> Any:
        """The place of a parameter's value on the grid; a word stands for itself."""
        return value if isinstance(value, str) else self.grid[name].index(value)

    def save(self, file: Path) -> None:
        """Write a compressed file of NumPy's."""
        described = {
            "name": self.name,
            "grid": self.grid,
            "fidelity": [self.fidelity.name, self.fidelity.levels, self.fidelity.continues],
            "conditions": {key: [one.parent, one.values] for key, one in self.conditions.items()},
        }
        arrays = {
            "described": np.array(json.dumps(described)),
            "values": self.values.astype(np.float32),
            "seconds": self.seconds.astype(np.float32),
        }
        if self.log_loss is not None:
            arrays["log_loss"] = self.log_loss.astype(np.float32)
        with file.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)

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
                stored["log_loss"].astype(np.float64) if "log_loss" in stored else None,
                {
                    key: Condition(parent, tuple(values))
                    for key, (parent, values) in described.get("conditions", {}).items()
                },
            )


def configurations_of(
    grid: Mapping[str, tuple[Any, ...]], conditions: Mapping[str, Condition]
) -> list[dict[str, Any]]:
    """All configurations of a grid, each once; the last parameter changes fastest.

    Examples
    --------
    >>> configurations_of({"depth": (1, 2), "skip": (0, 1)}, {"skip": Condition("depth", (2,))})
    [{'depth': 1}, {'depth': 2, 'skip': 0}, {'depth': 2, 'skip': 1}]
    """
    choices = {name: Categorical(values) for name, values in grid.items()}
    space = ConfigurationSpace(choices, conditions)
    every = (
        space.active(dict(zip(grid, values, strict=True))) for values in product(*grid.values())
    )
    return list({same_configuration(one): one for one in every}.values())


def table_file(name: str, folder: Path = FOLDER) -> Path:
    """The file of the table of a problem, such as "svm digits"."""
    return folder / f"{name.replace(' ', '-')}.npz"


class TableProblem(KnownProblem):
    """A table in which a configuration is named by places on the grid of its parameters.

    Words are named by themselves. A run replays one of the recorded seeds, which its own seed
    draws, at all levels; the cost is the mean CPU time, in seconds. The true value is the mean over
    the recorded seeds, so the best value is known exactly. The full cost is that of the median
    configuration at the target level.

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
        self.space = ConfigurationSpace(
            {name: _parameter(values) for name, values in table.grid.items()},
            {
                name: Condition(one.parent, tuple(table.place(one.parent, v) for v in one.values))
                for name, one in table.conditions.items()
            },
        )
        self._rows = {
            same_configuration({name: table.place(name, value) for name, value in given.items()}): k
            for k, given in enumerate(table.configurations)
        }
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
        row = self._rows[same_configuration(configuration)]
        values = self.table.values[row, level]
        recorded = np.random.default_rng(seed).integers(len(values))
        return Evaluation(float(values[recorded]), float(self.table.seconds[row, level]))

    def true_values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Means over the recorded seeds at the target level."""
        rows = [self._rows[same_configuration(given)] for given in configurations]
        values: FloatArray = self._true[rows]
        return values


def _parameter(values: tuple[Any, ...]) -> Parameter:
    return Categorical(values) if isinstance(values[0], str) else Integer(0, len(values) - 1)
