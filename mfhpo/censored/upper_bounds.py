"""What RCUCB learns from pulls, upper bounds on gains, and the choice of an arm and a limit.

Rewards, costs and penalties are scaled here: the range of the rewards is 1.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

# Gains are kept as weights on so many equidistant values; see `highest_mean`.
BINS = 5

# The confidence bounds, by their numbers in a rule.
CONFIDENCES = ("kl", "kl+", "bernstein", "printed", "published curves")
KL, KL_PLUS, BERNSTEIN, PRINTED, PUBLISHED_CURVES = range(5)

# Ranges of the rewards, from which on the bins are no longer equidistant.
_WIDE = 1.5

# How far below the largest value an observation is taken to be at least.
_NEARLY = 1e-12

# Indices that differ by less are equal: searches for them differ in the last digits.
_TIE = 1e-9


# What is kept of a pair, by its column in `Tallies.cells`.
# Limit in seconds, and the penalty there.
LIMIT, PENALTY = 0, 1
# Pulls whose limit was at least this one: N(i, tau). Of these, the sums of (reward - cost) and of
# its square where the pull ended in time, and how many did not.
COUNT, GAIN, SQUARE, EXCEEDED = 2, 3, 4, 5
# Of the same pulls, how many were still running at the limit before, and how many of those ended.
AT_RISK, ENDED = 6, 7
# Pulls at any limit that are not known to have ended by this one; the estimated probability of not
# ending by it; pulls at exactly this limit.
BEYOND, SURVIVAL, PLAYS = 8, 9, 10
# The least gain of a pull that ends by this limit, and the gains as weights on `BINS` values
# between that and the top (see `_spots`).
FLOOR, FIRST_BIN = 11, 12
COLUMNS = FIRST_BIN + BINS


class Tallies(NamedTuple):
    """Observations of n arms at their limits, at most P each."""

    cells: FloatArray  # the columns above of each pair, (n, P, COLUMNS); an arm's limits increase
    points: IntArray  # how many limits an arm has, (n,); 0 for one that is out of the race
    totals: FloatArray  # pulls of the arms, N(i, 0), (n,)


class Rule(NamedTuple):
    """The rule by which the next pair is chosen."""

    confidence: int = KL  # place in `CONFIDENCES`
    counted: bool = False  # survival is estimated by the paper's count, not by Kaplan and Meier
    exploration: float = 1.0  # alpha of the paper: the factor of the logarithm
    level: float = 0.0  # the logarithm itself where it does not change with the rounds, else 0
    top: float = 1.0  # largest gain of a pull that ends in time
    smoothness: float = 0.0  # fall of the gain per second between limits; 0 where limits are given


def record(
    tallies: Tallies,
    rule: Rule,
    arm: int,
    limits: FloatArray,
    gains: FloatArray,
    consumptions: FloatArray,
) -> None:
    """Learn from pulls of one arm, (N,); `gains` are scaled rewards minus costs.

    The consumption of a censored pull is infinite.
    """
    cells = tallies.cells[arm, : tallies.points[arm]]
    here = cells[:, LIMIT]
    beyond = consumptions[:, None] > here
    told = limits[:, None] >= here
    running = told & (consumptions[:, None] > np.append(-np.inf, here[:-1]))
    columns = {
        COUNT: told,
        EXCEEDED: told & beyond,
        AT_RISK: running,
        ENDED: running & ~beyond,
        BEYOND: beyond,
        PLAYS: limits[:, None] == here,
    }
    for column, which in columns.items():
        cells[:, column] += which.sum(axis=0)
    # One after the other: sums are then the same however many pulls are told at once.
    pulls, points = np.nonzero(told & ~beyond)
    gained = gains[pulls]
    np.add.at(cells[:, GAIN], points, gained)
    np.add.at(cells[:, SQUARE], points, gained * gained)
    places = _places(cells[points, FLOOR], rule.top, gained)
    lower = np.minimum(places.astype(np.int64), BINS - 2)
    np.add.at(cells, (points, FIRST_BIN + lower), lower + 1 - places)
    np.add.at(cells, (points, FIRST_BIN + lower + 1), places - lower)
    tallies.totals[arm] += len(limits)
    if rule.counted:
        cells[:, SURVIVAL] = cells[:, BEYOND] / tallies.totals[arm]
    else:
        cells[:, SURVIVAL] = np.cumprod(1.0 - cells[:, ENDED] / np.maximum(cells[:, AT_RISK], 1.0))


def _spots(floors: FloatArray, top: float) -> FloatArray:
    """Return the places of the bins, equidistant between floors and top, shape (..., BINS).

    If a floor is far below the rewards, all bins but one are within their range below the top.
    """
    places = np.arange(BINS)
    even = floors[..., None] + (top - floors[..., None]) * places / (BINS - 1)
    near = np.where(places == 0, floors[..., None], top - 1.0 + (places - 1) / (BINS - 2))
    return np.where((top - floors <= _WIDE)[..., None], even, near)


def _places(floors: FloatArray, top: float, gains: FloatArray) -> FloatArray:
    """Return the positions of gains among the bins, from 0 to BINS - 1: the reverse of `_spots`."""
    even = (gains - floors) / (top - floors) * (BINS - 1)
    low = (gains - floors) / np.maximum(top - 1.0 - floors, _NEARLY)
    high = 1.0 + (gains - top + 1.0) * (BINS - 2)
    near = np.where(gains < top - 1.0, low, high)
    return np.clip(np.where(top - floors <= _WIDE, even, near), 0.0, BINS - 1.0)


def estimated_gains(tallies: Tallies) -> FloatArray:
    """Return the penalized expected gains (Eq. 10), NaN before an observation, (n, P)."""
    cells = tallies.cells
    means = cells[..., GAIN] / np.maximum(cells[..., COUNT], 1.0)
    gains = means - cells[..., PENALTY] * cells[..., SURVIVAL]
    return np.where(cells[..., COUNT] > 0.0, gains, np.nan)


def highest_mean(
    weights: FloatArray,
    values: FloatArray,
    totals: FloatArray,
    tops: FloatArray,
    levels: FloatArray,
) -> FloatArray:
    """Return the largest means that observed weights leave possible, shape (n,).

    It is the largest mean of a distribution q on values up to the top with KL(p, q) at most the
    level, for the observed p (Cappé et al., "Kullback-Leibler upper confidence bounds for optimal
    sequential allocation", Annals of Statistics 2013). Weights and values have shape (n, C).
    """
    shares = weights / totals[:, None]
    # What lies at the top is taken to lie just below, so that nothing is divided by 0.
    below = np.minimum(values, (tops - _NEARLY * np.maximum(1.0, np.abs(tops)))[:, None])
    gaps = tops[:, None] - below
    inverse = (shares / gaps).sum(axis=-1)
    tilted = (shares / gaps * below).sum(axis=-1)
    divergence = (shares * np.log(gaps)).sum(axis=-1) + np.log(inverse)
    # The likeliest distribution with so large a mean puts weight on the top itself.
    kept = np.exp(np.minimum(divergence - levels, 0.0))
    means = np.array(kept * tilted / inverse + (1.0 - kept) * tops)
    exact = levels <= 0.0
    means[exact] = (shares * values).sum(axis=-1)[exact]
    inside = ~exact & (divergence >= levels)
    if inside.any():
        roots = _roots(shares[inside], below[inside], tops[inside], levels[inside])
        tilts = shares[inside] / (roots[:, None] - below[inside])
        means[inside] = (tilts * below[inside]).sum(axis=-1) / tilts.sum(axis=-1)
    return np.asarray(means)


def _roots(
    shares: FloatArray, values: FloatArray, tops: FloatArray, levels: FloatArray
) -> FloatArray:
    """Return the roots above the top of E log(root - V) + log E 1 / (root - V) = level, (n,).

    The left side decreases and is convex; for small levels it is about Var V / (2 (root - E V)^2).
    """
    means = (shares * values).sum(axis=-1)
    variances = (shares * (values - means[:, None]) ** 2).sum(axis=-1)
    least = tops + 1e-3 * np.maximum(1.0, np.abs(tops))
    roots = np.maximum(least, means + np.sqrt(variances / (2.0 * levels)))
    is_open = np.ones(levels.shape, dtype=bool)
    for _ in range(100):
        inverses = 1.0 / (roots[:, None] - values)
        weighted = shares * inverses
        inverse = weighted.sum(axis=-1)
        slope = inverse - (weighted * inverses).sum(axis=-1) / inverse
        too_far = slope >= 0.0  # for the difference to be seen
        excess = np.log(inverse) - (shares * np.log(inverses)).sum(axis=-1) - levels
        new = roots - excess / np.where(too_far, -1.0, slope)
        new = np.where(new > tops, new, 0.5 * (roots + tops))
        new = np.where(too_far, least, new)
        is_close = np.abs(new - roots) <= 1e-6 * (roots - tops)
        roots = np.where(is_open, new, roots)
        is_open &= ~is_close
        if not is_open.any():
            break
    return np.asarray(roots)


def _observed(cells: FloatArray, rule: Rule) -> tuple[FloatArray, FloatArray]:
    """Return the observations of pairs as weights and values, shape (..., BINS + 1) each."""
    weights = np.concatenate([cells[..., FIRST_BIN:], cells[..., [EXCEEDED]]], axis=-1)
    values = np.concatenate([_spots(cells[..., FLOOR], rule.top), -cells[..., [PENALTY]]], axis=-1)
    return weights, values


def _upper_bounds(
    tallies: Tallies, rule: Rule, extra: FloatArray, all_extra: FloatArray, log_round: float
) -> tuple[FloatArray, FloatArray]:
    """Return upper bounds on the gains of all pairs, and their centres, NaN where unknown.

    `extra`, (n, P), and `all_extra`, (n,), count pulls under way; `log_round` is log t.
    """
    highs, centres = np.full(extra.shape, np.nan), np.full(extra.shape, np.nan)
    seen = tallies.cells[..., COUNT] > 0.0
    cells = tallies.cells[seen]
    count, penalty, exceeded = cells[:, COUNT], cells[:, PENALTY], cells[:, EXCEEDED]
    total = count + extra[seen]
    # How improbable the truth may be, as a logarithm.
    level = rule.exploration * np.full(total.shape, rule.level or log_round)
    if rule.confidence == KL_PLUS and rule.level == 0.0:
        level = rule.exploration * np.maximum(log_round - np.log(total), 0.0)
    centres[seen] = mean = (cells[:, GAIN] - penalty * exceeded) / count
    if rule.confidence <= KL_PLUS:
        weights, values = _observed(cells, rule)
        tops = np.full(len(count), rule.top)
        highs[seen] = highest_mean(weights, values, count, tops, level / total)
        return highs, centres
    if rule.confidence == BERNSTEIN:
        square = (cells[:, SQUARE] + penalty * penalty * exceeded) / count
        variance = np.maximum(square - mean * mean, 0.0)
        width = rule.top - np.minimum(cells[:, FLOOR], -penalty)
        half = np.sqrt(2.0 * variance * level / total) + 3.0 * width * level / total
    else:
        centres[seen] = estimated_gains(tallies)[seen]
        half = np.sqrt(2.0 * level / total)
        if rule.confidence == PRINTED:
            all_total = np.broadcast_to((tallies.totals + all_extra)[:, None], seen.shape)[seen]
            half += penalty * np.sqrt(2.0 * level / all_total)
    highs[seen] = centres[seen] + half
    return highs, centres


def bounds_on_gain(
    tallies: Tallies, rule: Rule, arm: int, points: IntArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on an arm's gains at points, by empirical likelihood at given levels, (n,).

    At log(2 / delta) + log(N + 1) + 1 they hold for all N with probability 1 - delta, by a mixture
    of the martingales prod(1 + eta (mean - Y)) over eta (Agrawal, Juneja, Koolen, "Regret
    minimization in heavy-tailed bandits", COLT 2021, Lemma F.1).
    """
    cells = tallies.cells[arm, points]
    lows, highs = np.minimum(cells[:, FLOOR], -cells[:, PENALTY]), np.full(len(cells), rule.top)
    seen = cells[:, COUNT] > 0.0
    counts = cells[seen, COUNT]
    weights, values = _observed(cells[seen], rule)
    levels = levels[seen] / counts
    highs[seen] = highest_mean(weights, values, counts, highs[seen], levels)
    lows[seen] = -highest_mean(weights, -values, counts, -lows[seen], levels)
    return lows, highs


def choose(
    tallies: Tallies,
    rule: Rule,
    latest: tuple[int, int],
    under_way: Sequence[tuple[int, float]],
    allowed: BoolArray,
    round_number: int,
) -> tuple[int, float]:
    """Return the allowed arm and its limit with the highest upper bound (Eq. 12 and 13).

    Pulls under way narrow bounds as if they came out like earlier ones, so that workers spread.
    Among equal pairs, the `latest` one goes on. An arm whose first pulls are all under way is
    played again after four rounds for each arm and whenever the rounds have doubled.
    """
    counts, limits = tallies.cells[..., COUNT], tallies.cells[..., LIMIT]
    points = np.where(allowed, tallies.points, 0)
    extra, all_extra = np.zeros(counts.shape), np.zeros(len(points))
    for arm, limit in under_way:
        known = slice(tallies.points[arm])
        extra[arm, known] += limits[arm, known] <= limit
        all_extra[arm] += 1.0
    arms = np.flatnonzero(points)
    first_pulls = 1 + int(math.log2(max(1.0, round_number / max(1, 2 * len(arms)))))
    for wanted in (1, first_pulls):
        for arm in arms.tolist():
            last = points[arm] - 1
            if counts[arm, last] == 0.0 and extra[arm, last] < wanted:
                return arm, float(limits[arm, last])
    highs, _ = _upper_bounds(tallies, rule, extra, all_extra, math.log(round_number))
    indices = highs + _sizes(tallies, rule)
    is_left = np.arange(indices.shape[1]) < points[:, None]
    indices[~is_left | np.isnan(indices)] = -np.inf
    best, best_pair = -math.inf, (-1, -1)
    if latest[1] >= 0 and is_left[latest]:
        best, best_pair = float(indices[latest]), latest
    for arm, point in np.argwhere(indices > best + _TIE).tolist():
        if indices[arm, point] > best + _TIE:
            best, best_pair = float(indices[arm, point]), (arm, point)
    if best_pair[0] < 0:
        # Every arm is under way for the first time: the one that fewest are.
        left = np.flatnonzero(allowed)
        arm = int(left[np.argmin(all_extra[left])])
        best_pair = arm, int(tallies.points[arm]) - 1
    return best_pair[0], float(limits[best_pair])


def _sizes(tallies: Tallies, rule: Rule) -> FloatArray:
    """Return how much gains may differ between neighbouring limits; 0 where limits are given."""
    return rule.smoothness * np.diff(tallies.cells[..., LIMIT], axis=1, prepend=0.0)


def is_refinable(tallies: Tallies, rule: Rule, arm: int, point: int) -> bool:
    """Tell whether a point's gain is known more closely than it may vary around it (Eq. 14)."""
    one = slice(arm, arm + 1)
    own = Tallies(tallies.cells[one], tallies.points[one], tallies.totals[one])
    highs, centres = _upper_bounds(own, rule, np.zeros(own.cells.shape[:2]), np.zeros(1), 0.0)
    return bool(highs[0, point] - centres[0, point] <= _sizes(own, rule)[0, point])
