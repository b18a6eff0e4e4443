"""MF-UCB: the highest upper confidence bound, tightened by cheap fidelities.

Paper 000 (Kandasamy, Dasarathy, Schneider, Póczos, "The Multi-fidelity Multi-armed Bandit",
NeurIPS 2016): Algorithm 1 with Eq. 3 and 4.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_instance, check_positive
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import surest_at_target
from mfhpo.racing.native import compiled as compile_function
from mfhpo.regret.kernel import DRAWS, SPENT, STALE, play_candidates
from mfhpo.regret.reward import RewardPolicy, RunningSums

Kernel: TypeAlias = Callable[..., tuple[int, int, int, float, int]]

# The fewest candidates that the inner loop of a block looks at.
_CANDIDATES = 16
# The candidates are chosen for so many plays, or for this share of the plays so far.
_HORIZON_AT_LEAST, _HORIZON_SHARE = 64, 256
# Values that are drawn at once for one arm and fidelity.
_FEWEST_DRAWS, _MOST_DRAWS = 16, 256


class MFUCB(RewardPolicy):
    """Play the arm with the highest upper bound, at the cheapest fidelity still worth it.

    The upper bound of an arm is the smallest over the fidelities of mean + radius + zeta_m, where
    the radius is sigma sqrt(2 rho log t / s) after s of t plays, and zeta_m the bias bound. The arm
    is played at the cheapest fidelity whose radius is at least gamma_m = zeta_m sqrt(lambda_m /
    lambda_(m+1)). Bad arms are thus left at cheap fidelities.

    For the reward while it runs: every play earns its arm's target mean times its cost. It
    certifies nothing; to be sure of an answer race with `mfhpo.IISE`.

    Parameters
    ----------
    problem
        What is known. Bias bounds are those of kind "max". Bias, costs and sigma are found out by a
        pilot where they are not declared.
    rho, delta, budget, max_failures, pilot_arms, pilot_pulls
        See `mfhpo.racing.options.MFUCBOptions`.
    seed
        Chooses the pilot's arms.

    Raises
    ------
    ValueError
        For bias bounds of kind "order", and arguments out of range.

    Notes
    -----
    A pull under way counts as a play whose value is the arm's mean so far, so that several workers
    spread. Where an arm has no value yet, the highest mean at that fidelity stands in.

    Examples
    --------
    >>> from mfhpo import Bias, Observation, SubGaussian
    >>> problem = Problem(2, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian(0.1))
    >>> policy = MFUCB(problem, budget=200.0)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     policy.tell(pull, Observation(0.9 if pull.arm else 0.2))
    >>> policy.recommend().arm, policy.cost, policy.summary(0, 1)[0]
    (1, 200.0, 0)
    """

    def __init__(
        self,
        problem: Problem,
        *,
        rho: float = 2.0,
        delta: float = 0.05,
        budget: float | None = None,
        max_failures: int = 3,
        seed: int = 0,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        if problem.bias is not None and problem.bias.kind != "max" and problem.n_fidelities > 1:
            raise ValueError(
                "MFUCB needs bounds on every arm's own bias, got bias bounds of kind 'order'; "
                "declare Bias.max(...), or use MFElimination, which needs no bounds."
            )
        self.rho = check_positive("rho", rho, "; try 2")
        super().__init__(
            problem,
            delta=delta,
            budget=budget,
            max_failures=max_failures,
            pilot_arms=pilot_arms,
            pilot_pulls=pilot_pulls,
            seed=seed,
        )
        if not self._piloting:
            self._plan()

    def _estimates_bias(self) -> bool:
        return self.problem.n_fidelities > 1 and super()._estimates_bias()

    def _needs_pilot(self) -> bool:
        return self._estimates_bias() or super()._needs_pilot()

    def _plan(self) -> None:
        n_fidelities = self.problem.n_fidelities
        self._zeta = np.array(self.bias.bounds) if self.bias else np.zeros(n_fidelities)
        costs = self._planned_costs
        assert costs is not None
        self._gamma = np.full(n_fidelities, np.inf)
        dearer = self.problem.target
        for m in range(dearer - 1, -1, -1):
            # A fidelity that was measured to be no cheaper than a higher one is never played.
            if costs[m] < costs[dearer]:
                self._gamma[m] = self._zeta[m] * math.sqrt(costs[m] / costs[dearer])
                dearer = m

    def _widths(self) -> FloatArray:
        """Radius of one value, without the root of the logarithm of t, shape (M,)."""
        return self._sigmas() * math.sqrt(2.0 * self.rho)

    def _terms(self, counts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Centres and slopes of the upper bounds, (K, M); `counts` includes what is under way."""
        widths, told = self._widths(), self._evidence.counts
        seen = told > 0
        means = self._evidence.all_means(np.arange(self.problem.n_arms))
        centres = np.where(seen, means + self._zeta, np.inf)
        if counts is not told:
            unseen = ~seen.any(axis=1, keepdims=True) & (counts > told)
            highest = np.where(seen, means, -np.inf).max(axis=0)
            highest[np.isinf(highest)] = 0.0
            centres = np.where(unseen, highest + self._zeta, centres)
        slopes = np.where(counts > 0, widths / np.sqrt(np.maximum(counts, 1)), 0.0)
        return centres, slopes

    def _sums(self) -> FloatArray:
        arms = np.arange(self.problem.n_arms)
        fidelities = range(self.problem.n_fidelities)
        return np.stack([self._evidence.sums(arms, m) for m in fidelities], axis=1)

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        centres, slopes = self._terms(counts)
        root = math.sqrt(math.log(int(counts.sum()) + 1))
        arm = int(arms[np.argmax((centres[arms] + slopes[arms] * root).min(axis=1))])
        unsure = (counts[arm] == 0) | (slopes[arm] * root >= self._gamma)
        worthwhile = unsure & (self._gamma < np.inf)
        worthwhile[-1] = True
        return Pull(arm, int(np.argmax(worthwhile)))

    def _surest_arm(self) -> int:
        return surest_at_target(self._evidence, self.active, self.bias)

    @property
    def _purpose(self) -> str:
        return (
            "MF-UCB maximises the reward while it runs and certifies nothing; race for the best "
            "arm for a certificate"
        )

    def play(
        self,
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
            Source of the values (see `mfhpo.simulation.instances.Instance.running_sums`).
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
        limit = self._check_block(capital)
        if self._roster.active.any():
            kernel = compile_function(play_candidates) if compiled else play_candidates
            _Block(self, kernel, limit).run(running_sums, order)


class _Block:
    """The arrays of a block of plays."""

    def __init__(self, policy: MFUCB, kernel: Kernel, limit: float) -> None:
        assert policy.problem.costs is not None
        self._policy = policy
        self._kernel = kernel
        self._plain = kernel is play_candidates
        self._limit = limit
        self._arms = policy.active
        self._counts = policy._evidence.counts.copy()
        self._sums = policy._sums()
        self._centres, self._slopes = policy._terms(policy._evidence.counts)
        self._costs = np.array(policy.problem.costs)
        per_fidelity = (policy._zeta, policy._widths(), policy._gamma, self._costs)
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
        pulls, cost = int(self._counts.sum()), policy._cost
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
            policy._take_sums(everyone, m, self._counts[:, m], self._sums[:, m])
        # As the loop has summed it, play by play.
        policy._cost = cost

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
