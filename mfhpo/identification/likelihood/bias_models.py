"""The likelihood of pairs of arms under both kinds of bias bounds."""

import numpy as np

from mfhpo.identification.likelihood.likelihood import MOST_PRECISION, PairLikelihood, joint_weights
from mfhpo.knowledge.arrays import FloatArray, IntArray


def nearest_mean(
    weights: FloatArray, lows: FloatArray, highs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise the weighted squared distances of a number from several intervals.

        sum_c weights_c max(0, lows_c - x, x - highs_c)^2

    One problem per row of the arguments, shape (n, C). Returns the minimiser (the middle one of
    several, 0 where all weights are 0) and the minimum, shape (n,).
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
        """Return places of the arms on a common scale; no claim rests on that.

        The bias that all arms share at a fidelity is estimated from arms that were also seen at
        dearer ones. Means are averaged by their precision; the bounds count as noise.
        """
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
        joint = joint_weights(self.weights[leader], self.weights[others])
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
