"""Values of arms in blocks, such as splits of the data: what the arms have in common cancels out.

The model is arm + block + noise. In each round all arms of a set are evaluated in a block that is
new to them, and two arms are compared by their differences in the blocks that they share.

Why it is valid. The set of a round depends on earlier rounds alone. So the differences of one pair
are independent draws of one distribution, however long the pair takes part. Blocks that are added
because a winner did badly there can only speak against it. If the differences are normal, the
evidence of `mfhpo.knowledge.studentised` needs nothing else.

That takes four or five rounds where the noise is small. So with part of the error probability a
pair may be told apart by evidence that takes in the squares of all other arms: what is left of
their values without the effects of arms and blocks. This supposes that noise is independent between
arms, and that the pair's differences spread at most `MOST_RATIO_OF_PAIRS` times as much as those of
any others. The squares, times the square of that, then belong to a noise that is at least as large.
Those of round r around the means before it have the weight (r - 1) / r, and count for as many
degrees of freedom. Those of the second round count in full, since all arms take part in it. A pair
is judged by its own differences alone if it has fewer than three, or had to catch up, or spreads
more by a strict test: of pairs that spread exactly so much it excludes 30 %.
"""

import math
from collections.abc import Collection, Iterator
from functools import lru_cache
from numbers import Integral

import numpy as np

from mfhpo.identification.likelihood.ties import Samples
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.studentised import log_evidence_with_others, spread_more
from mfhpo.problem import Observation, Pull
from mfhpo.racing.rule import Known, Roster

# Evaluations of an arm in a block that may fail: the second one is a retry.
_MOST_FAILURES = 2

# Of the error probability, the share of evidence with the squares of others, its rho, and how many
# values of the pair's own it needs.
_WITH_OTHERS = 0.3
_PRIOR_WITH_OTHERS = 0.1
_LEAST_VALUES = 3

# Probability with which a pair whose spread is as large as it may be is taken to spread more.
_CONTRADICTED = 0.3

_STREAM = 1  # of random numbers, apart from others that are drawn from a seed and a number

PRIOR = 0.05
"""The rho of evidence by a pair's own differences."""

LEAST_ARMS = 4
"""The arms of a race where others may say what noise is usual: two besides the pair."""

MOST_RATIO_OF_PAIRS = 2.0
"""The largest ratio of two pairs' spreads; 2 is that of an arm that spreads 2.6 times as much."""

BLOCK_CONDITIONS = (
    "replicates are drawn independently",
    "the differences of configurations on the same one are normal",
    "the place in the order of evaluations on it affects all configurations alike",
)
"""What must be true for a certificate that compares arms in blocks."""


class Blocks:
    """The values of K arms in blocks, and what complete rounds say about pairs of arms.

    A replicate may be bad for everybody. An arm that fails in a block where nobody has a value
    waits until another one has a value there. If all arms that are compared have failed there, the
    block is void for good. Such failures make no arm leave, unless void blocks alone are too many.

    An arm that fails in a block where another has a value is evaluated there once more. After a
    second failure it has no value there for good. Both count as one failure: a replicate is no
    worse for being tried twice.

    Without `in_blocks`, an arm's n-th value is kept as if in the n-th block. With `in_order`, the
    race learns values by block, without a gap: what takes long may be poor.
    """

    def __init__(self, n_arms: int, in_blocks: bool = True, in_order: bool = False) -> None:
        self.in_blocks = in_blocks
        self.in_order = in_order
        # By arm and block, (K, B): values, NaN where there is none; failures, at most two.
        self.values: FloatArray = np.full((n_arms, 0), np.nan)
        self.failed: IntArray = np.zeros((n_arms, 0), dtype=np.int64)
        self.again: dict[tuple[int, int], float | None] = {}  # second values, None for failures
        self.void: BoolArray = np.zeros(0, dtype=bool)  # blocks that take no part, (B,)
        # The blocks of complete rounds, and by how much each arm's value there is above its mean
        # before, (K,), NaN if it lacks one of these values.
        self.rounds: list[int] = []
        self.errors: list[FloatArray] = []

    def accept(self, known: Known, pull: Pull, observation: Observation) -> bool:
        """Note an evaluation (see `Intake.accept`); the first value in each block counts."""
        if self.in_blocks and (not isinstance(pull.block, Integral) or pull.block < 0):
            raise ValueError(
                f"block must be at least 0, got {pull.block!r}: tell the pull as asked."
            )
        arm, value = int(pull.arm), observation.value
        at_target = pull.fidelity == known.problem.target
        block = self.first_open(arm) if pull.block is None or not self.in_blocks else pull.block
        counts = at_target and exists(known, block)
        if counts and self.in_order and known.most_blocks is not None and block in self.seen(arm):
            self.again[arm, block] = value if observation.has_value else None
            return True
        if value is None or not observation.has_value:
            if counts and self.in_blocks:
                self._reach(block)
                self.failed[arm, block] = min(self.failed[arm, block] + 1, _MOST_FAILURES)
            return True
        is_new = counts and self.add(arm, block, float(value))
        return is_new or not (self.in_blocks or at_target)

    def due(self, known: Known, arm: int) -> Iterator[float]:
        """Yield the values that follow those that the race knows (see `Intake.due`)."""
        counts = known.evidence.counts
        while True:
            n = int(counts[arm, known.problem.target])
            value = self.values[arm, ~(self.void | self.given_up[arm])][n : n + 1]
            if not value.size or np.isnan(value[0]):  # an earlier one may still come
                return
            yield float(value[0])

    def most_values(self, known: Known) -> float:
        """Return how many values an arm may have."""
        most = known.most_blocks
        return (math.inf if most is None else most) - int(self.void[:most].sum())

    def add(self, arm: int, block: int, value: float) -> bool:
        """Note a value; False if the arm has one there or was given up, or the block is void."""
        self._reach(block)
        if self.void[block] or self.settled[arm, block]:
            return False
        self.values[arm, block] = value
        return True

    def _reach(self, block: int) -> None:
        if (n_blocks := self.values.shape[1]) <= block:
            more = max(block + 1 - n_blocks, n_blocks, 8)
            self.values = np.pad(self.values, ((0, 0), (0, more)), constant_values=np.nan)
            self.failed = np.pad(self.failed, ((0, 0), (0, more)))
            self.void = np.pad(self.void, (0, more))

    @property
    def _empty(self) -> BoolArray:
        return np.asarray(np.isnan(self.values).all(axis=0))

    @property
    def given_up(self) -> BoolArray:
        """Where an arm failed so often that it has no value for good, shape (K, B)."""
        return np.asarray((self.failed >= _MOST_FAILURES) & np.isnan(self.values))

    @property
    def settled(self) -> BoolArray:
        """Where an arm has a value or will have none, shape (K, B)."""
        return np.asarray((self.failed >= _MOST_FAILURES) | ~np.isnan(self.values))

    def set_aside(self, arms: IntArray) -> bool:
        """Make blocks void where all these arms failed and nobody has a value; if any is new."""
        failed = self.failed[arms] > 0
        new = ~self.void & self._empty & failed.any(axis=0) & failed.all(axis=0)
        self.void |= new
        return bool(new.any())

    def doubtful(self) -> IntArray:
        """Return the blocks with failures and no value so far, shape (n,)."""
        return np.flatnonzero(~self.void & self._empty & self.failed.any(axis=0))

    def failures_of(self, arm: int) -> int:
        """Return how many blocks with any value, or else void ones, an arm failed in."""
        failed = self.failed[arm] > 0
        return max(int(failed[~self._empty].sum()), int(failed[self.void].sum()))

    def closed(self, arms: IntArray | int) -> BoolArray:
        """Return where these arms are not evaluated (again), shape (n, B), or (B,) for one arm."""
        waits = (self.failed[arms] > 0) & self._empty
        return np.asarray(self.settled[arms] | waits | self.void)

    def first_values(self, arms: IntArray, n: int) -> FloatArray:
        """Return the arms' values in the first n blocks that are not void, shape (len(arms), n)."""
        return np.asarray(self.values[arms][:, np.flatnonzero(~self.void)[:n]])

    def in_words(self, n_replicates: int | None = None) -> str:
        """Return what the claim is about; `n_replicates` of a finite set."""
        n_void = int(self.void.sum())
        left_out = f", without {n_void} on which every evaluation failed" if n_void else ""
        lacking = "; two arms are compared on those where both gave a value"
        given_up = lacking if self.given_up.any() else ""
        those = "replicates" if n_replicates is None else f"these {n_replicates} replicates"
        return f"the mean over {those}, which the arms shared{left_out}{given_up}"

    def seen(self, arm: int) -> IntArray:
        """Return the blocks in which an arm has a value, in their order, shape (n,)."""
        return np.flatnonzero(~np.isnan(self.values[arm]))

    @property
    def n_values(self) -> IntArray:
        """How many values each arm has, shape (K,)."""
        return np.asarray((~np.isnan(self.values)).sum(axis=1))

    def first_open(self, arm: int, taken: Collection[int] = ()) -> int:
        """Return the first block open for the arm and not `taken`; complete rounds come first."""
        closed = np.zeros(self.values.shape[1] + len(taken) + 1, dtype=bool)
        closed[: self.values.shape[1]] = self.closed(arm)
        closed[[block for block in taken if block < len(closed)]] = True
        rounds = np.array(self.rounds, dtype=np.int64)
        missed = rounds[~closed[rounds]]
        return int(missed[0]) if missed.size else int(np.argmin(closed))

    def place(self, block: int) -> int:
        """Return a block's place: complete rounds come first, so that arms catch up with them."""
        rounds = self.rounds
        return rounds.index(block) if block in rounds else len(rounds) + block

    @property
    def next_round(self) -> int:
        """The first block that is of no complete round and not void."""
        done = np.append(self.void, np.zeros(len(self.rounds) + 1, dtype=bool))
        done[self.rounds] = True
        return int(np.argmin(done))

    def counts(self) -> IntArray:
        """Return how many first rounds are settled for each arm, without a gap, shape (K,)."""
        settled = self.settled[:, self.rounds]
        return np.asarray(np.cumprod(settled, axis=1, dtype=np.int64).sum(axis=1))

    def complete_round(self, block: int, arms: IntArray) -> None:
        """Take in the next round, whose block is complete for these arms, as all before."""
        arms = arms[~np.isnan(self.values[arms][:, [*self.rounds, block]]).any(axis=1)]
        errors = np.full(len(self.values), np.nan)
        before = self.values[arms][:, self.rounds].mean(axis=1) if self.rounds else 0.0
        errors[arms] = self.values[arms, block] - before
        self.rounds.append(block)
        self.errors.append(errors)

    def standings(self, arms: IntArray, blocks: Collection[int]) -> FloatArray:
        """Return the arms' means, (n,), without each block's mean if any value is missing."""
        values = self.values[arms][:, list(blocks)]
        present = ~np.isnan(values)
        if not present.all():
            sums = np.where(present, values, 0.0).sum(axis=0)
            values = values - sums / np.maximum(present.sum(axis=0), 1)
        counts = present.sum(axis=1)
        means = np.where(present, values, 0.0).sum(axis=1) / np.maximum(counts, 1)
        return np.where(counts > 0, means, -np.inf)

    def lost_leader(self, roster: Roster, missing: IntArray, winner: int) -> int | None:
        """Return an arm that left for failures, and is better in shared blocks, or led then."""
        for arm in np.flatnonzero(roster.withdrawn & missing.any(axis=1)).tolist():
            differences = self.values[arm] - self.values[winner]
            shared = differences[~np.isnan(differences)]
            if shared.mean() > 0.0 if shared.size else roster.led[arm]:
                return int(arm)
        return None

    def evidence(self, leader: int, others: IntArray, epsilon: float, wanted: float) -> FloatArray:
        """Compute the evidence against others being better by epsilon (see `Samples.evidence`)."""
        samples = self._differences(leader, others)
        found = samples.evidence(epsilon, wanted, PRIOR)
        told = np.isfinite(found)
        if not told.any() or len(self.values) < LEAST_ARMS:
            return found
        gaps, counts = samples.means[told] + epsilon, samples.counts[told].astype(float)
        squares = samples.squares_at(wanted)[told]
        of_others, degrees = self._squares_of_others(leader, others[told])
        # A difference of two arms has twice the variance of one arm's noise.
        of_others *= 2.0 * MOST_RATIO_OF_PAIRS**2
        spread = spread_more(squares, samples.counts[told] - 1, of_others, degrees, _CONTRADICTED)
        # Where values are equal nobody knows how much noise the others' squares hide.
        degrees[spread | (counts < _LEAST_VALUES) | (samples.hidden[told] > 0.0)] = 0.0
        with_others = log_evidence_with_others(
            gaps, counts, squares, of_others, degrees, _PRIOR_WITH_OTHERS
        )
        by_own = found[told] + math.log(1.0 - _WITH_OTHERS)
        found[told] = np.maximum(by_own, with_others + math.log(_WITH_OTHERS))
        return found

    def _differences(self, leader: int, others: IntArray) -> Samples:
        values, shared = self.values[:, self.rounds], self.counts()
        numbers = np.arange(len(self.rounds))
        within = numbers < np.minimum(shared[others], shared[leader])[:, None]
        differences = np.where(within, values[leader] - values[others], np.nan)
        own_values = np.where(numbers < shared[:, None], values, np.nan)
        return Samples.of(differences, own_values)

    def _squares_of_others(self, leader: int, others: IntArray) -> tuple[FloatArray, FloatArray]:
        """Sum up the squares of all arms but the leader and each of these, and their degrees, (n,).

        The degrees are 0 for pairs of which one did not take part in all rounds.
        """
        took_part = np.asarray(~np.isnan(self.errors))
        errors = np.where(took_part, self.errors, 0.0)

        def without_pair(terms: FloatArray) -> FloatArray:
            return np.asarray(terms.sum(axis=1)[:, None] - terms[:, [leader]] - terms[:, others])

        sizes = without_pair(took_part.astype(float))
        squares = without_pair(errors**2) - without_pair(errors) ** 2 / np.maximum(sizes, 1.0)
        before = np.arange(len(errors))
        weights = before / (before + 1.0)
        credits = np.where(before == 1, 1.0, weights)
        always = np.asarray(took_part.all(axis=0))
        degrees = np.where(
            always[leader] & always[others], credits @ np.maximum(sizes - 1.0, 0.0), 0.0
        )
        return weights @ np.maximum(squares, 0.0), degrees


def remaining_cost(
    known: Known, evidence: FloatArray, counts: FloatArray | IntArray, prior: float, most: float
) -> float | None:
    """Guess what it takes until the evidence against all others, after `counts` values, suffices.

    What the average over effects costs is paid once, and the rest of the evidence grows about as
    the counts do, of which there may be `most`. The leader takes part in all comparisons.
    """
    spent = np.log1p(counts / prior) / 2.0
    gained = evidence + spent
    if not gained.size or (math.isinf(most) and not (gained > 0.0).all()):
        return None
    more = counts * np.maximum((known.threshold + spent) / np.maximum(gained, 1e-9) - 1.0, 0.0)
    more = np.minimum(more, most - counts)
    return float(more.sum() + more.max()) * float(known.spending.all()[-1])


def exists(known: Known, block: int) -> bool:
    """Tell whether there is a replicate for a block."""
    return known.most_blocks is None or block < known.most_blocks


def first_in_turn(known: Known, arms: IntArray, block: int) -> int:
    """Return the arm whose turn is first in a block.

    The order is random, by the seed, and reversed in every second block. So a bonus for the first
    evaluation, such as a cache that the others find filled or empty, favours nobody.
    """
    turns = _turns(known.seed, known.problem.n_arms, block // 2)[arms]
    return int(arms[np.argmax(turns) if block % 2 else np.argmin(turns)])


@lru_cache(maxsize=512)
def _turns(seed: int, n_arms: int, pair_of_blocks: int) -> IntArray:
    """Return each arm's turn, shape (K,)."""
    turns = np.random.default_rng([seed, pair_of_blocks, _STREAM]).permutation(n_arms)
    turns.setflags(write=False)
    return turns
