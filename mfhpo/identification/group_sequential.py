"""Elimination by a few looks that are planned: for a shortlist on a small budget.

All arms are evaluated equally often and looked at after 5, 10, 20, ... evaluations of each (a
group-sequential design). Intervals that hold at all times are much wider after five evaluations of
an unknown noise.

Why it is valid. A look rests on the first so many values of each arm, in the order in which the
evaluations were begun, so each mean is one of independent values. Each arm has a variance and a
Student interval of its own. For the difference of two, the same quantile is taken with the sum of
both variances, which is conservative for every ratio of these (Mickey and Brown 1966). In blocks,
the differences of two arms in the same ones are independent values themselves, and have Student's
interval. Look j has the error probability delta / 2^j, divided among the K - 1 comparisons with the
best arm, each on one side. So with probability 1 - delta the best is never found worse, and whoever
is within epsilon of all that are left is within epsilon of the best. The intervals of the arms' own
means, at level delta / (2^j K) on two sides, are another event of the same probability.

An arm whose evaluations fail too often leaves (`mfhpo.racing.failures`). The claim is then about
the others, and nothing is certified if it may have been the best by its values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import check_count
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.likelihood.blocks import BLOCK_CONDITIONS, Blocks
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.noise import declared_sigmas
from mfhpo.problem import Observation, Problem, Pull

FIRST_LOOK = 5
"""Evaluations of each arm before the first look, by default."""

LEAST_FIRST_LOOK = 2
"""Fewer do not show any noise."""

# Normal values are never all equal. Rounded ones may be, by chance: an interval of no width is only
# believed after so many.
_COUNT_WITHOUT_SPREAD = 10

_ROUNDING = 1e-12  # of the values: what rounding makes of equal differences


class GroupSequential(BestArmPolicy):
    """Elimination at the target level, at looks after so many evaluations of each arm.

    Values are told in the order in which the evaluations of an arm were begun, or with their
    blocks in any order.

    Parameters
    ----------
    problem
        Of its costs the last one matters. The bias is not used. Each arm has a variance of its own
        unless a scale of the noise or bounds on the values are declared.
    epsilon
        See `BestArmPolicy`. None: the declared scale of the noise, or the root of the arms' mean
        variance, as it is known at each look.
    first_look
        Evaluations of each arm before the first look, at least 2; each later look takes twice as
        many as the one before. One does if there is no noise.
    blocks
        Whether pulls carry a block, whose replicate all arms share (see `BlockElimination`). A
        declared scale of the noise has no part in it.
    **options
        See `BestArmPolicy`; `radius`, `audit` and `measure` have no part in it.

    Attributes
    ----------
    looks
        How many looks there were.
    """

    _saved = (
        *BestArmPolicy._saved,
        "most_blocks",
        "looks",
        "_behind",
        "_radius",
        "_leader",
        "_seen",
        "_means",
        "_radii",
    )

    def __init__(
        self,
        problem: Problem,
        *,
        epsilon: float | None = 0.0,
        first_look: int = FIRST_LOOK,
        blocks: bool = False,
        **options: Any,
    ) -> None:
        n = problem.n_arms
        check_count("first_look", first_look, LEAST_FIRST_LOOK)
        declared = None if blocks else declared_sigmas(problem.noise, problem.n_fidelities)
        self._declared = None if declared is None else declared[-1]
        self._first_look = 1 if self._declared == 0.0 else first_look
        self._in_blocks = blocks
        self._blocks = Blocks(n)
        self.looks = 0
        self._behind = math.inf
        self._radius = math.inf  # of the comparison that decides on it
        self._leader = -1
        # As of the last look that an arm took part in.
        self._seen: IntArray = np.zeros(n, dtype=np.int64)
        self._means: FloatArray = np.full(n, np.nan)
        self._radii: FloatArray = np.full(n, np.inf)
        self._finds_epsilon = epsilon is None and self._declared is None
        if epsilon is None:
            epsilon = self._declared
        problem = replace(problem, bias=None)
        super().__init__(problem, epsilon=epsilon or 0.0, measure=self._first_look, **options)
        self._waits_for_audit = False

    @property
    def piloting(self) -> bool:
        """Whether epsilon is still to be found out."""
        return self._finds_epsilon and not self.looks

    @property
    def _sigma(self) -> float | None:
        return None if self._evidence.noise.widened else self._declared

    def _needs_pilot(self) -> bool:
        return False

    def _plan(self) -> None:
        pass

    def _reinstate(self) -> None:
        self._roster.restore_eliminated()

    def _explored_fidelity(self) -> int:
        return self.problem.target

    def _lacking(self, winner: int) -> dict[int, int]:
        missing = self._first_look - int(self._counts()[winner])
        return {self.problem.target: missing} if missing > 0 else {}

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Policy.finished`)."""
        return super().finished or self._all_were_used

    @property
    def _all_were_used(self) -> bool:
        """Whether there are too few replicates for another look."""
        return self.most_blocks is not None and self._size(self.looks) > self.most_blocks

    @property
    def _end(self) -> str:
        if self._all_were_used:
            return f"{self.most_blocks} replicates are all there are"
        return super()._end

    # Pulls.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`), in blocks each with its own; none when it is over."""
        check_count("n", n, 1)
        pulls: list[Pull] = []
        while not self.finished and len(pulls) < n:
            counts = self._counts([*pending, *pulls])
            arms = self.active if self.winner is None else np.array([self.winner])
            arm = int(arms[np.argmin(counts[arms])])
            block = int(counts[arm]) if self._in_blocks else None
            pulls.append(Pull(arm, self.problem.target, block=block))
        return pulls

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        return Pull(int(arms[np.argmin(counts[arms, -1])]), self.problem.target)

    def looks_with(self, pending: Sequence[Pull]) -> int:
        """Number of looks once what is under way has ended, if all of it gives values."""
        return self.looks if self.finished else self._looks_due(self._counts(pending))

    def missing(self, pending: Sequence[Pull] = ()) -> int:
        """Evaluations that the next look takes besides those that are under way.

        Where those will do for it, the look after it is meant.
        """
        counts = self._counts(pending)[self.active]
        return int(np.maximum(self._size(self.looks_with(pending)) - counts, 0).sum())

    def _counts(self, pending: Sequence[Pull] = ()) -> IntArray:
        """How many of the first values of each arm there are, without a gap, shape (K,)."""
        n_arms, n_blocks = self._blocks.values.shape
        present = np.zeros((n_arms, n_blocks + len(pending) + 1), dtype=bool)
        present[:, :n_blocks] = ~np.isnan(self._blocks.values)
        for pull in pending:
            self._check(pull)
            first = int(np.argmin(present[pull.arm]))
            block = first if pull.block is None else pull.block
            if block < present.shape[1]:
                present[pull.arm, block] = True
        return np.asarray(np.argmin(present, axis=1))

    def _size(self, look: int) -> int:
        return self._first_look << look

    def _looks_due(self, counts: IntArray) -> int:
        """Number of looks that all that are left have enough values for."""
        looks = self.looks
        while self.active.size and (counts[self.active] >= self._size(looks)).all():
            looks += 1
        return looks

    # Learning.

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`).

        In blocks, what counts is the first value of an arm in each. A ValueError says that the pull
        has no block.
        """
        self._check(pull)
        if self._in_blocks and (pull.block is None or pull.block < 0):
            raise ValueError(
                f"block must be at least 0, got {pull.block!r}: tell the pull as asked."
            )
        if observation.has_value and observation.value is not None:
            arm = int(pull.arm)
            block = pull.block if self._in_blocks else self._blocks.first_open(arm)
            at_target = pull.fidelity == self.problem.target
            if not (at_target and self._blocks.add(arm, block or 0, float(observation.value))):
                self._pay(pull.fidelity, observation)
                return
        super().tell(pull, observation)

    def _take_sums(self, arms: IntArray, fidelity: int, counts: IntArray, sums: FloatArray) -> None:
        raise ValueError("looks rest on the first values of each arm; tell them one by one.")

    def _judge(self, fidelity: int) -> None:
        while not self._is_decided and self._looks_due(self._counts()) > self.looks:
            self._look()

    @property
    def _is_decided(self) -> bool:
        """Whether a further look changes nothing; one that is left is looked at once."""
        left = self.active
        return self._certificate is not None or (len(left) == 1 and bool(self._seen[left[0]]))

    def _judge_anew(self) -> None:
        if self._evidence.noise.widened and self._declared is not None:
            self._radii[:] = self._behind = self._radius = math.inf
            self._declared = None
        self._certificate = None
        self._judge(self.problem.target)

    def _look(self) -> None:
        size, left = self._size(self.looks), self.active
        self.looks += 1
        level, n_arms = self.delta / 2.0**self.looks, self.problem.n_arms
        values = self._blocks.values[left, :size]
        means, variances = values.mean(axis=1), _variances(values)
        self._seen[left], self._means[left] = size, means
        self._radii[left] = self._radius_of(size, variances, level / (2.0 * n_arms))
        leader = int(np.argmax(means))
        self._leader = int(left[leader])
        if self._finds_epsilon:
            self._epsilon = float(np.sqrt(variances.mean()))
        if len(left) == 1:
            self._radius = self._behind = math.inf
            return
        others = np.arange(len(left)) != leader
        if self._in_blocks:
            sums = _variances(values[leader] - values[others])
        else:
            sums = variances[others] + variances[leader]
        radii = self._radius_of(size, sums, level / (n_arms - 1), of_two=True)
        ahead = means[leader] - means[others]
        worst = int(np.argmax(radii - ahead))
        self._radius = float(radii[worst])
        self._behind = max(0.0, float(radii[worst] - ahead[worst]))
        if self._sigma is not None and self._evidence.noise.unaudited:
            return  # too few values to see that the declared sigma is too small
        self._roster.eliminate(left[others][ahead > radii], self._leader)
        if self._behind <= self.epsilon:
            self._certificate = self._leader

    def _radius_of(
        self, size: int, variances: FloatArray, level: float, of_two: bool = False
    ) -> FloatArray:
        """Radii on one side of means, or of differences of two, with such variances of a value."""
        if self._sigma is not None:
            times = 2.0 if of_two else 1.0
            width = self._sigma * math.sqrt(2.0 * times * math.log(1.0 / level) / size)
            return np.full(variances.shape, width)
        if size < LEAST_FIRST_LOOK:
            return np.full(variances.shape, np.inf)
        radii = -stdtrit(size - 1, level) * np.sqrt(variances / size)
        return np.where((variances == 0.0) & (size < _COUNT_WITHOUT_SPREAD), np.inf, radii)

    # The answer.

    @property
    def _is_provisional(self) -> BoolArray:
        """Whose figures are of no look, shape (K,)."""
        return np.asarray((self._seen == 0) | self._roster.withdrawn)

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Count, mean and radius of an arm as of the last look that it took part in."""
        count, mean, _ = super().summary(arm, fidelity)
        if fidelity != self.problem.target or self._is_provisional[arm]:
            return count, mean if count else math.nan, math.inf
        return int(self._seen[arm]), float(self._means[arm]), float(self._radii[arm])

    def interval(self, arm: int) -> tuple[float, float]:
        """Bounds on the arm's mean at the target, as of the last look."""
        _, mean, radius = self.summary(arm, self.problem.target)
        return (-math.inf, math.inf) if math.isinf(radius) else (mean - radius, mean + radius)

    def _surest_arm(self) -> int:
        """The leader of the last look; before any, the first arm: a few values do not unseat it."""
        if self._leader >= 0 and self._roster.active[self._leader]:
            return self._leader
        seen = self.active[self._evidence.counts[self.active, -1] > 0]
        if not self.looks or not seen.size:
            return int(seen[0] if seen.size else self.active[0])
        return int(seen[np.argmax(self._evidence.means(seen, self.problem.target))])

    def behind_by(self, leader: int) -> float:
        """By how much an arm may be worse than another; infinite but for the last look's leader."""
        return self._behind if leader == self._leader else math.inf

    def _reason(self, arm: int | None) -> str:
        if arm is None or self.winner is not None:
            return super()._reason(arm)
        look = f"after {self._size(self.looks)} evaluations of each"
        if not self.looks:
            return f"nothing can be said yet; the first look is {look}"
        reason = super()._reason(arm)
        return reason if self.finished else f"{reason}; the next look is {look}"

    def _remaining_cost(self, leader: int | None) -> float | None:
        """A guess: the radius shrinks as the root of the count, and the lead stays."""
        if leader is None or leader != self._leader or self.piloting:
            return None
        lead = self._radius - self._behind + self.epsilon
        if not math.isfinite(lead):
            return None
        if lead <= 0.0:
            return math.inf
        looks = max(1, math.ceil(2.0 * math.log2(self._radius / lead)))
        missing = self._size(self.looks - 1 + looks) - self._counts()[self.active]
        return float(np.maximum(missing, 0).sum()) * self._cost_of(self.problem.target)

    def _assumptions(self) -> tuple[str, ...]:
        about = "the mean over replicates, which the arms shared; " if self._in_blocks else ""
        return (f"{about}looks after {self._size(0)}, {self._size(1)}, ... evaluations of each",)

    def _conditions(self) -> tuple[str, ...]:
        return BLOCK_CONDITIONS if self._in_blocks else super()._conditions()

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Everything learned so far (see `Policy.state_dict`)."""
        return {**super().state_dict(), "blocks": self._blocks.state_dict()}

    def _load_details(self, state: Mapping[str, Any]) -> None:
        self._blocks.load_state_dict(state["blocks"])


def _variances(values: FloatArray) -> FloatArray:
    """Variances of rows, shape (n,); 0 where rounding alone tells the values apart."""
    size = values.shape[1]
    errors = values - values.mean(axis=1, keepdims=True)
    squares = (errors**2).sum(axis=1) / max(size - 1, 1)
    tiny = _ROUNDING * np.abs(values).max(axis=1)
    return np.where(np.ptp(values, axis=1) <= tiny, 0.0, squares)
