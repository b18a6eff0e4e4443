"""Which arms of a search are begun, go up by thirds, go on after failures, or are too dear."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Point
from mfhpo.problem import Pull
from mfhpo.search.policy import REDUCTION, SearchPolicy

_FAR_DEARER = 5.0  # than the median step is too dear while any arm would tell as much
_SHARE_BELOW = 0.5  # of what a level takes several workers, before it opens


def first_step(search: SearchPolicy, begun: int, pending: Sequence[Pull]) -> Pull | None:
    """Return the next step of the beginning: random arms, fewer at each level; or None."""
    step, n_first = probe(search, pending), search.n_first
    if step is not None or begun < n_first:
        return step or Pull(begun, search.lowest)
    under_way = {pull.arm: pull.fidelity for pull in pending}
    first: list[int] = []
    for arm in range(begun):
        if len(first) == n_first:
            break
        is_new = is_to_begin(search, arm)
        # Arms that failed, were stopped or are too dear are replaced by the next ones, if any.
        is_lost = arm in search._out or arm in search._gone
        is_lost |= arm in search._stops and search.level_of(arm) < 0
        is_lost |= not is_new and search.cheap_failures.highest(arm) >= 0
        if is_lost or too_dear(search, [arm]):
            continue
        first.append(arm)
        if is_new and arm not in under_way and arm not in search._merged:
            return Pull(arm, search.lowest)  # it failed: once more
    quotas = search.counts_of_first(n_first)
    for level in range(search.lowest, highest_open(search, pending)):
        above = [arm for arm in first if max(search.level_of(arm), under_way.get(arm, -1)) > level]
        out = {*above, *search._merged, *search._stops}
        left = [arm for arm in first if arm in search._values[level] and arm not in out]
        # While others are under way here, the same share of those that have come to their end.
        wanted = quotas[level + 1]
        if any(under_way.get(arm) == level for arm in first):
            wanted = min(wanted, (len(above) + len(left)) // REDUCTION)
        if len(above) < wanted and left:
            return Pull(_next_up(search, left, above, level), level + 1)
    return Pull(begun, search.lowest) if len(first) < n_first else None


def _next_up(search: SearchPolicy, arms: list[int], above: list[int], level: int) -> int:
    """Return which of the first goes up: the best, or if prices differ, in turn the cheapest."""
    near = _not_far_dearer(search, arms, level)
    best = max(near, key=lambda arm: (search.mean(arm, level), -arm))
    went = any(search.mean(arm, level) >= search.mean(best, level) for arm in above)
    if search.prices is None or not went:
        return best
    prices = dict(zip(arms, dearness_of(search, arms, level, level + 1), strict=True))
    return min(arms, key=lambda arm: (prices[arm], -search.mean(arm, level), arm))


def _not_far_dearer(search: SearchPolicy, arms: list[int], level: int) -> list[int]:
    known = [arm for arm in search._values[level] if arm in search._points]
    if search.prices is None or not known:
        return arms
    prices = dearness_of(search, known, level, level + 1)
    dear = np.array(known)[prices > _FAR_DEARER * np.median(prices)]
    return [arm for arm in arms if arm not in dear] or arms


def promotion(search: SearchPolicy, lowest: int, pending: Sequence[Pull]) -> Pull | None:
    """Return the next step of an arm among the best third of its level, or None."""
    busy = {pull.arm for pull in pending}
    for level in range(highest_open(search, pending) - 1, lowest - 1, -1):
        out = search._closed | search._stops.keys()
        here = [arm for arm in search._values[level] if arm not in out]
        here.sort(key=lambda arm: (-search.mean(arm, level), arm))
        for arm in here[: len(here) // REDUCTION]:
            is_free = search.level_of(arm) == level and arm not in busy
            if is_free and not too_dear(search, [arm]):
                return Pull(arm, level + 1)
        # Nothing tells those apart that failed here: any third of them goes on.
        failed = [arm for arm in search.cheap_failures.at(level) if next_level(search, arm) > level]
        untried = [arm for arm in failed if next_level(search, arm) == level + 1]
        untried = [arm for arm in untried if arm not in busy | search._closed]
        if untried and len(failed) - len(untried) < len(failed) // REDUCTION:
            return Pull(untried[0], level + 1)
    return None


def highest_open(search: SearchPolicy, pending: Sequence[Pull]) -> int:
    """Return the highest level that several workers may use yet; the target for one worker."""
    most = search.most_of_first / 2.0  # the other half is for the target
    highest, below = search.lowest, 0.0
    for level in range(search.lowest, search.target):
        below += len(search._values[level]) * search.cost_from(level - 1, level)
        # Else all of them would be busy with the best of very few arms.
        wanted = _SHARE_BELOW * (len(pending) + 1) * search.costs[level + 1]
        if not pending or below >= min(wanted, most):
            highest = level + 1
    return highest


def probe(search: SearchPolicy, pending: Sequence[Pull]) -> Pull | None:
    """Return the next step of an arm that is to show whether failures are of its level."""
    for level in range(search.lowest, search.target):
        if search.cheap_failures.are_unexplained(level, len(search._values[level])):
            failed, busy = search.cheap_failures.at(level), {pull.arm for pull in pending}
            alive = [
                arm for arm in failed if arm not in search._closed and search.level_of(arm) < 0
            ]
            if alive and busy.isdisjoint(alive):
                return Pull(alive[0], max(next_level(search, alive[0]), level + 1))
    return None


def dearness_of(
    search: SearchPolicy,
    arms: Sequence[int],
    starts: int | Sequence[int],
    ends: int | Sequence[int],
    point: Point | None = None,
) -> FloatArray:
    """Return the `dearness` of arms, new ones at a point; 1 for unknown ones."""
    found = np.ones(len(arms))
    if search.prices is None:
        return found
    points = [search._points.get(arm, point) for arm in arms]
    rows = [row for row, each in enumerate(points) if each is not None]
    if rows:
        found[rows] = search.dearness(
            search.space.features([each for each in points if each is not None]),
            np.broadcast_to(starts, len(arms))[rows],
            np.broadcast_to(ends, len(arms))[rows],
            [arms[row] for row in rows],
        )
    return found


def too_dear(search: SearchPolicy, arms: Sequence[int]) -> set[int]:
    """Return arms with a value below the target that can no longer be brought there."""
    if search.prices is None or math.isinf(search.affordable):
        return set()
    target = search.target
    levels = {arm: search.level_of(arm) for arm in arms if arm in search._points}
    levels = {arm: level for arm, level in levels.items() if search.lowest <= level < target}
    dearness = dearness_of(search, list(levels), list(levels.values()), target)
    return {
        arm
        for (arm, level), times in zip(levels.items(), dearness, strict=True)
        if search.price_from(level, target) * times > search.affordable
    }


def next_given(search: SearchPolicy, pending: Sequence[Pull]) -> int | None:
    """Return a given arm without value or pull; stopped ones only before any value."""
    lost = {pull.arm for pull in pending} | search._closed
    if search._levels:
        lost |= search._stops.keys()
    fresh = (arm for arm in search._given if arm not in lost and is_to_begin(search, arm))
    return min(fresh, key=lambda arm: search._stops.get(arm, 0), default=None)


def next_failed(search: SearchPolicy) -> Pull | None:
    """Return the next step of an arm that failed and has no value; None if none may go on."""
    failed = search.cheap_failures.failed_up_to
    arm = min(failed.keys() - search._closed, default=None)
    if arm is None:
        return None
    return Pull(arm, max(next_level(search, arm), min(failed[arm] + 1, search.target)))


def is_to_begin(search: SearchPolicy, arm: int) -> bool:
    """Return whether an arm has neither a value nor failed where new ones begin, or above."""
    failures = search.cheap_failures
    return max(search.level_of(arm), failures.highest(arm)) < failures.lowest


def next_level(search: SearchPolicy, arm: int) -> int:
    """Return the lowest level at which an arm may be evaluated next."""
    reached = max(search.level_of(arm), search.cheap_failures.highest(arm))
    return max(reached + 1, search.lowest)


_LEAST_AGREEMENT = 0.2  # with the next level, of one that is not skipped
_PRIOR_AGREEMENT, _PRIOR_ARMS = 0.5, 4
_SHARE_OF_FIRST = 0.6  # of the allowance: what all given arms may take at their first level
_USUAL_KEPT = 1.0 / 3.0  # of each level, where no budget says how many are to go up

_Expected: TypeAlias = Callable[[Sequence[int], int], Sequence[float]]  # of arms, at a level


class HalvingSearch(SearchPolicy):
    """Promotes the best third of each level, whenever an arm is among it.

    The promotions are those of asynchronous successive halving (Li et al., A system for massively
    parallel hyperparameter tuning, MLSys 2020). Arms are drawn by whoever asks. They begin at the
    lowest level that can be relied on: a level is skipped while its rank correlation with the next
    one (Spearman's) is below 0.2. Since a few arms say little, it counts four more with a
    correlation of one half. Arms that are given go up as `next_of_given` says, by their values.
    """

    def ask(self, begun: int, pending: Sequence[Pull] = ()) -> Pull | None:
        """Return what to evaluate next."""
        if self.n_given:
            return next_of_given(self, pending, lambda arms, at: [self.mean(k, at) for k in arms])
        step = first_step(self, begun, pending)
        if step is not None:
            return step
        grace = self.grace_level()
        return promotion(self, grace, pending) or Pull(begun, grace)

    def grace_level(self) -> int:
        """Return the level at which new arms begin."""
        for level in range(self.lowest, self.target):
            if self.agreement(level) >= _LEAST_AGREEMENT:
                return level
        return self.target

    def agreement(self, level: int) -> float:
        """Rank correlation of a level with the next one, drawn to one half by few arms."""
        from scipy.stats import spearmanr  # slow to import, and not needed before

        both = [arm for arm in self._values[level] if arm in self._values[level + 1]]
        low = [self.mean(arm, level) for arm in both]
        high = [self.mean(arm, level + 1) for arm in both]
        seen = 0.0
        if len(set(low)) > 1 and len(set(high)) > 1:
            seen = float(spearmanr(low, high).statistic)
        weight = len(both) / (len(both) + _PRIOR_ARMS)
        return float(np.clip(weight * seen + (1.0 - weight) * _PRIOR_AGREEMENT, -1.0, 1.0))


def next_of_given(
    search: SearchPolicy, pending: Sequence[Pull], expected: _Expected
) -> Pull | None:
    """Return the next step of successive halving among given arms (see `plan_for_given`), or None.

    Successive halving (Karnin, Koren and Somekh, Almost optimal exploration in multi-armed bandits,
    ICML 2013) keeps one half of each level; here the budget decides what is kept. After the plan
    the rest goes up, by what is `expected` of arms at a level; then those that failed.
    """
    step = probe(search, pending)
    if step is not None:
        return step
    plan = plan_for_given(search)
    out = search._closed | search._stops.keys()
    busy = {pull.arm: pull.fidelity for pull in pending}
    reached = {arm: max(search.level_of(arm), busy.get(arm, -1)) for arm in search._given}
    begun = sum(
        level >= search.cheap_failures.lowest for arm, level in reached.items() if arm not in out
    )
    if begun < plan[search.lowest]:
        first = max(level for level, n in plan.items() if n == plan[search.lowest])
        arm = next_given(search, pending)
        if arm is not None:
            return Pull(arm, first)
    for level in range(search.lowest, search.target):
        here = [arm for arm in search._values[level] if arm in reached and arm not in out]
        left = [arm for arm in here if reached[arm] == level]
        wanted = plan[level + 1]
        if any(at <= level for at in busy.values()):  # more will end here
            wanted = min(wanted, len(here) * wanted // plan[level])
        if left and len(here) - len(left) < wanted:
            return Pull(_best(search, left, level, expected), level + 1)
    for level in range(search.target - 1, search.lowest - 1, -1) if not pending else ():
        left = [k for k in search._values[level] if reached.get(k) == level and k not in out]
        if left:
            return Pull(_best(search, left, level, expected), level + 1)
    return None if pending else next_failed(search)


def _best(search: SearchPolicy, arms: Sequence[int], level: int, expected: _Expected) -> int:
    dear = too_dear(search, arms)
    arms = [arm for arm in arms if arm not in dear] or arms
    merits = dict(zip(arms, expected(arms, level), strict=True))
    return max(arms, key=lambda arm: (merits[arm], -arm))


def plan_for_given(search: SearchPolicy) -> dict[int, int]:
    """Return how many of the given arms are to be evaluated at each level, for the allowance.

    All begin at the highest level at which they take 60 % of the allowance or less, or as many as
    that pays for at the lowest one. Then the same share of each level goes up, as large as the
    allowance permits. Two are to come to the target at least, or one if two took more than 60 %.
    """
    from scipy.optimize import brentq  # slow to import, and not needed before

    n = search.n_candidates
    lowest, target = search.lowest, search.target
    levels, allowance = range(lowest, target + 1), search.allowance
    if math.isinf(allowance):
        return {level: max(2, round(n * _USUAL_KEPT ** (level - lowest))) for level in levels}
    most = _SHARE_OF_FIRST * allowance
    steps = {level: search.price_from(level - 1, level) for level in levels}
    # A single arm at the target has nothing to be compared with, but may be all that can be paid.
    fewest = 2 if 2.0 * sum(steps[level] for level in levels[1:]) <= most else 1

    def price_of(first: int, n: int, kept: float) -> float:
        above = (max(fewest, n * kept ** (k - first)) * steps[k] for k in levels if k > first)
        return n * search.price_from(-1, first) + sum(above)

    def fits(level: int) -> bool:
        begun = n * search.price_from(-1, level)
        return begun <= most and price_of(level, n, 0.0) <= allowance

    first = max(filter(fits, levels), default=lowest)
    if not fits(first):
        room = min(most, allowance - price_of(first, 0, 0.0))
        n = min(n, max(2, int(room / search.price_from(-1, first))))
    kept = 1.0
    if price_of(first, n, 1.0) > allowance:
        is_short = price_of(first, n, 0.0) >= allowance
        kept = 0.0 if is_short else brentq(lambda r: allowance - price_of(first, n, r), 0.0, 1.0)
    # What is rounded up is paid by those that come next, of whom few may be left.
    whole = round if n * kept ** (target - first) > fewest + 0.5 else int
    return {level: max(fewest, whole(n * kept ** max(level - first, 0))) for level in levels}
