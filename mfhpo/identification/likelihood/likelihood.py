"""How strongly the observations speak against one arm being better than another.

The statistic is the generalised likelihood ratio of MF-GRAD (Poiani, Degenne, Kaufmann, Metelli and
Restelli, NeurIPS 2024). To hold at all times, it replaces every count n by n^2 / (n + rho), and
loses ln(1 + n / rho) / 2 for each pair (arm, fidelity).

Why it is valid. S being the sum of n values of an arm at a fidelity minus n times their mean, in
units of sigma, the average of exp(x S - n x^2 / 2) over x ~ N(0, 1 / rho) is the supermartingale
``sqrt(rho / (n + rho)) exp(S^2 / (2 (n + rho)))``; so are products over the fidelities of two arms,
whatever rule chooses the pulls. By Ville's inequality the sum of
``S^2 / (2 (n + rho)) - ln(1 + n / rho) / 2`` ever reaches ln(1 / level) with probability at most
level, and level = delta / (K - 1) keeps delta.

The same holds for a part of the fidelities and for averages: the statistic is the largest of all
fidelities together, with weight 1/2, and of one fidelity of each arm, whose M^2 choices (M with
order bounds) share the other half evenly.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mfhpo.identification.likelihood.bias_models import MOST_PRECISION, BiasModel
from mfhpo.identification.likelihood.one_sided import Pairs as KnownPairs
from mfhpo.identification.likelihood.unknown_variances import Levels, Pairs
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import mixture_prior


def prior_count(level: float) -> float:
    """Give the rho that makes the statistic strongest after 16 pulls of each of two arms."""
    return mixture_prior(math.sqrt(level))


class PairLikelihood:
    """Evidence of the observations against other arms than the leader.

    `means` and `counts` of values, and upper bounds on the noise's `variances`, have shape (K, M),
    as have the `weights` n^2 / (n + rho) / (2 sigma^2) and `penalties` ln(1 + n / rho) / 2. Values
    of infinite variance are taken out. The arms' target means seem to be at the `centres`, shape
    (K,). The count rho is the `prior`; 0 gives the plain likelihood ratio, which is no bound at all
    times. `how` makes the ratio a statistic; None: the two-sided one of known variances.
    """

    def __init__(
        self,
        means: FloatArray,
        counts: IntArray | FloatArray,
        variances: FloatArray,
        bias: BiasModel,
        prior: float,
        how: "Statistic | None" = None,
    ) -> None:
        self.bias = bias
        self.prior = prior
        self._how = how or two_sided
        self.means, self.counts, self.variances = means, counts.astype(np.float64), variances
        known = np.isfinite(variances)
        with np.errstate(divide="ignore", over="ignore"):
            precision = np.minimum(1.0 / (2.0 * variances), MOST_PRECISION)
        effective = self.counts
        self.penalties: FloatArray = np.zeros(means.shape)
        if self.prior > 0.0:
            effective = counts * (counts / (counts + self.prior))
            # Also for values that are taken out: whether they are may depend on the values.
            self.penalties = np.log1p(counts / self.prior) / 2.0
        self.weights: FloatArray = np.where(known, effective * precision, 0.0)
        self.centres = self.bias.place(self)

    def against(
        self, leader: int, others: IntArray, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the evidence against others being better than the leader by epsilon.

        The centres of the others must not exceed the leader's. Returns the log likelihood ratio,
        all fidelities together, and the leader's target mean in the nearest such case, shape (n,)
        each; the mean is 0 where the bounds leave it open.
        """
        return self.bias.against(self, leader, others, epsilon)

    def statistic(
        self, leader: int, others: IntArray, ratio: FloatArray, epsilon: float = 0.0
    ) -> FloatArray:
        """Return how strongly the observations speak against others being better, shape (n,).

        `ratio` comes from `against`. From ln((K - 1) / delta) on, the other arm is not better. With
        a prior of 0 it is the ratio itself, and no bound.
        """
        if self.prior == 0.0:
            return ratio
        return self._how(self, leader, others, ratio, epsilon)

    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two arms' distances from the nearest such case at each fidelity, shape (M,).

        Negative well within the bias bounds. Another pull raises the statistic by about distance^2
        / (2 sigma^2).
        """
        return self.bias.distances(self, leader, other, alternative, epsilon)


# The statistic of a likelihood, given the leader, others (n,), their ratios (n,) and epsilon.
Statistic: TypeAlias = Callable[[PairLikelihood, int, IntArray, FloatArray, float], FloatArray]


def two_sided(
    pairs: PairLikelihood, leader: int, others: IntArray, ratio: FloatArray, epsilon: float
) -> FloatArray:
    """Return that of known variances, averaged over means on both sides of the null hypothesis."""
    of_leader, of_others = pairs.penalties[leader], pairs.penalties[others]
    together: FloatArray = ratio - of_leader.sum() - of_others.sum(axis=1)
    bias, n_fidelities = pairs.bias, len(pairs.bias.bounds)
    if n_fidelities == 1:
        return together
    of_two = bias.ratios_of_two(pairs, leader, others, epsilon)
    of_two -= of_leader[:, None] + of_others[:, None, :]
    best_two = of_two.reshape(len(others), -1).max(axis=1) - math.log(n_fidelities**bias.free)
    return np.asarray(np.maximum(together, best_two) - math.log(2.0))


def one_sided(threshold: float) -> Statistic:
    """Return that of known variances at the target, on the side where the leader is better.

    `threshold` is what the statistic is compared with; see
    `mfhpo.identification.likelihood.one_sided.Pairs`.
    """

    def statistic(
        pairs: PairLikelihood, leader: int, others: IntArray, ratio: FloatArray, epsilon: float
    ) -> FloatArray:
        gaps = pairs.means[leader, 0] - pairs.means[others, 0] + epsilon
        rows = [np.full(len(others), leader), others]
        counts, variances = pairs.counts[rows, 0], pairs.variances[rows, 0]
        told = (gaps > 0.0) & (counts > 0).all(axis=0) & np.isfinite(variances).all(axis=0)
        statistics = np.full(len(others), -np.inf)
        if told.any():
            known = KnownPairs(gaps[told], counts[:, told], variances[:, told])
            statistics[told] = known.evidence(pairs.prior, threshold)
        return statistics

    return statistic


def of_unknown(
    squares_of: Callable[[IntArray], FloatArray],
    squares_of_others: Callable[[IntArray], tuple[FloatArray, FloatArray]],
    delta: float,
    threshold: float,
) -> Statistic:
    """Return that of estimated variances, from one fidelity of each arm; the likelihood's steer.

    `squares_of` gives some arms' sums of squares around their means. `squares_of_others` gives
    those of others that count for them, and degrees of freedom, shape (n, M) each. The statistic is
    compared with the `threshold`, which it reaches where `delta` is kept.
    """

    def statistic(
        pairs: PairLikelihood, leader: int, others: IntArray, ratio: FloatArray, epsilon: float
    ) -> FloatArray:
        gaps = pairs.bias.gaps_of_two(pairs, leader, others, epsilon)
        counts = pairs.counts[leader][:, None], pairs.counts[others][:, None]
        squares = squares_of(np.append(leader, others))
        spread = squares[0][:, None], squares[1:, None]
        shared = [part[:, None] for part in squares_of_others(others)]

        def of_all(part: FloatArray) -> FloatArray:
            return np.broadcast_to(part, gaps.shape).ravel()

        found = Pairs(
            gaps.ravel(),
            np.stack([of_all(part) for part in counts]),
            np.stack([of_all(part) for part in spread]),
            np.stack([of_all(part) for part in shared]),
        )
        n_fidelities = len(pairs.bias.bounds)
        choices = n_fidelities**pairs.bias.free
        levels = Levels(delta, len(pairs.means) - 1, choices, n_fidelities)
        excess = found.excess(levels).reshape(len(others), -1).max(axis=1)
        return np.asarray(threshold + excess)

    return statistic
