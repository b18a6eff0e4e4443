"""The stop by likelihood ratios of pairs of arms, which several policies share."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.likelihood.likelihood import (
    OrderBiasLikelihood,
    OwnBiasLikelihood,
    PairLikelihood,
    TargetLikelihood,
    UnknownVariances,
    prior_count,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.bias import Kind, check_variant
from mfhpo.knowledge.confidence import MixtureRadius, StudentMixtureRadius
from mfhpo.knowledge.noise import Bounded
from mfhpo.problem import Problem
from mfhpo.racing.answer import surest_at_target
from mfhpo.racing.noise_evidence import MOST_RATIO

# The most that the guessed variance of an arm of which little is known is raised by, and how many
# values are many.
_MOST_INFLATION = 50.0
_MANY = 200


@lru_cache(maxsize=64)
def _inflations(level: float) -> FloatArray:
    """Return squared radii of estimated variances over those of known ones, by count."""
    counts = np.arange(_MANY + 1)
    known = MixtureRadius(1.0)(counts, level)
    estimated = StudentMixtureRadius()(counts, level, squares=np.maximum(counts - 1.0, 0.0))
    few = ~np.isfinite(estimated)
    ratios = np.where(few, 1.0, estimated) / np.where(few, 1.0, known)
    return np.where(few, _MOST_INFLATION, np.minimum(ratios**2, _MOST_INFLATION))


@dataclass
class Standing:
    """Who leads, and how strongly the observations speak against each of the others.

    `ratios`, `statistics` and `alternatives` are those of `PairLikelihood`, shape (K,), NaN for
    arms that have left.
    """

    likelihood: PairLikelihood
    leader: int | None
    ratios: FloatArray
    statistics: FloatArray
    alternatives: FloatArray

    def renew(
        self, arms: IntArray, changed: BoolArray, epsilon: float, only_ratios: bool = False
    ) -> None:
        """Bring statistics up to date for the remaining arms, given whose observations changed."""
        likelihood = self.likelihood
        seen = arms[likelihood.weights[arms].any(axis=1)]
        leader = int(seen[np.argmax(likelihood.centres[seen])]) if seen.size else None
        if leader is None:
            # A variance can become unknown again: then nothing that was found before holds.
            self.leader = None
            self.ratios[:] = self.statistics[:] = np.nan
            return
        if leader != self.leader or changed[leader]:
            self.ratios[:] = self.statistics[:] = np.nan
            others = arms[arms != leader]
        else:
            others = arms[changed[arms]]
        self.leader = leader
        if others.size:
            ratios, alternatives = likelihood.against(leader, others, epsilon)
            self.ratios[others], self.alternatives[others] = ratios, alternatives
            if not only_ratios:
                self.statistics[others] = likelihood.statistic(leader, others, ratios, epsilon)


class LikelihoodRatioPolicy(BestArmPolicy):
    """Eliminates an arm when the observations speak strongly enough against it.

    All fidelities of two arms are weighed together (`PairLikelihood`). The arm with the best fit
    leads. Another arm leaves once the statistic against it reaches ln((K - 1) / delta); the race
    ends when one arm is left, or when all others are ruled out to be better by epsilon.

    Parameters
    ----------
    radius
        Not taken (TypeError). The intervals that are shown are the tightest for the noise, and
        decide nothing but the audit.
    variant
        "max" or "order": the kind of bias bounds to estimate, if they are (`estimated_bias`). Order
        bounds are never more than twice the others, and mostly far less. A ValueError says that it
        contradicts the declared ones.
    """

    _certificate_reason = "the observations speak against any other arm being better by epsilon"

    def __init__(self, problem: Problem, *, variant: Kind | None = None, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        check_variant(variant, problem.bias)
        self._kind = variant or "order"
        if options.pop("radius", None) is not None:
            raise TypeError(
                f"radius: {type(self).__name__} decides by likelihood ratios and takes none; leave "
                f"it out, or use IISE or MFLUCB."
            )
        self._standing: Standing | None = None
        self._changed: BoolArray = np.zeros(problem.n_arms, dtype=bool)
        super().__init__(problem, **options)

    @property
    def _variances(self) -> bool:
        return True

    @property
    def _estimates_noise(self) -> bool:
        """Return whether the variances are estimated at any level that is compared."""
        noise = self._evidence.noise
        return any(map(noise.is_estimated_at, self._compared_fidelities()))

    @property
    def threshold(self) -> float:
        """What the statistic against an arm must reach: ln((K - 1) / delta)."""
        return -math.log(self._level)

    @property
    def _level(self) -> float:
        return self._evidence.noise.delta / max(1, self.problem.n_arms - 1)

    @property
    def _prior(self) -> float:
        return prior_count(self._level)

    @property
    def spread(self) -> float:
        """The noise's scale at the target, declared or seen; 0 if nothing is known."""
        return float(np.nan_to_num(self._evidence.noise_scales()[-1]))

    def falls_short(self, leader: int, epsilon: float) -> float:
        """Return the missing evidence against another arm being better by epsilon, if above 0."""
        if self._standing is None:
            return math.inf
        likelihood, others = self._standing.likelihood, self.active[self.active != leader]
        ratios, _ = likelihood.against(leader, others, epsilon)
        return self.threshold - float(likelihood.statistic(leader, others, ratios, epsilon).min())

    def _plan(self) -> None:
        self._standing = self._new_standing(self._evidence.counts)

    def _new_standing(self, counts: IntArray) -> Standing:
        """Return who leads if the present means had these counts, shape (K, M)."""
        n_arms, levels = self.problem.n_arms, self._levels
        arms = np.arange(n_arms)
        as_if = counts is not self._evidence.counts
        counts = counts[:, levels]
        means = self._evidence.all_means(arms)[:, levels]
        awaited = (counts > 0) & (self._evidence.counts[:, levels] == 0)
        if awaited.any():
            means = np.where(awaited, self._expected_means(means), means)
        likelihood = self._likelihood(arms, means, counts, self._prior)
        nothing = np.full(n_arms, np.nan)
        standing = Standing(likelihood, None, nothing, nothing.copy(), nothing.copy())
        everyone = np.ones(n_arms, dtype=bool)
        standing.renew(self.active, everyone, self.epsilon, only_ratios=as_if)
        return standing

    def _expected_means(self, means: FloatArray) -> FloatArray:
        assert self._standing is not None
        likelihood = self._standing.likelihood
        placed = likelihood.weights.any(axis=1)
        if not placed.any():
            return np.zeros(means.shape)
        centres = np.where(placed, likelihood.centres, likelihood.centres[placed].mean())
        seen = likelihood.weights > 0.0
        excess = np.where(seen, means - centres[:, None], 0.0).sum(axis=0)
        return np.asarray(centres[:, None] + excess / np.maximum(seen.sum(axis=0), 1))

    def _likelihood(
        self, arms: IntArray, means: FloatArray, counts: IntArray | FloatArray, prior: float
    ) -> PairLikelihood:
        assert self.bias is not None
        unknown = None
        if self._estimates_noise:
            unknown = UnknownVariances(
                self._squares, self._squares_of_others, self._evidence.noise.delta, self.threshold
            )
        variances = self._steering_variances(arms, counts)
        if self._decides_at_target:
            return TargetLikelihood(means, counts, variances, prior, self.threshold, unknown)
        kind = OwnBiasLikelihood if self.bias.kind == "max" else OrderBiasLikelihood
        bounds = np.array(self.bias.bounds)[self._levels]
        return kind(means, counts, variances, bounds, prior, unknown)

    @property
    def _decides_at_target(self) -> bool:
        return self._target_only or self.problem.n_fidelities == 1

    def _squares(self, arms: IntArray) -> FloatArray:
        noise, levels = self._evidence.noise, range(self.problem.n_fidelities)[self._levels]
        return np.stack([noise.squares(arms, m) for m in levels], axis=1)

    def _squares_of_others(self, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return others' squares that count for some arms, and degrees of freedom, (n, M) each."""
        noise, levels = self._evidence.noise, range(self.problem.n_fidelities)[self._levels]
        parts = [noise.squares_of_others(arms, m) for m in levels]
        return np.stack([part[0] for part in parts], 1), np.stack([part[1] for part in parts], 1)

    def _take_note(self, arm: int) -> None:
        if self._standing is None:
            return
        likelihood, levels = self._standing.likelihood, self._levels
        # Each value is one of the others' for all arms but its own.
        self._changed[slice(None) if self._estimates_noise else arm] = True
        arms = np.flatnonzero(self._changed)
        counts = self._evidence.counts[arms, levels]
        likelihood.update(
            arms,
            self._evidence.all_means(arms)[:, levels],
            counts,
            self._steering_variances(arms, counts),
        )

    def _steering_variances(self, arms: IntArray, counts: IntArray | FloatArray) -> FloatArray:
        """Return the variances, raised where they are guesses from few values, shape (n, M)."""
        noise, levels = self._evidence.noise, range(self.problem.n_fidelities)[self._levels]
        variances = noise.variances(arms)[:, self._levels]
        for place, m in enumerate(levels):
            if noise.is_estimated_at(m):
                variances[:, place] *= self._inflation(counts[:, place])
        return variances

    def _inflation(self, counts: IntArray | FloatArray) -> FloatArray:
        """Return the factor to a known variance that needs as many values; it steers the race."""
        return _inflations(self._level)[np.minimum(counts, _MANY).astype(np.int64)]

    def _judge_all(self) -> None:
        self._plan()
        self._judge(self.problem.target)

    def _judge(self, fidelity: int) -> None:
        standing = self._standing
        arms = self.active
        if standing is None or len(arms) < 2 or self.winner is not None:
            return
        standing.renew(arms, self._changed, self.epsilon)
        self._changed[:] = False
        leader = standing.leader
        if leader is None:
            return
        others = arms[arms != leader]
        beaten = standing.statistics[others] >= self.threshold
        beaten |= self._separated(leader, others, self.epsilon)
        if not beaten.any():
            return
        gone = self._eliminable(others, beaten)
        if self.epsilon > 0.0 and gone.size:
            ratios, _ = standing.likelihood.against(leader, gone)
            worse = standing.likelihood.statistic(leader, gone, ratios)
            gone = gone[(worse >= self.threshold) | self._separated(leader, gone, 0.0)]
        if gone.size:
            self._roster.eliminate(gone, leader)
        if beaten.all() and len(gone) < len(others):
            self._certificate = leader

    def _separated(self, leader: int, others: IntArray, epsilon: float) -> BoolArray:
        """Return which arms the intervals of bounded values separate from the leader, (n,)."""
        if not isinstance(self.problem.noise, Bounded):
            return np.zeros(len(others), dtype=bool)
        assert self.bias is not None
        return self._evidence.separated(leader, others, self.bias, epsilon)

    def _eliminable(self, others: IntArray, beaten: BoolArray) -> IntArray:
        return others[beaten]

    def _conditions(self) -> tuple[str, ...]:
        conditions = super()._conditions()
        if not self._estimates_noise:
            return conditions
        others = "other " if self._spread_more else ""
        return (
            *conditions,
            f"no {others}configuration spreads more than {MOST_RATIO:g} times as much as another",
        )

    def _assumptions(self) -> tuple[str, ...]:
        parts = super()._assumptions()
        if not self._estimates_noise:
            return parts
        return (*parts, "configurations far behind may also leave by how much the others spread")

    @property
    def _spread_more(self) -> list[tuple[int, int]]:
        """Arms and fidelities where values spread more than others' by more than is supposed."""
        arms, noise = self.active, self._evidence.noise
        return [
            (arm, m)
            for m in self._compared_fidelities()
            for arm in noise.spread_more(arms, m).tolist()
        ]

    def _notices(self) -> tuple[str, ...]:
        found = [
            f"{self.labels.arm(arm)} at {self.labels.fidelity(m)}: its values spread more than "
            f"{MOST_RATIO:g} times as much as those of others, and it is judged by its own alone"
            for arm, m in self._spread_more
        ]
        return (*super()._notices(), *found)

    def _surest_arm(self) -> int:
        return surest_at_target(self._evidence, self.active, self.bias)

    def _remaining_cost(self, leader: int | None) -> float | None:
        """Guess the remaining cost: statistics go on growing in proportion to it."""
        standing = self._standing
        if self.winner is not None or standing is None or standing.leader is None:
            return super()._remaining_cost(leader)
        arms = self.active
        others = arms[arms != standing.leader]
        gained = standing.ratios[others]
        if not (gained > 0.0).all():
            return None
        # What is missing is compared with the ratio, of which the statistic falls short.
        factors = np.maximum(self.threshold - standing.statistics[others], 0.0) / gained
        levels = range(self.problem.n_fidelities)[self._levels]
        costs = np.array([self._cost_of(m) for m in levels])
        paid = self._evidence.counts[:, self._levels] @ costs
        return float(paid[others] @ factors + paid[standing.leader] * factors.max())
