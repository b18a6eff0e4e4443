"""Rounds of RCUCB in one loop, which numba can compile: the plays of `mfhpo.censored.RCUCB`.

Upper bounds of all pairs are kept as ceilings, so that few are computed in a round.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from mfhpo.censored.upper_bounds import (
    AT_RISK,
    BERNSTEIN,
    BEYOND,
    BINS,
    COUNT,
    ENDED,
    EXCEEDED,
    FIRST_BIN,
    FLOOR,
    GAIN,
    KL_PLUS,
    LIMIT,
    PENALTY,
    PLAYS,
    PRINTED,
    SQUARE,
    SURVIVAL,
    Rule,
    Tallies,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

# Why the loop ended: all rounds are played, the next outcome of an arm is needed, or the pair that
# was played is known well enough to be refined.
DONE, DRAWS, REFINE = 0, 1, 2

# Ranges of the rewards, from which on the bins are no longer equidistant.
_WIDE = 1.5

# How far below the largest value an observation is taken to be at least.
_NEARLY = 1e-12

# Indices that differ by less are equal.
_TIE = 1e-9

# Ceilings hold for so many rounds, or for this share of the rounds so far.
_HORIZON_AT_LEAST, _HORIZON_SHARE = 64, 64


class Ceilings(NamedTuple):
    """Upper bounds of the indices of all pairs, kept so that few are computed in a round."""

    values: FloatArray  # index at the horizon, (n, P)
    tops: FloatArray  # the largest one of an arm, (n,)
    stale: BoolArray  # whether those of an arm have to be computed again, (n,)
    roots: FloatArray  # solutions of the last bound's equation: the next search begins here, (n, P)
    latest: IntArray  # last round at which values hold; arm and point played last, or -1; (3,)
    weights: FloatArray  # room for the observations of a pair, (BINS + 1,)
    spots: FloatArray  # the same


def record(
    tallies: Tallies, rule: Rule, arm: int, limit: float, gain: float, consumption: float
) -> None:
    """Learn from one pull, in O(P), at any limit; `gain` is the scaled reward minus cost.

    Where the pull was censored, the consumption is infinite, and the gain is not read.
    """
    tallies.totals[arm] += 1.0
    earlier = 0.0
    surviving = 1.0
    for point in range(tallies.points[arm]):
        here = tallies.cells[arm, point, LIMIT]
        if consumption > here:
            tallies.cells[arm, point, BEYOND] += 1.0
        if limit >= here:
            tallies.cells[arm, point, COUNT] += 1.0
            if point == 0 or consumption > earlier:
                tallies.cells[arm, point, AT_RISK] += 1.0
                if consumption <= here:
                    tallies.cells[arm, point, ENDED] += 1.0
            if consumption <= here:
                tallies.cells[arm, point, GAIN] += gain
                tallies.cells[arm, point, SQUARE] += gain * gain
                place = _place(tallies.cells[arm, point, FLOOR], rule.top, gain)
                lower = min(int(place), BINS - 2)
                tallies.cells[arm, point, FIRST_BIN + lower] += lower + 1 - place
                tallies.cells[arm, point, FIRST_BIN + lower + 1] += place - lower
            else:
                tallies.cells[arm, point, EXCEEDED] += 1.0
        if limit == here:
            tallies.cells[arm, point, PLAYS] += 1.0
        if rule.counted:
            surviving = tallies.cells[arm, point, BEYOND] / tallies.totals[arm]
        elif tallies.cells[arm, point, AT_RISK] > 0.0:
            surviving *= 1.0 - tallies.cells[arm, point, ENDED] / tallies.cells[arm, point, AT_RISK]
        tallies.cells[arm, point, SURVIVAL] = surviving
        earlier = here


def _spot(floor: float, top: float, place: int) -> float:
    """Where a bin is: equidistant between floor and top.

    If the floor is far below the rewards, all bins but one are within their range below the top.
    """
    if top - floor <= _WIDE:
        return floor + (top - floor) * place / (BINS - 1)
    if place == 0:
        return floor
    return top - 1.0 + (place - 1) / (BINS - 2)


def _place(floor: float, top: float, gain: float) -> float:
    """Where a gain is among the bins, from 0 to BINS - 1: the reverse of `_spot`."""
    if top - floor <= _WIDE:
        place = (gain - floor) / (top - floor) * (BINS - 1)
    elif gain < top - 1.0:
        place = (gain - floor) / (top - 1.0 - floor)
    else:
        place = 1.0 + (gain - top + 1.0) * (BINS - 2)
    return min(max(place, 0.0), BINS - 1.0)


def _estimated_gain(tallies: Tallies, arm: int, point: int) -> float:
    """The penalized expected gain of a pair (Eq. 10), NaN before its first observation."""
    count = tallies.cells[arm, point, COUNT]
    if count == 0.0:
        return math.nan
    fine = tallies.cells[arm, point, PENALTY] * tallies.cells[arm, point, SURVIVAL]
    return float(tallies.cells[arm, point, GAIN] / count - fine)


def highest_mean(
    weights: Any, values: Any, total: float, top: float, level: float, start: float
) -> tuple[float, float]:
    """The largest mean that observed weights leave possible, and the solution of its equation.

    That is the largest mean of a distribution q on values up to `top` with KL(p, q) at most `level`
    from the observed p (Cappé, Garivier, Maillard, Munos, Stoltz, "Kullback-Leibler upper
    confidence bounds for optimal sequential allocation", Annals of Statistics 2013). Spreading an
    observation over two values with the same mean, as the bins do, only raises it. The search
    begins at `start`, above `top`: the solution for similar weights.
    """
    if level <= 0.0:
        mean = 0.0
        for k in range(len(values)):
            mean += weights[k] * values[k]
        return mean / total, math.inf
    # What lies at the top is taken to lie just below, so that nothing is divided by 0.
    nearly = top - _NEARLY * max(1.0, abs(top))
    logs = 0.0
    inverse = 0.0
    tilted = 0.0
    for k in range(len(values)):
        if weights[k] > 0.0:
            value = min(values[k], nearly)
            share = weights[k] / total
            logs += share * math.log(top - value)
            inverse += share / (top - value)
            tilted += share / (top - value) * value
    divergence = logs + math.log(inverse)
    if divergence < level:
        # The likeliest distribution with so large a mean puts weight on the top itself.
        share = math.exp(divergence - level)
        return share * tilted / inverse + (1.0 - share) * top, top

    # E log(root - V) + log E 1 / (root - V) = level; it decreases in the root, and is convex.
    cold = top + 1e-3 * max(1.0, abs(top))
    root = start if top < start < math.inf else cold
    for _ in range(100):
        logs = 0.0
        inverse = 0.0
        square = 0.0
        for k in range(len(values)):
            if weights[k] > 0.0:
                reciprocal = 1.0 / (root - min(values[k], nearly))
                share = weights[k] / total
                logs -= share * math.log(reciprocal)
                inverse += share * reciprocal
                square += share * reciprocal * reciprocal
        slope = inverse - square / inverse
        if slope >= 0.0:  # too far out for the difference to be seen
            if root == cold:
                break
            root = cold
            continue
        step = (logs + math.log(inverse) - level) / slope
        new = root - step
        if new <= top:
            new = 0.5 * (root + top)
        if abs(new - root) <= 1e-6 * (root - top):
            root = new
            break
        root = new
    inverse = 0.0
    tilted = 0.0
    for k in range(len(values)):
        if weights[k] > 0.0:
            value = min(values[k], nearly)
            share = weights[k] / (root - value)
            inverse += share
            tilted += share * value
    return tilted / inverse, root


def _surely_below(
    weights: Any, values: Any, total: float, top: float, level: float, root: float, bound: float
) -> bool:
    """Return whether `highest_mean` is at most `bound`: sufficient, by duality, and quick."""
    if bound >= top:
        return True
    if not top <= root < math.inf:
        return False
    multiplier = min(1.0 / (root - bound), (1.0 - 1e-9) / (top - bound))
    logs = 0.0
    for k in range(len(values)):
        if weights[k] > 0.0:
            factor = 1.0 + multiplier * (bound - values[k])
            logs += weights[k] / total * math.log(factor)
    return logs >= level


def _spread(tallies: Tallies, rule: Rule, arm: int, point: int, weights: Any, values: Any) -> None:
    """Write the observations of a pair as weights and values into two arrays of BINS + 1."""
    for k in range(BINS):
        weights[k] = tallies.cells[arm, point, FIRST_BIN + k]
        values[k] = _spot(tallies.cells[arm, point, FLOOR], rule.top, k)
    weights[BINS] = tallies.cells[arm, point, EXCEEDED]
    values[BINS] = -tallies.cells[arm, point, PENALTY]


def _level(rule: Rule, count: float, log_round: float) -> float:
    """Return how improbable the truth may be, as a logarithm; `log_round` is log t."""
    if rule.confidence == KL_PLUS and rule.level == 0.0:
        return rule.exploration * max(log_round - math.log(count), 0.0)
    return rule.exploration * (rule.level if rule.level > 0.0 else log_round)


def _upper_bound(
    tallies: Tallies,
    rule: Rule,
    ceilings: Ceilings,
    arm: int,
    point: int,
    extra: float,
    all_extra: float,
    log_round: float,
    start: float,
) -> tuple[float, float, float]:
    """Upper bound on the gain of a pair, the solution of its equation, and what it is around.

    `extra` and `all_extra` are the pulls under way that tell of the pair, and of the arm.
    """
    count = tallies.cells[arm, point, COUNT]
    total = count + extra
    level = _level(rule, total, log_round)
    penalty = tallies.cells[arm, point, PENALTY]
    exceeded = tallies.cells[arm, point, EXCEEDED]
    mean = (tallies.cells[arm, point, GAIN] - penalty * exceeded) / count
    if rule.confidence <= KL_PLUS:
        weights, values = ceilings.weights, ceilings.spots
        _spread(tallies, rule, arm, point, weights, values)
        high, root = highest_mean(weights, values, count, rule.top, level / total, start)
        return high, root, mean
    if rule.confidence == BERNSTEIN:
        square = (tallies.cells[arm, point, SQUARE] + penalty * penalty * exceeded) / count
        variance = max(square - mean * mean, 0.0)
        width = rule.top - min(tallies.cells[arm, point, FLOOR], -penalty)
        half = math.sqrt(2.0 * variance * level / total) + 3.0 * width * level / total
        return mean + half, math.inf, mean
    centre = _estimated_gain(tallies, arm, point)
    half = math.sqrt(2.0 * level / total)
    if rule.confidence == PRINTED:
        half += penalty * math.sqrt(2.0 * level / (tallies.totals[arm] + all_extra))
    return centre + half, math.inf, centre


def _index(
    tallies: Tallies,
    rule: Rule,
    ceilings: Ceilings,
    arm: int,
    point: int,
    extra: float,
    all_extra: float,
    log_round: float,
) -> float:
    """Upper bound on the gain at a point and around it (Eq. 12 and 13); its root is kept."""
    start = ceilings.roots[arm, point]
    high, root, _ = _upper_bound(
        tallies, rule, ceilings, arm, point, extra, all_extra, log_round, start
    )
    ceilings.roots[arm, point] = root
    return high + _size(tallies, rule, arm, point)


def choose(
    tallies: Tallies,
    rule: Rule,
    ceilings: Ceilings,
    extra: FloatArray,
    all_extra: FloatArray,
    round_number: int,
) -> tuple[int, int]:
    """The pair with the highest upper bound (Eq. 12 and 13); -1, -1 if no arm is left.

    `extra`, shape (n, P), and `all_extra`, (n,), are the pulls under way that tell of a pair and of
    an arm: they narrow bounds as if they had come out like those before, so that workers spread.
    """
    n_arms = len(tallies.points)
    for arm in range(n_arms):
        points = tallies.points[arm]
        if points and tallies.cells[arm, points - 1, COUNT] + extra[arm, points - 1] == 0.0:
            return arm, int(points - 1)

    renewed = round_number > ceilings.latest[0]
    if renewed:
        ceilings.latest[0] = round_number + max(_HORIZON_AT_LEAST, round_number // _HORIZON_SHARE)
    log_round, log_horizon = math.log(round_number), math.log(ceilings.latest[0])
    best, best_arm, best_point = -math.inf, -1, -1

    # The pair played last is mostly the best still: seen first, it spares a look at the others.
    latest_arm, latest_point = ceilings.latest[1], ceilings.latest[2]
    if latest_point >= 0 and latest_point < tallies.points[latest_arm]:
        others, all_others = extra[latest_arm, latest_point], all_extra[latest_arm]
        best_arm, best_point = latest_arm, latest_point
        best = _index(tallies, rule, ceilings, best_arm, best_point, others, all_others, log_round)

    for arm in range(n_arms):
        if arm != latest_arm:
            if renewed or ceilings.stale[arm]:
                _renew(tallies, rule, ceilings, arm, log_horizon)
            if ceilings.tops[arm] <= best:
                continue
        for point in range(tallies.points[arm]):
            count, others = tallies.cells[arm, point, COUNT], extra[arm, point]
            if count == 0.0:
                continue  # under way for the first time
            if arm != latest_arm:
                if ceilings.values[arm, point] <= best:
                    continue
            elif point == latest_point:
                continue
            elif best > -math.inf and rule.confidence <= KL_PLUS:
                level = _level(rule, count + others, log_round) / (count + others)
                weights, values = ceilings.weights, ceilings.spots
                _spread(tallies, rule, arm, point, weights, values)
                root, bound = ceilings.roots[arm, point], best - _size(tallies, rule, arm, point)
                if _surely_below(weights, values, count, rule.top, level, root, bound):
                    continue
            index = _index(tallies, rule, ceilings, arm, point, others, all_extra[arm], log_round)
            # Searches that began elsewhere differ in the last digits: a tie is to stay one.
            if index > best + _TIE:
                best, best_arm, best_point = index, arm, point
    return best_arm, best_point


def _renew(tallies: Tallies, rule: Rule, ceilings: Ceilings, arm: int, log_horizon: float) -> None:
    """Compute the ceilings of an arm: without pulls under way, which only narrow the bounds."""
    top = -math.inf
    for point in range(tallies.points[arm]):
        ceiling = -math.inf
        if tallies.cells[arm, point, COUNT] > 0.0:
            ceiling = _index(tallies, rule, ceilings, arm, point, 0.0, 0.0, log_horizon)
        ceilings.values[arm, point] = ceiling
        top = max(top, ceiling)
    ceilings.tops[arm] = top
    ceilings.stale[arm] = False


def _size(tallies: Tallies, rule: Rule, arm: int, point: int) -> float:
    """Return how much the gain may fall from the limit before; 0 where limits are given."""
    if rule.smoothness == 0.0:
        return 0.0
    below = tallies.cells[arm, point - 1, LIMIT] if point else 0.0
    return float(rule.smoothness * (tallies.cells[arm, point, LIMIT] - below))


def forget(tallies: Tallies, ceilings: Ceilings, arm: int, limit: float) -> None:
    """Note that an arm was pulled, so that its indices have changed."""
    ceilings.latest[1] = arm
    ceilings.latest[2] = -1
    ceilings.stale[arm] = True
    for point in range(tallies.points[arm]):
        if tallies.cells[arm, point, LIMIT] == limit:
            ceilings.latest[2] = point


def is_refinable(tallies: Tallies, rule: Rule, ceilings: Ceilings, arm: int, point: int) -> bool:
    """Return whether a point is known better than the gain may differ around it (Eq. 14)."""
    high, _, centre = _upper_bound(tallies, rule, ceilings, arm, point, 0.0, 0.0, 0.0, math.inf)
    return bool(high - centre <= _size(tallies, rule, arm, point))


class Block(NamedTuple):
    """Outcomes that were drawn ahead, and notes of the plays that they are for."""

    gains: FloatArray  # the arms' next scaled gains, (n, size)
    outcomes: FloatArray  # the rewards and seconds that these are made of, (n, size, 2)
    used: IntArray  # how many of them were used, (n,)
    filled: IntArray  # how many there are, (n,)
    arms: IntArray  # of each play, (rounds,)
    notes: FloatArray  # its limit, reward and seconds, NaN and infinite if stopped, (rounds, 3)


def new_ceilings(tallies: Tallies, latest: tuple[int, int]) -> Ceilings:
    """Ceilings of which nothing is known, and the pair that was played last."""
    n_arms, size = tallies.cells.shape[:2]
    return Ceilings(
        values=np.full((n_arms, size), math.inf),
        tops=np.full(n_arms, math.inf),
        stale=np.ones(n_arms, dtype=np.bool_),
        roots=np.full((n_arms, size), math.inf),
        latest=np.array([0, *latest]),
        weights=np.zeros(BINS + 1),
        spots=np.zeros(BINS + 1),
    )


def play_rounds(
    tallies: Tallies, rule: Rule, ceilings: Ceilings, block: Block, played: int, before: int
) -> tuple[int, int, int]:
    """Play rounds until all are played, or something is needed first.

    `played` plays of this block were made already, `before` earlier ones. Returns why the loop
    ended, the plays of this block, and the arm that this is about, or -1.
    """
    extra = np.zeros(tallies.cells.shape[:2])
    all_extra = np.zeros(len(tallies.points))
    while played < len(block.arms):
        arm, point = choose(tallies, rule, ceilings, extra, all_extra, before + played + 1)
        if arm < 0:
            return DONE, played, -1
        place = block.used[arm]
        if place == block.filled[arm]:
            return DRAWS, played, arm
        limit = tallies.cells[arm, point, LIMIT]
        gain = block.gains[arm, place]
        reward = block.outcomes[arm, place, 0]
        consumption = block.outcomes[arm, place, 1]
        block.used[arm] += 1
        if consumption > limit:
            gain = 0.0
            reward = math.nan
            consumption = math.inf
        record(tallies, rule, arm, limit, gain, consumption)
        forget(tallies, ceilings, arm, limit)
        block.arms[played] = arm
        block.notes[played, 0] = limit
        block.notes[played, 1] = reward
        block.notes[played, 2] = consumption
        played += 1
        if rule.smoothness > 0.0 and is_refinable(tallies, rule, ceilings, arm, point):
            return REFINE, played, arm
    return DONE, played, -1


HELPERS = (
    record,
    _spot,
    _place,
    _estimated_gain,
    highest_mean,
    _surely_below,
    _spread,
    _level,
    _upper_bound,
    _index,
    choose,
    _renew,
    _size,
    forget,
    is_refinable,
)
"""What the loop calls, for the compiler."""
