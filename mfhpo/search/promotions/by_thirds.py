"""Promotions where a third of each level goes up: of the first arms, and of all."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from mfhpo.problem import Pull
from mfhpo.search.parts.steps import Begin
from mfhpo.search.policy import SearchPolicy
from mfhpo.search.promotions.dear_arms import dearness_of, too_dear
from mfhpo.search.promotions.next_arms import is_to_begin, next_level

_REDUCTION = 3  # one in so many goes up
_FAR_DEARER = 5.0  # than the median step is too dear while any arm would tell as much
_SHARE_BELOW = 0.5  # of what a level takes several workers, before it opens


def first_step(search: SearchPolicy, begun: int, pending: Sequence[Pull]) -> Begin | Pull | None:
    """Return the next step of the beginning: random arms, fewer at each level; or None."""
    step = probe(search, pending)
    if step is not None or begun < search.beginning.n:
        return step or Begin(search.lowest, None)
    # Arms that failed, were stopped or are too dear are replaced by the next ones, if any.
    stops = {arm for arm in search._stops if search.level_of(arm) < 0}
    lost = search._out | search._gone | stops
    lost |= {arm for arm in search.cheap_failures.given_up if not is_to_begin(search, arm)}
    candidates = (arm for arm in range(begun) if arm not in lost)
    first: list[int] = []
    while more := list(islice(candidates, search.beginning.n - len(first))):
        dear = too_dear(search, more)
        first += [arm for arm in more if arm not in dear]
    under_way = {pull.arm: pull.fidelity for pull in pending}
    for arm in first:
        if is_to_begin(search, arm) and arm not in under_way and arm not in search._merged:
            return Pull(arm, search.lowest)  # it failed: once more
    above_lowest = search.beginning.counts(range(search.lowest, search.target + 1))[1:]
    highest = highest_open(search, pending)
    for level, quota in zip(range(search.lowest, search.target), above_lowest, strict=True):
        above = [arm for arm in first if max(search.level_of(arm), under_way.get(arm, -1)) > level]
        left = [arm for arm in first if arm in search._values[level] and arm not in above]
        left = [arm for arm in left if arm not in search._merged and arm not in search._stops]
        if level >= highest:
            break
        # While others are under way here, the same share of those that have come to their end.
        waiting = any(under_way.get(arm) == level for arm in first)
        ended = (len(above) + len(left)) // _REDUCTION
        wanted = min(quota, ended) if waiting else quota
        if len(above) < wanted and left:
            return Pull(_next_up(search, left, above, level), level + 1)
    return Begin(search.lowest, None) if len(first) < search.beginning.n else None


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

    def cheapest_first(arm: int) -> tuple[float, float, int]:
        price = float(dearness_of(search, [arm], [level], [level + 1])[0])
        return price, -search.mean(arm, level), arm

    return min(arms, key=cheapest_first)


def _not_far_dearer(search: SearchPolicy, arms: list[int], level: int) -> list[int]:
    known = [arm for arm in search._values[level] if arm in search._points]
    if search.prices is None or not known:
        return arms
    features = search.space.features([search._points[arm] for arm in known])
    prices = search.dearness(features, level, level + 1, known)
    dear = np.array(known)[prices > _FAR_DEARER * np.median(prices)]
    return [arm for arm in arms if arm not in dear] or arms


def promotion(search: SearchPolicy, lowest: int, pending: Sequence[Pull]) -> Pull | None:
    """Return the next step of an arm among the best third of its level, or None."""
    busy = {pull.arm for pull in pending}
    for level in range(highest_open(search, pending) - 1, lowest - 1, -1):
        out = search._closed | search._stops.keys()
        here = [arm for arm in search._values[level] if arm not in out]
        here.sort(key=lambda arm: (-search.mean(arm, level), arm))
        for arm in here[: len(here) // _REDUCTION]:
            is_free = search.level_of(arm) == level and arm not in busy
            if is_free and not too_dear(search, [arm]):
                return Pull(arm, level + 1)
        # Nothing tells those apart that failed here: any third of them goes on.
        failed = [arm for arm in search.cheap_failures.at(level) if next_level(search, arm) > level]
        untried = [arm for arm in failed if next_level(search, arm) == level + 1]
        untried = [arm for arm in untried if arm not in busy | search._closed]
        if untried and len(failed) - len(untried) < len(failed) // _REDUCTION:
            return Pull(untried[0], level + 1)
    return None


def highest_open(search: SearchPolicy, pending: Sequence[Pull]) -> int:
    """Return the highest level that several workers may use yet; the target for one worker.

    Otherwise the best of very few arms would keep them all busy during the first evaluations
    there. So half the cost of one arm per worker is spent on the levels below first.
    """
    most = search.beginning.most / 2.0  # the other half is for the target
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
