"""What a search has paid, what its next evaluations will cost, and what is left of its budget."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from mfhpo._validation import check_choice, check_limit, check_number, shown
from mfhpo.identification.group_sequential import FIRST_LOOK, LEAST_FIRST_LOOK
from mfhpo.knowledge.space import Point
from mfhpo.problem import Observation, Pull
from mfhpo.search.policy import Replicate, SearchPolicy
from mfhpo.search.prices import BEYOND, Prices
from mfhpo.search.promotions import dearness_of, next_given

BudgetUnit = Literal["cost", "evaluations"]

# Share of the budget for the certificate, and largest number of finalists: in a space, and among
# given arms, of which there are fewer, so that the best ones are sooner among the finished.
USUAL = (0.1, 8)
MOST_FINALISTS, USUAL_SHARE_OF_GIVEN = 4, 0.2
"""The same where arms are given and nobody says otherwise."""
USUAL_OF_GIVEN = (USUAL_SHARE_OF_GIVEN, MOST_FINALISTS)
LEAST_OF_FINALISTS = 2 * LEAST_FIRST_LOOK
"""Evaluations at the target without which no finalists are compared, where costs are declared."""

_USUAL_VALUES, _MOST_OF_USUAL = 2 * FIRST_LOOK, 0.2  # to which a space's share is raised
_FIRST_SHARE = 0.5  # of the budget, what the search's first arms may take at most
_UNKNOWN_SHARE = 0.1  # of the budget, what an evaluation may take while no costs are known
_ROUNDING = 1e-9


class Budget:
    """Counts what a search and its certificate spend, and prices what is to come.

    For the parameters see `BudgetedSearch`.
    """

    def __init__(
        self,
        amount: float | None,
        unit: BudgetUnit,
        share: float | None,
        measured: bool,
        search: SearchPolicy,
    ) -> None:
        amount = check_limit("budget", amount, "")
        check_choice("unit", unit, get_args(BudgetUnit))
        self._is_usual = share is None and not search.n_given
        usual, _ = USUAL_OF_GIVEN if search.n_given else USUAL
        share = usual if share is None else check_number("certify_share", share)
        if not 0.0 <= share < 1.0:
            raise ValueError(f"certify_share must be in [0, 1), got {shown(share)}.")
        self.cost = 0.0
        self.lost = 0.0  # paid for what was never told
        self.evaluations = 0
        self.failures = 0
        self.failures_at: Counter[int] = Counter()  # by level
        self.stopped = 0  # at a limit
        # Of the amount, for evaluations at the target, and for those that failed.
        self._paid_at_target = self._paid_for_failures = 0.0
        self.most_replicates: int | None = None  # blocks for a shortlist; None: as many as wanted
        self.reached: dict[int, int] = {}  # by arm, the highest level with a value, or -1
        self.amount = math.inf if amount is None else float(amount)
        self.in_evaluations = unit == "evaluations"
        self._share = float(share)
        self._search = search
        self._prices = Prices(search.costs, continues=search.continues) if measured else None
        self.from_scratch = search.costs
        search.counts_evaluations = self.in_evaluations
        search.prices = None if self.in_evaluations else self._prices
        self._plan()

    def pay(self, pull: Pull, observation: Observation, *, rules_out: bool = False) -> None:
        """Count an evaluation, a failure if it has no value and `rules_out` no arm; learn costs."""
        is_failure, cost = observation.failed and not rules_out, observation.cost
        if cost is None:
            cost = self.price_of(pull)
        elif self._prices is not None and not observation.failed:
            self._learn_cost(self._prices, pull, observation, cost)
        self.cost += cost
        self.evaluations += 1
        self.failures += is_failure
        self.failures_at[pull.fidelity] += observation.failed
        self.stopped += observation.censored_at is not None
        if pull.fidelity == self._search.target:
            paid = 1.0 if self.in_evaluations else cost
            self._paid_at_target += paid
            self._paid_for_failures += paid * is_failure
        if not isinstance(pull, Replicate):
            level = pull.fidelity if observation.has_value else -1
            self.reached[pull.arm] = max(self.reached.get(pull.arm, -1), level)

    def _learn_cost(
        self, prices: Prices, pull: Pull, observation: Observation, cost: float
    ) -> None:
        if observation.censored_at == math.inf:
            return
        start = self._start_of(pull) if self._search.continues else -1
        prices.add(pull.arm, start, pull.fidelity, cost, stopped=not observation.has_value)
        if observation.has_value:
            costs = self._search.costs = prices.usual.costs()
            self.from_scratch = tuple(map(prices.usual.from_scratch, range(len(costs))))
            self._plan()

    def replan(self, amount: float | None) -> None:
        """Plan with another amount, or with the same one where the search's costs have changed."""
        if amount is not None:
            self.amount = float(amount)
        if self._prices is not None:
            self._prices.usual.continues = self._search.continues
        self._plan()

    def _plan(self) -> None:
        search = self._search
        search.allowance = self.amount - self.kept
        is_guess = search.prices is not None and not search.prices.usual.any_known
        search.most_of_first = math.inf if is_guess else _FIRST_SHARE * self.amount

    @property
    def target_price(self) -> float:
        """What an evaluation at the target takes of the budget, from scratch."""
        return 1.0 if self.in_evaluations else self.from_scratch[-1]

    def is_unknown(self, pull: Pull) -> bool:
        """Tell whether a pull's part of the budget is a mere guess."""
        prices = self._search.prices
        return prices is not None and prices.usual.is_unknown(pull.fidelity)

    def limit_for(
        self, pull: Pull, pending: Sequence[Pull], worth: float | None, point: Point | None = None
    ) -> float | None:
        """Return the cost at which to stop a pull, if it is measured (see `Prices.limit`).

        It is at most what is left if all that is under way reaches its limits, or twice what is
        expected.
        """
        found = self._search.prices
        if found is None:
            return None
        expected = self._expected_cost([pull], point)[0]
        if expected == 0.0:
            limit = max(_UNKNOWN_SHARE * self.amount, BEYOND * found.longest_stopped)
        elif pull.arm in self._search._points or point is not None:
            limit = found.limit(pull, expected, worth)
        else:
            limit = min(found.limit(pull, expected, None), found.limit_of_any(pull.fidelity))
        if math.isinf(self.amount):
            return None if math.isinf(limit) else limit
        prices = zip(self._price(pending), pending, strict=True)
        dear = sum(max(price, one.limit or 0.0) for price, one in prices)
        most = max(self.amount - self.spent - dear, BEYOND * expected)
        return min(limit, most) if most > 0.0 else limit

    def price_of(self, pull: Pull) -> float:
        """Return what a pull costs, as is declared or expected; 0 where nothing is known."""
        return 0.0 if self.is_unknown(pull) else self._expected_cost([pull])[0]

    def _has_to_wait(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Tell whether a pull may be too dear until one under way tells what its level costs."""
        if not (self.is_unknown(pull) and any(map(self.is_unknown, pending))):
            return False
        expected = sum(self._expected_cost([pull, *pending]))
        return expected > self.amount - self.spent + _ROUNDING

    def _price(self, pulls: Sequence[Pull]) -> list[float]:
        if self.in_evaluations:
            return [1.0] * len(pulls)
        costs = zip(pulls, self._expected_cost(pulls), strict=True)
        return [0.0 if self.is_unknown(pull) else cost for pull, cost in costs]

    def _expected_cost(self, pulls: Sequence[Pull], point: Point | None = None) -> list[float]:
        """Return what pulls cost; 0 while the guess has not even the right unit."""
        if self._prices is not None and not self._prices.usual.any_known:
            return [0.0] * len(pulls)
        costs, starts = [], []
        for pull in pulls:
            starts.append(start := self._start_of(pull))
            going_on = self._search.cost_from(start, pull.fidelity)
            costs.append(self.from_scratch[pull.fidelity] if start < 0 else going_on)
        if self._search.prices is None:
            return costs
        arms, levels = [pull.arm for pull in pulls], [pull.fidelity for pull in pulls]
        times = dearness_of(self._search, arms, starts, levels, point)
        return [cost * float(one) for cost, one in zip(costs, times, strict=True)]

    def _start_of(self, pull: Pull) -> int:
        """Return the level that a pull goes on from; -1 if it begins anew, as all beyond it do."""
        reached = -1 if isinstance(pull, Replicate) else self.reached.get(pull.arm, -1)
        return reached if reached < pull.fidelity else -1

    @property
    def spent(self) -> float:
        """What was spent of the amount, in the unit of both."""
        return float(self.evaluations) if self.in_evaluations else self.cost + self.lost

    def left(self, pending: Sequence[Pull] = ()) -> float:
        """Return what is left when all that is under way has been paid."""
        if math.isinf(self.amount):
            return self.amount
        return self.amount - self.spent - sum(self._price(pending))

    def fits(self, pull: Pull, pending: Sequence[Pull], kept: float = 0.0) -> bool:
        """Tell whether a pull can be paid besides what is under way, and so much is left."""
        left = self.left(pending) - kept
        return self._price([pull])[0] <= left + _ROUNDING and left > _ROUNDING

    def pays_for(self, n: int, pending: Sequence[Pull]) -> bool:
        """Tell whether so many target evaluations can be paid besides what is under way."""
        return n * self.target_price <= self.left(pending) + _ROUNDING

    @property
    def kept(self) -> float:
        """What is kept for the shortlist; 0 if it is too little for a comparison."""
        if self.why_nothing_is_kept:
            return 0.0
        wanted = min(_USUAL_VALUES * self.target_price, _MOST_OF_USUAL * self.amount)
        return max(self._share * self.amount, wanted if self._is_usual else 0.0)

    def kept_for(self, top: int) -> float:
        """Return the part kept for a shortlist of so many arms, which few replicates may limit."""
        if self.most_replicates is None:
            return self.kept
        return min(self.kept, top * self.most_replicates * self.target_price)

    @property
    def why_nothing_is_kept(self) -> str:
        """The reason in words; empty where something is kept."""
        if self._share == 0.0 or math.isinf(self.amount):
            return "nothing is kept for a certificate"
        if self.most_replicates is not None and self.most_replicates < LEAST_FIRST_LOOK:
            return (
                f"a certificate takes at least {LEAST_FIRST_LOOK} replicates besides that of the "
                f"search: let the objective ask for one of more values"
            )
        least = 2 * (LEAST_FIRST_LOOK if self._prices is None else FIRST_LOOK)
        if self._share * self.amount + _ROUNDING < least * self.target_price:
            return (
                f"a share of {self._share:g} of the budget is less than {least} evaluations at the "
                f"target take, so that nothing is kept for a certificate: raise the budget, or "
                f"certify_share"
            )
        return ""

    def next_of_search(self, begun: int, pending: Sequence[Pull], kept: float) -> Pull | None:
        """Return the search's next pull, maybe of a new arm at its `point`; None at the end."""
        search, left = self._search, self.left(pending) - kept
        is_known = search.prices is not None and not search.prices.usual.is_unknown(search.target)
        search.affordable = left if is_known else math.inf
        begun = max([begun, *(pull.arm + 1 for pull in pending)])
        step = search.ask(begun, [each for each in pending if not isinstance(each, Replicate)])
        # What this arm is too dear for, another one may do.
        if step is not None and (
            (self.target_price <= left and not self.fits(step, pending, kept))
            or self._has_to_wait(step, pending)
        ):
            arm = next_given(search, pending) if search.n_given else begun
            search.point, step = None, None if arm is None else Pull(arm, search.lowest)
        if step is None:
            return None
        limit = self.limit_for(step, pending, search.worth, search.point)
        return replace(step, limit=limit)

    def largest_shortlist(self, top: int) -> int:
        """Return how many arms, 2 to `top`, are compared twice, or once if few; failures cost."""
        if math.isinf(self.amount):
            return top
        size, most = FIRST_LOOK, math.inf
        if self.most_replicates is not None:
            size, most = min(size, self.most_replicates), self.most_replicates
        paid = self._paid_at_target
        share = self._paid_for_failures / paid if paid > 0.0 else 0.0
        values = (1.0 - share) * self.left() / self.target_price
        for_one_look = int(values / size + _ROUNDING)
        is_once = for_one_look < 4 or 2 * size > most
        return max(2, min(top, for_one_look if is_once else for_one_look // 2))

    def first_look(self, n: int) -> int:
        """Return the evaluations of each of n arms before their first comparison."""
        # Whoever reads about the race later has to find the same number, so that it must not depend
        # on what was spent, nor on costs that are still being learned.
        return int(max(LEAST_FIRST_LOOK, min(FIRST_LOOK, self._planned_values(n))))

    def planned_looks(self, n: int) -> int | None:
        """Return the number of looks at n arms that are planned for; None: an open number."""
        # More arms than the kept part pays for are compared where the search has ended early.
        values, least = self._planned_values(n), LEAST_FIRST_LOOK if n == 2 else FIRST_LOOK
        if self._search.n_given or not least <= values < math.inf:
            return None
        return int(values // self.first_look(n)).bit_length()

    def _planned_values(self, n: int) -> float:
        """Return how many values of each of n arms the kept part and the replicates allow."""
        most = math.inf if self.most_replicates is None else self.most_replicates
        if self._prices is not None or math.isinf(self.amount):
            return most
        return min(most, int((self.kept + _ROUNDING) / (n * self.target_price)))
