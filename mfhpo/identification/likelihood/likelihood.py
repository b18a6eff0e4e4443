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

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import mixture_prior

MOST_PRECISION = 1e200
"""Without noise one value says it all; squares and products of finite weights stay finite."""


def prior_count(level: float) -> float:
    """Give the rho that makes the statistic strongest after 16 pulls of each of two arms."""
    return mixture_prior(math.sqrt(level))


class PairLikelihood(ABC):
    """Evidence of the observations against other arms than the leader, under bias `bounds`, (M,).

    `means` and `counts` of values, and upper bounds on the noise's `variances`, have shape (K, M).
    Values of infinite variance are taken out. The arms' target means seem to be at the `centres`,
    shape (K,). The count rho is the `prior`; 0 gives the plain likelihood ratio.
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
        self.penalties: FloatArray = np.zeros(means.shape)  # ln(1 + n / rho) / 2
        if prior > 0.0:
            effective = counts * (counts / (counts + prior))
            # Also for values that are taken out: whether they are may depend on the values.
            self.penalties = np.log1p(counts / prior) / 2.0
        # n^2 / (n + rho) / (2 sigma^2)
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

        Returns the log likelihood ratio, all fidelities together, and the leader's target mean in
        the nearest such case, shape (n,) each; 0 where the bounds leave it open.
        """

    @abstractmethod
    def gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return how far differences of two means exceed the null hypothesis, shape (n, M, M)."""

    @abstractmethod
    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two arms' distances from the nearest such case at each fidelity, shape (M,).

        Another pull raises the statistic by about distance^2 / (2 sigma^2).
        """


def nearest_mean(
    weights: FloatArray, lows: FloatArray, highs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise ``sum_c weights_c max(0, lows_c - x, x - highs_c)^2`` in each row, shape (n, C).

    Returns the minimiser (the middle one of several, 0 where all weights are 0) and the minimum,
    shape (n,).
    """
    n_problems, n_intervals = weights.shape
    edges = np.concatenate((lows, highs), axis=1)
    first = 2 * n_intervals * np.arange(n_problems)
    order = edges.argsort(axis=1) + first[:, None]
    edges = edges.take(order)
    # Half the derivative is piecewise linear: its slope falls by the weight where x enters an
    # interval, and rises by it where x leaves it.
    total = weights.sum(axis=1)
    slopes = np.concatenate((-weights, weights), axis=1).take(order)
    slopes[:, 0] += total
    slopes = slopes.cumsum(axis=1)
    derivative = np.empty_like(edges)
    derivative[:, 0] = total * edges[:, 0] - (weights * lows).sum(axis=1)
    derivative[:, 1:] = slopes[:, :-1] * (edges[:, 1:] - edges[:, :-1])
    derivative = derivative.cumsum(axis=1)
    # What rounding makes of a derivative of 0.
    largest = np.maximum(-edges[:, 0], edges[:, -1])
    tiny = (1e-12 * total * np.maximum(largest, 0.0))[:, None]
    negative = (derivative < -tiny).sum(axis=1)
    not_positive = (derivative <= tiny).sum(axis=1)
    left = first + np.minimum(negative, 2 * n_intervals - 1)
    right = first + np.maximum(not_positive - 1, 0)
    x = (edges.take(left) + edges.take(right)) / 2.0
    crossing = np.flatnonzero(not_positive <= negative)
    if crossing.size:
        after = left[crossing]
        x[crossing] = edges.take(after) - derivative.take(after) / slopes.take(after - 1)
    x[total == 0.0] = 0.0
    distances = np.maximum(lows - x[:, None], x[:, None] - highs)
    return x, (weights * np.maximum(distances, 0.0) ** 2).sum(axis=1)


def _joint(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return what differences of two means weigh."""
    return np.asarray(one * (other / np.maximum(one + other, 1e-300)))


class OwnBias(PairLikelihood):
    """Bounds xi_m on every arm's own bias (kind "max"); of two arms, both fidelities may be chosen.

    `lows` and `highs` (K, M) bound the target means from each fidelity, noise aside; `residuals`
    (K,) say how far each arm's observations are from the centre, which fits them best.
    """

    free = 2

    def _place(self) -> FloatArray:
        self.lows: FloatArray = self.means - self.bounds
        self.highs: FloatArray = self.means + self.bounds
        centres, self.residuals = nearest_mean(self.weights, self.lows, self.highs)
        return centres

    def against(
        self, leader: int, others: IntArray, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.against`."""
        half = len(self.bounds)
        weights = np.empty((len(others), 2 * half))
        lows, highs = np.empty_like(weights), np.empty_like(weights)
        weights[:, :half], weights[:, half:] = self.weights[leader], self.weights[others]
        lows[:, :half], lows[:, half:] = self.lows[leader], self.lows[others] - epsilon
        highs[:, :half], highs[:, half:] = self.highs[leader], self.highs[others] - epsilon
        alternative, value = nearest_mean(weights, lows, highs)
        # What does not fit any case at all speaks against none of them.
        explained = self.residuals[leader] + self.residuals[others]
        return np.maximum(value - explained, 0.0), alternative

    def gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """See `PairLikelihood.gaps_of_two`."""
        return np.asarray(self.lows[leader][:, None] - self.highs[others][:, None, :] + epsilon)

    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.distances`."""
        return self.lows[leader] - alternative, alternative + epsilon - self.highs[other]


class OrderBias(PairLikelihood):
    """Bounds gamma_m on the difference of two arms' biases (kind "order").

    Only what was seen of both arms at the same fidelity is compared: the statistic is the sum of
    ``w_i w_j / (w_i + w_j) max(0, mu_im - mu_jm - gamma_m + epsilon)^2``.
    """

    free = 1

    def _place(self) -> FloatArray:
        # The bias that all arms share at a fidelity is estimated from arms that were also seen at
        # dearer ones. Means are averaged by their precision; the bounds count as noise.
        present = self.weights > 0.0
        with np.errstate(divide="ignore"):
            precision = 1.0 / (0.5 / self.weights + (self.bounds / 2.0) ** 2)
        precision = np.where(present, np.minimum(precision, MOST_PRECISION), 0.0)
        total, weighted = np.zeros((2, len(self.means)))
        for m in range(len(self.bounds) - 1, -1, -1):
            both = present[:, m] & (total > 0.0)
            offset = 0.0
            if both.any():
                ahead = self.means[both, m] - weighted[both] / total[both]
                offset = float(np.average(ahead, weights=precision[both, m]))
            total += precision[:, m]
            weighted += precision[:, m] * (self.means[:, m] - offset)
        return weighted / np.where(total > 0.0, total, 1.0)

    def _excess(self, leader: int, others: IntArray | int, epsilon: float) -> FloatArray:
        """Return how far differences of means exceed the bounds, shape (n, M) or (M,)."""
        return np.asarray(self.means[leader] - self.means[others] - self.bounds + epsilon)

    def against(
        self, leader: int, others: IntArray, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.against`."""
        joint = _joint(self.weights[leader], self.weights[others])
        ratios = joint * np.maximum(self._excess(leader, others, epsilon), 0.0) ** 2
        return ratios.sum(axis=1), np.zeros(len(others))

    def gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """See `PairLikelihood.gaps_of_two`."""
        same = np.arange(len(self.bounds))
        gaps = np.full((len(others), len(same), len(same)), -np.inf)
        gaps[:, same, same] = self._excess(leader, others, epsilon)
        return gaps

    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.distances`."""
        theirs, total = self.weights[other], self.weights[leader] + self.weights[other]
        part = np.divide(theirs, total, out=np.full(total.shape, 0.5), where=total > 0.0)
        excess = self._excess(leader, other, epsilon)
        return part * excess, (1.0 - part) * excess


def two_sided(
    pairs: PairLikelihood, leader: int, others: IntArray, ratios: FloatArray, epsilon: float
) -> FloatArray:
    """Return the statistic of known variances, given the ratios of all fidelities, shape (n,)."""
    of_leader, of_others = pairs.penalties[leader], pairs.penalties[others]
    together: FloatArray = ratios - of_leader.sum() - of_others.sum(axis=1)
    n_fidelities = len(pairs.bounds)
    if n_fidelities == 1:
        return together
    joint = _joint(pairs.weights[leader][:, None], pairs.weights[others][:, None, :])
    of_two = joint * np.maximum(pairs.gaps_of_two(leader, others, epsilon), 0.0) ** 2
    of_two -= of_leader[:, None] + of_others[:, None, :]
    best_two = of_two.reshape(len(others), -1).max(axis=1) - math.log(n_fidelities**pairs.free)
    return np.asarray(np.maximum(together, best_two) - math.log(2.0))
