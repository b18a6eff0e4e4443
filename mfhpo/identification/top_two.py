"""Top-two sampling across fidelities: the leader and its nearest rival, where it tells most."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mfhpo.identification.likelihood.likelihood import (
    OwnBiasLikelihood,
    PairLikelihood,
    prior_count,
)
from mfhpo.identification.likelihood.likelihood_ratio import LikelihoodRatioPolicy, Standing
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.problem import Problem, Pull

# The fractional parts of its multiples are spread evenly over [0, 1), however many there are.
_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0

# The leader and its rival each get at least this share of what is spent on the two, so that neither
# starves while nothing of what tells them apart came from it.
_LEAST_SHARE = 0.1

# A glance at each arm decides on their order if it costs at most this share of a full evaluation.
_CHEAP_GLANCE = 0.1

# Noise below this share of the largest at any fidelity counts as this share.
_LEAST_NOISE = 1e-6


class MFTopTwo(LikelihoodRatioPolicy):
    """Top-two sampling across fidelities, with the stop of `LikelihoodRatioPolicy`.

    What tells the leader from another arm is the statistic of `PairLikelihood`. Each pull goes

    1. to the leader and the rival with the smallest likelihood ratio plus log counts (Jourdan,
       Degenne, Baudry, de Heide and Kaufmann, "Top Two Algorithms Revisited", NeurIPS 2022);
    2. of the two, to each in proportion to what the statistic owes to its observations (You, Qin,
       Wang and Yang, "Information-Directed Selection for Top-Two Algorithms", COLT 2023);
    3. to the fidelity with the largest distance from the nearest alternative, in units of sigma
       and per square root of the cost, optimistically: as far as it may be within
       sigma sqrt(2 ln N / n) of the mean of n values of N of the arm's. It is the index of
       EXPLORE-A (Wang et al. 2023, Section 3.2.2) with the alternative in place of assumed means.

    These rules decide about cost alone; the certificate rests on the stop. For the arguments see
    `LikelihoodRatioPolicy` and `BestArmPolicy`.

    Examples
    --------
    >>> import numpy as np
    >>> from mfhpo import Bias, Observation, Problem, SubGaussian
    >>> problem = Problem(3, costs=(1, 10), bias=Bias.max(0.1, 0.0), noise=SubGaussian(0.1))
    >>> policy = MFTopTwo(problem, delta=0.05)
    >>> means = np.array([[0.1, 0.15], [0.3, 0.35], [0.9, 1.0]])  # arms x fidelities
    >>> rng = np.random.default_rng(0)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     value = rng.normal(means[pull.arm, pull.fidelity], 0.1)
    ...     policy.tell(pull, Observation(value))
    >>> policy.recommend().arm, policy.recommend().certified
    (2, True)
    """

    _saved = (*LikelihoodRatioPolicy._saved, "_n_told")

    def __init__(self, problem: Problem, **options: Any) -> None:
        # Times that something was told, which a sum of many pulls is once: the turns of sampling.
        self._n_told = 0
        super().__init__(problem, **options)

    def _take_note(self, arm: int) -> None:
        self._n_told += 1
        super()._take_note(arm)

    def _leader_to_audit(self) -> int | None:
        return None if self._standing is None else self._standing.leader

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        first = self._first_pull(counts, arms)
        if first is not None:
            return first
        standing = self._standing
        if counts is not self._evidence.counts:
            standing = self._new_standing(counts)
        assert standing is not None
        if standing.leader is None:  # the noise is not known anywhere
            lowest = range(self.problem.n_fidelities)[self._levels][0]
            return Pull(int(arms[np.argmin(counts[arms, lowest])]), lowest)
        return self._pull_of_two(standing, self._rival(standing, counts, arms), counts)

    def _first_pull(self, counts: IntArray, arms: IntArray) -> Pull | None:
        """Return a first pull that is evidence about an arm; None if there is none."""
        unseen = arms[~counts[arms, self._levels].any(axis=1)]
        if not unseen.size:
            return None
        if not self._target_only:
            return Pull(int(unseen[0]), 0)
        if self._glances:
            never = unseen[counts[unseen, 0] == 0]
            if never.size:
                return Pull(int(never[0]), 0)
        # The best at a glance first: whoever follows is compared with a good one.
        glances = self._evidence.means(unseen, 0)
        seen = self._evidence.counts[unseen, 0] > 0
        best = np.argmax(np.where(seen, glances, -np.inf)) if seen.any() else 0
        return Pull(int(unseen[best]), self.problem.target)

    @property
    def _glances(self) -> bool:
        """Whether all arms are first looked at where it is cheapest, for their order."""
        costs = self.problem.costs
        return costs is not None and costs[0] <= _CHEAP_GLANCE * costs[-1]

    def _rival(self, standing: Standing, counts: IntArray, arms: IntArray) -> int:
        others = arms[arms != standing.leader]
        known = self._standing
        if known is not None and known.leader == standing.leader:
            # Whoever is ruled out to be better by epsilon waits for those who are not.
            is_open = ~(known.statistics[others] >= self.threshold)
            others = others[is_open] if is_open.any() else others
        seen = counts[others, self._levels]
        log_counts = np.log1p(seen / prior_count(self._level)).sum(axis=1)
        return int(others[np.argmin(standing.ratios[others] + log_counts)])

    def _explored_fidelity(self) -> int:
        if len(self.active) < 2:
            return self.problem.target
        return self._race_pull(self._evidence.counts, self.active).fidelity

    def _pull_of_two(self, standing: Standing, rival: int, counts: IntArray) -> Pull:
        assert standing.leader is not None
        if self._target_only:
            gains = standing.likelihood.weights[[rival, standing.leader], 0].tolist()
            leads = self._is_leaders_turn(gains, np.ones(2), counts)
            return Pull(standing.leader if leads else rival, self.problem.target)
        if isinstance(standing.likelihood, OwnBiasLikelihood):
            return self._pull_of_each(standing.likelihood, standing, rival, counts)
        return self._pull_of_both(standing.likelihood, standing.leader, rival, counts)

    def _pull_of_each(
        self, likelihood: OwnBiasLikelihood, standing: Standing, rival: int, counts: IntArray
    ) -> Pull:
        leader = standing.leader
        assert leader is not None
        alternative = float(standing.alternatives[rival])
        above, below = likelihood.distances(leader, rival, alternative, self.epsilon)
        edges_above = likelihood.highs[leader] - alternative
        edges_below = alternative + self.epsilon - likelihood.lows[rival]
        gains, fidelities = [], []
        for arm, distances, edges in ((leader, above, edges_above), (rival, below, edges_below)):
            gains.append(float(likelihood.weights[arm] @ np.maximum(distances, 0.0) ** 2))
            sigmas = _sigmas(likelihood.variances[arm])
            doubt = _doubt(counts[arm], sigmas)
            seen = counts[arm] > 0
            fidelities.append(self._fidelity_for(seen, sigmas, distances, edges, doubt))
        costs = self._planned_costs
        assert costs is not None
        leads = self._is_leaders_turn(gains, costs[fidelities], counts)
        return Pull(leader, fidelities[0]) if leads else Pull(rival, fidelities[1])

    def _pull_of_both(
        self, likelihood: PairLikelihood, leader: int, rival: int, counts: IntArray
    ) -> Pull:
        difference = likelihood.means[leader] - likelihood.means[rival] + self.epsilon
        sigmas = _sigmas(np.maximum(likelihood.variances[leader], likelihood.variances[rival]))
        doubt = _doubt(counts[leader], sigmas) + _doubt(counts[rival], sigmas)
        fidelity = self._fidelity_for(
            (counts[leader] > 0) & (counts[rival] > 0),
            sigmas,
            difference - likelihood.bounds,
            difference + likelihood.bounds,
            doubt,
        )
        # Both owe the same difference to the other's weight.
        gains = likelihood.weights[[rival, leader], fidelity].tolist()
        leads = self._is_leaders_turn(gains, np.ones(2), counts)
        return Pull(leader if leads else rival, fidelity)

    def _is_leaders_turn(self, gains: Sequence[float], costs: FloatArray, counts: IntArray) -> bool:
        """Tell whether to pull the leader, by both arms' parts in the statistic and their costs."""
        total = sum(gains)
        share = gains[0] / total if total > 0.0 else 0.5
        share = min(max(share, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
        # The share is one of the cost: a dear pull is asked for the less often.
        per_pull = share / costs[0]
        of_pulls = per_pull / (per_pull + (1.0 - share) / costs[1])
        # A count decides instead of a coin: asking twice must give the same answer.
        under_way = int(counts.sum()) - self.pulls
        return bool(((self._n_told + under_way) * _GOLDEN_RATIO) % 1.0 < of_pulls)

    def _fidelity_for(
        self,
        seen: BoolArray,
        sigmas: FloatArray,
        distances: FloatArray,
        edges: FloatArray,
        doubt: FloatArray,
    ) -> int:
        """Return the fidelity with the largest plausible distance per square root of the cost.

        All arguments have shape (M,). `distances` and `edges` are the distances of means and target
        mean from the nearest alternative, `doubt` what may be added.
        """
        assert self._planned_costs is not None
        farthest = float(np.min((edges + doubt)[seen])) if seen.any() else math.inf
        if math.isinf(farthest):
            return 0
        hoped = np.where(seen, np.minimum(distances + doubt, farthest), farthest)
        # Without noise, what counts is the cost; next to none, one value says nearly all.
        largest = float(sigmas.max())
        scales = np.maximum(sigmas, _LEAST_NOISE * largest) if largest > 0.0 else np.ones(len(seen))
        index = hoped / (scales * np.sqrt(self._planned_costs))
        return int(np.argmax(index)) if index.max() > 0.0 else self.problem.target


def _sigmas(variances: FloatArray) -> FloatArray:
    """Return noise scales, shape (M,); for unknown ones the largest known, or 1."""
    known = variances[np.isfinite(variances)]
    fallback = float(known.max()) if known.size else 1.0
    return np.sqrt(np.where(np.isfinite(variances), variances, fallback))


def _doubt(counts: IntArray, sigmas: FloatArray) -> FloatArray:
    logs = math.log(max(2, int(counts.sum())))
    return np.asarray(sigmas * np.sqrt(2.0 * logs / np.maximum(counts, 1)))
