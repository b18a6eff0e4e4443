"""Which learning curves cannot beat the best finished one: IISE-gamma with learned order bounds."""

import math
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import check_number, shown
from mfhpo.knowledge.arrays import FloatArray, IntArray


def check_reduction_factor(factor: float) -> float:
    """Return how many times longer each level is than the one before, or raise."""
    if not 1.0 < check_number("reduction_factor", factor) < math.inf:
        raise ValueError(
            f"reduction_factor must be above 1 and finite, got {shown(factor)}; try 3."
        )
    return float(factor)


def check_steps(final_step: int, reduction_factor: float, first_step: int = 1) -> tuple[int, ...]:
    """Choose the steps that count as fidelities: a geometric grid from `first_step` on.

    Few steps, because every further one costs confidence; geometric, because the bias of a learning
    curve shrinks about as fast as its length grows.
    """
    steps = {final_step}
    step = final_step / reduction_factor
    while step + 1e-9 >= max(first_step, 1):
        steps.add(math.floor(step + 1e-9))
        step /= reduction_factor
    return tuple(sorted(steps))


def read_curve(reports: Mapping[int, float], steps: Sequence[int]) -> FloatArray:
    """Read the first value at or after each fidelity's step and before the next, (M,), else NaN."""
    reported = sorted(step for step, value in reports.items() if not math.isnan(value))
    values = np.full(len(steps), np.nan)
    for fidelity, step in enumerate(steps):
        position = bisect_left(reported, step)
        is_target = fidelity == len(steps) - 1
        if position < len(reported) and (is_target or reported[position] < steps[fidelity + 1]):
            values[fidelity] = reports[reported[position]]
    return values


def gain_bounds(gains: FloatArray, level: float) -> FloatArray:
    """Bound a new arm's gains at all fidelities at once, from other arms' gains, shape (n, S).

    The bound of each fidelity is the (t+1)-th largest gain there, with one t for all fidelities,
    the largest for which ``min(V_t + 1, S (t+1)) <= level (n+1)``; V_t counts the arms that, at
    some fidelity, have at most t others at or above them. If the n + 1 arms are exchangeable, at
    most so many of them would exceed the bounds that the others give, so that the new one exceeds
    some bound with probability at most `level`. For one fidelity this is the split-conformal
    quantile. The bounds are infinite while n is too small, at most below S/level - 1.
    """
    n, n_fidelities = gains.shape
    # The tolerance keeps 1 - 0.8 from being less than 0.2.
    allowed = level * (n + 1) + 1e-9
    most = min(int(allowed), n)
    if most == 0:
        return np.full(n_fidelities, np.inf)
    # Only the largest gains matter: t < most, and who stands out is among them at some fidelity.
    largest = np.sort(np.partition(gains.T, n - most, axis=1)[:, n - most :], axis=1)
    others_above = np.full(n, most)
    for top, column in zip(largest, gains.T, strict=True):
        arms = np.flatnonzero(column >= top[0])
        not_below = most - np.searchsorted(top, column[arms], side="left")
        others_above[arms] = np.minimum(others_above[arms], not_below - 1)
    standing_out = np.cumsum(np.bincount(others_above, minlength=most))[:most]
    exceeding = np.minimum(standing_out + 1, n_fidelities * np.arange(1, most + 1))
    ranks = int(np.count_nonzero(exceeding <= allowed))  # `exceeding` increases with t
    if ranks == 0:
        return np.full(n_fidelities, np.inf)
    return np.asarray(largest[:, most - ranks], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an unfinished curve is hopeless, and why.

    ``reach`` is the largest final mean that the bounds grant the arm, ``bar`` what the incumbent
    has for sure (-inf while there is none).
    """

    stop: bool
    reach: float
    bar: float
    incumbent: Hashable | None


class CurveRace:
    """Elimination of learning curves by order bounds learned from the finished ones.

    IISE-gamma (Poiani et al. 2022, Section 5) compares arm i at fidelity m with an arm j. Here j
    has finished, so its own bias cancels, and arm i's gain is left to bound: it is dropped when

        ``mean_im + noise_i + G_m <= max_j (mean_jM - noise_j)``

    with G_m from `gain_bounds` over the finished arms: with probability `coverage`, a new arm's
    gains respect all of them. A mean lies beyond its noise radius with probability `noise_level`:
    Student's t quantile times the pooled standard deviation of repeats at that fidelity over the
    square root of the arm's number of runs; 0 without any repeats.

    Notes
    -----
    The coverage is exact for exchangeable arms that run once and all finish. A stopped arm never
    shows its gain. So where late bloomers win, more than 1 - coverage of the arms that would have
    won may be stopped.
    """

    def __init__(self, n_fidelities: int, coverage: float = 0.8, noise_level: float = 0.05) -> None:
        self._level = 1.0 - coverage
        self._noise_level = noise_level
        # Means and numbers of values of each arm at each fidelity.
        self._seen: dict[Hashable, tuple[FloatArray, IntArray]] = {}
        self._squares: FloatArray = np.zeros(n_fidelities)
        self._degrees = np.zeros(n_fidelities, dtype=np.int64)
        self.n_curves = 0  # finished ones, repeats included
        self._stale = True
        self._bounds: FloatArray = np.full(n_fidelities - 1, np.inf)
        self._radii: FloatArray = np.zeros(n_fidelities)
        self._bar = -math.inf
        self._incumbent: Hashable | None = None

    @property
    def bounds(self) -> FloatArray:
        """The bounds G_m on an arm's gain, shape (M - 1,), infinite while too few have finished."""
        self._refresh()
        return self._bounds

    def add(self, arm: Hashable, curve: FloatArray) -> None:
        """Add a finished curve, (M,); without a target value the arm's gain counts as unbounded."""
        nothing = np.zeros(len(curve)), np.zeros(len(curve), dtype=np.int64)
        means, counts = self._seen.setdefault(arm, nothing)
        seen = np.isfinite(curve)
        deviations = np.where(seen, curve, means) - means
        self._squares += deviations**2 * counts / (counts + 1)
        self._degrees += seen & (counts > 0)
        counts += seen
        means += deviations / np.maximum(counts, 1)
        self.n_curves += 1
        self._stale = True

    def judge(self, arm: Hashable, fidelity: int, value: float) -> Verdict:
        """Judge an unfinished curve by its value at one fidelity, averaged with finished runs."""
        self._refresh()
        mean, count = float(value), 1
        if arm in self._seen:
            means, counts = self._seen[arm]
            count += int(counts[fidelity])
            mean += (float(means[fidelity]) - mean) * (count - 1) / count
        noise = float(self._radii[fidelity]) / math.sqrt(count)
        reach = mean + noise + float(self._bounds[fidelity])
        # Stopping an unlucky repeat of the incumbent would leave it with its lucky ones.
        stop = arm != self._incumbent and reach <= self._bar
        return Verdict(stop, reach, self._bar, self._incumbent)

    def _refresh(self) -> None:
        if not self._stale:
            return
        degrees = np.maximum(self._degrees, 1)
        quantiles = np.asarray(stdtrit(degrees, 1.0 - self._noise_level), dtype=np.float64)
        self._radii = quantiles * np.sqrt(self._squares / degrees)
        if self._seen:
            means, counts = (np.stack(rows) for rows in zip(*self._seen.values(), strict=True))
            finals = means[:, -1]
            values = np.where(counts[:, :-1] > 0, means[:, :-1], -np.inf)
            self._bounds = gain_bounds(finals[:, None] - values, self._level)
            bars = finals - self._radii[-1] / np.sqrt(counts[:, -1])
            best = int(np.argmax(bars))
            self._bar = float(bars[best])
            self._incumbent = list(self._seen)[best]
        self._stale = False
