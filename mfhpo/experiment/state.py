"""The state that events change: arms, open claims, and results that were learned."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.events import Begun, Ended, Event, Found, Lost
from mfhpo.experiment.kinds.runner import Runner, Settings
from mfhpo.experiment.ledger import Claim, Ledger, Result
from mfhpo.problem import Pull
from mfhpo.racing.race import Race

OF_CLAIMS = frozenset({"given", "certificate"})
"""Purposes of evaluations that a claim rests on."""

_MOST_EARLY_FAILURES = 30  # before there was any value; or one for each candidate
_MOST_IN_VAIN = 10  # evaluations in a row of something else than was claimed, or cut off


class State:
    """A runner to which nothing was told yet, and a ledger, which take events in their order."""

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self.runner = runner
        self.settings = settings
        self.ledger = Ledger(runner.n_levels, runner.of_means)
        self.history: list[Result] = []
        self.n_taken = 0  # events
        self.rivals: set[str] = set()  # claims that should move, as an earlier one is equal
        self.replicates: defaultdict[str, set[int]] = defaultdict(set)  # claimed, by purpose
        self.seen: set[tuple[int, int, int | None]] = set()  # arms, levels and blocks of values
        self.unsure: set[str] = set()  # claims that were given up, and may have a worker
        self.cut: Counter[str] = Counter()  # what a claim rests on and others stopped, by why
        self.certificate: Answer | None = None  # the first answer that is certified
        self.is_exhausted = False  # whether no further evaluation can be made
        self.n_stopped = 0  # results that a mean would rest on, and that were stopped at a limit
        # Each candidate may fail at first.
        n_expected = getattr(settings, "n_arms", None) or 0
        self._n_candidates = max(n_expected, len(runner.configurations), _MOST_EARLY_FAILURES)
        self._n_early_failures: int | None = 0  # None: there was a value
        self._foreign: list[str] = []  # evaluations in a row of something else than was claimed
        self._cut_in_a_row: list[str] = []  # reasons why somebody else has stopped evaluations
        self._shortlist: tuple[str, ...] = ()  # the first that was drawn up
        self._repeats: set[str] = set()  # claims of what was begun in the same block before
        self._firsts: dict[str, str] = {}  # by retry, the first claim in its place
        self._holders: dict[str, str] = {}  # by the first, the last that has its place
        self._closed: dict[str, Claim] = {}  # that have not ended, and of no arm
        self._ended: set[str] = set()
        self._failed: set[str] = set()  # losses that count as failures, and are paid as such
        # Costs of what is not learned, by claim and level; of losses without a level.
        self._unlearned: dict[tuple[str, int | None], float] = {}
        self._lost_cost = self._held_cost = 0.0
        self._merged: set[int] = set()  # draws that turned out equal to earlier arms
        self._n_replicates: int | None = None  # as it was found first
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
        self.runner.held, self._held_cost = Counter(), 0.0
        for result in self.ledger.held.values():
            self.runner.held[result.pull] += 1
            self._held_cost += self.runner.cost_of(result.pull, result.observation)
        self.runner.charge(self._lost_cost, self._held_cost)

    def copied(self) -> State:
        """Return a state that takes other events than this one from here on."""
        # What grows with every event, and whose entries never change.
        growing: list[Any] = [self.history, self._closed, self._firsts, self._holders]
        growing += [self._unlearned, self._ended, self._failed, self.seen]
        known: dict[int, Any] = {id(each): copy(each) for each in growing}
        return deepcopy(self, {**known, id(self.settings): self.settings})

    def claim_of(self, id: str) -> Claim | None:
        """Return a claim that is under way, or that has ended; None for one of no arm."""
        return self.ledger.open.get(id, self._closed.get(id))

    @property
    def why_in_vain(self) -> str:
        """Why nothing may ever come of it: all failed at first, or was cut off; else empty."""
        n = self._n_early_failures or 0
        if n >= self._n_candidates:
            return f"all of the first {n} evaluations failed"
        n = len(self._cut_in_a_row)
        if n < _MOST_IN_VAIN:
            return ""
        return f"the last {n} evaluations gave nothing, because {self._cut_in_a_row[-1]}"

    @property
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""
        if self.is_exhausted or self.certificate is not None or self.why_in_vain:
            return True
        return self.runner.finished and not self.is_held_up

    @property
    def is_spent(self) -> bool:
        """True if nothing is under way, and nothing is left to begin."""
        return not self.ledger.open and self.runner.is_spent

    @property
    def is_held_up(self) -> bool:
        """True if it is only over by costs of results that wait for what is under way."""
        if not self.ledger.held:
            return False
        self.runner.charge(self._lost_cost, 0.0)
        goes_on = not self.runner.finished
        self.runner.charge(self._lost_cost, self._held_cost)
        return goes_on

    def check_what_was_evaluated(self) -> None:
        """Raise ValueError if many evaluations in a row were of something else than claimed."""
        n = len(self._foreign)
        if n >= _MOST_IN_VAIN:
            raise ValueError(
                f"the last {n} evaluations were of something else than was asked for: "
                f"{self._foreign[-1]}. Evaluate each configuration at its level, as assigned."
            )

    def _find(self, found: Found) -> None:
        policy = self.runner.policy
        if found.replicates is not None and self.runner.of_means and not self._n_replicates:
            self._n_replicates = policy.most_blocks = found.replicates  # the first number holds
        self.is_exhausted |= found.is_exhausted
        self.runner.find(found)

    # Claims.

    def _begin(self, begun: Begun) -> None:
        if begun.purpose == "certificate":  # of the shortlists that workers drew up the first holds
            self._shortlist = self._shortlist or begun.shortlist
            begun = replace(begun, shortlist=self._shortlist)
        top = self.runner.n_levels - 1
        levels = (top,) if begun.levels is None else begun.levels
        exist = bool(levels) and max(levels) <= top
        pull = self.runner.adopt(begun) if exist else None
        inherited = self._inherited(begun, pull)
        if pull is None:  # it is paid as if it were of any arm
            self._closed[begun.id] = Claim(begun, Pull(0, levels[0] if exist else top), {})
            return
        if inherited is not None:
            self._closed[inherited.begun.id] = inherited
        if inherited is None and self._has_to_move(begun, pull):
            self.rivals.add(begun.id)
        else:
            self.runner.configurations.note(pull.arm, begun.configuration)
        if begun.replicate is not None:
            self.replicates[begun.purpose].add(begun.replicate)
        self.ledger.begin(begun, pull, inherited)

    def _has_to_move(self, begun: Begun, pull: Pull) -> bool:
        """Tell whether an earlier claim is equal, or earlier ones take what is left of the budget.

        The equal one is under way, or has given the value of a block. A search may repeat a block.
        """
        configurations, own = self.runner.configurations, begun.configuration
        arm, block, is_search = pull.arm, begun.block, begun.purpose == "search"
        same_arm = same_block = False
        for claim in self.ledger.open.values():
            if claim.pull.arm == arm:
                same_arm = True
                meets = begun.levels is None or not claim.tickets.keys().isdisjoint(begun.levels)
                same_block |= meets and claim.begun.block == block
        has_value = any((arm, level, block) in self.seen for level in begun.levels or ())
        policy, is_new = self.runner.policy, not (same_block or has_value)
        if has_value and not same_block and isinstance(policy, Race):
            is_new = policy.is_repeat(pull)  # it is to be evaluated twice
        is_repeat = block is not None and not is_search and not is_new
        if is_repeat:
            self._repeats.add(begun.id)
        is_enqueued = begun.origin == "enqueued"
        if begun.draw is not None:
            lacks_values = not configurations[arm].keys() <= own.keys()
            differs = not configurations.has(arm, own) if is_enqueued and own else is_search
            if lacks_values or (same_arm and differs):
                return True
        if is_repeat or is_enqueued:
            return is_repeat
        if begun.shortlist and configurations.key(arm) not in begun.shortlist:
            return True
        has_replicate = block is None and begun.replicate in self.replicates[begun.purpose]
        if same_block if is_search else has_replicate:
            return True
        keeps_budget = self.runner.keeps_budget and begun.origin == "chosen"
        return keeps_budget and not self.runner.fits(pull, self.ledger.pending())

    def _inherited(self, begun: Begun, pull: Pull | None) -> Claim | None:
        """Return the open claim whose place another one takes; one that differs gives it up."""
        if begun.retry_of is None:
            return None
        first = self._firsts.get(begun.retry_of, begun.retry_of)
        claim = self.ledger.open.get(self._holders.get(first, first))
        self._firsts[begun.id], self._holders[first] = first, begun.id
        if claim is None:
            return None
        own, known = ((each.levels, each.block, each.purpose) for each in (begun, claim.begun))
        if pull is not None and pull.arm == claim.pull.arm and own == known:
            return claim
        self._give_up(claim, begun)
        return None

    # Ends.

    def _end(self, ended: Ended) -> None:
        claim = self.ledger.open.get(ended.id)
        is_own = claim is not None and self.runner.configurations.is_of(
            claim.pull.arm, ended.configuration, is_whole=ended.has_value
        )
        points = ended.points
        if claim is not None and not is_own:  # nothing that it says about its draw counts
            points = {draw: points[draw] for draw in points.keys() - {claim.begun.draw}}
        if ended.parameters or points:
            self.runner.inform(ended.parameters, points)
        if claim is None:
            self._end_late(ended)
            return
        if ended.last:
            self._ended.add(ended.id)
            self._closed[ended.id] = claim
        observation: Any = None
        level = claim.level_of(ended)
        if is_own and ended.id in self._repeats:
            self._pay(ended, claim, level)
        elif level in claim.tickets and is_own:
            self._foreign.clear()
            self._cut_in_a_row.clear()
            self._identify(claim.pull.arm, level, ended)
            observation = self.runner.observe(ended)
        else:
            words = f"evaluation {ended.id}, claimed as {claim.begun.configuration!r:.200}"
            if ended.configuration is not None:
                words += f": it was {ended.configuration!r:.200}"
            self._foreign.append(words)
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

    def _identify(self, arm: int, level: int, ended: Ended) -> None:
        """Learn what a draw is; one that is equal to an earlier arm leaves.

        Cheaper levels may ask for fewer parameters, so that arms may only look the same there.
        """
        if ended.configuration is None or not ended.has_value:
            return
        configurations, runner = self.runner.configurations, self.runner
        if level < runner.n_levels - 1 or runner.policy is None:
            configurations.fix(arm, ended.configuration)
            return
        owner = configurations.identify(arm, ended.configuration)
        if owner == arm or arm in self._merged:
            return
        if not self._merged and not runner.draws:
            warnings.warn(
                f"configurations {owner} and {arm} were drawn equal, {configurations[owner]!r}: "
                f"they are merged, and so will be others",
                stacklevel=7,
            )
        self._merged.add(arm)
        runner.policy.withdraw(arm, owner)

    # Losses.

    def _lose(self, lost: Lost) -> None:
        if lost.id in self._ended:
            return
        claim = self.ledger.open.get(lost.id)
        if claim is None or (lost.will_retry and not (lost.is_withdrawn or lost.is_cut)):
            self._pay(lost, claim or self._closed.get(lost.id), None)
            return
        self._closed[lost.id] = claim
        if lost.is_withdrawn:
            self._pay(lost, claim, None)
            for result in self.ledger.withdraw(claim):
                self._pay_unlearned(result)
        elif lost.is_cut:
            self._ended.add(lost.id)
            self._pay(lost, claim, None)
            self._cut_in_a_row.append(lost.why)
            self.cut[lost.why] += claim.begun.purpose in OF_CLAIMS
            self._learn(self.ledger.end(claim, claim.pull.fidelity, None, last=True))
        else:
            if not lost.is_sure:
                self.unsure.add(lost.id)
            self._give_up(claim, lost, lost.cost)
            if lost.id in self.ledger.lost:
                self._pay(lost, claim, None)

    def _give_up(self, claim: Claim, event: Event, cost: float | None = 0.0) -> None:
        id = claim.begun.id
        self._closed[id] = claim
        self._learn(self.ledger.lose(claim, self._failure(event, cost)))
        if id not in self.ledger.lost:
            self._ended.add(id)
            self._failed.add(id)

    def _failure(self, event: Event, cost: float | None) -> Any:
        return self.runner.observe(Ended(id=event.id, order=event.order, value=None, cost=cost))

    # What is learned, or paid only.

    def _pay(self, event: Ended | Lost, claim: Claim | None, level: int | None) -> None:
        """Pay for what is not learned, as declared if nothing else is known."""
        cost = event.cost
        if cost is None:
            pull = Pull(0, self.runner.n_levels - 1) if claim is None else claim.pull
            cost = self.runner.cost_of(pull, self._failure(event, None))
        self._lost_cost += cost - self._unlearned.get((event.id, level), 0.0)
        self._unlearned[event.id, level] = cost

    def _pay_unlearned(self, result: Result) -> None:
        cost = self.runner.cost_of(result.pull, result.observation)
        self._unlearned[result.id, result.pull.fidelity] = cost
        self._lost_cost += cost

    def _learn(self, results: list[Result]) -> None:
        """Learn results whose turn it is; a mean has the values of its own claims alone."""
        runner = self.runner
        for result in results:
            pull, is_of_mean = result.pull, result.purpose in runner.of_means
            if pull.arm in self._merged and pull.fidelity >= runner.n_levels - 1:
                if is_of_mean:
                    self._pay_unlearned(result)
                    continue
                pull = replace(pull, arm=runner.configurations.owner(pull.arm))
                result = replace(result, pull=pull)
            self.history.append(result)
            is_stopped = result.observation.censored_at is not None
            self.n_stopped += is_stopped and is_of_mean
            if result.observation.has_value:
                self._n_early_failures = None
                if pull.block is not None:
                    self.seen.add((pull.arm, pull.fidelity, pull.block))
            elif self._n_early_failures is not None and not is_stopped:
                self._n_early_failures += 1
            runner.learn(pull, result.observation, result.purpose)
