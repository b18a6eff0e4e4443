"""A few looks at arms that are evaluated equally often at the target level.

All arms are looked at after 5, 10, 20, ... evaluations of each (a group-sequential design).
Intervals that hold at all times are much wider after five evaluations of an unknown noise.

Why it is valid. A look rests on the first so many values of each arm, in the order in which
evaluations were begun. So the values behind each mean are independent. Each arm has a variance and
a Student interval of its own. For the difference of two, the same quantile is taken with the sum of
both variances, which is conservative for every ratio of these (Mickey and Brown 1966). In blocks,
the differences of two arms in the same ones are independent values themselves, and have Student's
interval. Look j has the error probability delta / 2^j, divided among the K - 1 comparisons with the
best arm, each on one side. So with probability 1 - delta the best is never found worse, and whoever
is within epsilon of all that are left is within epsilon of the best. The intervals of the arms' own
means, at level delta / (2^j K) on two sides, are another event of the same probability.

Values that are equal prove nothing: see `mfhpo.identification.likelihood.ties`. An arm that has no
value in a block is compared with another one in the blocks of the look that both have values in.

An arm whose evaluations fail too often leaves (`mfhpo.racing.failures`). The claim is then about
the others, and nothing is certified if it may have been the best by its values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import MOST_AT_ONCE, check_count
from mfhpo.identification.likelihood.block_policy import BlockPolicy
from mfhpo.identification.likelihood.ties import Samples, usual_step
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.noise import EstimatedNoise, Gaussian, declared_sigmas
from mfhpo.problem import Problem, Pull

FIRST_LOOK = 5
"""Evaluations of each arm before the first look, by default."""

LEAST_FIRST_LOOK = 2
"""Fewer do not show any noise."""

_ROUNDING = 1e-9  # of a radius: a lead that is no larger is a tie


class GroupSequential(BlockPolicy):
    """A race at the target level that is looked at a few times.

    The arms that are left are evaluated in rounds, each in a random order that depends on the seed.
    Each look takes twice as many evaluations of each arm as the one before; it may eliminate arms
    and certify the leader. Before the first look the answer is the first arm that gave a value: a
    few values do not change the order of the arms.

    The race ends with the certificate: it waits for no repeats, and evaluates a winner until the
    first look only. A declared sigma that the values contradict is given up, with a warning.

    Parameters
    ----------
    problem
        Of its costs the last one matters. A bias is not used. Each arm has a variance of its own,
        unless a sigma or bounds are declared.
    epsilon
        See `BestArmPolicy`. None: the declared scale of the noise, or else the root of the arms'
        mean variance, as it is known at each look.
    first_look
        Evaluations of each arm before the first look, at least 2 (else ValueError); a single one
        if sigma says that there is no noise.
    blocks
        Whether pulls carry a block, whose replicate all arms share (see `BlockElimination`). A look
        is then at the first so many blocks, which all arms have values in. An evaluation that fails
        is repeated once in its block, if the block gives any value (see `BlockPolicy`). What is
        declared of the noise is not used, and an epsilon of None contains what replicates do to all
        arms.
    **options
        See `BestArmPolicy`, without `measure` and `radius`.

    Attributes
    ----------
    looks
        Number of looks so far.

    Examples
    --------
    >>> import numpy as np
    >>> from mfhpo import Observation, Problem
    >>> policy = GroupSequential(Problem(3, costs=(1.0,)), epsilon=0.2)
    >>> means, rng = [0.2, 0.9, 0.5], np.random.default_rng(0)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     policy.tell(pull, Observation(rng.normal(means[pull.arm], 0.1)))
    >>> policy.recommend().arm, policy.recommend().certified, policy.pulls
    (1, True, 15)
    """

    _saved = (
        *BlockPolicy._saved,
        "most_blocks",
        "looks",
        "_looks_given_up",
        "_first_look",
        "_looked_at",
        "_leader",
        "_sigma",
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
        if blocks or isinstance(problem.noise, EstimatedNoise):
            problem = replace(problem, noise=Gaussian())
        self._in_blocks = blocks
        sigmas = declared_sigmas(problem.noise, problem.n_fidelities)
        self._sigma = None if sigmas is None else sigmas[problem.target]
        check_count("first_look", first_look, LEAST_FIRST_LOOK)
        self._first_look = 1 if self._sigma == 0.0 else first_look
        if epsilon is None:
            epsilon = self._sigma
        self._finds_epsilon = epsilon is None
        self.looks = self._looks_given_up = 0  # the first so many say nothing any more
        # Without blocks, `_blocks` keeps an arm's n-th value as if in the n-th.
        # How many of the values of each arm its last look took.
        self._looked_at: IntArray = np.zeros(problem.n_arms, dtype=np.int64)
        self._leader: int | None = None  # of the last look, if it is still in the race
        super().__init__(
            replace(problem, bias=None), epsilon=epsilon, measure=self._first_look, **options
        )
        self._waits_for_audit = False

    @property
    def piloting(self) -> bool:
        """Whether epsilon is still to be found out."""
        return self._epsilon is None

    def _needs_pilot(self) -> bool:
        return False

    def _plan(self) -> None:
        """Give up a declared sigma once it is contradicted, and what the looks said by it."""
        if self._sigma is not None and self._evidence.noise.widened:
            self._sigma = self._certificate = None
            self._looks_given_up = self.looks

    # Pulls.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`), in blocks each with its own."""
        if not self._in_blocks:
            return super().ask(n, pending)
        check_count("n", n, 1, MOST_AT_ONCE)
        pulls: list[Pull] = []
        while len(pulls) < n and (pull := self._open_pull([*pending, *pulls])) is not None:
            pulls.append(pull)
        return pulls

    def _open_pull(self, pending: Sequence[Pull]) -> Pull | None:
        arms = self.active if self.winner is None else np.array([self.winner])
        if not arms.size:
            return None
        taken, closed = self._settled(pending)[arms], self._blocks.closed(arms)
        taken[:, : closed.shape[1]] |= closed
        firsts = np.argmin(taken, axis=1)
        block = int(firsts.min())
        if not self._exists(block):
            return None
        arm = self._first_in_turn(arms[firsts == block], block)
        return Pull(arm, self.problem.target, block=block)

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        target = self.problem.target
        of_arms = counts[arms, target]
        fewest = int(of_arms.min())
        return Pull(self._first_in_turn(arms[of_arms == fewest], fewest), target)

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Policy.finished`)."""
        return super().finished or self._all_were_used

    @property
    def _all_were_used(self) -> bool:
        """Whether there are too few replicates for another look; the first one may be earlier."""
        size = self._size(self.looks) if self.looks else min(self._first_look, LEAST_FIRST_LOOK)
        return size > self._most_values

    def looks_with(self, pending: Sequence[Pull] = ()) -> int:
        """Return the number of looks if all that is under way gives values."""
        looks, winner = self.looks, self.winner
        if not self.active.size or (winner is not None and self._looked_at[winner]):
            return looks
        counts = self._expected(pending)[self.active]
        while (counts >= self._size(looks)).all():
            looks += 1
        return looks

    def missing(self, pending: Sequence[Pull] = ()) -> int:
        """Return how many further evaluations the next look needs, or the look after it if none."""
        size = self._size(self.looks_with(pending))
        return int(np.maximum(size - self._expected(pending)[self.active], 0).sum())

    def _expected(self, pending: Sequence[Pull] = ()) -> IntArray:
        """Return each arm's number of values after pulls under way, settled ones in blocks."""
        settled = self._settled(pending)
        counted = np.delete(settled, np.flatnonzero(self._blocks.void), axis=1)
        return np.asarray(np.argmin(counted, axis=1))

    def _settled(self, pending: Sequence[Pull]) -> BoolArray:
        """Return where arms will have a value or never will, after pulls under way, (K, B)."""
        n_arms, n_blocks = self._blocks.values.shape
        settled = np.zeros((n_arms, n_blocks + len(pending) + 1), dtype=bool)
        settled[:, :n_blocks] = self._blocks.settled
        for pull in pending:
            self._check(pull)
            block = int(np.argmin(settled[pull.arm])) if pull.block is None else pull.block
            if block < settled.shape[1] and self._exists(block):
                settled[pull.arm, block] |= pull.fidelity == self.problem.target
        return settled

    def _size(self, look: int) -> int:
        return self._first_look << look

    # Learning.

    def _judge(self, fidelity: int) -> None:
        self._blocks.set_aside(self.active)
        if not self.looks and self._most_values < self._first_look:
            # So few replicates were not planned for. Which are void does not depend on values.
            self._first_look = max(LEAST_FIRST_LOOK, int(self._most_values))
            self._measure = self._first_look
        while self.looks_with() > self.looks:
            self._look()
            self._blocks.set_aside(self.active)

    def _judge_anew(self) -> None:
        if self._leader is not None and not self._roster.active[self._leader]:
            self._leader = None
        self._certify()
        self._judge(self.problem.target)

    def _certify(self) -> None:
        if self.behind > self.epsilon:  # an arm may be back that was not compared with the leader
            self._certificate = None
        elif len(self.active) > 1 and not self._evidence.noise.unaudited:
            self._certificate = self._leader

    def _look(self) -> None:
        arms = self.active
        self._looked_at[arms] = self._size(self.looks)
        self.looks += 1
        samples = self._at_look(arms)
        leader = self._leader = int(arms[np.argmax(self._standings(arms))])
        if len(arms) == 1:
            return
        if self._finds_epsilon:
            several = samples.counts >= LEAST_FIRST_LOOK
            self._epsilon = math.sqrt(samples.variances[several].mean()) if several.any() else 0.0
        if not self._evidence.noise.unaudited:  # else a declared sigma may be far too small
            others, ahead, radii = self._lead()
            self._roster.eliminate(others[ahead > radii], leader)
        self._certify()

    def _standings(self, arms: IntArray) -> FloatArray:
        """Return the arms' means at the last look, shape (n,), without effects of blocks."""
        blocks = np.flatnonzero(~self._blocks.void)[: int(self._looked_at[arms[0]])]
        return self._blocks.standings(arms, blocks.tolist())

    def _at_look(self, arms: IntArray) -> Samples:
        return self._samples(self._blocks.first_values(arms, int(self._looked_at[arms[0]])))

    def _samples(self, values: FloatArray) -> Samples:
        seen = self._blocks.values[:, ~self._blocks.void]
        looked_at = np.where(np.arange(seen.shape[1]) < self._looked_at[:, None], seen, np.nan)
        largest = float(np.nanmax(np.abs(looked_at), initial=0.0))
        return Samples.of(values, largest, usual_step(looked_at))

    def _differences(self, leader: int, others: IntArray) -> Samples:
        """Return the leader's differences to others; in blocks, within the same ones."""
        arms = np.append(leader, others)
        if self._in_blocks:
            values = self._blocks.first_values(arms, int(self._looked_at[leader]))
            return self._samples(values[0] - values[1:])
        own = self._at_look(arms)
        return Samples(
            counts=own.counts[1:],
            means=own.means[0] - own.means[1:],
            variances=own.variances[0] + own.variances[1:],
            steps=own.steps[0] + own.steps[1:],
            hidden=own.hidden[0] + own.hidden[1:],
        )

    def _radii(self, size: int, samples: Samples, shares: int, of_two: bool = False) -> FloatArray:
        """Return one-sided radii for the means of samples, or for differences of two.

        The level of the look with so many values is divided equally.
        """
        look = (size // self._first_look).bit_length()
        level = self.delta / (2.0**look * shares)
        counts = samples.counts
        if look <= self._looks_given_up:
            return np.full(counts.shape, np.inf)
        if self._sigma is not None:
            times = 2.0 if of_two else 1.0
            width = self._sigma * math.sqrt(2.0 * times * math.log(1.0 / level) / size)
            return np.full(counts.shape, width)
        quantiles = -stdtrit(np.maximum(counts - 1, 1), level)
        variances = samples.variances + samples.hidden_at(level)
        radii = quantiles * np.sqrt(variances / np.maximum(counts, 1))
        return np.where(counts >= LEAST_FIRST_LOOK, radii, np.inf)

    def _lead(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the others, the leader's lead, and its radius, infinite if not compared."""
        leader = self._leader
        others = self.active[self.active != leader]
        ahead, radii = np.zeros(len(others)), np.full(len(others), np.inf)
        if leader is None:
            return others, ahead, radii
        size = int(self._looked_at[leader])
        compared = self._looked_at[others] == size
        if compared.any():
            differences = self._differences(leader, others[compared])
            ahead[compared] = differences.means
            radii[compared] = self._radii(size, differences, self.problem.n_arms - 1, of_two=True)
        return others, ahead, radii

    @property
    def behind(self) -> float:
        """The tolerance that holds: no other arm is better than the last look's leader by more.

        It is infinite before the first look, and once that leader has left the race.
        """
        _, ahead, radii = self._lead()
        return math.inf if self._leader is None else float((radii - ahead).max(initial=0.0))

    # Answers.

    def _surest_arm(self) -> int:
        active = self.active
        if self._leader is not None:
            return self._leader
        seen = active[self._evidence.counts[active, self.problem.target] > 0]
        if not seen.size or not (self.looks or self._all_were_used):
            return int(np.append(seen, active)[0])
        return int(seen[np.argmax(self._evidence.means(seen, self.problem.target))])

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and radius of an arm's values; at the target, of its last look."""
        size = int(self._looked_at[arm])
        if fidelity != self.problem.target or not size or self._roster.withdrawn[arm]:
            return *super().summary(arm, fidelity)[:2], math.inf
        sample = self._at_look(np.array([arm]))
        [radius] = self._radii(size, sample, 2 * self.problem.n_arms).tolist()
        [count], [mean] = sample.counts.tolist(), sample.means.tolist()
        return count, mean if count else math.nan, radius

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on the arm's mean at the target, valid at all looks with the others."""
        _, mean, radius = self.summary(arm, self.problem.target)
        return mean - radius, mean + radius

    def _reason(self, arm: int | None) -> str:
        reason = super()._reason(arm)
        if arm is None or self.winner is not None:
            return reason
        look = f"look is after {self._size(self.looks)} evaluations of each"
        if self._all_were_used:
            return reason
        if not self.looks:
            return f"nothing can be said yet; the first {look}"
        if self._evidence.noise.unaudited:
            reason = "too few repeats to see whether the declared sigma is too small"
        return f"{reason}; the next {look}"

    @property
    def _end(self) -> str:
        if self._all_were_used:
            return f"a further look takes more than the {self._most_values:g} replicates"
        return super()._end

    def _assumptions(self) -> tuple[str, ...]:
        about = f"{self._blocks.words}; " if self._in_blocks else ""
        looks = f"{about}looks after {self._size(0)}, {self._size(1)}, ... evaluations of each"
        return looks, *super()._assumptions()

    def _remaining_cost(self, leader: int | None) -> float | None:
        """Guess the remaining cost: radii shrink as the root of the count, the lead stays."""
        _, ahead, radii = self._lead()
        if self.winner is not None or leader is None or self._epsilon is None:
            return None
        worst = int(np.argmax(radii - ahead))
        radius = float(radii[worst])
        if not math.isfinite(radius):
            return None
        lead = min(float(ahead[worst]), radius) + self.epsilon
        if lead <= _ROUNDING * radius:
            return math.inf
        looks = max(1, math.ceil(2.0 * math.log2(max(1.0, radius / lead))))
        size = self._size(self.looks - 1 + looks)
        if size > self._most_values:
            return math.inf
        missing = size - self._expected()[self.active]
        return float(np.maximum(missing, 0).sum()) * self._cost_of(self.problem.target)

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        return {**super().state_dict(), "blocks": self._blocks.state_dict()}

    def _load_details(self, state: Mapping[str, Any]) -> None:
        self._blocks.load_state_dict(state["blocks"])
