"""The stop by likelihood ratios of pairs of arms, which several rules are given."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mfhpo.identification.likelihood import one_sided
from mfhpo.identification.likelihood.likelihood import (
    OrderBias,
    OwnBias,
    PairLikelihood,
    prior_count,
    two_sided,
)
from mfhpo.identification.likelihood.unknown_variances import Pairs
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.confidence import MixtureRadius, StudentMixtureRadius
from mfhpo.knowledge.noise import Bounded
from mfhpo.problem import Recommendation
from mfhpo.racing.evidence import surest_at_target
from mfhpo.racing.noise_evidence import MOST_RATIO
from mfhpo.racing.rule import Known, Needs, Verdict

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

    The arrays have shape (K,), NaN for arms that have left.
    """

    likelihood: PairLikelihood
    leader: int | None
    ratios: FloatArray
    statistics: FloatArray
    alternatives: FloatArray


def level_of(known: Known) -> float:
    """Return the error probability of one comparison."""
    return known.evidence.noise.delta / max(1, known.problem.n_arms - 1)


class LikelihoodStop:
    """Eliminates an arm when the observations speak strongly enough against it.

    All fidelities of two arms are weighed together (`PairLikelihood`). The arm with the best fit
    leads. Another arm leaves once the statistic against it reaches the threshold; the race ends
    when one arm is left, or when all others are ruled out to be better by epsilon. The stop of the
    `published` experiments does not keep delta for sure, and eliminates no arm on the way.
    """

    def __init__(self, variant: Kind | None, published: bool = False) -> None:
        self.published = published
        self.standing: Standing | None = None  # before the pilot has ended
        self.needs = Needs(
            "the observations speak against any other arm being better by epsilon",
            kind=variant or "order",
            variances=True,
            leader=lambda known: surest_at_target(known.evidence, known.arms, known.bias),
            audited=self.audited,
            falls_short=self.falls_short,
            words=self.words,
        )

    def audited(self) -> int | None:
        """Return the arm that leads; None without one."""
        return None if self.standing is None else self.standing.leader

    def threshold(self, known: Known) -> float:
        """Return what a statistic must reach; as published, ln(K / delta) + M ln(ln t + 1)."""
        if not self.published:
            return -math.log(level_of(known))
        time = math.log(max(math.e, float(known.pulls)))
        least = math.log(known.problem.n_arms / known.evidence.noise.delta)
        return least + len(known.compared) * math.log(time + 1.0)

    def falls_short(self, known: Known, leader: int, others: IntArray, epsilon: float) -> float:
        """Return the missing evidence against others being better by epsilon, if above 0."""
        if self.standing is None:
            return math.inf
        pairs = self.standing.likelihood
        ratios, _ = pairs.against(leader, others, epsilon)
        # Distances have no sign, and speak against nothing that is as likely as not.
        ahead = pairs.centres[leader] - pairs.centres[others] + epsilon
        ratios = np.where(ahead > 0.0, ratios, 0.0)
        statistics = self._statistics(known, pairs, leader, others, ratios, epsilon)
        return self.threshold(known) - float(statistics.min())

    def plan(self, known: Known) -> None:
        """Compare all arms again (see `Rule.plan`)."""
        self.standing = self.standing_with(known, known.evidence.counts)

    def standing_with(self, known: Known, counts: IntArray) -> Standing:
        """Return who leads if the present means had these counts, shape (K, M)."""
        n_arms, levels = known.problem.n_arms, known.levels
        arms = np.arange(n_arms)
        as_if = counts is not known.evidence.counts
        counts = counts[:, levels]
        means = known.evidence.means(arms, levels)
        awaited = (counts > 0) & (known.evidence.counts[:, levels] == 0)
        if awaited.any():
            means = np.where(awaited, self._expected_means(means), means)
        prior = 0.0 if self.published else prior_count(level_of(known))
        likelihood = self.likelihood(known, arms, means, counts, prior)
        ratios, statistics, alternatives = np.full((3, n_arms), np.nan)
        seen = known.arms[likelihood.weights[known.arms].any(axis=1)]
        leader = int(seen[np.argmax(likelihood.centres[seen])]) if seen.size else None
        others = known.arms[known.arms != leader]
        if leader is not None and others.size:
            ratios[others], alternatives[others] = likelihood.against(leader, others, known.epsilon)
            if not as_if:
                statistics[others] = self._statistics(
                    known, likelihood, leader, others, ratios[others], known.epsilon
                )
        return Standing(likelihood, leader, ratios, statistics, alternatives)

    def _statistics(
        self,
        known: Known,
        pairs: PairLikelihood,
        leader: int,
        others: IntArray,
        ratios: FloatArray,
        epsilon: float,
    ) -> FloatArray:
        """Return how strongly the observations speak against others being better, shape (n,)."""
        if self.published:
            return ratios
        threshold = self.threshold(known)
        if _estimates_noise(known):
            return threshold + _excess_of_unknown(known, pairs, leader, others, epsilon)
        if _is_at_target(known):
            both = [np.full(len(others), leader), others]
            gaps = pairs.means[leader, 0] - pairs.means[others, 0] + epsilon
            cells = pairs.counts[both, 0], pairs.variances[both, 0]
            return one_sided.evidence(gaps, *cells, pairs.prior, threshold)
        return two_sided(pairs, leader, others, ratios, epsilon)

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
        bounds, noise = np.array(known.bias.bounds)[known.levels], known.evidence.noise
        # Variances that are guesses from few values are raised, by the factor to a known variance
        # that needs as many values.
        variances = noise.variances(arms)[:, known.levels]
        for place, m in enumerate(known.compared):
            if noise.is_estimated_at(m):
                few = np.minimum(counts[:, place], _MANY).astype(np.int64)
                variances[:, place] *= _inflations(level_of(known))[few]
        is_own = known.bias.kind == "max" and (self.published or not _is_at_target(known))
        kind = OwnBias if is_own else OrderBias
        return kind(means, counts, variances, bounds, prior)

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
        statistics, pairs = standing.statistics[others], standing.likelihood
        beaten = self._are_beaten(known, leader, others, statistics, known.epsilon)
        if not beaten.any() or (self.published and not beaten.all()):
            return
        gone = others[beaten]
        if known.epsilon > 0.0:
            ratios, _ = pairs.against(leader, gone)
            statistics = self._statistics(known, pairs, leader, gone, ratios, 0.0)
            gone = gone[self._are_beaten(known, leader, gone, statistics, 0.0)]
        certified = leader if beaten.all() and len(gone) < len(others) else None
        yield Verdict(gone if gone.size else None, leader, certified=certified)

    def _are_beaten(
        self, known: Known, leader: int, others: IntArray, statistics: FloatArray, epsilon: float
    ) -> BoolArray:
        beaten = np.asarray(statistics >= self.threshold(known))
        if isinstance(known.problem.noise, Bounded):  # its intervals may separate them, too
            assert known.bias is not None
            beaten |= known.evidence.leads(leader, others, known.bias) + epsilon >= 0.0
        return beaten

    def words(self, known: Known, usual: Recommendation) -> Recommendation:
        """Say what estimated variances rest on, and what the race still costs."""
        if known.winner is None and self.standing is not None and self.standing.leader is not None:
            usual = replace(usual, remaining_cost=self._remaining_cost(known, self.standing))
        if self.published:
            unproven = "the published stop of MF-GRAD keeps delta, unproven"
            usual = replace(usual, conditions=(*usual.conditions, unproven))
        if not _estimates_noise(known):
            return usual
        spread_more = [
            (arm, m)
            for m in known.compared
            for arm in known.evidence.noise.spread_more(known.arms, m).tolist()
        ]
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
        missing = np.maximum(self.threshold(known) - standing.statistics[others], 0.0)
        factors = missing / gained
        paid = known.evidence.counts[:, known.levels] @ known.spending.all()[known.levels]
        return float(paid[others] @ factors + paid[standing.leader] * factors.max())


def _estimates_noise(known: Known) -> bool:
    return any(map(known.evidence.noise.is_estimated_at, known.compared))


def _is_at_target(known: Known) -> bool:
    return known.target_only or known.problem.n_fidelities == 1


def _excess_of_unknown(
    known: Known, pairs: PairLikelihood, leader: int, others: IntArray, epsilon: float
) -> FloatArray:
    """Return by how much evidence from one fidelity of each arm exceeds what is wanted, (n,)."""
    noise = known.evidence.noise
    gaps = pairs.gaps_of_two(leader, others, epsilon)
    both = np.append(leader, others)
    squares = np.empty((len(both), len(known.compared)))
    of_others, degrees = np.empty((2, len(others), len(known.compared)))
    for place, m in enumerate(known.compared):
        squares[:, place] = noise.squares(both, m)
        of_others[:, place], degrees[:, place] = noise.squares_of_others(others, m)
    cells = np.broadcast_arrays(
        gaps,
        pairs.counts[leader][:, None],
        pairs.counts[others][:, None],
        squares[0][:, None],
        squares[1:, None],
        of_others[:, None],
        degrees[:, None],
    )
    flat = np.reshape(cells, (len(cells), -1))
    n_fidelities = len(known.compared)
    excess = Pairs(flat[0], flat[1:3], flat[3:5], flat[5:7]).excess(
        noise.delta, len(pairs.means) - 1, n_fidelities, n_fidelities**pairs.free
    )
    return np.asarray(excess.reshape(len(others), -1).max(axis=1))
