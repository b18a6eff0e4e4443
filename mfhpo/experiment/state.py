"""The state after some events: the arms, the open claims, and the results that were learned."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from mfhpo.experiment.answer import Answer, left_out_in_words, losses_in_words
from mfhpo.experiment.assignment import Assignment, Available, Refused
from mfhpo.experiment.events import Begun, Ended, Event, Found, Lost, Origin
from mfhpo.experiment.kinds.runner import Runner, Wanted
from mfhpo.experiment.ledger import Claim, Ledger, Result, WaitedFor
from mfhpo.experiment.settings import Settings
from mfhpo.problem import Pull

# A reason names so many of the evaluations that are waited for.
_MOST_NAMED = 3

# How often pulls of full kinds are passed over for what is wanted besides them, and once more for
# each such kind. A policy that takes turns lets the others get so many pulls ahead.
_MOST_PASSED_OVER = 4

_MOST_EARLY_FAILURES = 30  # before there was any value; or one for each candidate
_OF_CLAIMS = frozenset({"given", "certificate"})  # purposes
_MOST_FOREIGN = 10  # evaluations in a row of something else than was claimed


class State:
    """A runner and a ledger, which take events in their order.

    Parameters
    ----------
    runner
        Knows this kind of experiment; nothing was told to it yet.
    settings
        Of the experiment.
    """

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self.runner = runner
        self.ledger = Ledger(runner.n_levels, runner.ordered)
        self.n_taken = 0  # events
        self.history: list[Result] = []
        self.rivals: set[str] = set()  # claims that an earlier one is equal to
        self._settings = settings
        self._firsts: dict[str, str] = {}  # by retry, the first claim in its place
        self._holders: dict[str, str] = {}  # by the first, the last that has its place
        self._closed: dict[str, Claim] = {}  # that have not ended, and of no arm
        self._ended: set[str] = set()
        self._failed: set[str] = set()  # losses that count as failures, and are paid as such
        self._unsure: set[str] = set()  # claims that were given up, and may have a worker
        self._unlearned: dict[tuple[str, int | None], float] = {}
        """Costs of what is not learned, by claim and level; of losses without a level."""
        self._certificate: Answer | None = None  # the first one
        self._shortlist: tuple[str, ...] = ()
        self._replicates: defaultdict[str, set[int]] = defaultdict(set)  # by purpose
        self._n_replicates: int | None = None  # as it was found first
        self._foreign = ""  # the last evaluation of something else than was claimed
        self._n_foreign = 0  # of them in a row
        self._cut: Counter[str] = Counter()  # what somebody else has stopped, by the reason
        self._cut_last: list[str] = []  # the reasons of those in a row
        self._n_stopped = 0
        self._early_failures: int | None = 0  # None: there was a value
        n_expected = getattr(settings, "n_arms", None) or 0
        self._most_early = max(_MOST_EARLY_FAILURES, n_expected, len(runner.configurations))
        self._claimed: set[int] = set()  # arms
        self._seen: set[tuple[int, int, int]] = set()  # arms, levels and blocks of values
        self._merged: set[int] = set()  # draws that turned out equal to earlier arms
        self._is_exhausted = False
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
        known = {id(self._settings): self._settings, id(self.history): list(self.history)}
        return deepcopy(self, known)

    def _find(self, found: Found) -> None:
        if found.replicates is not None and self._n_replicates is None:
            self._n_replicates = found.replicates
            if self.runner.replicated is not None:
                self.runner.replicated.most_blocks = found.replicates
        if found.arms is not None and self.runner.drop_from is not None:
            self.runner.drop_from(found.arms)
        if found.gone is not None and self.runner.drop is not None:
            self.runner.drop(found.gone)
        if found.resumes is not None and self.runner.note_resumption is not None:
            self.runner.note_resumption(found.resumes, found.budget)
        if found.is_exhausted:
            self._is_exhausted = True
            if self.runner.stop_measuring is not None:
                self.runner.stop_measuring()

    # What is next.

    @property
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""
        if self._is_exhausted or self._is_hopeless or self._is_cut_off:
            return True
        self._tell_costs()
        is_over = self.runner.finished and not self._is_held_up
        return is_over or self._certificate is not None

    @property
    def is_spent(self) -> bool:
        """True if nothing is under way, and nothing is left to begin."""
        if self.ledger.open:
            return False
        self._tell_costs()
        return self.runner.is_spent

    @property
    def _is_held_up(self) -> bool:
        """True if it is only over by costs of results that wait for what is under way."""
        if not self.ledger.held:
            return False
        self.runner.unlearned_cost = self._lost_cost
        goes_on = not self.runner.finished
        self._tell_costs()
        return goes_on

    @property
    def _is_hopeless(self) -> bool:
        """True if so many failed at first that nothing may ever work: each candidate, too."""
        return (self._early_failures or 0) >= self._most_early

    @property
    def _is_cut_off(self) -> bool:
        """True if somebody else has stopped so many evaluations in a row."""
        return len(self._cut_last) >= _MOST_FOREIGN

    def wants(self, moving: str | None = None) -> bool:
        """Tell whether anything is wanted besides what is under way."""
        self._tell_costs()
        self.runner.available = None
        return self.runner.next(self.ledger.pending(moving)) is not None

    def next(self, moving: str | None, available: Available | None = None) -> Assignment | None:
        """Return what to evaluate besides what is under way, but for a claim that has to move.

        What is not available is passed over, as pulls of full kinds are.
        """
        self._tell_costs()
        self.runner.available = available
        pending, full = self.ledger.pending(moving), self.ledger.full
        for _ in range(len(full) + _MOST_PASSED_OVER):
            wanted = self.runner.next(pending)
            if wanted is None:
                return None
            kind = wanted.pull.arm, wanted.pull.fidelity, wanted.purpose
            if kind not in full and _is_available(wanted, available):
                return self._assigned(wanted, "chosen")
            pending.append(wanted.pull)
            self.runner.held[wanted.pull] += 1  # nothing is paid for it
        return None

    def enqueued(
        self, part: Mapping[str, Any], level: int | None, moving: str | None
    ) -> Assignment | Refused | None:
        """Return the assignment of what a user has enqueued, in the arm's first open block.

        `part` are some of its values, which the policy chooses if there are none; None: it chooses
        nothing.
        """
        self._tell_costs()
        runner, known, pending = (
            self.runner,
            self.runner.configurations,
            self.ledger.pending(moving),
        )
        runner.available = None
        arm = self._arm_with(part)
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
            return Refused(
                "what is left of the budget does not pay for it beside what is under way"
            )
        return self._assigned(self._completed(pull, part, wanted), "enqueued")

    def _arm_with(self, part: Mapping[str, Any]) -> int | None:
        """Return the arm that has some values, or may have them; None if there is none."""
        known = self.runner.configurations
        arm = known.first_with(part) if part else None
        if arm is not None:
            return known.owner(arm)
        if not part:
            return None
        draws = (arm for arm in range(len(known)) if known.draw_of(arm) is not None)
        free = next((arm for arm in draws if arm not in self._claimed), None)
        may_be_new = free is None and len(known) < self.runner.n_arms
        return len(known) if may_be_new else free

    def _completed(self, pull: Pull, part: Mapping[str, Any], wanted: Wanted | None) -> Wanted:
        """Return an enqueued pull with what the policy chooses besides the values of the user."""
        runner, known = self.runner, self.runner.configurations
        configuration, draw, point = dict(part), known.draw_of(pull.arm), None
        if pull.arm < len(known):
            configuration = {**known[pull.arm], **part}
        elif runner.draws:
            draw = known.next_draw
        if wanted is not None and wanted.pull.arm == pull.arm:
            configuration = {**(wanted.configuration or {}), **part}
            point = wanted.point and {n: wanted.point[n] for n in wanted.point.keys() - part.keys()}
        return Wanted(pull, configuration, runner.purpose, point, draw=draw)

    def level_of(self, begun: Begun) -> int:
        """Return the level for a claim, which may be open; 0 where nothing is wanted."""
        if begun.levels:
            return begun.levels[0]
        self._tell_costs()
        wanted = self.runner.next(self.ledger.pending(begun.id))
        return 0 if wanted is None else max(0, wanted.pull.fidelity)

    def _assigned(self, wanted: Wanted, origin: Origin) -> Assignment:
        runner, pull = self.runner, wanted.pull
        assert wanted.configuration is not None
        replicate = self._replicate_of(wanted)
        if pull.block is None and wanted.purpose != "search":
            while replicate in self._replicates[wanted.purpose]:
                replicate += 1
        return Assignment(
            configuration=wanted.configuration,
            level=pull.fidelity,
            replicate=replicate,
            repeat=self.ledger.n_of_kind[pull.arm, pull.fidelity, wanted.purpose],
            draw=wanted.draw,
            point=wanted.point,
            block=pull.block,
            limit=pull.limit,
            purpose=wanted.purpose,
            shortlist=tuple(map(runner.configurations.key, wanted.shortlist)),
            origin=origin,
        )

    def _replicate_of(self, wanted: Wanted) -> int:
        """Return the replicate: the block's, the search's, or one that nothing else has."""
        block, of_search = wanted.pull.block, self.runner.search_replicate
        if block is not None:
            return block
        n = self.ledger.n_begun[wanted.purpose]
        if of_search is None:
            return n
        return of_search if wanted.purpose == "search" else of_search + 1 + n

    def check_evaluations(self) -> None:
        """Raise ValueError if many evaluations in a row were of something else than claimed."""
        if self._n_foreign >= _MOST_FOREIGN:
            raise ValueError(
                f"the last {self._n_foreign} evaluations were of something else than was asked "
                f"for: {self._foreign}. Evaluate each configuration at its level, as assigned."
            )

    # The answer.

    def answer(self) -> Answer:
        """Return the best answer so far, with its conditions, and whom it waits for.

        The first certificate stays, unless what comes later certifies the same.
        """
        answer, first = self._answer(), self._certificate
        if first is None or (answer.certified and answer.arm == first.arm):
            return answer
        return first

    def _answer(self) -> Answer:
        self._tell_costs()
        self.runner.conditions = self._conditions()
        answer = self._with_assumptions(self.runner.answer())
        if answer.finished and self._is_held_up:
            answer = replace(answer, finished=False)
        if self._is_hopeless and not answer.finished:
            why = f"all of the first {self._early_failures} evaluations failed"
            return replace(answer, finished=True, reason=why)
        if self._is_cut_off:
            n, why = len(self._cut_last), self._cut_last[-1]
            why = f"the last {n} evaluations gave nothing, because {why}"
            return replace(answer, finished=True, reason=why)
        if not answer.finished and (self._is_exhausted or not (self.ledger.open or self.wants())):
            why = answer.reason.removeprefix("the search goes on; ")
            return replace(answer, finished=True, reason=f"nothing is left to evaluate; {why}")
        if answer.finished or not self.ledger.waited_for:
            return answer
        words = (
            f"{answer.reason}; values count in the order in which evaluations began, and the "
            f"experiment waits for {self.whom_it_waits_for()}"
        )
        return answer.because(words)

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
        """Return what must be true about evaluations that a claim would rest on, and were lost."""
        missing = [
            id
            for id, claim in self.ledger.lost.items()
            if claim.begun.purpose in _OF_CLAIMS
            and (claim.pull.arm, claim.pull.fidelity, claim.pull.block) not in self._seen
        ]
        has_unsure = not self._unsure.isdisjoint(missing)
        return (
            *losses_in_words(len(missing), self._settings.lease_seconds, has_unsure),
            *(left_out_in_words(n, why) for why, n in self._cut.items() if n),
        )

    # What happens.

    def _begin(self, begun: Begun) -> None:
        if begun.purpose == "certificate":  # of several shortlists the first one stands
            self._shortlist = self._shortlist or begun.shortlist
            begun = replace(begun, shortlist=self._shortlist)
        levels = () if begun.levels is None else begun.levels or (-1,)
        exist = all(0 <= level < self.runner.n_levels for level in levels)
        pull = self.runner.adopt(begun) if exist else None
        inherited = self._inherited(begun, pull)
        if pull is None:  # it is paid as if it were of any arm
            level = begun.levels[0] if exist and begun.levels else self.runner.n_levels - 1
            self._closed[begun.id] = Claim(begun, Pull(0, level))
            return
        self._claimed.add(pull.arm)
        if inherited is None and (self._has_rival(begun, pull.arm) or self._exceeds(begun, pull)):
            self.rivals.add(begun.id)
        else:
            self.runner.configurations.note(pull.arm, begun.configuration)
        if begun.replicate is not None:
            self._replicates[begun.purpose].add(begun.replicate)
        if inherited is not None:
            self._closed[inherited.begun.id] = inherited
        self.ledger.begin(begun, pull, inherited)

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

    def _has_rival(self, begun: Begun, arm: int) -> bool:
        """Tell whether a claim should move, because an earlier one is equal.

        That is under way, or has given the value of a block.
        """
        if begun.draw is not None and self._has_rival_of_draw(begun, arm):
            return True
        if begun.origin == "enqueued":
            return False
        if begun.shortlist and self.runner.configurations.key(arm) not in begun.shortlist:
            return True
        if begun.block is None and begun.purpose != "search":  # one more value, on new replicates
            return begun.replicate in self._replicates[begun.purpose]
        levels = begun.levels or ()
        if begun.purpose != "search" and any((arm, m, begun.block) in self._seen for m in levels):
            return True
        return any(
            claim.pull.arm == arm
            and claim.begun.block == begun.block
            and (begun.levels is None or not claim.tickets.keys().isdisjoint(begun.levels))
            for claim in self.ledger.open.values()
        )

    def _exceeds(self, begun: Begun, pull: Pull) -> bool:
        """Tell whether a claim should move, because earlier ones take what is left for it."""
        if begun.origin != "chosen" or not self.runner.keeps_budget:
            return False
        self._tell_costs()
        return not self.runner.fits(pull, self.ledger.pending())

    def _has_rival_of_draw(self, begun: Begun, arm: int) -> bool:
        """Tell whether a claim lacks values of its draw, brings other ones, or begins it, too."""
        known, own = self.runner.configurations[arm], begun.configuration
        is_shared = any(claim.pull.arm == arm for claim in self.ledger.open.values())
        if not known.keys() <= own.keys():
            return True
        if begun.origin == "enqueued" and own:
            return is_shared and not self.runner.configurations.has(arm, own)
        return is_shared and begun.purpose == "search"

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
        if level in claim.tickets and is_own:
            self._n_foreign = 0
            self._cut_last.clear()
            self._identify(claim.pull.arm, level, ended)
            observation = self.runner.observe(ended)
        else:
            self._n_foreign += 1
            self._foreign = f"evaluation {ended.id}, claimed as {claim.begun.configuration!r:.200}"
            if ended.configuration is not None:
                self._foreign += f": it was {ended.configuration!r:.200}"
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
        owner = configurations.bind(arm, ended.configuration)
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
            self._unsure.add(lost.id)
        self._give_up(claim, lost, lost.cost)
        if lost.id in self.ledger.lost:
            self._pay(lost, claim, None)

    def _cut_off(self, claim: Claim, lost: Lost) -> None:
        self._closed[lost.id] = claim
        self._ended.add(lost.id)
        self._pay(lost, claim, None)
        self._cut_last.append(lost.why)
        self._cut[lost.why] += claim.begun.purpose in _OF_CLAIMS
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
            stopped_at = getattr(result.observation, "censored_at", None)
            self._n_stopped += stopped_at is not None and result.purpose in self.runner.of_means
            if getattr(result.observation, "has_value", True):
                self._early_failures = None
                if result.pull.block is not None:
                    self._seen.add((result.pull.arm, result.pull.fidelity, result.pull.block))
            elif self._early_failures is not None and stopped_at is None:
                self._early_failures += 1
            self.runner.learn(result.pull, result.observation, result.purpose)

        self._of_held = None
        if results and self._certificate is None:
            self._tell_costs()
            answer = self._answer() if self.runner.finished else None
            self._certificate = answer if answer is not None and answer.certified else None

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

    def _tell_costs(self) -> None:
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


def _is_available(wanted: Wanted, available: Available | None) -> bool:
    if wanted.configuration is None:
        return False
    return available is None or available(wanted.configuration, wanted.pull.fidelity)


def _is_same(claim: Claim, begun: Begun, pull: Pull) -> bool:
    """Tell whether a claim may take the place of another one."""
    other = claim.begun
    if (begun.levels, begun.block, begun.purpose) != (other.levels, other.block, other.purpose):
        return False
    return pull.arm == claim.pull.arm
