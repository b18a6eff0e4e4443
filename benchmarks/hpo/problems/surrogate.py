"""YAHPO Gym's surrogates (Pfisterer et al., AutoML 2022), run by ONNX."""

import argparse
import json
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data.folder import HOW, data_folder
from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.space import (
    Categorical,
    Condition,
    Configuration,
    ConfigurationSpace,
    Float,
    Integer,
    Parameter,
)
from mfhpo.knowledge.arrays import FloatArray

_FILES = ("model.onnx", "encoding.json", "config_space.json")


def scenario_folder(name: str, data: Path | str | None) -> Path:
    """Folder of a scenario's files, whether they are there or not.

    Parameters
    ----------
    name
        Of the scenario, such as "lcbench".
    data
        Folder that holds the scenarios; by default YAHPO's in the data folder.
    """
    return (data_folder() / "yahpo" if data is None else Path(data)) / name


def surrogates_are_there(data: Path | str | None, scenarios: Iterable[str]) -> bool:
    """Whether the data folder has these scenarios, or a folder of them is given, even in vain."""
    return data is not None or all(is_there(scenario_folder(name, data)) for name in scenarios)


def check_surrogates(
    parser: argparse.ArgumentParser, data: Path | str | None, scenarios: Iterable[str]
) -> None:
    """End a command line with an error that names what is missing of scenarios, if anything is."""
    try:
        for name in scenarios:
            file_of(scenario_folder(name, data), "model.onnx")
    except FileNotFoundError as error:
        parser.error(str(error))


def is_there(folder: Path) -> bool:
    """Whether a scenario's folder has all its files."""
    return all((folder / name).is_file() for name in _FILES)


def file_of(folder: Path, name: str) -> Path:
    """A file of a scenario.

    Raises
    ------
    FileNotFoundError
        If it is missing.
    """
    if not (folder / name).is_file():
        raise FileNotFoundError(
            f"{folder / name} is missing, a surrogate of YAHPO Gym that is not shipped: {HOW}."
        )
    return folder / name


class Surrogate:
    """One model on one thread.

    Parameters
    ----------
    folder
        Holds model.onnx and encoding.json.

    Attributes
    ----------
    encoding
        By categorical input, the code of each of its values.
    widths
        Number of its continuous and of its categorical inputs, as x_cont and x_cat.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    """

    def __init__(self, folder: Path) -> None:
        model = file_of(folder, "model.onnx")
        text = file_of(folder, "encoding.json").read_text(encoding="utf-8")
        self.encoding: dict[str, dict[str, int]] = json.loads(text)
        import onnxruntime  # here, so that other problems do without it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(str(model), options)
        self.widths = {one.name: one.shape[1] for one in self._session.get_inputs()}
        # Replicates and repeated recommendations ask for the same row again.
        self._remembered = lru_cache(maxsize=10_000)(self._predict_one)

    def predict(
        self, continuous: npt.ArrayLike, categories: npt.ArrayLike
    ) -> npt.NDArray[np.float32]:
        """Outputs of many rows.

        Parameters
        ----------
        continuous
            Shape (rows, continuous inputs), raw values; 0 where a parameter does not apply.
        categories
            Shape (rows, categorical inputs), codes.

        Returns
        -------
        array of shape (rows, outputs)
            In their original units.
        """
        inputs = {
            "x_cont": np.asarray(continuous, dtype=np.float32),
            "x_cat": np.asarray(categories, dtype=np.int32),
        }
        [outputs] = self._session.run(None, inputs)
        found: npt.NDArray[np.float32] = outputs
        return found

    def predict_one(
        self, continuous: tuple[float, ...], categories: tuple[int, ...]
    ) -> tuple[float, ...]:
        """Outputs of one row; the last 10,000 different rows are remembered."""
        return self._remembered(continuous, categories)

    def _predict_one(
        self, continuous: tuple[float, ...], categories: tuple[int, ...]
    ) -> tuple[float, ...]:
        return tuple(self.predict([continuous], [categories])[0].tolist())


@cache
def surrogate(folder: Path) -> Surrogate:
    """The one surrogate of a folder in this process."""
    return Surrogate(folder)


@cache
def space_of(folder: Path, left_out: tuple[str, ...]) -> ConfigurationSpace:
    """Read config_space.json.

    Parameters
    ----------
    folder
        Holds the file.
    left_out
        What is not tuned: the task, the fidelity, the replication.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    """
    described = json.loads(file_of(folder, "config_space.json").read_text(encoding="utf-8"))
    parameters = {
        given["name"]: _parameter(given)
        for given in described["hyperparameters"]
        if given["name"] not in left_out
    }
    conditions = {
        given["child"]: Condition(
            given["parent"],
            tuple(given["values"]) if given["type"] == "IN" else (given["value"],),
        )
        for given in described["conditions"]
    }
    return ConfigurationSpace(parameters, conditions)


def _parameter(given: dict[str, Any]) -> Parameter:
    if given["type"] == "categorical":
        return Categorical(tuple(given["choices"]))
    kind = Integer if given["type"] == "uniform_int" else Float
    return kind(given["lower"], given["upper"], given["log"])


class SurrogateProblem(NoisyProblem):
    """A task of a scenario.

    Parameters
    ----------
    name
        Of the problem.
    folder
        Of the scenario.
    fidelity
        What is sent to the surrogate in place of the parameter of that name.
    fixed
        Values of inputs that are not tuned, the task among them.
    continuous, categorical
        Names of the surrogate's inputs, in its order.
    output
        Index of the value among the surrogate's outputs, that of the seconds that a training
        takes, and the value's unit in percent.
    sigma
        Standard deviation of the noise, in percent.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        fidelity: FidelitySpace,
        fixed: dict[str, Any],
        continuous: tuple[str, ...],
        categorical: tuple[str, ...],
        output: tuple[int, int, float],
        sigma: float,
    ) -> None:
        space = space_of(folder, (fidelity.name, *fixed))
        super().__init__(name, space, fidelity, sigma)
        self._folder = folder
        self._continuous = continuous
        self._categorical = categorical
        self._value, self._time, self._percent = output
        self._fixed = dict(fixed)
        codes = surrogate(folder).encoding
        widths = {"x_cont": len(continuous), "x_cat": len(categorical)}
        if surrogate(folder).widths != widths:
            raise ValueError(
                f"{folder / 'model.onnx'} must take {widths} numbers, and takes "
                f"{surrogate(folder).widths}: it is of another release."
            )
        for column in categorical:
            if column in fixed and fixed[column] not in codes[column]:
                raise ValueError(
                    f"{column} must be one of {sorted(codes[column])}, got {fixed[column]!r}."
                )
        rng = np.random.default_rng(0)
        random = [self.space.draw(rng) for _ in range(1000)]
        outputs = self._outputs(random, fidelity.target)
        self.seconds = float(np.median(outputs[:, self._time]))

    def noiseless(self, configurations: Sequence[Configuration], fidelity: float) -> FloatArray:
        """The surrogate's values at a level, in percent."""
        if len(configurations) == 1:
            row = self._row(configurations[0], fidelity)
            values = [surrogate(self._folder).predict_one(*row)[self._value]]
            return self._percent * np.array(values)
        outputs = self._outputs(configurations, fidelity)
        return self._percent * outputs[:, self._value].astype(np.float64)

    def seconds_of(self, configuration: Configuration, fidelity: float) -> float:
        """The surrogate's time of a training."""
        row = self._row(configuration, fidelity)
        return surrogate(self._folder).predict_one(*row)[self._time]

    def trainings(self, configurations: Sequence[Configuration]) -> tuple[FloatArray, FloatArray]:
        """Values in percent and seconds of trainings at the target level, without noise."""
        outputs = self._outputs(configurations, self.fidelity.target).astype(np.float64)
        return self._percent * outputs[:, self._value], outputs[:, self._time]

    def _outputs(
        self, configurations: Sequence[Configuration], fidelity: float
    ) -> npt.NDArray[np.float32]:
        rows = [self._row(configuration, fidelity) for configuration in configurations]
        continuous, categories = zip(*rows, strict=True)
        return surrogate(self._folder).predict(continuous, categories)

    def _row(
        self, configuration: Configuration, fidelity: float
    ) -> tuple[tuple[float, ...], tuple[int, ...]]:
        given = {**self._fixed, **configuration, self.fidelity.name: fidelity}
        codes = surrogate(self._folder).encoding
        return (
            tuple(float(given.get(name, 0.0)) for name in self._continuous),
            tuple(codes[name][given.get(name, "#na#")] for name in self._categorical),
        )
