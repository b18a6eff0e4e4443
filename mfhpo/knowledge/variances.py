"""Each arm's noise variance where nothing is declared: shared as far as the arms agree.

Where they agree on one, the theorem of `mfhpo.knowledge.studentised` holds. Where they do not, an
arm's variance is a compromise, which no theorem covers; `make assumptions` measures what it is
worth.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import gammaln

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.knowledge.studentised import credited

# How far the arms agree is estimated anew once the degrees of freedom have grown by this factor.
_RENEWAL = 1.1

# And once a value is this many times farther from its mean, in squares, than is common.
_SURPRISE = 10.0

# Degrees of freedom that are tried; arms for which the last one does have one variance.
_DEGREES = np.append(2.0 ** np.arange(0, 11), 4096.0)

# Shared variances that are tried, over the pooled one.
_SCALES = np.geomspace(0.1, 3.0, 40)

# Of the logarithm of the likelihood: what may be lost by fewer degrees of freedom than fit best.
_CAUTION = 0.1


def agreement(squares: FloatArray, counts: IntArray) -> float:
    """Degrees of freedom that the other arms' variances are worth to an arm without repeats.

    The variances are taken as draws from a scaled inverse chi-squared distribution, whose degrees
    of freedom say how alike they are (Smyth 2004, "Linear models and empirical Bayes"). Of those
    that fit, by their likelihood, nearly as well as the best, the fewest are chosen; infinite where
    one variance for all does, 0 where nothing is known. The arguments have shape (K,): sums of
    squares around the arms' means, and numbers of values.
    """
    repeated = counts > 1
    if repeated.any() and not squares[repeated].any():
        return math.inf
    repeated &= squares > 0.0
    if repeated.sum() < 2:
        return 0.0
    own, spread = counts[repeated] - 1.0, squares[repeated]
    degrees = _DEGREES[:, None, None]
    shared = degrees * (spread.sum() / own.sum() * _SCALES)[:, None]
    likelihoods = (
        gammaln((degrees + own) / 2.0)
        - gammaln(degrees / 2.0)
        + degrees / 2.0 * np.log(shared)
        - (degrees + own) / 2.0 * np.log(shared + spread)
    )
    fits = likelihoods.sum(axis=2).max(axis=1)
    fewest = int(np.argmax(fits >= fits.max() - _CAUTION))
    return math.inf if fewest == len(_DEGREES) - 1 else float(_DEGREES[fewest])


class ArmVariances:
    """Estimated variances of all arms at one fidelity, from the statistics of all."""

    def __init__(self, statistics: PullStatistics, fidelity: int) -> None:
        self._statistics = statistics
        self._fidelity = fidelity
        self._agreement = 0.0
        self._renewed_at = 0.0

    def learn(self, growth: float) -> None:
        """Learn of a value by which the sum of squares around its arm's mean has grown."""
        degrees, variance = self.degrees, self.pooled
        is_usual = growth <= _SURPRISE * variance
        if is_usual and degrees <= _RENEWAL * self._renewed_at:
            return
        self._renewed_at = degrees
        self._agreement = agreement(self._squares, self._counts)

    @property
    def _squares(self) -> FloatArray:
        return self._statistics.squares[:, self._fidelity]

    @property
    def _counts(self) -> IntArray:
        return self._statistics.counts[:, self._fidelity]

    @property
    def degrees(self) -> float:
        """Degrees of freedom of all arms together."""
        return float(np.maximum(self._counts - 1, 0).sum())

    @property
    def pooled(self) -> float:
        """The variance that the arms have if it is one for all; NaN without repeats."""
        degrees = self.degrees
        return float(self._squares.sum()) / degrees if degrees else math.nan

    def of_arms(self, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """Variances, infinite where unknown, and their degrees of freedom, shape (n,) each.

        An arm's own variance and that of the others are averaged by their degrees of freedom; those
        of the others are at most what `agreement` gives.
        """
        squares, credit = self._squares, self._lent(credited(self._counts))
        return self._moderated(arms, squares.sum() - squares[arms], credit.sum() - credit[arms])

    def _lent(self, degrees: FloatArray) -> FloatArray:
        """Degrees of freedom that arms lend to others: none of arms without noise, if some have it.

        Shape (K,).
        """
        return np.where((self._squares > 0.0) | ~self._squares.any(), degrees, 0.0)

    def of_pairs(self, leader: int, others: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same for the leader and each of the others as if they had one variance for the pair.

        Variances of the leader and of the other, and the smaller degrees of freedom, shape (n,)
        each. Where the arms agree all three are those of all values.
        """
        squares, counts = self._squares, self._counts
        credit = self._lent(credited(counts))
        own = self._lent(np.maximum(counts - 1.0, 0.0))
        third = credit.sum() - credit[leader] - credit[others]
        total = squares.sum()
        leaders = np.full(len(others), leader)
        mine, my_degrees = self._moderated(leaders, total - squares[leader], third + own[others])
        theirs, their_degrees = self._moderated(
            others, total - squares[others], third + own[leader]
        )
        return mine, theirs, np.minimum(my_degrees, their_degrees)

    def _moderated(
        self, arms: IntArray, squares: FloatArray, degrees: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Average the arms' own variances and those of others, with these squares and degrees."""
        own = np.maximum(self._counts[arms] - 1.0, 0.0)
        shared = np.minimum(degrees, self._agreement)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.where(shared > 0.0, shared * np.maximum(squares, 0.0) / degrees, 0.0)
            variances = (total + self._squares[arms]) / (shared + own)
        return np.where(shared + own > 0.0, variances, np.inf), shared + own

    def state_dict(self) -> dict[str, Any]:
        """The state as plain JSON values."""
        known = math.isfinite(self._agreement)
        return {
            "agreement": self._agreement if known else None,
            "renewed_at": self._renewed_at,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state, after that of the statistics."""
        known = state["agreement"] is not None
        self._agreement = float(state["agreement"]) if known else math.inf
        self._renewed_at = float(state["renewed_at"])
