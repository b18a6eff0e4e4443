"""The noise by the race's own values, and whether a declared scale holds."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.noise import (
    Bounded,
    EstimatedNoise,
    Gaussian,
    NoiseAudit,
    SubGaussian,
    declared_sigmas,
)
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.knowledge.studentised import credited, spread_more
from mfhpo.problem import Problem

# Probability with which an arm whose spread is as large as it may be is taken to spread more.
_CONTRADICTED = 0.05

LEAST_REPEATS = 4
"""Repeats that must all be equal before it is said that there is no noise."""

MOST_RATIO = 4.0
"""The largest ratio of two arms' spreads, where the spread of one says anything about another."""

# Where a variance is a guess that steers the race, the others' count for so many repeats.
_GUESSED = 2.0


class NoNoiseWarning(UserWarning):
    """Repeated evaluations were equal, although noise was to be estimated from them."""


class NoiseEvidence:
    """What is known about the noise's variance, estimated where a declared scale does not do.

    The arguments are those of `Evidence`; each call of `learn` follows one of the statistics.
    """

    def __init__(
        self,
        problem: Problem,
        delta: float,
        compared: Sequence[int],
        statistics: PullStatistics,
        has_radius: bool,
        variances: bool,
        audit: bool,
        expects_spread: bool,
    ) -> None:
        noise = problem.noise
        self.sigmas = declared_sigmas(noise, problem.n_fidelities)
        self.delta = delta / 2.0 if variances and isinstance(noise, Bounded) else delta
        self.level = self.delta / (problem.n_arms * len(compared))
        self._compared = tuple(compared)
        self._statistics = statistics
        self.is_estimated = not has_radius and isinstance(noise, (EstimatedNoise, Gaussian))
        self._audits: list[NoiseAudit] = []
        if audit and not has_radius and isinstance(noise, SubGaussian):
            self._audits = [NoiseAudit(sigma) for sigma in self.sigmas or ()]
        self._saw_no_noise = False
        noiseless = isinstance(noise, SubGaussian) and not any(self.sigmas or ())
        self._expects_spread = expects_spread and not noiseless

    @property
    def widened(self) -> bool:
        """Whether a declared scale of the noise was contradicted, and is estimated instead."""
        return any(audit.contradicted for audit in self._audits)

    def is_estimated_at(self, fidelity: int) -> bool:
        """Tell whether noise is estimated at a fidelity, by choice or for a false scale."""
        return self.is_estimated or bool(self._audits and self._audits[fidelity].contradicted)

    def _repeats(self, fidelity: int) -> IntArray:
        return np.maximum(self._statistics.counts[:, fidelity] - 1, 0)

    def scale(self, fidelity: int) -> float:
        """Return the scale at a fidelity if all arms share one; NaN without repeats."""
        degrees = int(self._repeats(fidelity).sum())
        squares = float(self._statistics.squares[:, fidelity].sum())
        return math.sqrt(squares / degrees) if degrees else math.nan

    def is_hidden(self, fidelity: int, least: int = 1) -> bool:
        """Return whether many repeats at a fidelity were all equal, though noise is expected."""
        if self.sigmas is not None and self.sigmas[fidelity] == 0.0:
            return False
        seen = self._statistics
        are_equal = bool(seen.repeats[:, fidelity].any()) and not seen.squares[:, fidelity].any()
        return are_equal and int(self._repeats(fidelity).sum()) >= least

    @property
    def unaudited(self) -> dict[int, int]:
        """How many repeats are missing, by fidelity, to see that a declared sigma is too small."""
        counts, audits = self._statistics.counts, self._audits
        missing = {m: audits[m].missing for m in self._compared if audits and counts[:, m].any()}
        return {m: repeats for m, repeats in missing.items() if repeats}

    def learn(self, arm: int, fidelity: int, value: float, growth: float) -> str:
        """Learn a value, by the growth of its arm's squares; say in words what it contradicts."""
        if self._statistics.counts[arm, fidelity] < 2:
            return ""
        contradicted = self._audits[fidelity].add(growth, value) if self._audits else ""
        if self._expects_spread and not self._saw_no_noise:
            self._saw_no_noise = self.is_hidden(fidelity, LEAST_REPEATS)
            if self._saw_no_noise:
                warnings.warn(
                    "repeated evaluations give exactly the same values, so there is no noise to "
                    "be sure against. If that is a fixed random seed or split, the answer is the "
                    "best for that one only: draw a new one in every evaluation",
                    NoNoiseWarning,
                    stacklevel=6,
                )
        return contradicted

    def squares(self, arms: IntArray, fidelity: int) -> FloatArray:
        """Return credible sums of squares around the arms' means, (n,); infinite for equal values.

        Values that mostly repeat the one before are discrete, such as accuracies on few rows. Of n
        equal ones, a share of up to 1 - level^(1/n) may still be others, which adds ln(1 / level)
        usual squared steps.
        """
        seen, repeats = self._statistics, self._repeats(fidelity)[arms]
        squares = np.asarray(seen.squares[arms, fidelity])
        if self.is_hidden(fidelity):
            squares = np.where(repeats > 0, np.inf, squares)
        else:
            step = float(seen.moved[fidelity]) / max(int(seen.moves[fidelity]), 1)
            often = 2 * seen.repeats[arms, fidelity] > repeats
            squares = squares - np.where(often & (repeats > 0), math.log(self.level) * step, 0.0)
        if self.sigmas is None:
            return squares
        return np.asarray(np.maximum(squares, repeats * self.sigmas[fidelity] ** 2))

    def squares_of_others(self, arms: IntArray, fidelity: int) -> tuple[FloatArray, FloatArray]:
        """Return the others' squares, times `MOST_RATIO`^2, and degrees of freedom, (n,) each.

        The degrees are 0 for an arm about which the others say too little: with fewer than two
        values, one that spreads more, or discrete ones.
        """
        seen = self._statistics
        squares = MOST_RATIO**2 * _of_others(seen.squares[:, fidelity], arms)
        says = (seen.counts[arms, fidelity] > 1) & (not seen.repeats[:, fidelity].any())
        says &= ~self._spread_more(arms, fidelity)
        degrees = _of_others(credited(seen.counts[:, fidelity]), arms)
        return squares, np.where(says, degrees, 0.0)

    def spread_more(self, arms: IntArray, fidelity: int) -> IntArray:
        """Return which arms spread more than `MOST_RATIO` times as much as others, shape (n,)."""
        if not self.is_estimated_at(fidelity):
            return arms[:0]
        return np.asarray(arms[self._spread_more(arms, fidelity)])

    def _spread_more(self, arms: IntArray, fidelity: int) -> BoolArray:
        squares, repeats = self._statistics.squares[:, fidelity], self._repeats(fidelity)
        of_others = MOST_RATIO**2 * _of_others(squares, arms)
        degrees = _of_others(repeats.astype(float), arms)
        return spread_more(squares[arms], repeats[arms], of_others, degrees, _CONTRADICTED)

    def variances(self, arms: IntArray) -> FloatArray:
        """Return the noise's variances, (n, M), with guesses to steer; infinite without repeats."""
        found = np.full((len(arms), self._statistics.counts.shape[1]), np.inf)
        if self.sigmas is not None:
            found[:] = np.square(self.sigmas)
        for m in range(found.shape[1]):
            common = self.scale(m) ** 2 if self.is_estimated_at(m) else math.nan
            if math.isnan(common):
                continue
            own = self._statistics.squares[arms, m] + _GUESSED * common
            guessed = own / (self._repeats(m)[arms] + _GUESSED)
            found[:, m] = guessed if self.sigmas is None else np.maximum(guessed, found[:, m])
        return found


def _of_others(sums: FloatArray, arms: IntArray) -> FloatArray:
    """Return the sums over all arms but each of these, shape (n,)."""
    return np.asarray(sums.sum() - sums[arms])
