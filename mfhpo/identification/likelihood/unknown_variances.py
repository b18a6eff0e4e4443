"""When an arm is known to be no better than a leader, where every arm has a variance of its own.

There are two ways, which share delta. Both hold at all times, for any rule that chooses the pulls,
and whatever the ratio of the arms' spreads is, if the noise is normal
(`mfhpo.knowledge.studentised`).

Together, for arms that are close. For means of the two arms that the null hypothesis allows, the
evidence against the leader's and that against the other's add up. Where the smallest sum over all
such means reaches y with ``(1 + y) exp(-y) = level``, the null hypothesis is false.

Apart, for the many arms that are far from the leader. The leader's mean is bounded from below, and
the other's from above. Only the best arm's own upper bound can eliminate it wrongly, so no union
bound over arms is needed for these. A second upper bound supposes that no arm spreads more than a
stated number of times as much as another. The others' squares, times the square of that number,
are then those of a noise that is at least as large as the arm's. It needs two values of the arm's
own, and is not used where these spread more than that.
"""

import math
from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray
from mfhpo.knowledge.confidence import StudentMixtureRadius
from mfhpo.knowledge.studentised import log_evidence, log_evidence_with_others, wanted_of_two

# Shares of delta: of the sums, of bounds from above by an arm's own spread and with that of others,
# and of bounds from below.
_TOGETHER, _ABOVE, _ABOVE_BY_RATIO, _BELOW = 0.6, 0.2, 0.13, 0.07

_RADIUS = StudentMixtureRadius()  # of a leader's mean

# The effects of arms that are close are small, those of arms that are far from the leader large.
_PRIOR, _FAR_PRIOR = 2.0, 0.03
_FAR_PRIOR_OF_RATIO = 0.5

# Where the minimum is looked for: shares of the gap that the leader's mean takes, and beyond
# either end standard errors of the mean that is then on its own side of the null hypothesis.
_SHARES = (1.0 - np.cos(np.linspace(0.0, math.pi, 17))) / 2.0
_BEYOND = np.array([0.3, 0.7, 1.2, 2.0, 3.0])
_FINER = np.linspace(-1.0, 1.0, 7)
_ROUNDS = 2


@dataclass(frozen=True)
class Pairs:
    """Pairs of a leader and another arm; see `mfhpo.knowledge.studentised.log_evidence`."""

    gaps: FloatArray  # by which the leader's mean exceeds what the null hypothesis says, (n,)
    counts: FloatArray  # of the leader and of the other, shape (2, n), as all below
    squares: FloatArray
    shared: FloatArray  # squares of other arms that count for the other one, and their degrees

    def excess(
        self, delta: float, n_others: int, n_fidelities: int = 1, choices: int = 1
    ) -> FloatArray:
        """Return how far the evidence exceeds what is wanted, by the better of two bounds, (n,).

        There are `n_others` arms that may seem to be better than the best one. `choices` pairs of
        fidelities are tried for each pair of arms, and `n_fidelities` of each arm.
        """
        found = np.full(len(self.gaps), -np.inf)
        told = (self.gaps > 0.0) & (self.counts > 1.0).all(axis=0)
        told &= np.isfinite(self.squares).all(axis=0)
        if told.any():
            pairs = self._some(told)
            apart = pairs._apart(delta / n_fidelities, n_others)
            close = apart < 0.0
            if close.any():
                wanted = wanted_of_two(_TOGETHER * delta / (n_others * choices))
                together = pairs._some(close)._together(wanted) - wanted
                apart[close] = np.maximum(apart[close], together)
            found[told] = apart
        return found

    def _some(self, chosen: BoolArray) -> "Pairs":
        counts, squares = self.counts[:, chosen], self.squares[:, chosen]
        return Pairs(self.gaps[chosen], counts, squares, self.shared[:, chosen])

    def _apart(self, delta: float, n_others: int) -> FloatArray:
        level = _BELOW * delta / n_others
        below = _RADIUS(self.counts[0], level, squares=self.squares[0])
        left = np.maximum(self.gaps - below, 0.0)
        by_own = log_evidence(left, self.counts[1], self.squares[1], _FAR_PRIOR)
        of_others, degrees = self.shared
        with_others = log_evidence_with_others(
            left, self.counts[1], self.squares[1], of_others, degrees, _FAR_PRIOR_OF_RATIO
        )
        by_own += math.log(_ABOVE * delta)
        with_others += math.log(_ABOVE_BY_RATIO * delta)
        return np.where(left > 0.0, np.maximum(by_own, with_others), -np.inf)

    def _together(self, wanted: float) -> FloatArray:
        """Return the smallest sum, or a larger one below what is wanted."""
        gaps = self.gaps[:, None]
        found = self._sums(gaps * np.array([0.0, 0.5, 1.0])).min(axis=1)
        open_ = found >= wanted
        if open_.any():
            found[open_] = self._some(open_)._least_sum()
        return np.asarray(found)

    def _sums(self, parts: FloatArray) -> FloatArray:
        """Return the sums at such distances of the leader's mean from its own, shape (n, X)."""
        counts, squares = self.counts[:, :, None], self.squares[:, :, None]
        leaders = log_evidence(parts, counts[0], squares[0], _PRIOR)
        others = log_evidence(self.gaps[:, None] - parts, counts[1], squares[1], _PRIOR)
        return np.asarray(leaders + others)

    def _least_sum(self) -> FloatArray:
        errors = np.sqrt(self.squares / (self.counts * (self.counts - 1.0)))[:, :, None]
        gaps = self.gaps[:, None]
        before, after = -errors[0] * _BEYOND[::-1], gaps + errors[1] * _BEYOND
        parts = np.concatenate([before, gaps * _SHARES, after], axis=1)
        rows = np.arange(len(parts))
        sums = self._sums(parts)
        least = np.asarray(sums.min(axis=1))
        for _ in range(_ROUNDS):
            best = np.clip(sums.argmin(axis=1), 1, parts.shape[1] - 2)
            centres = parts[rows, best]
            widths = np.maximum(centres - parts[rows, best - 1], parts[rows, best + 1] - centres)
            parts = centres[:, None] + widths[:, None] * _FINER
            sums = self._sums(parts)
            np.minimum(least, sums.min(axis=1), out=least)
        return least
