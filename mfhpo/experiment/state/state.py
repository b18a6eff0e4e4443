"""The state that events change: arms, open claims, and results that were learned."""

from __future__ import annotations

import warnings
from collections import Counter
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.events import Begun, Ended, Event, Found, Lost
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.experiment.ledger import Claim, Ledger, Result
from mfhpo.experiment.state.rivals import Rivals
from mfhpo.experiment.state.setbacks import Setbacks
from mfhpo.problem import Pull

OF_CLAIMS = frozenset({"given", "certificate"})
"""Purposes of evaluations that a claim rests on."""


class State:
    """A runner and a ledger, which take events in their order.

    Parameters
    ----------
    runner
        Knows this kind of experiment; nothing was told to it yet.
    settings
        Of the experiment.

    Attributes
    ----------
    n_taken
        Number of events.
    claimed
        The arms that were claimed.
    unsure
        Claims that were given up, and may have a worker.
    certificate
        The first answer that is certified.
    is_exhausted
        Whether no further evaluation can be made.
    n_stopped
        Number of results that a mean would rest on, and that were stopped at a limit.
    """

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self.runner = runner
        self.settings = settings
        self.ledger = Ledger(runner.n_levels, runner.ordered)
        self.rivals = Rivals(runner.configurations, self.ledger)
        n_expected = getattr(settings, "n_arms", None) or 0
        self.setbacks = Setbacks(max(n_expected, len(runner.configurations)))
        self.history: list[Result] = []
        self.n_taken = 0
        self.claimed: set[int] = set()
        self.unsure: set[str] = set()
        self.certificate: Answer | None = None
        self.is_exhausted = False
        self.n_stopped = 0
        self._firsts: dict[str, str] = {}  # by retry, the first claim in its place
        self._holders: dict[str, str] = {}  # by the first, the last that has its place
        self._closed: dict[str, Claim] = {}  # that have not ended, and of no arm
        self._ended: set[str] = set()
        self._failed: set[str] = set()  # losses that count as failures, and are paid as such
        self._unlearned: dict[tuple[str, int | None], float] = {}
        """Costs of what is not learned, by claim and level; of losses without a level."""
        self._n_replicates: int | None = None  # as it was found first
        self._merged: set[int] = set()  # draws that turned out equal to earlier arms
        self._lost_cost = 0.0
        self._of_held: tuple[Counter[Pull], float] | None = None  # and what was paid for them
        runner.held = Counter()

    def take(self, event: Event) -> None:
        """Take the next event."""
        self.n_taken += 1
        if isinstance(event, Begun):
            self._begin(event)
        elif isinstance(event, Ended):
            self._end(event)
        elif isinstance(event, Lost):
            self._lose(event)
        elif isinstance(event, Found):
            self._find(event)
        self._of_held = None

    def copied(self) -> State:
        """Return a state that takes other events than this one from here on."""
        known: dict[int, Any] = {id(each): copy(each) for each in self._growing()}
        return deepcopy(self, {**known, id(self.settings): self.settings})

    def _growing(self) -> list[Any]:
        """Return what grows with every event, and whose entries never change."""
        of_self = [self.history, self._closed, self._firsts, self._holders, self._unlearned]
        return [*of_self, self._ended, self._failed, self.rivals.seen]

    def _find(self, found: Found) -> None:
        if found.replicates is not None and self.runner.of_means:  # the first number holds
            self._n_replicates = self._n_replicates or found.replicates
            self.runner.policy.most_blocks = self._n_replicates
        self.is_exhausted |= found.is_exhausted
        if self.runner.find is not None:
            self.runner.find(found)

    def claim_of(self, id: str) -> Claim | None:
        """Return a claim that is under way, or that has ended; None for one of no arm."""
        return self.ledger.open.get(id, self._closed.get(id))

    @property
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""
        if self.is_exhausted or self.setbacks.are_hopeless or self.setbacks.are_cut_off:
            return True
        self.tell_costs()
        is_over = self.runner.finished and not self.is_held_up
        return is_over or self.certificate is not None

    @property
    def is_spent(self) -> bool:
        """True if nothing is under way, and nothing is left to begin."""
        if self.ledger.open:
            return False
        self.tell_costs()
        is_spent = self.runner.is_spent
        return self.runner.finished if is_spent is None else is_spent()

    @property
    def is_held_up(self) -> bool:
        """True if it is only over by costs of results that wait for what is under way."""
        if not self.ledger.held:
            return False
        self.runner.unlearned_cost = self._lost_cost
        goes_on = not self.runner.finished
        self.tell_costs()
        return goes_on

    def _begin(self, begun: Begun) -> None:
        begun = self.rivals.agreed(begun)
        levels = () if begun.levels is None else begun.levels or (-1,)
        exist = all(0 <= level < self.runner.n_levels for level in levels)
        pull = self.runner.adopt(begun) if exist else None
        inherited = self._inherited(begun, pull)
        if pull is None:  # it is paid as if it were of any arm
            level = begun.levels[0] if exist and begun.levels else self.runner.n_levels - 1
            self._closed[begun.id] = Claim(begun, Pull(0, level))
            return
        self.claimed.add(pull.arm)
        if inherited is None:
            self.rivals.note_repeat(begun, pull.arm)
        must_move = self.rivals.has_rival(begun, pull.arm) or self._exceeds(begun, pull)
        if inherited is None and must_move:
            self.rivals.ids.add(begun.id)
        else:
            self.runner.configurations.note(pull.arm, begun.configuration)
        if begun.replicate is not None:
            self.rivals.replicates[begun.purpose].add(begun.replicate)
        if inherited is not None:
            self._closed[inherited.begun.id] = inherited
        self.ledger.begin(begun, pull, inherited)

    def _exceeds(self, begun: Begun, pull: Pull) -> bool:
        """Tell whether a claim should move, because earlier ones take what is left for it."""
        if begun.origin != "chosen" or not self.runner.keeps_budget:
            return False
        self.tell_costs()
        return not self.runner.fits(pull, self.ledger.pending())

    def _inherited(self, begun: Begun, pull: Pull | None) -> Claim | None:
        """Return the open claim whose place another one takes; one that differs gives it up."""
        if begun.retry_of is None:
            return None
        first = self._firsts.get(begun.retry_of, begun.retry_of)
        claim = self.ledger.open.get(self._holders.get(first, first))
        self._firsts[begun.id], self._holders[first] = first, begun.id
        if claim is None or (pull is not None and _is_same(claim, begun, pull)):
            return claim
        self._give_up(claim, begun)
        return None

    def _end(self, ended: Ended) -> None:
        claim = self.ledger.open.get(ended.id)
        is_own = claim is not None and self._is_of(claim, ended)
        self._inform(ended, claim, is_own)
        if claim is None:
            self._end_late(ended)
            return
        if ended.last:
            self._ended.add(ended.id)
            self._closed[ended.id] = claim
        observation: Any = None
        level = claim.level_of(ended)
        if is_own and ended.id in self.rivals.repeats:
            self._pay(ended, claim, level)
        elif level in claim.tickets and is_own:
            self.setbacks.note_own()
            self._identify(claim.pull.arm, level, ended)
            observation = self.runner.observe(ended)
        else:
            words = f"evaluation {ended.id}, claimed as {claim.begun.configuration!r:.200}"
            if ended.configuration is not None:
                words += f": it was {ended.configuration!r:.200}"
            self.setbacks.note_foreign(words)
            self._pay(ended, claim, level)
        self._learn(self.ledger.end(claim, level, observation, ended.last))

    def _end_late(self, ended: Ended) -> None:
        """Pay what a closed claim gave, and learn it where no order matters."""
        if ended.id in self._failed:
            return
        self._lost_cost -= self._unlearned.pop((ended.id, None), 0.0)
        self._ended.add(ended.id)
        claim = self.ledger.lost.pop(ended.id, None) if self.runner.counts_late else None
        if claim is None:
            self._pay(ended, self._closed.get(ended.id), ended.level)
            return
        result = Result(ended.id, claim.pull, self.runner.observe(ended), claim.begun.purpose)
        self._learn([result])

    def _is_of(self, claim: Claim, ended: Ended) -> bool:
        if ended.configuration is None:
            return True
        configurations, arm = self.runner.configurations, claim.pull.arm
        return configurations.is_of(arm, ended.configuration, is_whole=ended.has_value)

    def _inform(self, ended: Ended, claim: Claim | None, is_own: bool) -> None:
        """Tell what draws are to a model, but not by an evaluation of something else."""
        points = ended.points
        if claim is not None and not is_own:
            points = {draw: points[draw] for draw in points.keys() - {claim.begun.draw}}
        if self.runner.inform is not None and (ended.parameters or points):
            self.runner.inform(ended.parameters, points)

    def _identify(self, arm: int, level: int, ended: Ended) -> None:
        """Learn what a draw is; one that is equal to an earlier arm leaves.

        Cheaper levels may ask for fewer parameters, so that arms may only look the same there.
        """
        if ended.configuration is None or not ended.has_value:
            return
        configurations = self.runner.configurations
        if level < self.runner.n_levels - 1 or self.runner.withdraw is None:
            configurations.fix(arm, ended.configuration)
            return
        owner = configurations.identify(arm, ended.configuration)
        if owner == arm or arm in self._merged:
            return
        if not self._merged and not self.runner.draws:
            warnings.warn(
                f"configurations {owner} and {arm} were drawn equal, {configurations[owner]!r}: "
                f"they are merged, and so will be others",
                stacklevel=7,
            )
        self._merged.add(arm)
        self.runner.withdraw(arm, owner)

    def _lose(self, lost: Lost) -> None:
        if lost.id in self._ended:
            return
        claim = self.ledger.open.get(lost.id)
        if claim is not None and (lost.is_withdrawn or lost.is_cut):
            (self._withdraw if lost.is_withdrawn else self._cut_off)(claim, lost)
            return
        if claim is None or lost.will_retry:
            self._pay(lost, claim or self._closed.get(lost.id), None)
            return
        if not lost.is_sure:
            self.unsure.add(lost.id)
        self._give_up(claim, lost, lost.cost)
        if lost.id in self.ledger.lost:
            self._pay(lost, claim, None)

    def _cut_off(self, claim: Claim, lost: Lost) -> None:
        self._closed[lost.id] = claim
        self._ended.add(lost.id)
        self._pay(lost, claim, None)
        self.setbacks.note_cut(lost.why, claim.begun.purpose in OF_CLAIMS)
        self._learn(self.ledger.end(claim, claim.pull.fidelity, None, last=True))

    def _withdraw(self, claim: Claim, lost: Lost) -> None:
        self._closed[lost.id] = claim
        self._pay(lost, claim, None)
        for result in self.ledger.withdraw(claim):
            cost = self.runner.cost_of(result.pull, result.observation)
            self._unlearned[result.id, result.pull.fidelity] = cost
            self._lost_cost += cost

    def _give_up(self, claim: Claim, event: Event, cost: float | None = 0.0) -> None:
        self._closed[claim.begun.id] = claim
        self._learn(self.ledger.lose(claim, self._failure(event, cost)))
        if claim.begun.id not in self.ledger.lost:
            self._ended.add(claim.begun.id)
            self._failed.add(claim.begun.id)

    def _failure(self, event: Event, cost: float | None) -> Any:
        return self.runner.observe(Ended(id=event.id, order=event.order, value=None, cost=cost))

    def _pay(self, event: Ended | Lost, claim: Claim | None, level: int | None) -> None:
        """Pay for what is not learned, as declared if nothing else is known."""
        cost = event.cost
        if cost is None:
            pull = Pull(0, self.runner.n_levels - 1) if claim is None else claim.pull
            cost = self.runner.cost_of(pull, self._failure(event, None))
        self._lost_cost += cost - self._unlearned.get((event.id, level), 0.0)
        self._unlearned[event.id, level] = cost

    def _learn(self, results: list[Result]) -> None:
        for result in filter(None, map(self._counted, results)):
            self.history.append(result)
            is_stopped = getattr(result.observation, "censored_at", None) is not None
            has_value = getattr(result.observation, "has_value", True)
            self.n_stopped += is_stopped and result.purpose in self.runner.of_means
            self.setbacks.note_result(has_value, is_stopped)
            if has_value:
                self.rivals.note_value(result.pull)
            self.runner.learn(result.pull, result.observation, result.purpose)

    def _counted(self, result: Result) -> Result | None:
        """Return a result of the arm that it counts for; None if it is paid only.

        A mean has the values of its own claims alone, because these have one order.
        """
        pull = result.pull
        if pull.arm not in self._merged or pull.fidelity < self.runner.n_levels - 1:
            return result
        if result.purpose in self.runner.of_means:
            cost = self.runner.cost_of(pull, result.observation)
            self._unlearned[result.id, pull.fidelity] = cost
            self._lost_cost += cost
            return None
        pull = replace(pull, arm=self.runner.configurations.owner(pull.arm))
        return replace(result, pull=pull)

    def tell_costs(self) -> None:
        """Tell the runner what was paid that it has not learned."""
        runner = self.runner
        if self._of_held is None:
            results = self.ledger.held.values()
            cost = sum(runner.cost_of(result.pull, result.observation) for result in results)
            self._of_held = Counter(result.pull for result in results), cost
        held, cost = self._of_held
        runner.lost_cost = self._lost_cost
        runner.held = held.copy()
        runner.unlearned_cost = self._lost_cost + cost


def _is_same(claim: Claim, begun: Begun, pull: Pull) -> bool:
    """Tell whether a claim may take the place of another one."""
    other = claim.begun
    if (begun.levels, begun.block, begun.purpose) != (other.levels, other.block, other.purpose):
        return False
    return pull.arm == claim.pull.arm
