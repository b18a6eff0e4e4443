"""Search, then certify: one budget for both."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import (
    MOST_AT_ONCE,
    check_count,
    check_flag,
    check_instance,
    check_probability,
)
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.certification import Certification, MakeCertifier
from mfhpo.identification.group_sequential import LEAST_FIRST_LOOK, GroupSequential
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.space import Point
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Pull, Recommendation
from mfhpo.racing.declaration import SigmaLike
from mfhpo.search.budget import Budget, BudgetUnit
from mfhpo.search.policy import FEWEST_FIRST, Begin, Replicate, SearchPolicy
from mfhpo.search.recommendation import chance_in_words, failures_in_words, left_in_words

SEARCH_BLOCK = 0
"""The block of a search's evaluations; those of its certificate have seen none of its luck."""

_FIRST_BLOCK = SEARCH_BLOCK + 1

# Share of the budget for the certificate, and largest number of finalists: in a space, and among
# given arms, of which there are fewer, so that the best ones are sooner among the finished.
_USUAL = (0.1, 8)
MOST_FINALISTS, USUAL_SHARE_OF_GIVEN = 4, 0.2
"""The same where arms are given and nobody says otherwise."""
_USUAL_OF_GIVEN = (USUAL_SHARE_OF_GIVEN, MOST_FINALISTS)
LEAST_OF_FINALISTS = 2 * LEAST_FIRST_LOOK
"""Evaluations at the target without which no finalists are compared, where costs are declared."""


def numbered(arm: int) -> dict[str, Any]:
    """Return what stands for the parameters of an arm that nobody has described."""
    return {"arm": arm}


class BudgetedSearch(Policy):
    """A search, and at its end a race among its best arms, on one budget.

    The search spends the budget but for a share that is kept for the end. Then the arms that may be
    the best by what the search knows, the shortlist, are evaluated again from scratch
    (`mfhpo.certification`): a value that a search has selected is a lucky one, and only new ones
    say what it is worth. The race ends when the best of the shortlist is certified, or the budget
    is spent.

    Arms are numbered in the order in which they are begun: a pull of an arm that is neither told
    nor pending begins it, and `point_of` says what it is.

    Parameters
    ----------
    search
        Chooses what to evaluate until the shortlist is made.
    budget
        What may be spent; None: the search goes on until whoever runs it stops, and nothing is
        certified.
    unit
        What the budget counts: "cost", in the unit of the search's costs, or "evaluations", which
        the search then makes at the target alone.
    certify_share
        Share of the budget that is kept for the certificate, in [0, 1). The certificate makes the
        answer's value honest and tells how sure it is; it seldom changes the answer, unless noise
        is large. Nothing is kept where the share does not pay for two evaluations of two arms, or
        for five where costs are measured: with the default share, below a budget of 40 full
        evaluations, or of 100. None: .1, or .2 if the search's arms are given.
    top
        Largest number of arms on the shortlist, at least 2. None: 8, or 4 if the search's arms are
        given. It is smaller where what is left does
        not pay for two comparisons, after five and after ten evaluations of each.
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the values. None: one standard deviation of the noise, as it is
        estimated.
    sigma
        What is known about the noise, for the certificate: a sub-Gaussian scale, `mfhpo.Bounded`,
        `mfhpo.Gaussian`; 0 says that there is none. None: estimated.
    max_failures
        An arm of the shortlist without any value leaves after so many failures; one with values,
        once more than half of its evaluations surely fail.
    blocks
        Whether pulls name the block of their evaluation, whose replicate, a split or a seed, is the
        same for all arms. The search makes all of its evaluations in block 0, so that it compares
        arms by values that have the block's effect in common. The certificate evaluates the
        shortlist in the blocks after it, and is about the mean over replicates; a `sigma` has no
        part in it, and an `epsilon` of None contains what replicates do to all arms.
    measured
        Whether the search's costs are but a guess, to be replaced by what evaluations cost, by
        level and by configuration (`Prices`); failures are paid for, but teach nothing about costs.
        Until anything was learned, evaluations are begun as if they were free. So is the first one
        above the lowest level, by which the budget may be exceeded; others that may be too dear
        wait for it. An evaluation that is told without its cost counts at what is expected, or as
        free where nothing is known.
    sign
        -1 where the user's values are minimised: inside they are maximised.
    params
        Gives the parameters of an arm, for the certificate.
    chance
        A probability, in (0, 1). A search among given arms ends once its model is so sure that no
        other of them is better than the leader by more than `epsilon`. That is an estimate: nothing
        is certified then. None: it goes on until the budget is spent.
    certifier
        Makes the policy that certifies the shortlist, see `mfhpo.certification`. None: a few
        planned looks, which take the fewest evaluations.

    Attributes
    ----------
    shortlist
        The arms that are compared; empty during the search.
    top
        Largest number of arms on the shortlist.
    begun
        Number of the next new arm: one more than the last of which anything was told.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong type, or out of range.
    """

    def __init__(
        self,
        search: SearchPolicy,
        *,
        budget: float | None = None,
        unit: BudgetUnit = "cost",
        certify_share: float | None = None,
        top: int | None = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        max_failures: int = 3,
        blocks: bool = False,
        measured: bool = False,
        sign: float = 1.0,
        params: Callable[[int], Mapping[str, Any]] = numbered,
        chance: float | None = None,
        certifier: MakeCertifier | None = None,
    ) -> None:
        check_instance("search", search, SearchPolicy, "a search such as mfhpo.search.ModelSearch")
        self.search = search
        self.shortlist: tuple[int, ...] = ()
        self.begun = search.n_given
        usual_share, usual_top = _USUAL_OF_GIVEN if search.n_given else _USUAL
        share = usual_share if certify_share is None else certify_share
        self._budget = Budget(budget, unit, share, check_flag("measured", measured), search)
        self.top = check_count("top", usual_top if top is None else top, 2)
        self._options: dict[str, Any] = {
            "delta": delta,
            "epsilon": epsilon,
            "sigma": sigma,
            "max_failures": check_count("max_failures", max_failures, 1),
            "seed": search._seed,
        }
        if chance is not None:
            chance = check_probability("chance", chance)
            if epsilon is None:
                raise ValueError(f"chance={chance!r} is about a tolerance; give epsilon, too.")
        self._wanted_chance = chance
        self._stopped_at: float | None = None  # the chance by which the search has ended
        self._sign = sign
        self._params = params
        self._in_blocks = check_flag("blocks", blocks)
        self._certifier = None if blocks else certifier
        self._most_blocks: int | None = None
        self._certification: Certification | None = None
        self._replicates: list[tuple[Replicate, float | None]] = []
        self._asked: dict[int, Point | None] = {}  # of new arms, by the last `ask`
        # Raises for a bad delta, epsilon or sigma now, not when the search has spent its share.
        self._compare([Candidate("arm", {}, 0.0)] * 2, 0)

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from an evaluation; the first `Replicate` decides on the shortlist, see `agree`."""
        self._check(pull)
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self._budget.pay(pull, observation)
        self.begun = max(self.begun, pull.arm + 1)
        if not isinstance(pull, Replicate):
            self.search.tell(pull, observation)
            if pull.fidelity == self.search.target:
                self._stop_if_likely()
            if pull.arm in self.shortlist:  # what its certificate compares was not all there
                self._certification = None
            return
        if not self.shortlist:
            self.agree(pull.shortlist)
        value = None
        if observation.has_value and observation.value is not None:
            value = self._sign * float(observation.value)
        self._replicates.append((pull, value))
        if self._certification is not None:
            self._count(self._certification, pull, value)

    def rule_out(self, pull: Pull, observation: Observation) -> None:
        """Learn that an evaluation at the target gave the worst value, -inf: no mean is worse.

        The arm leaves the search, or the certificate's race. The evaluation is paid, and no
        failure.
        """
        self._budget.pay(pull, observation, is_failure=False)
        self.begun = max(self.begun, pull.arm + 1)
        if not isinstance(pull, Replicate):
            self.search.rule_out(pull.arm)
            return
        if not self.shortlist:
            self.agree(pull.shortlist)
        self._replicates.append((pull, -math.inf))
        if self._certification is not None:
            self._count(self._certification, pull, -math.inf)

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out, as a repeat of another one or for a reason that nobody here sees."""
        self.begun = max(self.begun, arm + 1)
        self._budget.reached.pop(arm, None)
        self.search.merge(arm)

    def agree(self, shortlist: Sequence[int]) -> None:
        """Compare these arms, of all the shortlists that workers drew up at the same moment."""
        self.shortlist = tuple(shortlist)
        self._certification = None

    def _certifying(self) -> Certification | None:
        """Return the race among the shortlist; None until it was told something."""
        if self._certification is None and any(
            pull.arm in self.shortlist for pull, _ in self._replicates
        ):
            claims = [self.search.mean(arm, self.search.target) for arm in self.shortlist]
            word = "candidate" if self.search.n_given else "arm"
            candidates = [
                Candidate(f"{word} {arm}", dict(self._params(arm)), self._sign * claim)
                for arm, claim in zip(self.shortlist, claims, strict=True)
            ]
            luckiest = int(np.argmax(np.nan_to_num(claims, nan=-np.inf)))
            self._certification = self._compare(candidates, luckiest)
            for pull, value in self._replicates:
                self._count(self._certification, pull, value)
        return self._certification

    def _count(self, certification: Certification, pull: Replicate, value: float | None) -> None:
        if pull.arm not in self.shortlist:
            return
        candidate = self._candidate(self.shortlist, pull)
        if value == -math.inf:
            certification.rule_out(candidate.arm)
        else:
            certification.tell(candidate, value)

    def _candidate(self, shortlist: Sequence[int], pull: Replicate) -> Pull:
        """Return a replicate's pull in the shortlist's race, whose first block is 0."""
        block = None if pull.block is None else pull.block - _FIRST_BLOCK
        return Pull(shortlist.index(pull.arm), 0, block=block)

    def _compare(self, candidates: Sequence[Candidate], luckiest: int) -> Certification:
        certification = Certification(
            candidates,
            luckiest=luckiest,
            maximise=self._sign > 0.0,
            blocks=self._in_blocks,
            first_look=None if self._certifier else self._budget.first_look(len(candidates)),
            certifier=self._certifier,
            measure=0,
            **self._options,
        )
        certification.policy.most_blocks = self._budget.most_replicates
        return certification

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Return what to evaluate next: up to `n` pulls, none when the race is over."""
        check_count("n", n, 1, MOST_AT_ONCE)
        pending = self._checked(pending)
        pulls: list[Pull] = []
        self._asked = {}
        for _ in range(n):
            following = self._next([*pending, *pulls])
            if following is None:
                break
            pull, self._asked[following[0].arm] = following
            pulls.append(pull)
        return pulls

    def point_of(self, arm: int) -> Point | None:
        """Return the configuration for an arm begun by the last `ask`; None for any."""
        return self._asked.get(arm)

    def note_losses(self, cost: float) -> None:
        """Take note of what was paid, in all, for evaluations of which nothing was told."""
        self._budget.lost = cost

    def price_of(self, pull: Pull) -> float:
        """Return what a pull costs, as is declared or expected; 0 where nothing is known."""
        return self._budget.price_of(pull)

    def fits(self, pull: Pull, pending: Sequence[Pull] = ()) -> bool:
        """Tell whether the budget allows a pull besides what is under way."""
        return self._budget.fits(pull, pending)

    def limited(self, pull: Pull, pending: Sequence[Pull] = ()) -> Pull:
        """Return a pull that was not asked for, with a limit that stops it only if it hangs."""
        return replace(pull, limit=self._budget.limit_for(pull, pending, None))

    def is_ahead(self, pending: Sequence[Pull]) -> bool:
        """Return whether to wait for what is under way, though the budget pays for more."""
        if self.finished:
            return False
        if not self.shortlist:
            return self._waits_for_others(pending)
        another = Replicate(self.shortlist[0], self.search.target, shortlist=self.shortlist)
        return self.fits(another, pending) and self._next(pending) is None

    def _waits_for_others(self, pending: Sequence[Pull]) -> bool:
        """Return whether all given arms are known or under way, and those may go on."""
        if not self.search.n_given or not self._searched_by(pending):
            return False
        return self._search_on(pending, self._budget.kept) is None

    def _searched_by(self, pending: Sequence[Pull]) -> list[Pull]:
        return [pull for pull in pending if not isinstance(pull, Replicate)]

    def _next(self, pending: Sequence[Pull]) -> tuple[Pull, Point | None] | None:
        # A worker that has told nothing yet may have begun to compare a shortlist.
        begun = (pull.shortlist for pull in pending if isinstance(pull, Replicate))
        shortlist = self.shortlist or next(begun, ())
        if not shortlist and self.stopped_by_chance:
            return None
        if not shortlist:
            kept = self._budget.kept_for(self.top) if len(self.search.finished_arms()) > 1 else 0.0
            following = self._search_on(pending, kept)
            if following is not None and self._budget.fits(following[0], pending, kept):
                return following
            if following is None and self._searched_by(pending):
                return None  # which of these goes on is not known yet
            is_spent = following is not None or not self.search.n_given
            if self._budget.kept == 0.0 and (is_spent or not self._pays_for_finalists):
                return None
            shortlist = tuple(self.search.contenders(self.largest_shortlist))
        chosen = self._next_candidate(shortlist, pending)
        if chosen is None:
            return None
        block = None if chosen.block is None else chosen.block + _FIRST_BLOCK
        arm, target = shortlist[chosen.arm], self.search.target
        replicate = Replicate(arm, target, block=block, shortlist=shortlist)
        # Only one that hangs is stopped: what takes long may be poor, and is to be counted.
        limit = self._budget.limit_for(replicate, pending, None)
        replicate = replace(replicate, limit=limit)
        return (replicate, None) if self.fits(replicate, pending) else None

    @property
    def _pays_for_finalists(self) -> bool:
        """True if what is left of the budget compares two arms after all."""
        return not math.isinf(self._budget.amount) and self._budget.pays_for(LEAST_OF_FINALISTS, ())

    @property
    def largest_shortlist(self) -> int:
        """How many arms what is left of the budget compares, from 2 to `top`."""
        if math.isinf(self._budget.amount):
            return self.top
        return max(2, min(self.top, self._budget.largest_shortlist()))

    def _search_on(self, pending: Sequence[Pull], kept: float) -> tuple[Pull, Point | None] | None:
        """Return the search's next pull, and the configuration of a new arm; None at the end."""
        budget, point = self._budget, None
        self.search.affordable = budget.affordable(pending, kept)
        begun = max([self.begun, *(pull.arm + 1 for pull in pending)])
        step = self.search.ask(begun, self._searched_by(pending))
        if isinstance(step, Begin):
            point, step = step.point, Pull(begun, step.fidelity)
        # What this arm is too dear for, another one may do.
        goes_on = budget.target_price <= budget.left(pending) - kept
        if step is None:
            return None
        is_too_dear = goes_on and not budget.fits(step, pending, kept)
        if is_too_dear or budget.may_be_too_dear(step, pending):
            point, step = None, self.search.another(begun, pending)
            if step is None:
                return None
        limit = budget.limit_for(step, pending, self.search.worth, point)
        step = replace(step, limit=limit)
        return (replace(step, block=SEARCH_BLOCK) if self._in_blocks else step), point

    def _next_candidate(self, shortlist: Sequence[int], pending: Sequence[Pull]) -> Pull | None:
        """Return the next pull of the shortlist's race, with the candidate's number as its arm."""
        certification = self._certifying()
        if len(shortlist) < 2 or (certification is not None and certification.finished):
            return None
        under_way = [
            self._candidate(shortlist, pull)
            for pull in pending
            if isinstance(pull, Replicate) and pull.arm in shortlist
        ]
        if certification is None:  # nothing is known yet
            return self._compare([Candidate("arm", {}, 0.0)] * len(shortlist), 0).ask(under_way)
        chosen = certification.ask(under_way)
        policy = certification.policy
        if chosen is None or not isinstance(policy, GroupSequential):
            return chosen
        # Further evaluations are only worth it if they will be looked at; the first ones are.
        if policy.looks_with(under_way) and not self._budget.pays_for(
            policy.missing(under_way), pending
        ):
            return None
        return chosen

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, or its next pull is beyond the budget."""
        budget = self._budget
        if self.stopped_by_chance:
            return True
        if (
            not self.shortlist
            and budget.target_price <= budget.left() - budget.kept
            # Of arms that are given, there may be none left.
            and not (self.search.n_given and self._search_on((), budget.kept) is None)
        ):
            return False
        return self._next(()) is None

    @property
    def is_certified(self) -> bool:
        """Whether the comparison of the shortlist is over, and its best is certified."""
        race = self._certifying()
        certificate = self.certificate() if race is not None and race.finished else None
        return certificate is not None and certificate.certified

    @property
    def stopped_by_chance(self) -> bool:
        """True once the search among given arms has ended by its model's estimate."""
        return self._stopped_at is not None and not self.shortlist

    def _stop_if_likely(self) -> None:
        """End the search if its model is sure enough of the leader; for good."""
        wanted, n = self._wanted_chance, len(self.search.finished_arms())
        if wanted is None or self._stopped_at is not None or n < FEWEST_FIRST:
            return
        leader = self.search.leader()
        if leader is not None:
            epsilon = self._options["epsilon"]
            found = self.search.chance(leader, epsilon, among_given=True, at_least=wanted)
            self._stopped_at = found if found >= wanted else None

    def chance(self) -> float | None:
        """Return how likely the recommended arm is within epsilon of the best finished one.

        It is the model's estimate, with all values. None without a model or epsilon, before two
        arms are finished, and in blocks, since the search sees one of them.
        """
        arm, certificate = self.leader()[0], self.certificate()
        if arm is None or self._in_blocks:
            return None
        epsilon = self._options["epsilon"]
        if certificate is not None and math.isfinite(certificate.epsilon):
            epsilon = certificate.epsilon
        if epsilon is None or len(self.search.finished_arms()) < 2:
            return None
        fresh: dict[int, list[float]] = {}
        for pull, value in self._replicates:
            if value is None or math.isinf(value):
                continue
            if self.search.count(pull.arm, self.search.target):
                fresh.setdefault(pull.arm, []).append(self._sign * value)
        found = self.search.chance(arm, epsilon, fresh=fresh)
        return None if math.isnan(found) else found

    def recommend(self) -> Recommendation:
        """Return the certified arm, or the best by all that is known so far."""
        certificate = self.certificate()
        arm, mean, interval, fidelity = self.leader()
        epsilon = self._options["epsilon"]
        budget = self._budget
        answer = Recommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=self._options["delta"],
            epsilon=math.nan if epsilon is None else epsilon,
            finished=self.finished,
            certified=False,
            reason=self._why_no_certificate(),
            cost=budget.cost,
            pulls=budget.evaluations - budget.failures,
            failures=budget.failures,
            survivors=tuple(self.search.finished_arms()),
            compared=len(self.search.finished_arms()),
            notices=self._notices(),
        )
        if certificate is None:
            return answer
        low, high = sorted(self._sign * bound for bound in certificate.interval)
        return replace(
            answer,
            interval=interval if certificate.winner is None else (low, high),
            epsilon=certificate.epsilon,
            certified=certificate.certified,
            reason=certificate.reason,
            survivors=self.shortlist,
            compared=certificate.compared,
            assumptions=certificate.assumptions,
            conditions=certificate.conditions,
            unseen=certificate.unseen,
            not_compared=tuple(
                f"{result.name}: {result.outcomes}" for result in certificate.not_compared
            ),
            notices=certificate.notices,
            remaining_cost=budget.cost_at_target(certificate.remaining),
        )

    def _why_no_certificate(self) -> str:
        evaluations = self._budget.evaluations
        if evaluations and self.search.leader() is None:
            failed = ""
            if self.search.target and self._budget.failures:
                where = failures_in_words(self._budget.failures_at, self.labels.fidelity)
                failed = f" (failed: {where})"
            return f"none of {evaluations} evaluations gave a value{failed}"
        why = self._budget.why_nothing_is_kept
        if self.stopped_by_chance and self._stopped_at is not None:
            why = (
                f"by the model's estimate ({chance_in_words(self._stopped_at)}), no other of the "
                f"{self.n_candidates} candidates is better by more than epsilon; this is not "
                f"certified"
            )
        elif not why and self.finished:
            why = "the budget was spent before a shortlist could be evaluated"
        lucky = "the mean is the search's own, of a configuration selected for it"
        if evaluations and not self.search.finished_arms():
            lucky = f"nothing was evaluated at the target yet; {lucky}"
        return f"{why or 'the search goes on'}; {lucky}"

    def _notices(self) -> tuple[str, ...]:
        """Return a notice where new configurations begin at a higher level, as most failed."""
        found = self.search.most_failed()
        if found is None:
            return ()
        level, failed, tried = found
        name = self.labels.fidelity
        return (
            f"{failed} of {tried} configurations failed at {name(level)}, so that new ones begin "
            f"at {name(level + 1)}",
        )

    def findings(self) -> dict[str, Any]:
        """Return what an answer adds to `recommend`: see `UserSearchRecommendation`."""
        return {
            "tried": self.tried,
            "stopped": self._budget.stopped,
            "saved": self._budget.saved,
            "at_target": len(self.search.finished_arms()),
            "left": self.left,
            "chance": self.chance(),
            "certificate": self.certificate(),
        }

    def certificate(self) -> Certificate | None:
        """Return the answer of the shortlist's race so far; None during the search."""
        certification = self._certifying()
        if certification is None:
            return None
        n, given = len(self.shortlist), self.n_candidates
        finished_arms = len(self.search.finished_arms())
        about = f"the shortlist of {n} configurations"
        words = (
            f"of {self.tried} configurations that were tried, the search brought {finished_arms} "
            f"to the target; {n} of these may be the best by what it knew"
        )
        if given:
            about = f"the {n} finalists of {given} candidates"
            others = left_in_words({**self.left, "brought to the target": finished_arms})
            words = (
                f"of {given} candidates: {others}; {n} finalists may be the best by what the "
                f"search knew"
            )
        certification.policy.withheld = self.withheld
        words += "; the means below use new evaluations only"
        answer = certification.certificate(about, words)
        finished = self.finished
        reason = answer.reason
        if finished and not certification.finished:
            reason = f"the budget is spent: {reason}"
        conditions = (*answer.conditions, *self.provisos)
        return replace(
            answer,
            finished=finished,
            reason=reason,
            conditions=conditions,
            notices=(*self._notices(), *answer.notices),
        )

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return the best answer so far in short (see `Policy.leader`)."""
        everything = (-math.inf, math.inf)
        certificate = self.certificate()
        if certificate is not None and certificate.winner is not None:
            certification = self._certifying()
            assert certification is not None
            bounds = certification.interval(certificate.winner)
            low, high = sorted(self._sign * bound for bound in bounds)
            arm = self.shortlist[certificate.winner]
            return arm, self._sign * certificate.mean, (low, high), self.search.target
        leader = self.search.leader()
        if leader is None:
            return None, math.nan, everything, self.search.target
        level = self.search.level_of(leader)
        return leader, self.search.mean(leader, level), everything, level

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Count and mean of what the search has seen of an arm at a level; no radius is known."""
        count = self.search.count(arm, fidelity)
        return count, self.search.mean(arm, fidelity), math.inf

    @property
    def most_blocks(self) -> int | None:
        """How many replicates there are (see `Policy`): the search's, and those of certificates."""
        return self._most_blocks

    @most_blocks.setter
    def most_blocks(self, most: int | None) -> None:
        if most != self._most_blocks:
            self._most_blocks = most
            self._budget.most_replicates = None if most is None else most - _FIRST_BLOCK
            self._certification = None  # it is planned for so many

    @property
    def tried(self) -> int:
        """Number of arms that were evaluated at any level, repeats of others not counted."""
        return len(self._budget.reached)

    @property
    def left(self) -> dict[str, int]:
        """Numbers of arms that were left below the target or were not tried, by where."""
        levels = Counter(self._budget.reached.values())
        found = {
            f"left at {self.labels.fidelity(level)}": levels[level]
            for level in range(self.search.target)
            if levels[level]
        }
        lost = [arm for arm, level in self._budget.reached.items() if level < 0]
        failed = Counter(map(self.search.cheap_failures.highest, lost))
        for level in sorted(failed):
            is_named = level >= 0 and self.search.target
            where = f"failed at {self.labels.fidelity(level)}" if is_named else "without a value"
            found[where] = found.get(where, 0) + failed[level]
        if self.n_candidates > self.tried:
            found["not tried"] = self.n_candidates - self.tried
        return found

    @property
    def n_candidates(self) -> int:
        """Number of arms that were given, repeats of others not counted."""
        return self.search.n_given - self.search.n_merged_given

    @property
    def active(self) -> IntArray:
        """The shortlist, or during the search the arms that were brought to the target."""
        return np.array(self.shortlist or self.search.finished_arms(), dtype=np.int64)

    @property
    def fidelity(self) -> int:
        """The target."""
        return self.search.target

    @property
    def piloting(self) -> bool:
        """Whether the shortlist is still being searched for."""
        return not self.shortlist

    @property
    def spending(self) -> tuple[float, float]:
        """What was spent, and what may be: infinite without a budget. In the budget's unit."""
        return self._budget.spent, self._budget.amount

    @property
    def counts_evaluations(self) -> bool:
        """Whether the budget's unit is the evaluation."""
        return self._budget.in_evaluations

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self._budget.cost
