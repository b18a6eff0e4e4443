"""Search by halving: of arms that are drawn without end, and of arms that are given."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from mfhpo.problem import Pull
from mfhpo.search.policy import SearchPolicy
from mfhpo.search.promotions import (
    first_step,
    next_failed,
    next_given,
    probe,
    promotion,
    too_dear,
)
from mfhpo.search.steps import Begin

_LEAST_AGREEMENT = 0.2  # with the next level, of one that is not skipped
_PRIOR_AGREEMENT, _PRIOR_ARMS = 0.5, 4
_SHARE_OF_FIRST = 0.6  # of the allowance: what all given arms may take at their first level
_USUAL_KEPT = 1.0 / 3.0  # of each level, where no budget says how many are to go up

_Expected: TypeAlias = Callable[[Sequence[int], int], Sequence[float]]  # of arms, at a level


class HalvingSearch(SearchPolicy):
    """Promotes the best third of each level, whenever an arm is among it.

    The promotions are those of asynchronous successive halving (Li et al., A system for massively
    parallel hyperparameter tuning, MLSys 2020). The first arms go up as in any search (see
    `initial`). Arms are drawn by whoever asks. They begin at the lowest level that can be relied
    on: a level is skipped while its rank correlation with the next one is below 0.2. It is
    Spearman's, over the arms that were evaluated at both. Since a few arms say little, it counts
    four more with a correlation of one half.

    Arms that are given go up as `next_of_given` says, by their values.

    Examples
    --------
    >>> from mfhpo.problem import Observation
    >>> search = HalvingSearch(costs=(1.0, 3.0), initial=3)
    >>> for arm, value in enumerate([0.1, 0.9, 0.5]):
    ...     search.tell(Pull(arm, 0), Observation(value))
    >>> search.ask(begun=3)
    Pull(arm=1, fidelity=1, limit=None, block=None)
    """

    def ask(self, begun: int, pending: Sequence[Pull] = ()) -> Begin | Pull | None:
        """Return what to evaluate next."""
        if self.n_given:
            return next_of_given(self, pending, lambda arms, at: [self.mean(k, at) for k in arms])
        step = first_step(self, begun, pending)
        if step is not None:
            return step
        grace = self.grace_level()
        return promotion(self, grace, pending) or Begin(grace, None)

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
    ICML 2013) keeps one half of each level and spends as much on each; here the budget decides what
    is kept. With several workers, an arm goes up while others are under way at its level, if it is
    among the same share of those that have ended. After the plan the rest goes up, by what is
    `expected` of arms at a level; then those that failed below the target.
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
    allowance permits; a third if it is infinite. Two are to come to the target at least, or one if
    two took more than 60 %, and are paid for before others begin.
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
