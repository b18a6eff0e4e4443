"""Search, then certify: one budget for both."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import MOST_AT_ONCE, check_count, check_flag, check_instance
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.certification import MakeCertifier
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.space import Point
from mfhpo.problem import Observation, Policy, Pull, Recommendation, check_pull, check_pulls
from mfhpo.racing.declaration import SigmaLike
from mfhpo.search.budget import LEAST_OF_FINALISTS, USUAL, USUAL_OF_GIVEN, Budget, BudgetUnit
from mfhpo.search.finalists import FIRST_BLOCK, Finalists, numbered
from mfhpo.search.policy import Replicate, SearchPolicy
from mfhpo.search.standing import Standing

SEARCH_BLOCK = 0
"""The block of a search's evaluations; those of its certificate have seen none of its luck."""


class BudgetedSearch(Policy):
    """A search, and at its end a race among its best arms, on one budget.

    The search spends the budget but for a share that is kept for the end. Then the arms that may be
    the best by what the search knows, the shortlist, are evaluated again from scratch: only new
    values say what they are worth. A pull of an arm that is neither told nor pending begins it, and
    `point_of` says what it is.

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
        Share of the budget that is kept for the certificate, in [0, 1). Nothing is kept where it
        does not pay for two evaluations of two arms, or for five where costs are measured. None: .2
        if the search's arms are given; else .1, or ten full evaluations if these are more and at
        most .2.
    top
        Largest number of arms on the shortlist, at least 2. None: 8, or 4 if the search's arms are
        given. It is smaller where what is left does not pay for two comparisons, after five and
        after ten evaluations of each.
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
        same for all arms. All of the search is in block 0. The certificate takes the blocks after
        it, and is about the mean over replicates; a `sigma` has no part in it, and an `epsilon` of
        None contains what replicates do to all arms.
    measured
        Whether the search's costs are but a guess, to be replaced by what evaluations cost, by
        level and by configuration. Until anything was learned, they are begun as if free.
    sign
        -1 where the user's values are minimised: inside they are maximised.
    params
        Gives the parameters of an arm, for the certificate.
    certifier
        Makes the policy that certifies the shortlist, see `mfhpo.certification`. None: a few
        planned looks, which take the fewest evaluations.
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
        certifier: MakeCertifier | None = None,
    ) -> None:
        check_instance("search", search, SearchPolicy, "a search such as mfhpo.search.ModelSearch")
        self.search = search
        self.begun = search.n_given  # the number of the next new arm
        _, usual_top = USUAL_OF_GIVEN if search.n_given else USUAL
        self.budget = Budget(budget, unit, certify_share, check_flag("measured", measured), search)
        self.top = check_count("top", usual_top if top is None else top, 2)
        options: dict[str, Any] = {
            "delta": delta,
            "epsilon": epsilon,
            "sigma": sigma,
            "max_failures": check_count("max_failures", max_failures, 1),
            "seed": search._seed,
        }
        self._finalists = Finalists(
            search,
            self.budget,
            options,
            sign=sign,
            params=params,
            blocks=check_flag("blocks", blocks),
            certifier=certifier,
        )
        self._asked: dict[int, Point | None] = {}  # of new arms, by the last `ask`

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from an evaluation; the first `Replicate` decides on the shortlist, see `agree`."""
        check_pull(pull)
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self.budget.pay(pull, observation)
        self.begun = max(self.begun, pull.arm + 1)
        if not isinstance(pull, Replicate):
            self.search.tell(pull, observation)
            if pull.arm in self.shortlist:  # what its certificate compares was not all there
                self._finalists.forget()
            return
        value = observation.value if observation.has_value else None
        self._finalists.learn(pull, value, observation.censored_at)

    def rule_out(self, pull: Pull, observation: Observation) -> None:
        """Learn that an evaluation at the target gave the worst value, -inf: no mean is worse.

        The arm leaves the search, or the certificate's race. The evaluation is paid, and no
        failure.
        """
        self.budget.pay(pull, observation, rules_out=True)
        self.begun = max(self.begun, pull.arm + 1)
        if isinstance(pull, Replicate):
            self._finalists.learn(pull, -math.inf)
        else:
            self.search.rule_out(pull.arm)

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out, as a repeat of another one or for a reason that nobody here sees."""
        self.begun = max(self.begun, arm + 1)
        self.budget.reached.pop(arm, None)
        self.search.merge(arm)

    def agree(self, shortlist: Sequence[int]) -> None:
        """Compare these arms, of all the shortlists that workers drew up at the same moment."""
        self._finalists.agree(shortlist)

    def contenders(self) -> list[int]:
        """Return the arms of a shortlist made now, with the baseline if it has a value."""
        most, baseline = self.budget.largest_shortlist(self.top), self.baseline
        found = self.search.contenders(most)
        if baseline is None or baseline in found or baseline not in self.search.finished_arms():
            return found
        return [*found[: most - 1], baseline]

    @property
    def baseline(self) -> int | None:
        """The arm that is in use today, if it is known."""
        return self._finalists.baseline

    @baseline.setter
    def baseline(self, arm: int | None) -> None:
        if arm != self._finalists.baseline:
            self._finalists.baseline = arm
            self._finalists.forget()

    @property
    def shortlist(self) -> tuple[int, ...]:
        """The arms that are compared; empty during the search."""
        return self._finalists.shortlist

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Return what to evaluate next: up to `n` pulls, none when the race is over."""
        check_count("n", n, 1, MOST_AT_ONCE)
        pending = check_pulls(pending)
        pulls: list[Pull] = []
        self._asked = {}
        for _ in range(n):
            pull = self._next([*pending, *pulls])
            if pull is None:
                break
            pulls.append(pull)
            self._asked[pull.arm] = None if isinstance(pull, Replicate) else self.search.point
        return pulls

    def point_of(self, arm: int) -> Point | None:
        """Return the configuration for an arm begun by the last `ask`; None for any."""
        return self._asked.get(arm)

    def fits(self, pull: Pull, pending: Sequence[Pull] = ()) -> bool:
        """Tell whether the budget allows a pull besides what is under way."""
        return self.budget.fits(pull, pending)

    def is_ahead(self, pending: Sequence[Pull]) -> bool:
        """Return whether to wait for what is under way, though the budget pays for more."""
        budget = self.budget
        if self.finished:
            return False
        if not self.shortlist:
            if not self.search.n_given or all(isinstance(pull, Replicate) for pull in pending):
                return False
            # All given arms are known or under way, and those may go on.
            return budget.next_of_search(self.begun, pending, budget.kept) is None
        another = Replicate(self.shortlist[0], self.search.target, shortlist=self.shortlist)
        return self.fits(another, pending) and self._next(pending) is None

    def _next(self, pending: Sequence[Pull]) -> Pull | None:
        # A worker that has told nothing yet may have begun to compare a shortlist.
        begun = (pull.shortlist for pull in pending if isinstance(pull, Replicate))
        shortlist = self.shortlist or next(begun, ())
        if not shortlist:
            budget = self.budget
            kept = budget.kept_for(self.top) if len(self.search.finished_arms()) > 1 else 0.0
            following = budget.next_of_search(self.begun, pending, kept)
            if following is not None and budget.fits(following, pending, kept):
                return replace(following, block=SEARCH_BLOCK if self._finalists.in_blocks else None)
            if following is None and any(not isinstance(pull, Replicate) for pull in pending):
                return None  # which of these goes on is not known yet
            is_spent = following is not None or not self.search.n_given
            pays = not math.isinf(budget.amount) and budget.pays_for(LEAST_OF_FINALISTS, ())
            if budget.kept == 0.0 and (is_spent or not pays):
                return None
            shortlist = tuple(self.contenders())
        replicate = self._finalists.next_pull(shortlist, pending)
        if replicate is None:
            return None
        # Only one that hangs is stopped: what takes long may be poor, and is to be counted.
        replicate = replace(replicate, limit=self.budget.limit_for(replicate, pending, None))
        return replicate if self.fits(replicate, pending) else None

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, or its next pull is beyond the budget."""
        budget = self.budget
        pays = not self.shortlist and budget.target_price <= budget.left() - budget.kept
        if pays and not self.search.n_given:
            return False
        # Of arms that are given, there may be none left.
        if pays and budget.next_of_search(self.begun, (), budget.kept) is not None:
            return False
        return self._next(()) is None

    @property
    def is_certified(self) -> bool:
        """True if the comparison of the shortlist is over, and its best is certified."""
        race = self._finalists.certification()
        certificate = self.certificate() if race is not None and race.finished else None
        return certificate is not None and certificate.certified

    def recommend(self) -> Recommendation:
        """Return the certified arm, or the best by all that is known so far."""
        return self.standing.recommend()

    def certificate(self) -> Certificate | None:
        """Return the answer of the shortlist's race so far; None during the search."""
        return self.standing.certificate()

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return the best answer so far in short (see `Policy.leader`)."""
        return self.standing.leader()

    @property
    def standing(self) -> Standing:
        """The knowledge so far, for answers."""
        return Standing(self, self.search, self.budget, self._finalists)

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Count and mean of what the search has seen of an arm at a level; no radius is known."""
        count = self.search.count(arm, fidelity)
        return count, self.search.mean(arm, fidelity), math.inf

    @property
    def most_blocks(self) -> int | None:
        """How many replicates there are (see `Policy`): the search's, and those of certificates."""
        fresh = self.budget.most_replicates
        return None if fresh is None else fresh + FIRST_BLOCK

    @most_blocks.setter
    def most_blocks(self, most: int | None) -> None:
        if most != self.most_blocks:
            self.budget.most_replicates = None if most is None else most - FIRST_BLOCK
            self._finalists.forget()  # it is planned for so many

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
    def cost(self) -> float:
        """What was paid so far."""
        return self.budget.cost
