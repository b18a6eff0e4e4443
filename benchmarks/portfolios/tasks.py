"""A model on a data set, whose parameters have the names and the values of its library."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problems.scikit_learn import split
from benchmarks.hpo.problems.surrogate import SurrogateProblem
from benchmarks.hpo.problems.table import Table
from benchmarks.hpo.space import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    Float,
    Integer,
    same_configuration,
)
from benchmarks.portfolios.recordings import FOLDER, accuracy_of_lightgbm
from benchmarks.report import write
from mfhpo.knowledge.arrays import FloatArray

_SPLITS = 3  # that LightGBM is trained on


class Task(abc.ABC):
    """A model on a data set."""

    space: ConfigurationSpace

    @property
    def best(self) -> float | None:
        """The largest accuracy in percent, where it is known."""
        return None

    @abc.abstractmethod
    def values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """The accuracies of configurations in the space, in percent."""

    def inside(self, configuration: Configuration) -> dict[str, Any]:
        """A configuration with numbers in the ranges of the space, and nothing else."""
        return {
            name: _inside(configuration[name], parameter)
            for name, parameter in self.space.parameters.items()
        }


def _inside(value: Any, parameter: Any) -> Any:
    if isinstance(parameter, Categorical):
        return value
    return min(max(value, parameter.low), parameter.high)


class OfSurrogate(Task):
    """A problem of YAHPO Gym; `names` gives its parameters by those of the library."""

    def __init__(
        self, problem: SurrogateProblem, names: Mapping[str, str], fixed: Mapping[str, Any]
    ) -> None:
        self._problem, self._names, self._fixed = problem, names, fixed
        self.space = ConfigurationSpace(
            {name: problem.space.parameters[theirs] for name, theirs in names.items()}
        )

    def values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """The surrogate's values at the target."""
        return self._problem.true_values(
            [
                {**self._fixed, **{self._names[name]: value for name, value in one.items()}}
                for one in configurations
            ]
        )


class OfTable(Task):
    """A table of recorded trainings, of which the nearest one to a configuration counts."""

    def __init__(self, table: Table, space: ConfigurationSpace) -> None:
        self.space = space
        self._table = table
        self._means = table.values[:, -1].mean(axis=1)
        self._n_features = split(table.name.partition(" ")[2], 0)[0].shape[1]

    @property
    def best(self) -> float:
        """The largest mean."""
        return float(self._means.max())

    def inside(self, configuration: Configuration) -> dict[str, Any]:
        """The same, with scikit-learn's words as the numbers that they stand for."""
        n = self._n_features
        words = {"scale": 1.0 / n, "sqrt": int(n**0.5) / n}  # features have variance 1
        return super().inside({key: words.get(one, one) for key, one in configuration.items()})

    def values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Means over the recorded seeds."""
        places = []
        for name, given in self._table.grid.items():
            grid, asked = np.array(given), np.array([one[name] for one in configurations])
            parameter = self.space.parameters[name]
            if isinstance(parameter, (Float, Integer)) and parameter.log:
                grid, asked = np.log(grid), np.log(asked)
            places.append(np.abs(asked[:, None] - grid).argmin(axis=1))
        shape = [len(given) for given in self._table.grid.values()]
        found: FloatArray = self._means[np.ravel_multi_index(places, shape)]
        return found


class OfLightGBM(Task):
    """LightGBM, trained when it is asked for; what was trained once is kept in a file."""

    space = ConfigurationSpace(
        {
            "num_leaves": Integer(4, 512, log=True),
            "min_child_samples": Integer(2, 100, log=True),
            "learning_rate": Float(0.001, 0.5, log=True),
            "max_bin": Integer(15, 1023, log=True),
            "colsample_bytree": Float(0.3, 1.0),
            "reg_alpha": Float(1e-3, 32.0, log=True),
            "reg_lambda": Float(1e-3, 64.0, log=True),
            "extra_trees": Categorical((False, True)),
        }
    )

    def __init__(self, data_set: str, folder: Path = FOLDER) -> None:
        self._data_set = data_set
        self._file = folder / f"lightgbm-{data_set}.json"
        self._known: dict[str, float] = {}
        if self._file.exists():
            self._known = json.loads(self._file.read_text(encoding="utf-8"))

    @property
    def best(self) -> float:
        """The largest mean of all that were trained."""
        return max(self._known.values())

    def values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Means over a few splits."""
        found = []
        for one in configurations:
            key = hashlib.sha256(repr(same_configuration(one)).encode()).hexdigest()[:12]
            if key not in self._known:
                value = accuracy_of_lightgbm(one, self._data_set, _SPLITS)
                self._known[key] = round(value, 3)
                write(self._file, json.dumps(self._known, indent=0) + "\n")
            found.append(self._known[key])
        return np.array(found)
