"""The stop by likelihood ratios of pairs of arms, which several rules are given."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mfhpo.identification.likelihood.bias_models import BiasModel, OrderBias, OwnBias
from mfhpo.identification.likelihood.likelihood import (
    PairLikelihood,
    Statistic,
    of_unknown,
    one_sided,
    prior_count,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.confidence import MixtureRadius, StudentMixtureRadius
from mfhpo.knowledge.noise import Bounded
from mfhpo.racing.answer import surest_at_target
from mfhpo.racing.noise_evidence import MOST_RATIO
from mfhpo.racing.rule import Known, Needs, Verdict, Words

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


@dataclass(frozen=True)
class Bar:
    """The threshold of the statistic against an arm."""

    threshold: Callable[[Known], float]
    prior: Callable[[Known], float]  # returns the count rho of `PairLikelihood`
    one_sided: bool  # whether known variances count where the leader is better, at the target
    is_final: bool  # whether an arm that is beaten once may leave at once


def level_of(known: Known) -> float:
    """Return the error probability of one comparison."""
    return known.evidence.noise.delta / max(1, known.problem.n_arms - 1)


MIXTURE = Bar(
    threshold=lambda known: -math.log(level_of(known)),
    prior=lambda known: prior_count(level_of(known)),
    one_sided=True,
    is_final=True,
)
"""The bar that keeps delta at all times: ln((K - 1) / delta)."""


class LikelihoodStop:
    """Eliminates an arm when the observations speak strongly enough against it.

    All fidelities of two arms are weighed together (`PairLikelihood`). The arm with the best fit
    leads. Another arm leaves once the statistic against it reaches the bar; the race ends when one
    arm is left, or when all others are ruled out to be better by epsilon.
    The `standing` says who leads; it is None during the pilot.
    """

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.standing: Standing | None = None

    def needs(self, variant: Kind | None, audited: Callable[[], int | None]) -> Needs:
        """Return what a rule with this stop needs from the race."""
        return Needs(
            "the observations speak against any other arm being better by epsilon",
            kind=variant or "order",
            variances=True,
            leader=self.leader,
            audited=audited,
            falls_short=self.falls_short,
            words=self.words,
        )

    def falls_short(self, known: Known, leader: int, epsilon: float) -> float:
        """Return the missing evidence against another arm being better by epsilon, if above 0."""
        if self.standing is None:
            return math.inf
        likelihood, others = self.standing.likelihood, known.arms[known.arms != leader]
        ratios, _ = likelihood.against(leader, others, epsilon)
        statistics = likelihood.statistic(leader, others, ratios, epsilon)
        return self.bar.threshold(known) - float(statistics.min())

    def plan(self, known: Known) -> None:
        """Compare all arms again (see `Rule.plan`)."""
        self.standing = self.standing_with(known, known.evidence.counts)

    def standing_with(self, known: Known, counts: IntArray) -> Standing:
        """Return who leads if the present means had these counts, shape (K, M)."""
        n_arms, levels = known.problem.n_arms, known.levels
        arms = np.arange(n_arms)
        as_if = counts is not known.evidence.counts
        counts = counts[:, levels]
        means = known.evidence.all_means(arms)[:, levels]
        awaited = (counts > 0) & (known.evidence.counts[:, levels] == 0)
        if awaited.any():
            means = np.where(awaited, self._expected_means(means), means)
        likelihood = self.likelihood(known, arms, means, counts, self.bar.prior(known))
        ratios, statistics, alternatives = np.full((3, n_arms), np.nan)
        seen = known.arms[likelihood.weights[known.arms].any(axis=1)]
        leader = int(seen[np.argmax(likelihood.centres[seen])]) if seen.size else None
        others = known.arms[known.arms != leader]
        if leader is not None and others.size:
            ratios[others], alternatives[others] = likelihood.against(leader, others, known.epsilon)
            if not as_if:
                statistics[others] = likelihood.statistic(
                    leader, others, ratios[others], known.epsilon
                )
        return Standing(likelihood, leader, ratios, statistics, alternatives)

    def _expected_means(self, means: FloatArray) -> FloatArray:
        assert self.standing is not None
        likelihood = self.standing.likelihood
        placed = likelihood.weights.any(axis=1)
        if not placed.any():
            return np.zeros(means.shape)
        centres = np.where(placed, likelihood.centres, likelihood.centres[placed].mean())
        seen = likelihood.weights > 0.0
        excess = np.where(seen, means - centres[:, None], 0.0).sum(axis=0)
        return np.asarray(centres[:, None] + excess / np.maximum(seen.sum(axis=0), 1))

    def likelihood(
        self,
        known: Known,
        arms: IntArray,
        means: FloatArray,
        counts: IntArray | FloatArray,
        prior: float,
    ) -> PairLikelihood:
        """Return the likelihood of some arms, as if from such counts, shape (n, M)."""
        assert known.bias is not None
        variances = self._steering_variances(known, arms, counts)
        threshold = self.bar.threshold(known)
        at_target = known.target_only or known.problem.n_fidelities == 1
        is_one_sided = self.bar.one_sided and at_target
        how: Statistic | None = one_sided(threshold) if is_one_sided else None
        if _estimates_noise(known):
            how = _unknown_variances(known, threshold)
        bounds = np.array(known.bias.bounds)[known.levels]
        is_own = known.bias.kind == "max" and not is_one_sided
        bias: BiasModel = OwnBias(bounds) if is_own else OrderBias(bounds)
        return PairLikelihood(means, counts, variances, bias, prior, how)

    def _steering_variances(
        self, known: Known, arms: IntArray, counts: IntArray | FloatArray
    ) -> FloatArray:
        """Return the variances, raised where they are guesses from few values, shape (n, M)."""
        noise = known.evidence.noise
        variances = noise.variances(arms)[:, known.levels]
        for place, m in enumerate(known.compared):
            if noise.is_estimated_at(m):
                # The factor to a known variance that needs as many values.
                few = np.minimum(counts[:, place], _MANY).astype(np.int64)
                variances[:, place] *= _inflations(level_of(known))[few]
        return variances

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield who is out, and who is certified (see `Rule.verdict`)."""
        if fidelity is None:
            yield Verdict()
        self.plan(known)
        standing, arms = self.standing, known.arms
        if standing is None or standing.leader is None:
            return
        leader = standing.leader
        if len(arms) < 2 or known.winner is not None:
            return
        others = arms[arms != leader]
        threshold = self.bar.threshold(known)
        beaten = standing.statistics[others] >= threshold
        beaten |= _separated(known, leader, others, known.epsilon)
        if not beaten.any() or not (self.bar.is_final or beaten.all()):
            return
        gone = others[beaten]
        if known.epsilon > 0.0:
            ratios, _ = standing.likelihood.against(leader, gone)
            worse = standing.likelihood.statistic(leader, gone, ratios)
            gone = gone[(worse >= threshold) | _separated(known, leader, gone, 0.0)]
        certified = leader if beaten.all() and len(gone) < len(others) else None
        yield Verdict(gone if gone.size else None, leader, certified=certified)

    def leader(self, known: Known) -> int:
        """Return the arm with the highest lower bound."""
        return surest_at_target(known.evidence, known.arms, known.bias)

    def words(self, known: Known, usual: Words, arm: int | None) -> Words:
        """Say what estimated variances rest on, and what the race still costs."""
        if known.winner is None and self.standing is not None and self.standing.leader is not None:
            usual = replace(usual, remaining_cost=self._remaining_cost(known, self.standing))
        if not _estimates_noise(known):
            return usual
        spread_more = _spread_more(known)
        others = "other " if spread_more else ""
        condition = (
            f"no {others}configuration spreads more than {MOST_RATIO:g} times as much as another"
        )
        notices = [
            f"{known.labels.arm(arm)} at {known.labels.fidelity(m)}: its values spread more than "
            f"{MOST_RATIO:g} times as much as those of others, and it is judged by its own alone"
            for arm, m in spread_more
        ]
        by_others = "configurations far behind may also leave by how much the others spread"
        return replace(
            usual,
            conditions=(*usual.conditions, condition),
            assumptions=(*usual.assumptions, by_others),
            notices=(*usual.notices, *notices),
        )

    def _remaining_cost(self, known: Known, standing: Standing) -> float | None:
        """Guess the remaining cost: statistics go on growing in proportion to it."""
        arms = known.arms
        others = arms[arms != standing.leader]
        gained = standing.ratios[others]
        if not (gained > 0.0).all():
            return None
        # What is missing is compared with the ratio, of which the statistic falls short.
        missing = np.maximum(self.bar.threshold(known) - standing.statistics[others], 0.0)
        factors = missing / gained
        paid = known.evidence.counts[:, known.levels] @ known.spending.all()[known.levels]
        return float(paid[others] @ factors + paid[standing.leader] * factors.max())


def _estimates_noise(known: Known) -> bool:
    return any(map(known.evidence.noise.is_estimated_at, known.compared))


def _unknown_variances(known: Known, threshold: float) -> Statistic:
    noise = known.evidence.noise

    def squares(arms: IntArray) -> FloatArray:
        return np.stack([noise.squares(arms, m) for m in known.compared], axis=1)

    def squares_of_others(arms: IntArray) -> tuple[FloatArray, FloatArray]:
        parts = [noise.squares_of_others(arms, m) for m in known.compared]
        return np.stack([part[0] for part in parts], 1), np.stack([part[1] for part in parts], 1)

    return of_unknown(squares, squares_of_others, noise.delta, threshold)


def _separated(known: Known, leader: int, others: IntArray, epsilon: float) -> BoolArray:
    """Return which arms the intervals of bounded values separate from the leader, (n,)."""
    if not isinstance(known.problem.noise, Bounded):
        return np.zeros(len(others), dtype=bool)
    assert known.bias is not None
    return known.evidence.separated(leader, others, known.bias, epsilon)


def _spread_more(known: Known) -> list[tuple[int, int]]:
    """Return arms and fidelities where values spread more than others', by more than supposed."""
    return [
        (arm, m)
        for m in known.compared
        for arm in known.evidence.noise.spread_more(known.arms, m).tolist()
    ]
