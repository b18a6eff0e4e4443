"""An experiment: what to do next, what is known, what the answer is, as a function of events."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mfhpo.experiment.answer import Answer, left_out_in_words, losses_in_words
from mfhpo.experiment.events import Begun, Event
from mfhpo.experiment.following import Assignment, Done, Refused, Wait, enqueued, following
from mfhpo.experiment.kinds.blind import with_levels
from mfhpo.experiment.kinds.runner import Available, Runner, Settings
from mfhpo.experiment.ledger import Ledger, Result
from mfhpo.experiment.log import Log, Place
from mfhpo.experiment.state import OF_CLAIMS, State

# So many of the last events may have to be taken again when one comes late.
_MOST_LATE = 100
_MOST_NAMED = 3  # of the evaluations that are waited for


class Experiment:
    """One experiment, told by events.

    All that is known is a function of the events, in an order that they carry themselves. Whatever
    order they come in, whoever has read the same events knows the same, and a restart is a replay.

    Parameters
    ----------
    settings
        What kind of experiment it is, with all of its options.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._log = Log()
        self._state = self._new_state()
        self._kept: State | None = None  # an earlier one, since events have come late
        self._changed = 0  # the first event since which the past has changed
        self._known: Place | None = None  # the last event whose warnings were given
        self._is_over: bool | None = None  # after the last event

    @classmethod
    def replay(cls, settings: Settings, events: Iterable[Event]) -> Experiment:
        """Return the experiment in which these events happened; no warning is repeated."""
        experiment = cls(settings)
        for event in events:
            experiment.apply(event)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            experiment._current()
        return experiment

    def apply(self, event: Event) -> None:
        """Take an event; nothing else changes the experiment.

        Events come in any order, and more than once. Of several about the same claim the one with
        the largest counter holds; it has its place since it was first told without a change, but
        for a level that becomes known.
        """
        self._changed = min(self._changed, self._log.add(event))
        self._is_over = None

    @property
    def order(self) -> int:
        """The counter of the next event that is written here."""
        return self._log.order

    @property
    def events(self) -> list[Event]:
        """All events that hold, in their order, and the last words about those told again."""
        return self._log.events

    @property
    def concluded(self) -> int:
        """The counter of the last answer that a worker has given (`Concluded`); -1 before."""
        return self._log.concluded

    @property
    def open(self) -> list[str]:
        """The claims that are under way."""
        return list(self._current().ledger.open)

    @property
    def ledger(self) -> Ledger:
        """The claims that are under way, and the results that wait for them; only to be read."""
        return self._current().ledger

    @property
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""
        if self._is_over is None:  # hosts ask time and again
            self._is_over = self._current().finished
        return self._is_over

    @property
    def is_spent(self) -> bool:
        """True if nothing is under way, and nothing is left to begin: the next reply is `Done`."""
        return self._current().is_spent

    @property
    def n_begun(self) -> int:
        """Number of evaluations that were begun."""
        return self._log.n_begun

    def next(
        self,
        fixed: tuple[Mapping[str, object], int | None] | None = None,
        moving: str | None = None,
        available: Available | None = None,
    ) -> Assignment | Wait | Refused | Done:
        """Return what a worker does next; nothing changes by asking.

        Parameters
        ----------
        fixed
            Values and level that the user has enqueued. Values that are not given, and a level of
            None, are chosen. Refused if that is no configuration of the experiment, or does not fit
            the budget beside what is under way.
        moving
            The claim that has to move (see `settle`), and is not waited for.
        available
            Returns whether the host can evaluate an arm, with its configuration, at a level now.
            What it cannot is passed over a few times. None: anything.

        Raises
        ------
        ValueError
            If many evaluations in a row were of something else than was claimed.
        """
        state = self._current()
        state.check_what_was_evaluated()
        if state.finished:
            return Done(self.answer().reason)
        if fixed is None:
            found: Assignment | Refused | None = following(state, moving, available)
        else:
            found = enqueued(state, *fixed, moving)
        if found is not None:
            return found
        pending = state.ledger.pending(moving)
        if not pending and state.runner.next(pending) is None:
            return Done(self.answer().reason)
        if not pending:
            return Wait("what is wanted cannot be evaluated now")
        return Wait(_whom_it_waits_for(state), is_held_up=bool(state.ledger.full))

    def settle(self, id: str) -> Begun | None:
        """Return the claim as it stands; None if an earlier one is equal, and it must move.

        Whoever has to move asks again, and writes a claim with the same id and a larger counter.
        """
        return None if id in self._current().rivals else self.claim(id)

    def is_overtaken(self, id: str) -> bool:
        """Tell whether an open claim is equal to another one that was written without knowing it.

        That writer may not look again. So this claim moves while it can, though it stands.
        """
        state = self._current()
        own = state.ledger.open[id]
        for other in map(state.claim_of, state.rivals - {id}):
            if other and other.is_equal(own) and other.begun.order >= own.begun.order:
                return True
        return False

    def level_of(self, id: str) -> int:
        """Return the level for a claim that was made before levels were known."""
        begun, state = self.claim(id), self._current()
        if begun.levels:
            return begun.levels[0]
        wanted = state.runner.next(state.ledger.pending(id))
        return 0 if wanted is None else max(0, wanted.pull.fidelity)

    def claim(self, id: str) -> Begun:
        """Return the claim with an id as it stands; ValueError if there is none."""
        claim = self._log.claim(id)
        if claim is None:
            raise ValueError(f"id {id!r} names no evaluation that was begun.")
        return claim

    def answer(self) -> Answer:
        """Return the best answer so far, with its conditions, and whom it waits for.

        The first certificate stays, unless what comes later certifies the same.
        """
        state = self._current()
        answer, first = _answer(state), state.certificate
        return first if first and not (answer.certified and answer.arm == first.arm) else answer

    def history(self) -> list[Result]:
        """Return the results that were learned, in their order."""
        return list(self._current().history)

    @property
    def runner(self) -> Runner:
        """The runner of this kind of experiment, for progress and pictures; only to be read."""
        return self._current().runner

    def _current(self) -> State:
        """Return the state after all events."""
        n = len(self._log.telling)
        if self._changed < self._state.n_taken:
            self._go_back()
            self._repeat_until(self._log.up_to(self._known))
        self._changed = n
        if self._state.n_taken < n:
            self._take_until(n)
            self._known = self._log.places[-1]
        return self._state

    def _go_back(self) -> None:
        """Make the state anew up to the last events, and keep it: others may come late, too."""
        if self._kept is None or self._kept.n_taken > self._changed:
            self._kept = self._new_state()
        n = len(self._log.telling)
        self._state = self._kept
        if self._kept.n_taken < n - 2 * _MOST_LATE:
            self._repeat_until(n - _MOST_LATE)
        self._state = self._kept.copied()

    def _new_state(self) -> State:
        levels = self._log.levels
        settings = self.settings if levels is None else with_levels(self.settings, levels)
        return State(settings.runner(), settings)

    def _repeat_until(self, end: int) -> None:
        """Take events whose warnings were given before."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._take_until(end)

    def _take_until(self, end: int) -> None:
        state, events = self._state, self._log.telling
        while state.n_taken < end:
            n_learned = len(state.history)
            state.take(events[state.n_taken])
            has_learned = len(state.history) > n_learned
            if has_learned and state.certificate is None and state.runner.finished:
                answer = _answer(state)
                state.certificate = answer if answer.certified else None


def _answer(state: State) -> Answer:
    state.runner.conditions = _conditions(state)
    answer = _with_assumptions(state, state.runner.answer())
    if answer.finished and state.is_held_up:
        answer = replace(answer, finished=False)
    if answer.finished:
        return answer
    if state.why_in_vain:
        return replace(answer, finished=True, reason=state.why_in_vain)
    ledger = state.ledger
    if state.is_exhausted or not (ledger.open or state.runner.next(ledger.pending())):
        why = answer.reason.removeprefix("the search goes on; ")
        return replace(answer, finished=True, reason=f"nothing is left to evaluate; {why}")
    if not ledger.waited_for:
        return answer
    return answer.because(
        f"{answer.reason}; values count in the order in which evaluations began, and the "
        f"experiment waits for {_whom_it_waits_for(state)}"
    )


def _with_assumptions(state: State, answer: Answer) -> Answer:
    """Return an answer that says what evaluations are, and how many of them were stopped."""
    about = (state.settings.about_evaluations,) if state.settings.about_evaluations else ()
    certificate = answer.certificate
    if certificate is not None:
        certificate = replace(certificate, assumptions=(*about, *certificate.assumptions))
    assumptions = (*about, *answer.assumptions)
    if state.n_stopped:
        assumptions += (
            f"evaluations that end in time: {state.n_stopped} were stopped at a time limit, "
            f"and means are those of the others",
        )
    return replace(answer, assumptions=assumptions, certificate=certificate)


def _whom_it_waits_for(state: State) -> str:
    """Return in words which claims hold back others, or else which are under way."""
    waited, labels = state.ledger.waited_for, state.runner.labels
    parts = [
        f"evaluation {id} of {labels.arm(pull.arm)} at {labels.fidelity(pull.fidelity)} "
        f"({n_held} later ones have ended)"
        for id, pull, n_held in waited[:_MOST_NAMED]
    ]
    if len(waited) > _MOST_NAMED:
        parts.append(f"and {len(waited) - _MOST_NAMED} more")
    return ", ".join(parts) or f"{len(state.ledger.open)} evaluations under way"


def _conditions(state: State) -> tuple[str, ...]:
    """Return what must be true about evaluations that a claim would rest on, and were lost."""
    missing = [
        id
        for id, claim in state.ledger.lost.items()
        if claim.begun.purpose in OF_CLAIMS
        and (claim.pull.arm, claim.pull.fidelity, claim.pull.block) not in state.seen
    ]
    has_unsure = not state.unsure.isdisjoint(missing)
    return (
        *losses_in_words(len(missing), state.settings.lease_seconds, has_unsure),
        *(left_out_in_words(n, why) for why, n in state.cut.items() if n),
    )
