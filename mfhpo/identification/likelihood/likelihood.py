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
from abc import ABC, abstractmethod

import numpy as np

from mfhpo.identification.likelihood import one_sided
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import mixture_prior

MOST_PRECISION = 1e200
"""Without noise one value says it all; squares and products of finite weights stay finite."""


def prior_count(level: float) -> float:
    """Give the rho that makes the statistic strongest after 16 pulls of each of two arms."""
    return mixture_prior(math.sqrt(level))


class PairLikelihood(ABC):
    """Evidence of the observations against other arms than the leader, under bias `bounds`, (M,).

    `means` and `counts` of values, and upper bounds on the noise's `variances`, have shape (K, M),
    as have the `weights` n^2 / (n + rho) / (2 sigma^2) and `penalties` ln(1 + n / rho) / 2. Values
    of infinite variance are taken out. The arms' target means seem to be at the `centres`, shape
    (K,). The count rho is the `prior`; 0 gives the plain likelihood ratio, which is no bound at all
    times.
    """

    free: int  # how many fidelities may be chosen freely, of one for each of two arms

    def __init__(
        self,
        means: FloatArray,
        counts: IntArray | FloatArray,
        variances: FloatArray,
        bounds: FloatArray,
        prior: float,
    ) -> None:
        self.means, self.counts, self.variances = means, counts.astype(np.float64), variances
        self.bounds, self.prior = bounds, prior
        with np.errstate(divide="ignore", over="ignore"):
            precision = np.minimum(1.0 / (2.0 * variances), MOST_PRECISION)
        effective = self.counts
        self.penalties: FloatArray = np.zeros(means.shape)
        if prior > 0.0:
            effective = counts * (counts / (counts + prior))
            # Also for values that are taken out: whether they are may depend on the values.
            self.penalties = np.log1p(counts / prior) / 2.0
        self.weights: FloatArray = np.where(np.isfinite(variances), effective * precision, 0.0)
        self.centres = self._place()

    @abstractmethod
    def _place(self) -> FloatArray:
        """Return where the arms' target means seem to be, shape (K,)."""

    @abstractmethod
    def against(
        self, leader: int, others: IntArray, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the evidence against others being better than the leader by epsilon.

        The centres of the others must not exceed the leader's. Returns the log likelihood ratio,
        all fidelities together, and the leader's target mean in the nearest such case, shape (n,)
        each; the mean is 0 where the bounds leave it open.
        """

    @abstractmethod
    def gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return how far differences of two means exceed the null hypothesis.

        Shape (n, M, M): the leader's fidelity, the other's; negative where they are not compared.
        """

    @abstractmethod
    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two arms' distances from the nearest such case at each fidelity, shape (M,).

        Negative well within the bias bounds. Another pull raises the statistic by about distance^2
        / (2 sigma^2).
        """


def joint_weights(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return what differences of two means weigh."""
    return np.asarray(one * (other / np.maximum(one + other, 1e-300)))


# How strongly the observations speak against others being better than the leader, shape (n,): from
# ln((K - 1) / delta) on they are not.


def two_sided(
    pairs: PairLikelihood, leader: int, others: IntArray, ratios: FloatArray, epsilon: float
) -> FloatArray:
    """Return the statistic of known variances, given the ratios of all fidelities together, (n,).

    It is averaged over means on both sides of the null hypothesis.
    """
    of_leader, of_others = pairs.penalties[leader], pairs.penalties[others]
    together: FloatArray = ratios - of_leader.sum() - of_others.sum(axis=1)
    n_fidelities = len(pairs.bounds)
    if n_fidelities == 1:
        return together
    joint = joint_weights(pairs.weights[leader][:, None], pairs.weights[others][:, None, :])
    of_two = joint * np.maximum(pairs.gaps_of_two(leader, others, epsilon), 0.0) ** 2
    of_two -= of_leader[:, None] + of_others[:, None, :]
    best_two = of_two.reshape(len(others), -1).max(axis=1) - math.log(n_fidelities**pairs.free)
    return np.asarray(np.maximum(together, best_two) - math.log(2.0))


def on_one_side(
    pairs: PairLikelihood, leader: int, others: IntArray, epsilon: float, threshold: float
) -> FloatArray:
    """Return the statistic of known variances at the target, where the leader is better.

    It may be any number on the same side of the `threshold`.
    """
    gaps = pairs.means[leader, 0] - pairs.means[others, 0] + epsilon
    rows = [np.full(len(others), leader), others]
    counts, variances = pairs.counts[rows, 0], pairs.variances[rows, 0]
    told = (gaps > 0.0) & (counts > 0).all(axis=0) & np.isfinite(variances).all(axis=0)
    statistics = np.full(len(others), -np.inf)
    if told.any():
        statistics[told] = one_sided.evidence(
            gaps[told], counts[:, told], variances[:, told], pairs.prior, threshold
        )
    return statistics
