"""What problems have in common whose values are a known function plus noise."""

import abc
from collections.abc import Sequence

import numpy as np

from benchmarks.hpo.problem import Evaluation, FidelitySpace, Problem
from benchmarks.hpo.space import Categorical, Configuration, ConfigurationSpace, Float
from mfhpo.knowledge.arrays import FloatArray

_TOLERANCE = 1e-6  # optimisers that scale parameters meet their bounds up to rounding


class KnownProblem(Problem):
    """A problem whose true values are known."""

    @abc.abstractmethod
    def true_values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Expected values at the target level of many configurations at once."""

    def true_value(self, configuration: Configuration) -> float:
        """The expected value at the target level."""
        require_valid(self.space, configuration)
        return float(self.true_values([configuration])[0])


class NoisyProblem(KnownProblem):
    """A noiseless function of configuration and level, seen through normal noise.

    Parameters
    ----------
    name, space, fidelity
        As in `Problem`.
    sigma
        Standard deviation of the noise, in units of the value.
    """

    def __init__(
        self, name: str, space: ConfigurationSpace, fidelity: FidelitySpace, sigma: float
    ) -> None:
        self.name = name
        self.space = space
        self.fidelity = fidelity
        self.sigma = checked_sigma(sigma)
        self.full_cost = self.cost(fidelity.target)

    @abc.abstractmethod
    def noiseless(self, configurations: Sequence[Configuration], fidelity: float) -> FloatArray:
        """Expected values at a level, shape (number of configurations,)."""

    def cost(self, fidelity: float) -> float:
        """Cost of an evaluation from scratch: the level itself."""
        return fidelity

    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        """Evaluate a configuration; the noise is a function of the seed and the level."""
        level = checked_level(self.fidelity, fidelity)
        require_valid(self.space, configuration)
        noise = self.sigma * np.random.default_rng((seed, level)).standard_normal()
        [value] = self.noiseless([configuration], fidelity)
        return Evaluation(float(value + noise), self.cost(fidelity))

    def true_values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Expected values at the target level of many configurations at once."""
        return self.noiseless(configurations, self.fidelity.target)


def checked_level(space: FidelitySpace, fidelity: float) -> int:
    """Index of a level.

    Raises
    ------
    ValueError
        If the fidelity is none of the levels.
    """
    try:
        return space.levels.index(fidelity)
    except ValueError:
        raise ValueError(f"fidelity must be one of {space.levels}, got {fidelity!r}.") from None


def checked_sigma(sigma: float) -> float:
    """A scale of noise, or ValueError if it is negative or not finite."""
    if not (np.isfinite(sigma) and sigma >= 0.0):
        raise ValueError(f"sigma must be finite and at least 0, got {sigma!r}.")
    return sigma


def require_valid(space: ConfigurationSpace, configuration: Configuration) -> None:
    """Check that a configuration has a value in range for each parameter that applies.

    Raises
    ------
    ValueError
        If a parameter is missing or out of its range, or one is given that does not apply.
    """
    expected = 0
    for name, parameter in space.parameters.items():
        if not space.applies(name, configuration):
            continue
        expected += 1
        if name not in configuration:
            raise ValueError(f"configuration lacks {name!r}: {dict(configuration)}.")
        value = configuration[name]
        if isinstance(parameter, Categorical):
            valid = value in parameter.choices
        else:
            slack = _TOLERANCE * (parameter.high - parameter.low)
            valid = parameter.low - slack <= value <= parameter.high + slack
            valid = valid and (isinstance(parameter, Float) or float(value).is_integer())
        if not valid:
            raise ValueError(f"configuration[{name!r}] must be of {parameter}, got {value!r}.")
    if len(configuration) != expected:
        raise ValueError(
            f"configuration must hold what applies and no more, got {dict(configuration)}; "
            "use ConfigurationSpace.active."
        )
