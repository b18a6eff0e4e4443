"""Plays of MF-UCB, fast: among a few candidates, in a loop that numba can compile."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.simulation.compiled import compiled as compile_loop
from benchmarks.simulation.mf_ucb_loop import DRAWS, SPENT, STALE, play_candidates
from benchmarks.simulation.sums import RunningSums, capital_of, take_sums
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.regret import MFUCB

Kernel: TypeAlias = Callable[..., tuple[int, int, int, float, int]]

# The fewest candidates that the inner loop of a block looks at.
_CANDIDATES = 16
# The candidates are chosen for so many plays, or for this share of the plays so far.
_HORIZON_AT_LEAST, _HORIZON_SHARE = 64, 256
# Values that are drawn at once for one arm and fidelity.
_FEWEST_DRAWS, _MOST_DRAWS = 16, 256


def play(
    policy: MFUCB,
    running_sums: RunningSums,
    capital: float | None = None,
    *,
    compiled: bool = True,
    order: list[IntArray] | None = None,
) -> None:
    """Play until the next play would exceed the capital: the same as ask and tell, but fast.

    Parameters
    ----------
    running_sums
        Source of the values (see `benchmarks.simulation.instances.Instance.running_sums`).
    capital
        Largest total cost, as well as the budget; None: the budget. It has no part in the
        choice of plays: playing on with more capital is the same as having had it at once.
    compiled
        Whether numba compiles the inner loop where it is installed; the plays are the same.
    order
        If given, arrays are appended that number the plays, arm * M + fidelity, in order.

    Raises
    ------
    ValueError
        If something has to be found out by a pilot, or neither capital nor budget is given.
    """
    limit = capital_of(policy, capital)
    if policy.active.size:
        kernel = compile_loop(play_candidates) if compiled else play_candidates
        _Block(policy, kernel, limit).run(running_sums, order)


class _Block:
    """The arrays of a block of plays."""

    def __init__(self, policy: MFUCB, kernel: Kernel, limit: float) -> None:
        assert policy.problem.costs is not None
        self._policy, rule = policy, policy.rule
        self._kernel = kernel
        self._plain = kernel is play_candidates
        self._limit = limit
        self._arms = policy.active
        self._counts = policy.known.evidence.counts.copy()
        arms, fidelities = np.arange(policy.problem.n_arms), range(policy.problem.n_fidelities)
        sums = [policy.known.evidence.sums[arms, m] for m in fidelities]
        self._sums = np.stack(sums, axis=1)
        self._centres, self._slopes = rule.terms(policy.known, policy.known.evidence.counts)
        self._costs = np.array(policy.problem.costs)
        per_fidelity = (rule.zeta, rule.widths(policy.known), rule.gamma, self._costs)
        self._per_fidelity = [self._given(array) for array in per_fidelity]
        cells = self._counts.size
        self._values: FloatArray = np.zeros((cells, _MOST_DRAWS))
        self._used: IntArray = np.zeros(cells, dtype=np.int64)
        self._filled: IntArray = np.zeros(cells, dtype=np.int64)

    def _given(self, array: npt.NDArray[Any]) -> Any:
        """An array as the inner loop wants it."""
        return array.tolist() if self._plain else array

    def run(self, running_sums: RunningSums, order: list[IntArray] | None) -> None:
        """Play, and let the policy know."""
        policy = self._policy
        pulls, cost = int(self._counts.sum()), policy.cost
        reason, keep = STALE, _CANDIDATES
        while reason != SPENT:
            horizon = pulls + 1 + max(_HORIZON_AT_LEAST, pulls // _HORIZON_SHARE)
            reason, pulls, cost, played = self._play(running_sums, keep, pulls, cost, horizon)
            if order is not None:
                order.append(played)
            # Too few candidates are outdated before the horizon; too many take time.
            keep = 2 * keep if pulls < horizon else max(_CANDIDATES, keep - keep // 8)
        everyone = np.arange(policy.problem.n_arms)
        for m in range(policy.problem.n_fidelities):
            take_sums(policy, everyone, m, self._counts[:, m], self._sums[:, m])
        # As the loop has summed it, play by play.
        policy.known.spending.paid = cost

    def _play(
        self, running_sums: RunningSums, keep: int, pulls: int, cost: float, horizon: int
    ) -> tuple[int, int, float, IntArray]:
        root = math.sqrt(math.log(horizon))
        ceilings = (self._centres + self._slopes * root).min(axis=1)[self._arms]
        kept, excluded = np.arange(len(self._arms)), -math.inf
        if keep < len(self._arms):
            ranks = np.argpartition(-ceilings, keep)
            kept, excluded = np.sort(ranks[:keep]), float(ceilings[ranks[keep]])
        arms = self._arms[kept]
        arrays = (self._counts, self._sums, self._centres, self._slopes)
        rows = [self._given(array[arms].ravel()) for array in arrays]
        state = [self._given(arms), *rows, self._given(ceilings[kept]), *self._per_fidelity]
        order = np.empty(horizon - pulls, dtype=np.int64)
        reason, played = DRAWS, 0
        while reason == DRAWS:
            reason, place, pulls, cost, played = self._kernel(
                *state,
                self._values,
                self._used,
                self._filled,
                order,
                played,
                pulls,
                cost,
                self._limit,
                horizon,
                excluded,
            )
            if reason == DRAWS:
                self._draw(running_sums, place, kept=arms, sums=rows[1], counts=rows[0])
        for array, row in zip(arrays, rows, strict=True):
            array[arms] = np.reshape(row, (len(arms), -1))
        return reason, pulls, cost, order[:played]

    def _draw(
        self, running_sums: RunningSums, place: int, kept: IntArray, sums: Any, counts: Any
    ) -> None:
        """Provide the next values of a cell: as many as it has had, within limits."""
        arm, fidelity = divmod(place, self._counts.shape[1])
        cell = int(np.searchsorted(kept, arm)) * self._counts.shape[1] + fidelity
        count = int(counts[cell])
        size = min(_MOST_DRAWS, max(_FEWEST_DRAWS, count))
        self._values[place, :size] = running_sums(
            np.array([arm]),
            fidelity,
            count,
            np.array([sums[cell]]),
            np.arange(count + 1, count + size + 1),
        )[0]
        self._used[place] = 0
        self._filled[place] = size
