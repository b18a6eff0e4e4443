"""Which arms may be begun, and which of those without a value go on."""

from collections.abc import Sequence

from mfhpo.problem import Pull
from mfhpo.search.policy import SearchPolicy


def next_given(search: SearchPolicy, pending: Sequence[Pull]) -> int | None:
    """Return a given arm without value or pull; stopped ones only before any value."""
    lost = {pull.arm for pull in pending} | search._closed
    if any(search._values):
        lost |= search._stops.keys()
    fresh = (arm for arm in search._given if arm not in lost and is_to_begin(search, arm))
    return min(fresh, key=lambda arm: search._stops.get(arm, 0), default=None)


def another(search: SearchPolicy, begun: int, pending: Sequence[Pull]) -> Pull | None:
    """Return another arm at the lowest level, after `begun`; None if no given one is left."""
    arm = next_given(search, pending) if search._given else begun
    return None if arm is None else Pull(arm, search.lowest)


def is_to_begin(search: SearchPolicy, arm: int) -> bool:
    """Return whether an arm has neither a value nor failed where new ones begin, or above."""
    return max(search.level_of(arm), search.cheap_failures.highest(arm)) < search._rise


def next_level(search: SearchPolicy, arm: int) -> int:
    """Return the lowest level at which an arm may be evaluated next."""
    reached = max(search.level_of(arm), search.cheap_failures.highest(arm))
    return max(reached + 1, search.lowest)


def next_failed(search: SearchPolicy, pending: Sequence[Pull]) -> Pull | None:
    """Return the next step of an arm that failed and has no value; None if none may go on."""
    busy = {pull.arm for pull in pending}
    failed = search.cheap_failures.failed_up_to
    arm = min((arm for arm in failed if arm not in busy | search._closed), default=None)
    if arm is None:
        return None
    return Pull(arm, max(next_level(search, arm), min(failed[arm] + 1, search.target)))
