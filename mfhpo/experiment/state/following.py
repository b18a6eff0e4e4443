"""Chooses what to evaluate next, by what a state knows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from mfhpo.experiment.assignment import Assignment, Available, Refused
from mfhpo.experiment.events import Begun, Origin
from mfhpo.experiment.kinds.runner import Runner, Wanted
from mfhpo.experiment.state.state import State
from mfhpo.problem import Pull

# How often pulls of full kinds are passed over for what is wanted besides them, and once more for
# each such kind. A policy that takes turns lets the others get so many pulls ahead.
_MOST_PASSED_OVER = 4


def wants(state: State, moving: str | None = None) -> bool:
    """Tell whether anything is wanted besides what is under way."""
    state.tell_costs()
    state.runner.available = None
    return state.runner.next(state.ledger.pending(moving)) is not None


def following(
    state: State, moving: str | None, available: Available | None = None
) -> Assignment | None:
    """Return what to evaluate besides what is under way, but for a claim that has to move.

    What is not available is passed over, as pulls of full kinds are. Claims that are equal may all
    have to move at the same moment: each leaves the next evaluations to those before it, while
    there are others of arms that are known.
    """
    state.tell_costs()
    state.runner.available = available
    pending, full = state.ledger.pending(moving), state.ledger.full
    n_left, left = _n_equal_before(state, moving), None
    for _ in range(n_left + len(full) + _MOST_PASSED_OVER):
        wanted = state.runner.next(pending)
        if wanted is None:
            break
        pending.append(wanted.pull)
        kind = wanted.pull.arm, wanted.pull.fidelity, wanted.purpose
        if kind not in full and _is_available(wanted, available):
            left = _assigned(state, wanted, "chosen")
            is_new = wanted.pull.arm >= len(state.runner.configurations)
            if is_new or not n_left:
                break
            n_left -= 1
            continue
        state.runner.held[wanted.pull] += 1  # nothing is paid for it
    return left


def _n_equal_before(state: State, moving: str | None) -> int:
    """Return how many open claims are equal to one that moves, and were begun before it."""
    open = state.ledger.open
    if moving not in open:
        return 0
    own = open[moving]
    before = takewhile(lambda id: id != moving, open)
    return sum(open[id].is_equal(own) for id in before)


def enqueued(
    state: State, part: Mapping[str, Any], level: int | None, moving: str | None
) -> Assignment | Refused | None:
    """Return the assignment of what a user has enqueued, in the arm's first open block.

    `part` are some of its values, which the policy chooses if there are none; None: it chooses
    nothing.
    """
    state.tell_costs()
    runner, pending = state.runner, state.ledger.pending(moving)
    known, runner.available = runner.configurations, None
    arm = _arm_with(state, part)
    if part and arm is None:
        return Refused(f"{dict(part)!r:.200} is none of the {len(known)} configurations")
    wanted = None
    if level is None or arm is None or arm == len(known):
        wanted = runner.next(pending)
    if arm is None:
        if wanted is None:
            return None
        arm = wanted.pull.arm
    if level is None:
        level = 0 if wanted is None else wanted.pull.fidelity
    if level >= runner.n_levels:
        return Refused(f"level {level} is none of the {runner.n_levels} levels")
    block = None if runner.open_block is None else runner.open_block(arm, pending)
    pull = Pull(arm, level, block=block)
    pull = pull if runner.limited is None else runner.limited(pull, pending)
    if not runner.fits(pull, pending):
        return Refused("what is left of the budget does not pay for it beside what is under way")
    return _assigned(state, _completed(runner, pull, part, wanted), "enqueued")


def _arm_with(state: State, part: Mapping[str, Any]) -> int | None:
    """Return the arm that has some values, or may have them; None if there is none."""
    known = state.runner.configurations
    arm = known.first_with(part) if part else None
    if arm is not None:
        return known.owner(arm)
    if not part:
        return None
    draws = (arm for arm in range(len(known)) if known.draw_of(arm) is not None)
    free = next((arm for arm in draws if arm not in state.claimed), None)
    may_be_new = free is None and len(known) < state.runner.n_arms
    return len(known) if may_be_new else free


def _completed(
    runner: Runner, pull: Pull, part: Mapping[str, Any], wanted: Wanted | None
) -> Wanted:
    """Return an enqueued pull with what the policy chooses besides the values of the user."""
    known = runner.configurations
    configuration, draw, point = dict(part), known.draw_of(pull.arm), None
    if pull.arm < len(known):
        configuration = {**known[pull.arm], **part}
    elif runner.draws:
        draw = known.next_draw
    if wanted is not None and wanted.pull.arm == pull.arm:
        configuration = {**(wanted.configuration or {}), **part}
        point = wanted.point and {n: wanted.point[n] for n in wanted.point.keys() - part.keys()}
    return Wanted(pull, configuration, runner.purpose, point, draw=draw)


def level_of(state: State, begun: Begun) -> int:
    """Return the level for a claim, which may be open; 0 where nothing is wanted."""
    if begun.levels:
        return begun.levels[0]
    state.tell_costs()
    wanted = state.runner.next(state.ledger.pending(begun.id))
    return 0 if wanted is None else max(0, wanted.pull.fidelity)


def _assigned(state: State, wanted: Wanted, origin: Origin) -> Assignment:
    runner, pull = state.runner, wanted.pull
    assert wanted.configuration is not None
    replicate = _replicate_of(state, wanted)
    if pull.block is None and wanted.purpose != "search":
        while replicate in state.rivals.replicates[wanted.purpose]:
            replicate += 1
    return Assignment(
        configuration=wanted.configuration,
        level=pull.fidelity,
        replicate=replicate,
        repeat=state.ledger.n_of_kind[pull.arm, pull.fidelity, wanted.purpose],
        draw=wanted.draw,
        point=wanted.point,
        block=pull.block,
        limit=pull.limit,
        purpose=wanted.purpose,
        shortlist=tuple(map(runner.configurations.key, wanted.shortlist)),
        origin=origin,
    )


def _replicate_of(state: State, wanted: Wanted) -> int:
    """Return the replicate: the block's, the search's, or one that nothing else has."""
    block, of_search = wanted.pull.block, state.runner.search_replicate
    if block is not None:
        return block
    n = state.ledger.n_begun[wanted.purpose]
    if of_search is None:
        return n
    return of_search if wanted.purpose == "search" else of_search + 1 + n


def _is_available(wanted: Wanted, available: Available | None) -> bool:
    if wanted.configuration is None:
        return False
    return available is None or available(wanted.configuration, wanted.pull.fidelity)
