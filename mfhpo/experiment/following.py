"""The replies to a worker that asks for work, and how they are chosen by what a state knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from mfhpo.experiment.events import Begun, Origin, Purpose
from mfhpo.experiment.kinds.runner import Available, Runner, Wanted
from mfhpo.experiment.state import State
from mfhpo.problem import Pull

# How often pulls of full kinds are passed over for what is wanted besides them, and once more for
# each such kind. A policy that takes turns lets the others get so many pulls ahead.
_MOST_PASSED_OVER = 4


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """An evaluation to make.

    Parameters
    ----------
    configuration
        What to evaluate, without the parameters that the engine sets.
    level
        Index of the level; -1: the levels are not known before the objective asks for one.
    replicate
        Number of the split, fold or seed: evaluations with the same one share it.
    repeat
        How many evaluations of this configuration, level and purpose were begun before: for a host
        in which each evaluation has a seed of its own.
    draw, point, block, limit, purpose, shortlist, origin
        See `mfhpo.experiment.Begun`.
    """

    configuration: Mapping[str, Any]
    level: int
    replicate: int
    repeat: int = 0
    draw: int | None = None
    point: Mapping[str, float] | None = None
    block: int | None = None
    limit: float | None = None
    purpose: Purpose = "given"
    shortlist: tuple[str, ...] = ()
    origin: Origin = "chosen"

    def begun(self, id: str, order: int, *, levels: Sequence[int] | None = None) -> Begun:
        """Return the event that claims it, for some levels or its own alone."""
        content = {name: vars(self)[name] for name in vars(self).keys() - {"level", "repeat"}}
        content["levels"] = None if self.level < 0 else (self.level,)
        if levels is not None:
            content["levels"] = tuple(levels)
        return Begun(id=id, order=order, **content)


@dataclass(frozen=True)
class Wait:
    """Nothing can be begun now: ask again after an evaluation has ended.

    Parameters
    ----------
    why
        For whom or what, in words.
    is_held_up
        Whether so many results wait for one evaluation that no other of its kind is begun.
    """

    why: str
    is_held_up: bool = False


@dataclass(frozen=True)
class Refused:
    """A refusal of what a user has enqueued; `why` says in words what it is not, or exceeds."""

    why: str


@dataclass(frozen=True)
class Done:
    """The experiment is over; `why` says it in words."""

    why: str


def following(
    state: State, moving: str | None, available: Available | None = None
) -> Assignment | None:
    """Return what to evaluate besides what is under way, but for a claim that has to move.

    What is not available is passed over, as pulls of full kinds are. Of equal claims that move at
    the same moment each leaves the next evaluations of known arms to those before it.
    """
    runner, open, left = state.runner, state.ledger.open, None
    pending, full, held = state.ledger.pending(moving), state.ledger.full, runner.held
    runner.available, runner.held = available, held.copy()
    n_left = 0  # open claims that are equal, and were begun before
    if moving in open:
        before = takewhile(lambda id: id != moving, open)
        n_left = sum(open[id].is_equal(open[moving]) for id in before)
    for _ in range(n_left + len(full) + _MOST_PASSED_OVER):
        wanted = runner.next(pending)
        if wanted is None:
            break
        pull, configuration = wanted.pull, wanted.configuration
        pending.append(pull)
        can_be = configuration is not None and (
            available is None or available(pull.arm, configuration, pull.fidelity)
        )
        if not can_be or (pull.arm, pull.fidelity, wanted.purpose) in full:
            runner.held[pull] += 1
            continue
        left = _assigned(state, wanted, wanted.origin)
        if not n_left or pull.arm >= len(runner.configurations):
            break
        n_left -= 1
    runner.available, runner.held = None, held
    return left


def enqueued(
    state: State, part: Mapping[str, Any], level: int | None, moving: str | None
) -> Assignment | Refused | None:
    """Return the assignment of what a user has enqueued; None if the rest cannot be chosen now."""
    runner, pending = state.runner, state.ledger.pending(moving)
    known = runner.configurations
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
    pull = runner.limited(Pull(arm, level, block=runner.open_block(arm, pending)), pending)
    if not runner.fits(pull, pending):
        return Refused("what is left of the budget does not pay for it beside what is under way")
    return _assigned(state, _completed(runner, pull, part, wanted), "enqueued")


def _arm_with(state: State, part: Mapping[str, Any]) -> int | None:
    """Return the arm that has some values, or may have them; None if there is none."""
    known = state.runner.configurations
    if not part:
        return None
    arm = known.first_with(part)
    if arm is not None:
        return known.owner(arm)
    claimed = {arm for arm, *_ in state.ledger.n_of_kind}
    draws = (arm for arm in range(len(known)) if known.draw_of(arm) is not None)
    free = (arm for arm in draws if arm not in claimed)
    return next(free, len(known) if len(known) < state.runner.n_arms else None)


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


def _assigned(state: State, wanted: Wanted, origin: Origin) -> Assignment:
    """Return an assignment on the replicate of the block, of the search, or on a new one."""
    runner, pull, purpose = state.runner, wanted.pull, wanted.purpose
    replicate, of_search = pull.block, runner.search_replicate
    if replicate is None and purpose == "search" and of_search is not None:
        replicate = of_search
    elif replicate is None:
        replicate = state.ledger.n_begun[purpose] + (0 if of_search is None else of_search + 1)
        while purpose != "search" and replicate in state.replicates[purpose]:
            replicate += 1
    assert wanted.configuration is not None
    return Assignment(
        configuration=wanted.configuration,
        level=pull.fidelity,
        replicate=replicate,
        repeat=state.ledger.n_of_kind[pull.arm, pull.fidelity, purpose],
        draw=wanted.draw,
        point=wanted.point,
        block=pull.block,
        limit=pull.limit,
        purpose=purpose,
        shortlist=tuple(map(runner.configurations.key, wanted.shortlist)),
        origin=origin,
    )
