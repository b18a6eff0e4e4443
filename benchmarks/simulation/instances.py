"""Problems whose means are known."""

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_increasing, check_nonnegative
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, Kind
from mfhpo.knowledge.noise import Noise, SubGaussian
from mfhpo.problem import Problem


class Instance(abc.ABC):
    """A bandit whose means are known, so that a policy's answers can be judged.

    Parameters
    ----------
    means
        Mean of every arm at every fidelity, shape (M, K); the last row is the target.
    costs
        Cost of one pull at each fidelity, shape (M,), positive and increasing.
    xi, gamma
        Declared bounds on the bias and on its variation between arms, shape (M,) (Poiani et al.
        2022, Sections 2 and 5). None: the smallest ones that the means satisfy.
    variance
        Sub-Gaussian variance proxy of one observation, sigma squared.

    Raises
    ------
    ValueError
        If a shape does not fit, a value is not finite, or the costs do not increase.
    """

    def __init__(
        self,
        means: npt.ArrayLike,
        costs: Sequence[float] | FloatArray,
        *,
        xi: Sequence[float] | FloatArray | None = None,
        gamma: Sequence[float] | FloatArray | None = None,
        variance: float = 1.0,
    ) -> None:
        self.means: FloatArray = np.array(means, dtype=np.float64)
        if self.means.ndim != 2 or not self.means.size or not np.isfinite(self.means).all():
            raise ValueError(
                f"means must be finite numbers of shape (fidelities, arms), got an array of shape "
                f"{self.means.shape}."
            )
        self.costs = self._per_fidelity("costs", costs)
        check_increasing("costs", self.costs.tolist())
        if self.costs[0] <= 0.0:
            raise ValueError(f"costs must be positive, got {self.costs.tolist()}.")
        biases = self.means - self.means[-1]
        self.xi: FloatArray = (
            np.abs(biases).max(axis=1) if xi is None else self._per_fidelity("xi", xi)
        )
        self.gamma: FloatArray = (
            np.ptp(biases, axis=1) if gamma is None else self._per_fidelity("gamma", gamma)
        )
        self.variance = check_nonnegative("variance", variance)

    def _per_fidelity(self, name: str, values: Sequence[float] | FloatArray) -> FloatArray:
        array = np.array(values, dtype=np.float64)
        if array.shape != (self.n_fidelities,):
            raise ValueError(
                f"{name} must have one value per fidelity, {self.n_fidelities} as means has rows, "
                f"got shape {array.shape}."
            )
        return array

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return int(self.means.shape[1])

    @property
    def n_fidelities(self) -> int:
        """Number of fidelities M."""
        return int(self.means.shape[0])

    @property
    def best_arm(self) -> int:
        """The arm with the largest mean at the target fidelity."""
        return int(np.argmax(self.means[-1]))

    def problem(self, kind: Kind | None = "max", noise: Noise | None = None) -> Problem:
        """Return what a policy may be told: bounds xi ("max"), gamma ("order") or none (None)."""
        bounds = self.xi if kind == "max" else self.gamma
        return Problem(
            self.n_arms,
            costs=tuple(self.costs.tolist()),
            bias=None if kind is None else Bias(kind, tuple(bounds.tolist())),
            noise=SubGaussian(math.sqrt(self.variance)) if noise is None else noise,
        )

    def draw(self, rng: np.random.Generator, arm: int, fidelity: int) -> float:
        """One observation of an arm at a fidelity."""
        return float(self._increments(rng, np.array([arm]), fidelity, np.array([1]))[0, 0])

    def running_sums(
        self,
        rng: np.random.Generator,
        arms: IntArray,
        fidelity: int,
        start: int,
        sums: FloatArray,
        totals: IntArray,
    ) -> FloatArray:
        """Continue the sums of the arms' observations with fresh draws.

        The arms (n,) have been observed `start` times at a fidelity, with `sums` (n,). The result,
        shape (n, T), holds the sums at `totals` observations, shape (T,), increasing from above
        `start`.
        """
        sizes = np.diff(totals, prepend=start)
        result = self._increments(rng, arms, fidelity, sizes)
        result[:, 0] += sums
        return np.cumsum(result, axis=1, out=result)

    @abc.abstractmethod
    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        """Sums of ``sizes[t]`` fresh draws, independent of each other, shape (n, T)."""


class GaussianInstance(Instance):
    """Normal noise of the given variance; sums of any size are drawn exactly, at once."""

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        result = rng.standard_normal((len(arms), len(sizes)))
        means = self.means[fidelity, arms][:, None]
        if sizes.max() > 1:
            result *= np.sqrt(self.variance * sizes)
            result += means * sizes
        else:
            if self.variance != 1.0:
                result *= math.sqrt(self.variance)
            result += means
        return result


class BernoulliInstance(Instance):
    """Observations 0 or 1; sums of any size are drawn exactly, as binomials."""

    def __init__(
        self,
        means: npt.ArrayLike,
        costs: Sequence[float] | FloatArray,
        *,
        variance: float = 0.25,
        **bounds: Any,
    ) -> None:
        super().__init__(means, costs, variance=variance, **bounds)
        low, high = float(self.means.min()), float(self.means.max())
        if low < 0.0 or high > 1.0:
            raise ValueError(f"means must be probabilities within [0, 1], got {low} to {high}.")

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        successes = rng.binomial(sizes, self.means[fidelity, arms][:, None])
        return np.asarray(successes, dtype=np.float64)
