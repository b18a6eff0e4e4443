"""What is known after some events: the arms, the open claims, and what was learned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from copy import deepcopy
from dataclasses import replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.assignment import Assignment
from mfhpo.experiment.events import Begun, Ended, Event, Found, Lost, Origin
from mfhpo.experiment.kinds.runner import Runner, Wanted
from mfhpo.experiment.ledger import Claim, Ledger, Result, WaitedFor
from mfhpo.experiment.settings import Settings
from mfhpo.problem import Pull

# A reason names so many of the evaluations that are waited for.
_MOST_NAMED = 3

# How often a pull whose kind is full is passed over for what is wanted besides it. A policy that
# takes turns lets the others get so many pulls ahead.
_MOST_PASSED_OVER = 4

_MOST_FOREIGN = 10  # evaluations in a row of something else than was claimed


class State:
    """A runner and a ledger, which take events in their order.

    Parameters
    ----------
    runner
        Knows this kind of experiment; nothing was told to it yet.
    settings
        Of the experiment.
    retries
        By claim, those that take its place: known beforehand, because a claim whose place is taken
        does not let later ones go first.
    """

    def __init__(self, runner: Runner, settings: Settings, retries: Mapping[str, Set[str]]) -> None:
        self.runner = runner
        self.ledger = Ledger(runner.n_levels, runner.ordered)
        self.n_taken = 0  # events
        self.history: list[Result] = []
        self.rivals: set[str] = set()  # claims that an earlier one is equal to
        self._settings = settings
        self._retries = retries
        self._suspended: dict[str, Claim] = {}
        self._before: dict[str, tuple[str, ...]] = {}  # by retry, the claims that it retries
        self._holders: dict[str, str] = {}  # by the first of these, the last that has its place
        self._late: dict[str, tuple[Claim, Lost]] = {}  # given up, and may end after all
        self._shortlist: tuple[str, ...] = ()
        self._replicates: defaultdict[str, set[int]] = defaultdict(set)  # by purpose
        self._foreign = ""  # the last evaluation of something else than was claimed
        self._n_foreign = 0  # of them in a row
        self._n_given_up = self._n_stopped = 0
        self._lost_cost = 0.0

    def take(self, event: Event) -> None:
        """Take the next event."""
        self.n_taken += 1
        if isinstance(event, Begun):
            self._begin(event)
        elif isinstance(event, Ended):
            self._end(event)
        elif isinstance(event, Lost):
            self._lose(event)
        elif isinstance(event, Found) and event.replicates is not None:
            self.runner.find_replicates(event.replicates)

    def copied(self) -> State:
        """Return a state that takes other events than this one from here on."""
        shared = [self._settings, self._retries]
        memo = {id(each): each for each in shared}
        return deepcopy(self, memo | {id(self.history): list(self.history)})

    # What is next.

    @property
    def finished(self) -> bool:
        """Whether the experiment is over, whatever is under way."""
        self._tell_costs()
        return self.runner.finished

    def next(self, moving: str | None) -> Assignment | None:
        """Return what to evaluate besides what is under way, but for a claim that has to move."""
        self._tell_costs()
        pending = self.ledger.pending(moving)
        for _ in range(_MOST_PASSED_OVER):
            wanted = self.runner.next(pending)
            if wanted is None:
                return None
            if not self.ledger.is_full(wanted.pull, wanted.purpose):
                return self._assigned(wanted, "chosen")
            pending.append(wanted.pull)
        return None

    def enqueued(self, configuration: Mapping[str, Any], level: int) -> Assignment:
        """Return the assignment of what a user has enqueued, in the arm's first open block."""
        runner, arm, block = self.runner, self.runner.configurations.find(configuration), None
        if arm is not None and runner.open_block is not None:
            block = runner.open_block(arm, self.ledger.pending())
        pull = Pull(-1 if arm is None else arm, level, block=block)
        return self._assigned(Wanted(pull, configuration, runner.purpose), "enqueued")

    def level_of(self, begun: Begun) -> int:
        """Return the level for a claim, which may be open; 0 where nothing is wanted."""
        if begun.levels:
            return begun.levels[0]
        self._tell_costs()
        wanted = self.runner.next(self.ledger.pending(begun.id))
        return 0 if wanted is None else max(0, wanted.pull.fidelity)

    def _assigned(self, wanted: Wanted, origin: Origin) -> Assignment:
        runner, pull = self.runner, wanted.pull
        replicate = runner.replicate_of(wanted, self.ledger.n_begun)
        if pull.block is None and wanted.purpose != "search":
            while replicate in self._replicates[wanted.purpose]:
                replicate += 1
        return Assignment(
            configuration=wanted.configuration,
            level=pull.fidelity,
            replicate=replicate,
            point=wanted.point,
            block=pull.block,
            limit=pull.limit,
            purpose=wanted.purpose,
            shortlist=tuple(map(runner.configurations.key, wanted.shortlist)),
            origin=origin,
        )

    def check_evaluations(self) -> None:
        """Raise ValueError if many evaluations in a row were of something else than claimed."""
        if self._n_foreign >= _MOST_FOREIGN:
            raise ValueError(
                f"the last {self._n_foreign} evaluations were of something else than was asked "
                f"for: {self._foreign}. Evaluate each configuration at its level, as assigned."
            )

    # The answer.

    def answer(self) -> Answer:
        """Return the best answer so far, with its conditions, and whom it waits for."""
        self._tell_costs()
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
        about = (self._settings.about_evaluations,) if self._settings.about_evaluations else ()
        certificate = answer.certificate
        if certificate is not None:
            assumptions = (*about, *certificate.assumptions)
            certificate = replace(certificate, assumptions=assumptions)
        assumptions = (*about, *answer.assumptions)
        if self._n_stopped:
            stopped = (
                f"evaluations that end in time: {self._n_stopped} were stopped at a time limit, "
                f"and means are those of the others"
            )
            assumptions = (*assumptions, stopped)
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
        found = []
        if self.ledger.n_lost:
            found.append(
                f"the {self.ledger.n_lost} evaluations that were left out, because their process "
                f"or the driver died, were like the others"
            )
        if self._n_given_up:
            lease = self._settings.lease_seconds
            which = "were given up" if lease is None else f"run for more than {lease:g} seconds"
            found.append(f"evaluations that {which} have no worker")
        return tuple(found)

    # What happens.

    def _begin(self, begun: Begun) -> None:
        if begun.purpose == "certificate":  # of several shortlists the first one stands
            self._shortlist = self._shortlist or begun.shortlist
            begun = replace(begun, shortlist=self._shortlist)
        levels = () if begun.levels is None else begun.levels or (-1,)
        exist = all(0 <= level < self.runner.n_levels for level in levels)
        pull, inherited = self.runner.adopt(begun) if exist else None, self._inherited(begun)
        if pull is None:
            if inherited is not None:
                self._learn(self.ledger.lose(inherited, self._failure(inherited.begun)))
            return
        if inherited is None and self._has_rival(begun, pull.arm):
            self.rivals.add(begun.id)
        if begun.replicate is not None:
            self._replicates[begun.purpose].add(begun.replicate)
        self.ledger.begin(begun, pull if inherited is None else inherited.pull, inherited)

    def _inherited(self, begun: Begun) -> Claim | None:
        """Return the claim that another one retries, and close it; None if it has ended."""
        if begun.retry_of is None:
            return None
        earlier = (*self._before.get(begun.retry_of, ()), begun.retry_of)
        self._before[begun.id] = earlier
        holder = self._holders.get(earlier[0], earlier[0])
        self._holders[earlier[0]] = begun.id
        return self._suspended.pop(holder, None) or self.ledger.suspend(holder)

    def _is_retried(self, id: str) -> bool:
        """Tell whether a claim that was not begun yet takes the place of a lost one."""
        same = (id, *self._before.get(id, ()))
        retries = (retry for each in same for retry in self._retries.get(each, ()))
        return any(retry not in self._before for retry in retries)

    def _has_rival(self, begun: Begun, arm: int) -> bool:
        """Tell whether a claim should move, because an earlier one is equal and under way."""
        if begun.origin == "enqueued":
            return False
        if begun.shortlist and self.runner.configurations.key(arm) not in begun.shortlist:
            return True
        if begun.block is None and begun.purpose != "search":  # one more value, on new replicates
            return begun.replicate in self._replicates[begun.purpose]
        return any(
            claim.pull.arm == arm
            and claim.begun.block == begun.block
            and not claim.tickets.keys().isdisjoint(begun.levels or ())
            for claim in self.ledger.open.values()
        )

    def _end(self, ended: Ended) -> None:
        claim = self.ledger.open.get(ended.id)
        if claim is None and ended.id in self._late:
            self._end_late(ended, *self._late.pop(ended.id))
            return
        if claim is None:
            self._pay(ended.cost)  # of no arm, or given up before
            return
        observation: Any = None
        level = claim.level_of(ended)
        if level in claim.tickets and self._is_of(claim, ended):
            self._n_foreign = 0
            observation = self.runner.observe(ended)
        else:
            self._n_foreign += 1
            self._foreign = f"evaluation {ended.id}, claimed as {claim.begun.configuration!r:.200}"
            self._pay(ended.cost)
        self._learn(self.ledger.end(claim, level, observation, ended.last))

    def _end_late(self, ended: Ended, claim: Claim, lost: Lost) -> None:
        """Learn what a claim gave that was given up, where no order matters."""
        self._pay(-lost.cost)
        self._n_given_up -= not lost.is_sure
        self.ledger.n_lost -= 1
        result = Result(ended.id, claim.pull, self.runner.observe(ended), claim.begun.purpose)
        self._learn([result])

    def _is_of(self, claim: Claim, ended: Ended) -> bool:
        if ended.configuration is None:
            return True
        return self.runner.configurations.find(ended.configuration) == claim.pull.arm

    def _lose(self, lost: Lost) -> None:
        claim = self.ledger.open.get(lost.id)
        self._pay(lost.cost)
        if claim is None:
            return
        if self._is_retried(lost.id):
            self.ledger.suspend(lost.id)
            self._suspended[lost.id] = claim
            return
        self._n_given_up += not lost.is_sure
        results = self.ledger.lose(claim, self._failure(lost))
        if self.runner.counts_late and not results:
            self._late[lost.id] = claim, lost
        self._learn(results)

    def _failure(self, event: Event) -> Any:
        return self.runner.observe(Ended(id=event.id, order=event.order, value=None, cost=0.0))

    def _pay(self, cost: float | None) -> None:
        self._lost_cost += cost or 0.0

    def _learn(self, results: list[Result]) -> None:
        for result in results:
            self.history.append(result)
            stopped_at = getattr(result.observation, "censored_at", None)
            self._n_stopped += stopped_at is not None and result.purpose in self.runner.of_means
            self.runner.learn(result.pull, result.observation, result.purpose)

    def _tell_costs(self) -> None:
        """Tell the runner what was paid that it has not learned."""
        runner, held = self.runner, self.ledger.held.values()
        runner.lost_cost = self._lost_cost
        runner.held = Counter(result.pull for result in held)
        costs = (runner.cost_of(result.pull, result.observation) for result in held)
        runner.unlearned_cost = self._lost_cost + sum(costs)
