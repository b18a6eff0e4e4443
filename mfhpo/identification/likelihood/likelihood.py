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

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mfhpo.identification.likelihood.one_sided import Pairs as KnownPairs
from mfhpo.identification.likelihood.unknown_variances import Levels, Pairs
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import mixture_prior

# Without noise one value says it all; squares and products of finite weights stay finite.
_MOST_PRECISION = 1e200


def prior_count(level: float) -> float:
    """Give the rho that makes the statistic strongest after 16 pulls of each of two arms."""
    return mixture_prior(math.sqrt(level))


def nearest_mean(
    weights: FloatArray, lows: FloatArray, highs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise the weighted squared distances of a number from several intervals.

        sum_c weights_c max(0, lows_c - x, x - highs_c)^2

    One problem per row of the arguments, shape (n, C). Returns the minimiser (the middle one of
    several, 0 where all weights are 0) and the minimum, shape (n,).

    Examples
    --------
    >>> nearest_mean(np.array([[1.0, 3.0]]), np.array([[0.0, 3.0]]), np.array([[1.0, 4.0]]))
    (array([2.5]), array([3.]))
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


@dataclass(frozen=True)
class UnknownVariances:
    """What is asked where each arm's variance is estimated from its own values.

    `squares` gives some arms' sums of squares around their means. `squares_of_others` gives those
    of others that count for them, and degrees of freedom, shape (n, M) each. The statistic is
    compared with the `threshold`, which it reaches where `delta` is kept.
    """

    squares: Callable[[IntArray], FloatArray]
    squares_of_others: Callable[[IntArray], tuple[FloatArray, FloatArray]]
    delta: float
    threshold: float


class PairLikelihood(abc.ABC):
    """The statistic for pairs of arms; subclasses differ in the kind of bias bounds.

    Parameters
    ----------
    means, counts, variances
        Mean, number of values and an upper bound on the noise's variance proxy of every arm at
        every fidelity, shape (K, M); an infinite variance takes its values out.
    bounds
        Bias bounds xi_m or gamma_m, shape (M,).
    prior
        The count rho; 0 gives the plain likelihood ratio, which is no bound at all times.
    unknown
        What is asked of the evidence where the variances are estimated; those above then steer the
        race alone. None: they are bounds.

    Attributes
    ----------
    weights, penalties, centres
        n^2 / (n + rho) / (2 sigma^2) and ln(1 + n / rho) / 2, shape (K, M); and where each arm's
        target mean seems to be, shape (K,).
    """

    # Of one fidelity of each arm, how many may be chosen freely.
    _free: int

    def __init__(
        self,
        means: FloatArray,
        counts: IntArray | FloatArray,
        variances: FloatArray,
        bounds: FloatArray,
        prior: float,
        unknown: "UnknownVariances | None" = None,
    ) -> None:
        self.bounds = bounds
        self._prior = prior
        self._unknown = unknown
        self.means: FloatArray = np.zeros(means.shape)
        self._counts: FloatArray = np.zeros(means.shape)
        self.variances: FloatArray = np.full(means.shape, np.nan)
        self.weights: FloatArray = np.zeros(means.shape)
        self.penalties: FloatArray = np.zeros(means.shape)
        self.centres: FloatArray = np.zeros(len(means))
        self.update(np.arange(len(means)), means, counts, variances)

    def update(
        self,
        arms: IntArray,
        means: FloatArray,
        counts: IntArray | FloatArray,
        variances: FloatArray,
    ) -> None:
        """Take in new observations of some arms; the arrays have shape (n, M)."""
        self.means[arms] = means
        self._counts[arms] = counts
        self.variances[arms] = variances
        known = np.isfinite(variances)
        with np.errstate(divide="ignore", over="ignore"):
            precision = np.minimum(1.0 / (2.0 * variances), _MOST_PRECISION)
        effective = counts.astype(np.float64)
        if self._prior > 0.0:
            effective *= counts / (counts + self._prior)
            # Also for values that are taken out: whether they are may depend on the values.
            self.penalties[arms] = np.log1p(counts / self._prior) / 2.0
        self.weights[arms] = np.where(known, effective * precision, 0.0)
        self._place(arms)

    @abc.abstractmethod
    def _place(self, arms: IntArray) -> None:
        """Bring what is derived from the observations of some arms up to date."""

    @abc.abstractmethod
    def against(
        self, leader: int, others: IntArray, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the evidence against others being better than the leader by epsilon.

        The centres of the others must not exceed the leader's. Returns the log likelihood ratio,
        all fidelities together, and the leader's target mean in the nearest such case, shape (n,)
        each; the mean is 0 where the bounds leave it open.
        """

    @abc.abstractmethod
    def _ratios_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return the ratios from one fidelity of each arm, shape (n, M, M): leader's, other's."""

    def statistic(
        self, leader: int, others: IntArray, ratio: FloatArray, epsilon: float = 0.0
    ) -> FloatArray:
        """Return how strongly the observations speak against others being better, shape (n,).

        `ratio` comes from `against`. From ln((K - 1) / delta) on, the other arm is not better. With
        a prior of 0 it is the ratio itself, and no bound.
        """
        n_fidelities = len(self.bounds)
        if self._prior == 0.0:
            return ratio
        if self._unknown is not None:
            return self._statistic_of_unknown(self._unknown, leader, others, epsilon)
        penalties = self.penalties[leader][:, None] + self.penalties[others][:, None, :]
        together: FloatArray = (
            ratio - self.penalties[leader].sum() - self.penalties[others].sum(axis=1)
        )
        if n_fidelities == 1:
            return together
        of_two = self._ratios_of_two(leader, others, epsilon) - penalties
        best_two = of_two.reshape(len(others), -1).max(axis=1) - math.log(n_fidelities**self._free)
        return np.asarray(np.maximum(together, best_two) - math.log(2.0))

    def _statistic_of_unknown(
        self, unknown: "UnknownVariances", leader: int, others: IntArray, epsilon: float
    ) -> FloatArray:
        """Return the `statistic` for estimated variances, from one fidelity of each arm."""
        gaps = self._gaps_of_two(leader, others, epsilon)
        counts = self._counts[leader][:, None], self._counts[others][:, None]
        squares = unknown.squares(np.append(leader, others))
        spread = squares[0][:, None], squares[1:, None]
        shared = [part[:, None] for part in unknown.squares_of_others(others)]

        def of_all(part: FloatArray) -> FloatArray:
            return np.broadcast_to(part, gaps.shape).ravel()

        pairs = Pairs(
            gaps.ravel(),
            np.stack([of_all(part) for part in counts]),
            np.stack([of_all(part) for part in spread]),
            np.stack([of_all(part) for part in shared]),
        )
        n_fidelities = len(self.bounds)
        levels = Levels(unknown.delta, len(self.means) - 1, n_fidelities**self._free, n_fidelities)
        excess = pairs.excess(levels).reshape(len(others), -1).max(axis=1)
        return np.asarray(unknown.threshold + excess)

    @abc.abstractmethod
    def _gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return how far differences of two means exceed the null hypothesis.

        Shape (n, M, M): the leader's fidelity, the other's; negative where they are not compared.
        """

    @abc.abstractmethod
    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two arms' distances from the nearest such case at each fidelity, shape (M,).

        Negative well within the bias bounds. Another pull raises the statistic by about distance^2
        / (2 sigma^2).
        """


class OwnBiasLikelihood(PairLikelihood):
    """With bounds on every arm's own bias (kind "max").

    `lows` and `highs` (K, M) bound the target means from each fidelity, noise aside; `residuals`
    (K,) say how far each arm's observations are from the centre, which fits them best.
    """

    _free = 2

    def _place(self, arms: IntArray) -> None:
        if len(arms) == len(self.means):
            self.lows: FloatArray = self.means - self.bounds
            self.highs: FloatArray = self.means + self.bounds
            self.residuals: FloatArray = np.zeros(len(self.means))
        else:
            self.lows[arms] = self.means[arms] - self.bounds
            self.highs[arms] = self.means[arms] + self.bounds
        self.centres[arms], self.residuals[arms] = nearest_mean(
            self.weights[arms], self.lows[arms], self.highs[arms]
        )

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

    def _gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        gaps: FloatArray = self.lows[leader][:, None] - self.highs[others][:, None, :] + epsilon
        return gaps

    def _ratios_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        gaps = self._gaps_of_two(leader, others, epsilon)
        joint = _joint(self.weights[leader][:, None], self.weights[others][:, None, :])
        return np.asarray(joint * np.maximum(gaps, 0.0) ** 2)

    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.distances`."""
        return self.lows[leader] - alternative, alternative + epsilon - self.highs[other]


class OrderBiasLikelihood(PairLikelihood):
    """With bounds on the difference of two arms' biases (kind "order").

    Only what was seen of both arms at the same fidelity is compared: the statistic is the sum of
    ``w_i w_j / (w_i + w_j) max(0, mu_im - mu_jm - gamma_m + epsilon)^2``.
    """

    _free = 1

    def _place(self, arms: IntArray) -> None:
        """Place the arms on a common scale; it steers the race, and no claim rests on it.

        The bias that all arms share at a fidelity is estimated from arms that were also seen at
        dearer ones. Means are averaged by their precision; the bounds count as noise.
        """
        seen = self.weights > 0.0
        with np.errstate(divide="ignore"):
            precision = 1.0 / (0.5 / self.weights + (self.bounds / 2.0) ** 2)
        precision = np.where(seen, np.minimum(precision, _MOST_PRECISION), 0.0)
        total = np.zeros(len(self.means))
        weighted = np.zeros(len(self.means))
        for m in range(len(self.bounds) - 1, -1, -1):
            both = seen[:, m] & (total > 0.0)
            offset = 0.0
            if both.any():
                ahead = self.means[both, m] - weighted[both] / total[both]
                offset = float(np.average(ahead, weights=precision[both, m]))
            total += precision[:, m]
            weighted += precision[:, m] * (self.means[:, m] - offset)
        self.centres = weighted / np.where(total > 0.0, total, 1.0)

    def _excess(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return how far differences of means exceed the bounds, shape (n, M)."""
        return np.asarray(self.means[leader] - self.means[others] - self.bounds + epsilon)

    def against(
        self, leader: int, others: IntArray, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.against`."""
        return self._ratios(leader, others, epsilon).sum(axis=1), np.zeros(len(others))

    def _ratios(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        joint = _joint(self.weights[leader], self.weights[others])
        return np.asarray(joint * np.maximum(self._excess(leader, others, epsilon), 0.0) ** 2)

    def _ratios_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        ratios = np.zeros((len(others), len(self.bounds), len(self.bounds)))
        same = np.arange(len(self.bounds))
        ratios[:, same, same] = self._ratios(leader, others, epsilon)
        return ratios

    def _gaps_of_two(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        gaps = np.full((len(others), len(self.bounds), len(self.bounds)), -np.inf)
        same = np.arange(len(self.bounds))
        gaps[:, same, same] = self._excess(leader, others, epsilon)
        return gaps

    def distances(
        self, leader: int, other: int, alternative: float, epsilon: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """See `PairLikelihood.distances`."""
        mine, theirs = self.weights[leader], self.weights[other]
        excess = self._excess(leader, np.array([other]), epsilon)[0]
        total = mine + theirs
        part = np.divide(theirs, total, out=np.full(total.shape, 0.5), where=total > 0.0)
        return part * excess, (1.0 - part) * excess


def _joint(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.asarray(one * (other / np.maximum(one + other, 1e-300)))


class TargetLikelihood(OrderBiasLikelihood):
    """Of the target level alone: known variances count on the side where the leader is better.

    `threshold` is what the statistic is compared with; for the other arguments see `PairLikelihood`
    and `mfhpo.identification.likelihood.one_sided.Pairs`.
    """

    def __init__(
        self,
        means: FloatArray,
        counts: IntArray | FloatArray,
        variances: FloatArray,
        prior: float,
        threshold: float,
        unknown: "UnknownVariances | None",
    ) -> None:
        self._threshold = threshold
        super().__init__(means, counts, variances, np.zeros(1), prior, unknown)

    def statistic(
        self, leader: int, others: IntArray, ratio: FloatArray, epsilon: float = 0.0
    ) -> FloatArray:
        """See `PairLikelihood.statistic`."""
        if self._unknown is not None:
            return super().statistic(leader, others, ratio, epsilon)
        gaps = self.means[leader, 0] - self.means[others, 0] + epsilon
        rows = [np.full(len(others), leader), others]
        counts, variances = self._counts[rows, 0], self.variances[rows, 0]
        told = (gaps > 0.0) & (counts > 0).all(axis=0) & np.isfinite(variances).all(axis=0)
        statistics = np.full(len(others), -np.inf)
        if told.any():
            pairs = KnownPairs(gaps[told], counts[:, told], variances[:, told])
            statistics[told] = pairs.evidence(self._prior, self._threshold)
        return statistics
