"""Each arm's noise variance where nothing is declared: shared as far as the arms agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, polygamma, psi, stdtrit

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.noise import PooledVariance

# What the arms' variances have in common is estimated anew once the degrees of freedom have grown
# by this factor.
_RENEWAL = 1.1

# And once a value is this many times farther from its mean, in squares, than is common.
_SURPRISE = 10.0

# Degrees of freedom beyond which arms count as having one variance.
_MOST_DEGREES = 1e6


@dataclass(frozen=True)
class SharedVariance:
    """What the arms' variances have in common (Smyth 2004, "Linear models and empirical Bayes").

    They are taken as draws from a scaled inverse chi-squared distribution with the scale
    `variance`, whose `degrees` of freedom say how many values of an arm the others are worth.
    """

    variance: float = 0.0
    degrees: float = 0.0

    def of_arms(self, squares: FloatArray, counts: IntArray, level: float) -> FloatArray:
        """Variances to use as if they were known; infinite where nothing is known.

        An arm's own variance and the shared one are averaged by their degrees of freedom, and
        raised by the squared ratio of Student's quantile to the normal one (the moderated t) at
        `level`.
        """
        own = np.maximum(counts - 1, 0)
        degrees = own + self.degrees
        total = np.where(own > 0, squares, 0.0) + self.degrees * self.variance
        known = degrees > 0.0
        safe = np.where(known, degrees, 1.0)
        inflation = (stdtrit(safe, level) / ndtri(level)) ** 2
        return np.where(known, total / safe * inflation, np.inf)


def share_variances(squares: FloatArray, counts: IntArray) -> SharedVariance:
    """Estimate what the arms' variances have in common, cautiously (Smyth 2004, Section 6.2).

    The spread of the logarithms of the sample variances beyond chance gives the degrees of freedom.
    It is raised by its own standard error, so that few arms are not taken to be alike for lack of
    evidence.
    """
    chosen = (counts > 1) & (squares > 0.0)
    n_arms = int(chosen.sum())
    if n_arms < 2:
        return SharedVariance()
    half = (counts[chosen] - 1) / 2.0
    logs = np.log(squares[chosen] / (2.0 * half)) - psi(half) + np.log(half)
    by_chance = polygamma(1, half)
    centre, spread = float(logs.mean()), float(logs.var(ddof=1))
    expected = float(by_chance.mean())
    # Of a sample variance; the fourth moment of a logarithm is larger than a normal one's.
    error = np.sqrt(np.mean(polygamma(3, half) + 2.0 * by_chance**2) / n_arms)
    excess = max(spread - expected + float(error), 2.0 / _MOST_DEGREES)
    prior = _inverse_trigamma(excess)
    variance = float(np.exp(centre + psi(prior) - np.log(prior)))
    return SharedVariance(variance, 2.0 * prior)


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on 1 / trigamma, which is nearly linear."""
    x = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step < 1e-10 * x:
            break
    return x


class ArmVariances:
    """Estimated variances of all arms at one fidelity; `level` is that of `PooledVariance`."""

    def __init__(self, level: float) -> None:
        self._pooled = PooledVariance(level)
        self._shared = SharedVariance()
        self._shared_at = 0.0

    @property
    def bound(self) -> float:
        """Upper bound on a variance that all arms share; infinite before the first repeats."""
        return self._pooled.bound

    def add(self, pooled: float, growth: float, squares: FloatArray, counts: IntArray) -> bool:
        """Learn of one more value of an arm that has others; say if all variances have changed.

        `growth` is by how much the sum of squares around the arm's mean has grown; `pooled` is that
        or the squared prediction error. `squares` and `counts` are those of all arms now.
        """
        before = self._pooled.bound
        self._pooled.add(pooled, 1)
        if self._pooled.bound != before:
            return True
        is_usual = growth <= _SURPRISE * self._shared.variance
        degrees = self._pooled.degrees
        if is_usual and degrees <= _RENEWAL * self._shared_at:
            return False
        self._shared_at = float(degrees)
        self._shared = share_variances(squares, counts)
        return True

    def of_arms(self, squares: FloatArray, counts: IntArray, level: float) -> FloatArray:
        """Variances of arms (see `SharedVariance.of_arms`), never below the bound on a shared one.

        They are 0 if all repeats were equal.
        """
        own = self._shared.of_arms(squares, counts, level)
        return np.maximum(self.bound, own) if self.bound > 0.0 else np.zeros_like(own)

    def state_dict(self) -> dict[str, Any]:
        """The state as plain JSON values."""
        return {
            "pooled": self._pooled.state_dict(),
            "shared": [self._shared.variance, self._shared.degrees],
            "shared_at": self._shared_at,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state."""
        self._pooled.load_state_dict(state["pooled"])
        self._shared = SharedVariance(*state["shared"])
        self._shared_at = float(state["shared_at"])
