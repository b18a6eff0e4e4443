"""Values of arms in blocks, such as splits of the data: what the arms have in common cancels out.

The model is arm + block + noise. In each round all arms of a set are evaluated in a block that is
new to them. Two arms are compared by their differences in the blocks that they share, which leaves
the block's effect out. What differences vary by is learned from all arms: the squares that are left
when arms and blocks are accounted for.

Why it is valid for normal noise of one variance, besides what `mfhpo.knowledge.studentised` says.
The set of a round depends on earlier rounds alone. Given these, the differences of a round are
normal whatever the block's effect is, and the difference of one pair is independent of the
differences that are orthogonal to it. Of r rounds, the squares of the last one around the means of
those before have the weight (r - 1) / r and count for as many degrees of freedom, but for the first
two, which all arms take part in, in full. Arms that lack a value in any round have no part in these
squares, since the effects of blocks would not cancel out.

Differences that are equal prove nothing: see `mfhpo.identification.likelihood.ties`.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from mfhpo.identification.likelihood.agreement import agreement
from mfhpo.identification.likelihood.one_sided import Pairs
from mfhpo.identification.likelihood.ties import Samples, usual_step
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.racing.roster import Roster

# Evaluations of an arm in a block that may fail: the second one is a retry.
_MOST_FAILURES = 2

BLOCK_CONDITIONS = (
    "replicates are drawn independently",
    "the differences of configurations on the same one are normal",
    "the place in the order of evaluations on it affects all configurations alike",
)
"""What must be true for a certificate that compares arms in blocks."""


class Blocks:
    """The values of K arms in blocks, and what complete rounds say of pairs of arms.

    Attributes
    ----------
    values
        Of every arm in every block, NaN where there is none, shape (K, B).
    failed, void
        How often an arm failed in a block, at most twice, shape (K, B), and the blocks that take no
        part for good, shape (B,): see `set_aside`.
    rounds, members, squares
        Of each complete round: its block, the arms with values in it and all before, and the
        squares that arms and blocks do not explain.
    """

    def __init__(self, n_arms: int) -> None:
        self.values: FloatArray = np.full((n_arms, 0), np.nan)
        self.failed: IntArray = np.zeros((n_arms, 0), dtype=np.int64)
        self.void: BoolArray = np.zeros(0, dtype=bool)
        self.rounds: list[int] = []
        self.members: list[list[int]] = []
        self.squares: list[float] = []

    def add(self, arm: int, block: int, value: float) -> bool:
        """Note a value; False if the arm has one there or was given up, or the block is void."""
        self._reach(block)
        if self.void[block] or self.settled[arm, block]:
            return False
        self.values[arm, block] = value
        return True

    def fail(self, arm: int, block: int) -> None:
        """Note a failure."""
        self._reach(block)
        self.failed[arm, block] = min(self.failed[arm, block] + 1, _MOST_FAILURES)

    def _reach(self, block: int) -> None:
        n_blocks = self.values.shape[1]
        if block >= n_blocks:
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
        """Make blocks void in which all these arms failed and nobody has a value; if any is new."""
        failed = self.failed[arms] > 0
        new = ~self.void & self._empty & failed.any(axis=0) & failed.all(axis=0)
        self.void |= new
        return bool(new.any())

    def doubtful(self) -> IntArray:
        """The blocks in which some arm failed and nobody has a value so far, shape (n,)."""
        return np.flatnonzero(~self.void & self._empty & self.failed.any(axis=0))

    def failures_of(self, arm: int) -> tuple[int, int]:
        """In how many blocks with any value, and in how many void ones, an arm failed."""
        failed = self.failed[arm] > 0
        return int(failed[~self._empty].sum()), int(failed[self.void].sum())

    def closed(self, arms: IntArray | int) -> BoolArray:
        """Where these arms are not evaluated (again), shape (n, B), or (B,) for one arm.

        An arm that failed waits until another has a value there: the block may be to blame.
        """
        waits = (self.failed[arms] > 0) & self._empty
        return np.asarray(self.settled[arms] | waits | self.void)

    def first_values(self, arms: IntArray, n: int) -> FloatArray:
        """The values of arms in the first n blocks that are not void, shape (len(arms), n)."""
        return np.asarray(self.values[arms][:, np.flatnonzero(~self.void)[:n]])

    def value_after(self, arm: int, n: int) -> float | None:
        """The arm's value that follows its first n, unless one before it may still come."""
        value = self.values[arm, ~(self.void | self.given_up[arm])][n : n + 1]
        return None if not value.size or np.isnan(value[0]) else float(value[0])

    @property
    def words(self) -> str:
        """What the claim is about."""
        n_void = int(self.void.sum())
        left_out = f", without {n_void} on which every evaluation failed" if n_void else ""
        lacking = "; two arms are compared on those where both gave a value"
        given_up = lacking if self.given_up.any() else ""
        return f"the mean over replicates, which the arms shared{left_out}{given_up}"

    def seen(self, arm: int) -> IntArray:
        """The blocks in which an arm has a value, in their order, shape (n,)."""
        return np.flatnonzero(~np.isnan(self.values[arm]))

    @property
    def n_values(self) -> IntArray:
        """How many values each arm has, shape (K,)."""
        return np.asarray((~np.isnan(self.values)).sum(axis=1))

    @property
    def n_settled(self) -> IntArray:
        """In how many blocks each arm has a value or will have none, shape (K,)."""
        return np.asarray(self.settled.sum(axis=1))

    def first_open(self, arm: int, taken: Collection[int] = ()) -> int:
        """The first block that is open for the arm, of complete rounds if there is one.

        Those `taken` are not meant.
        """
        closed = np.zeros(self.values.shape[1] + len(taken) + 1, dtype=bool)
        closed[: self.values.shape[1]] = self.closed(arm)
        closed[[block for block in taken if block < len(closed)]] = True
        rounds = np.array(self.rounds, dtype=np.int64)
        missed = rounds[~closed[rounds]]
        return int(missed[0]) if missed.size else int(np.argmin(closed))

    def place(self, block: int) -> int:
        """When a block's turn is: complete rounds come first, so that arms catch up with them."""
        rounds = self.rounds
        return rounds.index(block) if block in rounds else len(rounds) + block

    @property
    def next_round(self) -> int:
        """The first block that is of no complete round and not void."""
        done = np.append(self.void, np.zeros(len(self.rounds) + 1, dtype=bool))
        done[self.rounds] = True
        return int(np.argmin(done))

    def is_complete(self, arms: IntArray, block: int) -> bool:
        """Whether all these arms have values in a block, but for those that will have none."""
        return block < self.values.shape[1] and bool(self.settled[arms, block].all())

    def counts(self) -> IntArray:
        """How many of the first rounds are settled for each arm, without a gap, shape (K,)."""
        settled = self.settled[:, self.rounds]
        return np.asarray(np.cumprod(settled, axis=1, dtype=np.int64).sum(axis=1))

    def complete_round(self, block: int, arms: IntArray) -> None:
        """Take in the next round, whose block is complete for these arms, as all before."""
        arms = arms[~np.isnan(self.values[arms][:, [*self.rounds, block]]).any(axis=1)]
        done = len(self.rounds)
        squares = 0.0
        if done and len(arms):
            errors = self.values[arms, block] - self.means(arms)
            squares = float(((errors - errors.mean()) ** 2).sum()) * done / (done + 1)
        self.rounds.append(block)
        self.members.append(arms.tolist())
        self.squares.append(squares)

    def means(self, arms: IntArray) -> FloatArray:
        """Means over the complete rounds, for arms that have values in all of them, shape (n,)."""
        return np.asarray(self.values[arms][:, self.rounds].mean(axis=1))

    def are_alike(self, arms: IntArray, least: int) -> bool:
        """Return whether these arms have had exactly the same values in all rounds, and so many."""
        n_rounds = len(self.rounds)
        if n_rounds < least or self.counts()[arms].min() < n_rounds:
            return False
        values = self.values[arms][:, self.rounds]
        return bool((np.isnan(values) | (values == np.fmax.reduce(values, axis=0))).all())

    def standings(self, arms: IntArray, blocks: Collection[int]) -> FloatArray:
        """The arms' means over blocks, shape (n,), -inf without a value there.

        If any lacks a value, they are means of what is left without the mean of each block.
        """
        values = self.values[arms][:, list(blocks)]
        present = ~np.isnan(values)
        if not present.all():
            sums = np.where(present, values, 0.0).sum(axis=0)
            values = values - sums / np.maximum(present.sum(axis=0), 1)
        counts = present.sum(axis=1)
        means = np.where(present, values, 0.0).sum(axis=1) / np.maximum(counts, 1)
        return np.where(counts > 0, means, -np.inf)

    def lost_leader(self, roster: Roster, failures: IntArray, winner: int) -> int | None:
        """An arm that left for its failures, and is better than the winner where both have values.

        Where they share no block, it is one that led when it left.
        """
        for arm in np.flatnonzero(roster.withdrawn & failures.any(axis=1)).tolist():
            differences = self.values[arm] - self.values[winner]
            shared = differences[~np.isnan(differences)]
            if shared.mean() > 0.0 if shared.size else roster.led[arm]:
                return int(arm)
        return None

    def evidence(
        self, leader: int, others: IntArray, epsilon: float, prior: float, wanted: float
    ) -> FloatArray:
        """Evidence against others being better than the leader by epsilon; see `Pairs.evidence`.

        It is minus infinity where nothing is known, or the other seems to be better.
        """
        values, shared = self.values[:, self.rounds], self.counts()
        compared = np.minimum(shared[others], shared[leader])
        differences = values[leader] - values[others]
        within = np.arange(len(self.rounds)) < compared[:, None]
        differences = np.where(within, differences, np.nan)
        both = ~np.isnan(differences)
        own_values = np.where(np.arange(len(self.rounds)) < shared[:, None], values, np.nan)
        largest = float(np.nanmax(np.abs(self.values), initial=0.0))
        samples = Samples.of(differences, largest, usual_step(own_values))
        variances, degrees = self._variances(leader, others, samples, both)
        # Each of the noise of an arm's values, of which a difference has two.
        variances = 2.0 * variances + samples.hidden_at(math.exp(-wanted))
        gaps = samples.means + epsilon
        known = (samples.counts > 0) & (degrees > 0.0) & np.isfinite(variances) & (variances > 0.0)
        told = (gaps > 0.0) & known
        found = np.full(len(others), -np.inf)
        if told.any():
            pairs = Pairs(
                gaps[told],
                samples.counts[None, told].astype(float),
                variances[None, told],
                degrees[told],
            )
            found[told] = pairs.evidence(prior, wanted)
        return found

    def _variances(
        self, leader: int, others: IntArray, differences: Samples, both: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """The noise's variance for pairs with these differences, and its degrees of freedom."""
        counts = differences.counts
        own = differences.variances * np.maximum(counts - 1, 0) / 2.0
        sizes = np.array([len(arms) for arms in self.members], dtype=np.float64)
        weights = np.arange(len(sizes)) / np.arange(1.0, len(sizes) + 1.0)
        weights[1:2] = 1.0
        # The difference of the two is left out where both took part when the round was complete,
        # and its squares if that was so in all that they share.
        members = np.zeros((len(sizes), len(self.values)), dtype=np.bool_)
        for row, arms in zip(members, self.members, strict=True):
            row[arms] = True
        took_part = (members[:, others] & members[:, [leader]]).T
        credits = np.maximum(sizes - 1.0 - took_part, 0.0) @ weights
        caught_up = (both & ~took_part).any(axis=1)
        of_others = np.maximum(sum(self.squares) - np.where(caught_up, 0.0, own), 0.0)
        shared = np.minimum(credits, self._agreement(leader))
        # Two arms are often equal up to a constant: their variance is then their own.
        shared = np.where(differences.constant, 0.0, shared)
        degrees = shared + np.maximum(counts - 1.0, 0.0)
        from_others = np.divide(of_others, credits, out=np.zeros(len(own)), where=credits > 0.0)
        total = np.where(shared > 0.0, np.where(np.isinf(shared), 0.0, shared) * from_others, 0.0)
        return (total + own) / np.maximum(degrees, 1e-300), degrees

    def _agreement(self, leader: int) -> float:
        """Return how far variances agree (see `mfhpo.identification.likelihood.agreement`).

        Those of the arms, and those of the leader's differences: arms that are alike in what they
        find hard differ less from each other than from the rest.
        """
        counts, values = self.counts(), self.values[:, self.rounds]
        present = (np.arange(len(self.rounds)) < counts[:, None]) & ~np.isnan(values)
        n_present = np.maximum(present.sum(axis=0), 1)
        blocks = np.where(present, values, 0.0).sum(axis=0) / n_present
        n_arms = float(n_present.max())
        squares = _squares(values - blocks, present) * n_arms / max(n_arms - 1.0, 1.0)
        paired = np.delete(present & present[leader], leader, axis=0)
        differences = np.delete(values[leader] - values, leader, axis=0)
        return min(
            agreement(squares, present.sum(axis=1)),
            agreement(_squares(differences, paired), paired.sum(axis=1)),
        )

    def state_dict(self) -> dict[str, Any]:
        """The values as nested lists, with None where there is none, and the complete rounds."""
        return {
            "failed": self.failed.tolist(),
            "void": self.void.tolist(),
            "values": [[None if math.isnan(v) else v for v in row] for row in self.values.tolist()],
            "rounds": list(self.rounds),
            "members": [list(arms) for arms in self.members],
            "squares": list(self.squares),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state."""
        self.values = np.array(state["values"], dtype=np.float64).reshape(len(self.values), -1)
        # States of earlier versions have no failures and void blocks.
        failed, void = state.get("failed", 0), state.get("void", False)
        self.failed = np.zeros(self.values.shape, dtype=np.int64) + np.array(failed, dtype=np.int64)
        self.void = np.zeros(self.values.shape[1], dtype=bool) | np.array(void, dtype=bool)
        self.members = [list(arms) for arms in state["members"]]
        self.rounds, self.squares = list(state["rounds"]), list(state["squares"])


def _squares(values: FloatArray, present: BoolArray) -> FloatArray:
    """Sums of squares around the means of what is present in each row, shape (n,)."""
    values = np.where(present, values, 0.0)
    means = values.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    return np.asarray((np.where(present, values - means[:, None], 0.0) ** 2).sum(axis=1))
