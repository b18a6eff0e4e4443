"""Which arms of a search are begun, go up by thirds, go on after failures, or are too dear."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Point
from mfhpo.problem import Pull
from mfhpo.search.policy import REDUCTION, SearchPolicy
from mfhpo.search.steps import Begin

_FAR_DEARER = 5.0  # than the median step is too dear while any arm would tell as much
_SHARE_BELOW = 0.5  # of what a level takes several workers, before it opens


def first_step(search: SearchPolicy, begun: int, pending: Sequence[Pull]) -> Begin | Pull | None:
    """Return the next step of the beginning: random arms, fewer at each level; or None."""
    step, n_first = probe(search, pending), search.n_first
    if step is not None or begun < n_first:
        return step or Begin(search.lowest, None)
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
    return Begin(search.lowest, None) if len(first) < n_first else None


def _next_up(search: SearchPolicy, arms: list[int], above: list[int], level: int) -> int:
    """Return which of the first arms goes up: the best one that is not far dearer.

    If prices differ, it is the cheapest once an equally good one has gone, because any arm
    shows how far levels agree.
    """
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
    """Return the highest level that several workers may use yet; the target for one worker.

    Otherwise the best of very few arms would keep them all busy during the first evaluations
    there. So half the cost of one arm per worker is spent on the levels below first.
    """
    most = search.most_of_first / 2.0  # the other half is for the target
    highest, below = search.lowest, 0.0
    for level in range(search.lowest, search.target):
        below += len(search._values[level]) * search.cost_from(level - 1, level)
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


def another(search: SearchPolicy, begun: int, pending: Sequence[Pull]) -> Pull | None:
    """Return another arm at the lowest level, after `begun`; None if no given one is left."""
    arm = next_given(search, pending) if search._given else begun
    return None if arm is None else Pull(arm, search.lowest)


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
