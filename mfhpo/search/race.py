"""Search, then certify: one budget for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count, check_number
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.group_sequential import (
    FIRST_LOOK,
    LEAST_FIRST_LOOK,
    GroupSequentialCertification,
)
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Pull, Recommendation
from mfhpo.racing.declaration import SigmaLike, check_options
from mfhpo.search.measured_costs import MeasuredCosts
from mfhpo.search.policy import Begin, SearchPolicy
from mfhpo.search.space import Point

__all__ = ["BudgetUnit", "Replicate", "SearchRace"]

BudgetUnit = Literal["cost", "evaluations"]

# Of the budget, what the search's first arms may take at most.
_FIRST_SHARE = 0.5

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Replicate(Pull):
    """An evaluation at the target for the certificate: from scratch, and with a new seed.

    Parameters
    ----------
    arm, fidelity, limit
        See `Pull`.
    shortlist
        The arms that are compared.
    """

    shortlist: tuple[int, ...] = ()


class SearchRace(Policy):
    """A search, and at its end a race among its best arms, on one budget.

    The search spends the budget but for a share that is kept for the end. Then the arms that may be
    the best by what the search knows, the shortlist, are evaluated again from scratch
    (`GroupSequentialCertification`): a value that a search has selected is a lucky one, and
    only new ones say what it is worth. The race ends when the best of the shortlist is certified,
    or the budget is spent.

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
        What the budget counts: "cost", in the unit of the search's costs, or "evaluations", of
        which the search then makes all at the target.
    certify_share
        Share of the budget that is kept for the shortlist; 0 for none. Where it does not pay for
        two evaluations of two arms, or five where costs are measured, nothing is kept.
    top
        Largest size of the shortlist, at least 2. It is smaller where what is kept would not do for
        ten evaluations of each arm, so that there can be two looks at five and at ten.
    delta, epsilon, sigma, max_failures
        Of the certificate, see `mfhpo.certification.group_sequential`.
    measured
        Whether the search's costs are but a guess, to be replaced by what evaluations cost, see
        `MeasuredCosts`; failures are paid for, but teach nothing of costs. Until anything was
        learned, evaluations are begun as if they were free. So is one of a higher level while a
        single level is known, by which the budget may be exceeded; others that may be too dear
        wait for it, and new arms are begun at the lowest level in the meantime. An evaluation that
        is told without its cost counts at what is expected, or as free where nothing is known.
    sign
        -1 where the user's values are minimised: inside they are maximised.
    params
        Gives the parameters of an arm, for the certificate.

    Attributes
    ----------
    search
        The search.
    shortlist
        The arms that are compared; empty during the search.
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
        certify_share: float = 0.1,
        top: int = 8,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        max_failures: int = 3,
        measured: bool = False,
        sign: float = 1.0,
        params: Callable[[int], Mapping[str, Any]] = lambda arm: {"arm": arm},
    ) -> None:
        if budget is not None and not check_number("budget", budget, " or None") > 0.0:
            raise ValueError(f"budget must be positive or None, got {budget!r}.")
        if unit not in ("cost", "evaluations"):
            raise ValueError(f"unit must be 'cost' or 'evaluations', got {unit!r}.")
        if not 0.0 <= check_number("certify_share", certify_share) < 1.0:
            raise ValueError(f"certify_share must be in [0, 1), got {certify_share!r}.")
        check_options({"delta": delta, "epsilon": epsilon})
        self.search = search
        self.shortlist: tuple[int, ...] = ()
        self.begun = 0
        self._budget = math.inf if budget is None else float(budget)
        self._in_evaluations = unit == "evaluations"
        self._share = certify_share
        self._top = check_count("top", top, 2)
        self._options: dict[str, Any] = {
            "delta": delta,
            "epsilon": epsilon,
            "sigma": sigma,
            "max_failures": check_count("max_failures", max_failures, 1),
        }
        self._sign = sign
        self._params = params
        self._measured: MeasuredCosts | None = None
        if measured:
            self._measured = MeasuredCosts(search.costs, continues=search.continues)
        self._from_scratch = search.costs
        self._levels: dict[int, int] = {}
        if self._in_evaluations:
            search.count_evaluations()
        self._shorten_beginning()
        self._certification: GroupSequentialCertification | None = None
        self._replicates: list[tuple[int, float | None]] = []
        self._cost = 0.0
        self._evaluations = 0
        self._failures = 0
        self._asked: tuple[int, Point | None] = (-1, None)
        # Raises for a bad delta, epsilon or sigma now, not when the search has spent its share.
        self._compare([Candidate("arm", {}, 0.0)] * 2, 0)

    # Learning.

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from an evaluation; the first `Replicate` decides on the shortlist, see `agree`."""
        cost = observation.cost
        if cost is None:
            cost = 0.0 if self._is_cost_unknown(pull) else self._expected_cost(pull)
        elif self._measured is not None and observation.has_value:
            self._learn_cost(self._measured, pull, cost)
        self._cost += cost
        self._evaluations += 1
        self._failures += not observation.has_value
        self.begun = max(self.begun, pull.arm + 1)
        if not isinstance(pull, Replicate):
            reached = pull.fidelity if observation.has_value else -1
            self._levels[pull.arm] = max(self._levels.get(pull.arm, -1), reached)
            self.search.tell(pull, observation)
            if pull.arm in self.shortlist:  # what its certificate compares was not all there
                self._certification = None
            return
        if not self.shortlist:
            self.agree(pull.shortlist)
        value = None
        if observation.has_value and observation.value is not None:
            value = self._sign * float(observation.value)
        self._replicates.append((pull.arm, value))
        if self._certification is not None:
            self._count(self._certification, pull.arm, value)

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out, as a repeat of another one or for a reason that nobody here sees."""
        self.begun = max(self.begun, arm + 1)
        self._levels.pop(arm, None)
        self.search.merge(arm)

    def agree(self, shortlist: Sequence[int]) -> None:
        """Compare these arms, whatever was compared until now.

        Workers that end the search at the same moment may draw up different shortlists: whoever
        runs them says which one holds. Evaluations of its arms that were told for another shortlist
        count for this one.

        Parameters
        ----------
        shortlist
            The arms.
        """
        self.shortlist = tuple(shortlist)
        self._certification = None

    def _certifying(self) -> GroupSequentialCertification | None:
        """The race among the shortlist; None as long as nothing was told of it.

        It is begun as late as that because a study that is read again may tell of the shortlist
        first, and of what the search has seen of it later.
        """
        if self._certification is None and any(
            arm in self.shortlist for arm, _ in self._replicates
        ):
            self._certification = self._new_certification()
            for arm, value in self._replicates:
                self._count(self._certification, arm, value)
        return self._certification

    def _count(
        self, certification: GroupSequentialCertification, arm: int, value: float | None
    ) -> None:
        if arm in self.shortlist:
            certification.tell(self.shortlist.index(arm), value)

    def _new_certification(self) -> GroupSequentialCertification:
        claims = [self.search.mean(arm, self.search.target) for arm in self.shortlist]
        candidates = [
            Candidate(f"arm {arm}", dict(self._params(arm)), self._sign * claim)
            for arm, claim in zip(self.shortlist, claims, strict=True)
        ]
        return self._compare(candidates, int(np.argmax(np.nan_to_num(claims, nan=-np.inf))))

    def _compare(
        self, candidates: Sequence[Candidate], luckiest: int
    ) -> GroupSequentialCertification:
        return GroupSequentialCertification(
            candidates,
            luckiest=luckiest,
            maximise=self._sign > 0.0,
            first_look=self._first_look(len(candidates)),
            **self._options,
        )

    def _first_look(self, n: int) -> int:
        """Evaluations of each of n candidates before they are compared for the first time.

        Whoever reads of the race later has to find the same number, so that it must not depend on
        what was spent, nor on costs that are still being learned.
        """
        if self._measured is not None or math.isinf(self._budget):
            return FIRST_LOOK
        affordable = int((self._kept + _ROUNDING) / (n * self._target_price))
        return min(max(affordable, LEAST_FIRST_LOOK), FIRST_LOOK)

    # Asking.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """What to evaluate next: up to `n` pulls, none when the race is over."""
        check_count("n", n, 1)
        pulls: list[Pull] = []
        for _ in range(n):
            pull = self._next([*pending, *pulls])
            if pull is None:
                break
            pulls.append(pull)
        return pulls

    def point_of(self, arm: int) -> Point | None:
        """The configuration that the arm begun by the last `ask` is to be; None for any."""
        asked, point = self._asked
        return point if asked == arm else None

    def fits(self, pull: Pull, pending: Sequence[Pull] = ()) -> bool:
        """Whether the budget allows a pull besides what is under way."""
        return self._fits(pull, pending, 0.0)

    def _fits(self, pull: Pull, pending: Sequence[Pull], kept: float) -> bool:
        left = self._left(pending) - kept
        return self._price(pull) <= left + _ROUNDING and left > _ROUNDING

    def _next(self, pending: Sequence[Pull]) -> Pull | None:
        shortlist = self.shortlist or _shortlist_of(pending)
        if not shortlist:
            pull = self._search_on(pending)
            if self._may_be_too_dear(pull, pending):
                self._asked = (self._next_arm(pending), None)
                pull = Pull(self._next_arm(pending), self.search.lowest)
            kept = self._kept if len(self.search.finished_arms()) > 1 else 0.0
            if self._fits(pull, pending, kept):
                return pull
            if self._kept == 0.0:
                return None
            shortlist = self._new_shortlist()
        chosen = self._next_candidate(shortlist, pending)
        if chosen is None:
            return None
        replicate = Replicate(chosen, self.search.target, None, shortlist)
        return replicate if self.fits(replicate, pending) else None

    def _may_be_too_dear(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Whether a pull has to wait until one that is under way tells what its level costs."""
        if not (self._is_cost_unknown(pull) and any(map(self._is_cost_unknown, pending))):
            return False
        expected = sum(map(self._expected_cost, [pull, *pending]))
        return expected > self._budget - self._spent + _ROUNDING

    def _is_cost_unknown(self, pull: Pull) -> bool:
        if self._measured is None or self._in_evaluations:
            return False
        return self._measured.is_unknown(pull.fidelity)

    def _next_arm(self, pending: Sequence[Pull]) -> int:
        return max([self.begun, *(pull.arm + 1 for pull in pending)])

    def _search_on(self, pending: Sequence[Pull]) -> Pull:
        begun = self._next_arm(pending)
        under_way = [pull for pull in pending if not isinstance(pull, Replicate)]
        step = self.search.ask(begun, under_way)
        if not isinstance(step, Begin):
            return step
        self._asked = (begun, step.point)
        return Pull(begun, step.fidelity)

    def _next_candidate(self, shortlist: Sequence[int], pending: Sequence[Pull]) -> int | None:
        certification = self._certifying()
        if len(shortlist) < 2 or (certification is not None and certification.finished):
            return None
        under_way = [
            shortlist.index(pull.arm)
            for pull in pending
            if isinstance(pull, Replicate) and pull.arm in shortlist
        ]
        if certification is None:  # nothing is known yet: each in its turn
            return shortlist[len(under_way) % len(shortlist)]
        chosen = certification.ask(under_way)
        if chosen is None or not self._look_is_affordable(certification, under_way, pending):
            return None
        return shortlist[chosen]

    def _look_is_affordable(
        self,
        certification: GroupSequentialCertification,
        under_way: Sequence[int],
        pending: Sequence[Pull],
    ) -> bool:
        """Whether further evaluations will be looked at; the first ones tell their means anyway."""
        if not certification.looks_with(under_way):
            return True
        needed = certification.missing(under_way) * self._target_price
        return needed <= self._left(pending) + _ROUNDING

    def _new_shortlist(self) -> tuple[int, ...]:
        """The arms that may be the best, the search's leader first."""
        for_one_look = int(self._left(()) / (FIRST_LOOK * self._target_price) + _ROUNDING)
        affordable = for_one_look if for_one_look < 4 else for_one_look // 2
        return tuple(self.search.contenders(max(2, min(self._top, affordable))))

    # Answering.

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, or its next pull is beyond the budget."""
        if not self.shortlist and self._target_price <= self._left(()) - self._kept:
            return False
        return self._next(()) is None

    def recommend(self) -> Recommendation:
        """The certified arm, or the best by all that is known so far."""
        certificate = self.certificate()
        arm, mean, interval, fidelity = self.leader()
        epsilon = self._options["epsilon"]
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
            cost=self._cost,
            pulls=self._evaluations - self._failures,
            failures=self._failures,
            survivors=tuple(self.search.finished_arms()),
            compared=len(self.search.finished_arms()),
        )
        if certificate is None:
            return answer
        return replace(
            answer,
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
            remaining_cost=self._cost_of_evaluations(certificate.remaining),
        )

    def _why_no_certificate(self) -> str:
        lucky = "the mean is the search's own, of a configuration selected for it"
        if self._evaluations and not self.search.finished_arms():
            lucky = f"nothing was evaluated at the target yet; {lucky}"
        if self._share == 0.0 or math.isinf(self._budget):
            return f"nothing is kept for a certificate; {lucky}"
        if self._kept == 0.0:
            return f"certify_share={self._share:g} of the budget is {self._too_little}; {lucky}"
        if self.finished:
            return f"the budget was spent before a shortlist could be evaluated; {lucky}"
        return f"the search goes on; {lucky}"

    def certificate(self) -> Certificate | None:
        """What the shortlist's race says so far; None during the search."""
        certification = self._certifying()
        if certification is None:
            return None
        n = len(self.shortlist)
        words = (
            f"of {self.tried} configurations that were tried, the search brought "
            f"{len(self.search.finished_arms())} to the target; {n} of these may be the best by "
            f"what it knew; no mean below contains its values"
        )
        answer = certification.certificate(f"the shortlist of {n} configurations", words)
        finished = self.finished
        reason = answer.reason
        if finished and not certification.finished:
            reason = f"the budget is spent: {reason}"
        answer = replace(answer, conditions=(*answer.conditions, *self.provisos))
        if answer.certified and self.withheld:
            return replace(answer, finished=finished, certified=False, reason=self.withheld)
        return replace(answer, finished=finished, reason=reason)

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Arm, mean, interval at the target and fidelity of the mean of the best answer so far."""
        everything = (-math.inf, math.inf)
        certificate = self.certificate()
        if certificate is not None and certificate.winner is not None:
            low, high = sorted(self._sign * bound for bound in certificate.interval)
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
    def tried(self) -> int:
        """Number of arms that were evaluated at any level, repeats of others not counted."""
        return len(self._levels)

    @property
    def active(self) -> npt.NDArray[np.int64]:
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
    def cost(self) -> float:
        """What was paid so far."""
        return self._cost

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """Everything learned so far, as plain JSON values."""
        return {
            "search": self.search.state_dict(),
            "shortlist": list(self.shortlist),
            "replicates": [list(replicate) for replicate in self._replicates],
            "levels": {str(arm): level for arm, level in self._levels.items()},
            "begun": self.begun,
            "measured": None if self._measured is None else self._measured.state_dict(),
            "cost": self._cost,
            "evaluations": self._evaluations,
            "failures": self._failures,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, in a race made with the same arguments.

        Raises
        ------
        ValueError
            If the state has another number of levels, or its costs were declared and this race's
            are measured, or the other way round.
        """
        measured: list[list[float]] | None = state["measured"]
        if (measured is None) != (self._measured is None):
            raise ValueError(
                f"the state has costs that are {_how_known(measured)}, this race costs that are "
                f"{_how_known(self._measured)}: give its budget in the unit that it was begun with."
            )
        self.search.load_state_dict(state["search"])
        self.agree(state["shortlist"])
        self._replicates = [(arm, value) for arm, value in state["replicates"]]
        self._levels = {int(arm): level for arm, level in state["levels"].items()}
        self.begun = state["begun"]
        if self._measured is not None and measured is not None:
            self._measured.load_state_dict(measured)
            self._take_costs(self._measured)
        self._cost, self._evaluations = state["cost"], state["evaluations"]
        self._failures = state["failures"]

    # Paying.

    @property
    def _spent(self) -> float:
        return float(self._evaluations) if self._in_evaluations else self._cost

    def _left(self, pending: Sequence[Pull]) -> float:
        """What is left of the budget when all that is under way has been paid."""
        return self._budget - self._spent - sum(self._price(pull) for pull in pending)

    @property
    def _target_price(self) -> float:
        """What an evaluation at the target takes of the budget, from scratch."""
        return 1.0 if self._in_evaluations else self._from_scratch[-1]

    @property
    def _kept(self) -> float:
        """What is kept of the budget for the shortlist; 0 if it is too little for a comparison."""
        if self._share == 0.0 or math.isinf(self._budget):
            return 0.0
        least = 2 * self._least_first_look * self._target_price
        kept = self._share * self._budget
        return kept if kept + _ROUNDING >= least else 0.0

    @property
    def _least_first_look(self) -> int:
        """Evaluations of each candidate without which nothing can be said of them."""
        return LEAST_FIRST_LOOK if self._measured is None else FIRST_LOOK

    @property
    def _too_little(self) -> str:
        return (
            f"less than {2 * self._least_first_look} evaluations at the target take, so that "
            f"nothing is kept for a certificate: raise it, or the budget"
        )

    def _cost_of_evaluations(self, n: float | None) -> float | None:
        return None if n is None else n * self._from_scratch[-1]

    def _price(self, pull: Pull) -> float:
        """What a pull takes of the budget, as far as anything is known of its cost."""
        if self._in_evaluations:
            return 1.0
        return 0.0 if self._is_cost_unknown(pull) else self._expected_cost(pull)

    def _expected_cost(self, pull: Pull) -> float:
        """What a pull costs; 0 while the guess has not even the right unit."""
        if self._measured is not None and not self._measured.any_known:
            return 0.0
        start = -1 if isinstance(pull, Replicate) else self._start_of(pull)
        if start < 0:
            return self._from_scratch[pull.fidelity]
        return self.search.cost_from(start, pull.fidelity)

    def _start_of(self, pull: Pull) -> int:
        """The level that a pull goes on from; -1 if it begins anew, as all beyond it do."""
        reached = self._levels.get(pull.arm, -1)
        return reached if reached < pull.fidelity else -1

    def _learn_cost(self, measured: MeasuredCosts, pull: Pull, cost: float) -> None:
        goes_on = self.search.continues and not isinstance(pull, Replicate)
        measured.add(self._start_of(pull) if goes_on else -1, pull.fidelity, cost)
        self._take_costs(measured)

    def _take_costs(self, measured: MeasuredCosts) -> None:
        self.search.costs = measured.costs()
        levels = range(len(self.search.costs))
        self._from_scratch = tuple(measured.from_scratch(level) for level in levels)
        self._shorten_beginning()

    def _shorten_beginning(self) -> None:
        """Have the search begin with no more arms than the budget allows for."""
        if self._measured is not None and not self._in_evaluations:
            affordable = _FIRST_SHARE * self._budget if self._measured.any_known else math.inf
            self.search.shorten_beginning(affordable, fewest=True)
        elif not math.isinf(self._budget):
            self.search.shorten_beginning(_FIRST_SHARE * self._budget)


def _how_known(measured: object | None) -> str:
    return "declared" if measured is None else "measured"


def _shortlist_of(pending: Sequence[Pull]) -> tuple[int, ...]:
    """What a worker that has told nothing yet has begun to compare; empty if there is none."""
    return next((pull.shortlist for pull in pending if isinstance(pull, Replicate)), ())
