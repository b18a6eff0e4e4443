"""What is known after some events: the arms, the open claims, and what was learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.events import Begun, Ended, Event, Found, Lost
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.ledger import Claim, Ledger, Result, WaitedFor

# A reason names so many of the evaluations that are waited for.
_MOST_NAMED = 3


class State:
    """A runner and a ledger, which take events in their order.

    Parameters
    ----------
    runner
        Knows this kind of experiment; nothing was told to it yet.
    about_evaluations
        What evaluations are, as the first assumption of an answer.
    retries
        By claim, the claim that takes its place: known beforehand, because a claim whose place is
        taken does not let later ones go first.
    """

    def __init__(self, runner: Runner, about_evaluations: str, retries: dict[str, str]) -> None:
        self.runner = runner
        self.ledger = Ledger(runner.n_levels, runner.ordered)
        self.history: list[Result] = []
        self.rivals: set[str] = set()  # claims that an earlier one is equal to
        self._about = (about_evaluations,) if about_evaluations else ()
        self._retries = retries
        self._suspended: dict[str, Claim] = {}
        self._cells: set[tuple[int, int, int | None]] = set()  # arm, level, block
        self._shortlist: tuple[str, ...] = ()
        self._n_foreign = 0  # evaluations of something else than was claimed
        self._lost_cost = 0.0

    def take(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, Begun):
            self._begin(event)
        elif isinstance(event, Ended):
            self._end(event)
        elif isinstance(event, Lost):
            self._lose(event)
        elif isinstance(event, Found):
            self.runner.find_replicates(event.replicates)

    @property
    def finished(self) -> bool:
        """Whether the experiment is over, whatever is under way."""
        return self.runner.finished

    def answer(self) -> Answer:
        """Return the best answer so far, with its conditions, and whom it waits for."""
        self.runner.conditions = self._conditions()
        answer = self._with_assumptions(self.runner.answer())
        if answer.finished or not self.ledger.waited_for:
            return answer
        words = (
            f"{answer.reason}; values count in the order in which evaluations began, and the "
            f"experiment waits for {self.whom_it_waits_for()}"
        )
        return replace(answer, reason=words)

    def _with_assumptions(self, answer: Answer) -> Answer:
        certificate = answer.certificate
        if certificate is not None:
            assumptions = (*self._about, *certificate.assumptions)
            certificate = replace(certificate, assumptions=assumptions)
        assumptions = (*self._about, *answer.assumptions)
        return replace(answer, assumptions=assumptions, certificate=certificate)

    def whom_it_waits_for(self) -> str:
        """Return in words which claims hold back others, or else which are under way."""
        waited = self.ledger.waited_for
        parts = [self._in_words(each) for each in waited[:_MOST_NAMED]]
        if len(waited) > _MOST_NAMED:
            parts.append(f"and {len(waited) - _MOST_NAMED} more")
        return ", ".join(parts) or f"{len(self.ledger.open)} evaluations under way"

    def _in_words(self, waited: WaitedFor) -> str:
        labels = self.runner.labels
        return (
            f"evaluation {waited.id} of {labels.arm(waited.pull.arm)} at "
            f"{labels.fidelity(waited.pull.fidelity)} ({waited.n_held} later ones have ended)"
        )

    def _conditions(self) -> tuple[str, ...]:
        if not self.ledger.n_lost:
            return ()
        return (
            f"the {self.ledger.n_lost} evaluations that were left out, because their process or "
            f"the driver died, were like the others",
        )

    def _begin(self, begun: Begun) -> None:
        pull = self.runner.adopt(begun)
        if pull is None:
            return
        inherited = self._suspended.pop(begun.retry_of or "", None)
        if inherited is not None:
            pull = inherited.pull
        elif self._has_rival(begun, pull.arm):
            self.rivals.add(begun.id)
        self._cells.update((pull.arm, level, begun.block) for level in begun.levels or ())
        self.ledger.begin(begun, pull, inherited)

    def _has_rival(self, begun: Begun, arm: int) -> bool:
        """Tell whether a claim should move, because an earlier one is equal."""
        if begun.origin == "enqueued":
            return False
        if begun.purpose == "certificate":
            self._shortlist = self._shortlist or begun.shortlist
            if self.runner.configurations.key(arm) not in self._shortlist:
                return True
            if begun.block is None:
                return False
        elif begun.purpose == "given" and begun.block is None:
            return False  # one more value
        return any((arm, level, begun.block) in self._cells for level in begun.levels or ())

    def _end(self, ended: Ended) -> None:
        claim = self.ledger.open.get(ended.id)
        if claim is None:
            self._pay(ended.cost)  # of no arm, or given up before
            return
        observation: Any = None
        if self._is_of(claim, ended):
            observation = self.runner.observe(ended)
        else:
            self._n_foreign += 1
            self._pay(ended.cost)
        self._learn(self.ledger.end(claim, ended, observation))

    def _is_of(self, claim: Claim, ended: Ended) -> bool:
        if ended.configuration is None:
            return True
        return self.runner.configurations.find(ended.configuration) == claim.pull.arm

    def _lose(self, lost: Lost) -> None:
        claim = self.ledger.open.get(lost.id)
        self._pay(lost.cost)
        if claim is None:
            return
        if lost.id in self._retries:
            self.ledger.suspend(claim)
            self._suspended[lost.id] = claim
            return
        failure = self.runner.observe(Ended(id=lost.id, order=lost.order, value=None, cost=0.0))
        self._learn(self.ledger.lose(claim, failure))

    def _pay(self, cost: float | None) -> None:
        self._lost_cost += cost or 0.0
        self.runner.unlearned_cost = self._lost_cost

    def _learn(self, results: list[Result]) -> None:
        for result in results:
            self.history.append(result)
            self.runner.learn(result.pull, result.observation, result.purpose)
        held = sum(
            self.runner.cost_of(result.pull, result.observation)
            for result in self.ledger.held.values()
        )
        self.runner.unlearned_cost = self._lost_cost + held
