"""Top-two sampling across fidelities: the leader and its nearest rival, where it tells most."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.identification.likelihood.likelihood import OwnBias, prior_count
from mfhpo.identification.likelihood.likelihood_ratio import LikelihoodStop, Standing, level_of
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Kind, check_variant
from mfhpo.problem import Problem, Pull
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known

# The fractional parts of its multiples are spread evenly over [0, 1), however many there are.
_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0

# The leader and its rival each get at least this share of what is spent on the two.
_LEAST_SHARE = 0.1

# A glance at each arm decides on their order if it costs at most this share of a full evaluation.
_CHEAP_GLANCE = 0.1

# Noise below this share of the largest at any fidelity counts as this share.
_LEAST_NOISE = 1e-6


class TopTwo:
    """The rule of `MFTopTwo`."""

    def __init__(self, stop: LikelihoodStop) -> None:
        self.stop, self.needs = stop, stop.needs
        self.plan, self.verdict = stop.plan, stop.verdict

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull (see `Rule.propose`)."""
        counts = expected.counts
        first = self.first_pull(known, counts)
        if first is not None:
            return first
        standing = self.stop.standing
        if counts is not known.evidence.counts:
            standing = self.stop.standing_with(known, counts)
        assert standing is not None
        leader, likelihood = standing.leader, standing.likelihood
        if leader is None:  # the noise is not known anywhere
            arms, lowest = known.arms, known.compared[0]
            return Pull(int(arms[np.argmin(counts[arms, lowest])]), lowest)
        rival = self._rival(known, standing, counts)
        if isinstance(likelihood, OwnBias) and not known.target_only:
            alternative = float(standing.alternatives[rival])
            return _pull_of_each(known, likelihood, leader, rival, alternative, counts)
        fidelity, both = known.problem.target, [leader, rival]
        if not known.target_only:
            difference = likelihood.means[leader] - likelihood.means[rival] + known.epsilon
            fidelity = _fidelity_for(
                known.costs,
                counts[both],
                likelihood.variances[both].max(axis=0),
                difference - likelihood.bounds,
                difference + likelihood.bounds,
            )
        # Both owe the same difference to the other's weight.
        gains = likelihood.weights[both[::-1], fidelity - known.compared[0]].tolist()
        leads = _is_leaders_turn(known, gains, np.ones(2), counts)
        return Pull(leader if leads else rival, fidelity)

    def first_pull(self, known: Known, counts: IntArray) -> Pull | None:
        """Return a first pull that is evidence about an arm; None if there is none."""
        unseen = known.arms[~counts[known.arms, known.levels].any(axis=1)]
        if not unseen.size:
            return None
        if not known.target_only:
            return Pull(int(unseen[0]), 0)
        costs = known.problem.costs
        if costs is not None and costs[0] <= _CHEAP_GLANCE * costs[-1]:
            never = unseen[counts[unseen, 0] == 0]
            if never.size:
                return Pull(int(never[0]), 0)
        # The best at a glance first: whoever follows is compared with a good one.
        glances = known.evidence.means(unseen, 0)
        seen = known.evidence.counts[unseen, 0] > 0
        best = np.argmax(np.where(seen, glances, -np.inf)) if seen.any() else 0
        return Pull(int(unseen[best]), known.problem.target)

    def _rival(self, known: Known, standing: Standing, counts: IntArray) -> int:
        others = known.arms[known.arms != standing.leader]
        present = self.stop.standing
        if present is not None and present.leader == standing.leader:
            # Whoever is ruled out to be better by epsilon waits for those who are not.
            is_open = ~(present.statistics[others] >= self.stop.threshold(known))
            others = others[is_open] if is_open.any() else others
        seen = counts[others, known.levels]
        log_counts = np.log1p(seen / prior_count(level_of(known))).sum(axis=1)
        return int(others[np.argmin(standing.ratios[others] + log_counts)])


def _pull_of_each(
    known: Known, likelihood: OwnBias, leader: int, rival: int, alternative: float, counts: IntArray
) -> Pull:
    above, below = likelihood.distances(leader, rival, alternative, known.epsilon)
    edges_above = likelihood.highs[leader] - alternative
    edges_below = alternative + known.epsilon - likelihood.lows[rival]
    gains, fidelities = [], []
    for arm, distances, edges in ((leader, above, edges_above), (rival, below, edges_below)):
        gains.append(float(likelihood.weights[arm] @ np.maximum(distances, 0.0) ** 2))
        variances = likelihood.variances[arm]
        fidelities.append(_fidelity_for(known.costs, counts[[arm]], variances, distances, edges))
    leads = _is_leaders_turn(known, gains, known.costs[fidelities], counts)
    return Pull(leader, fidelities[0]) if leads else Pull(rival, fidelities[1])


def _is_leaders_turn(
    known: Known, gains: Sequence[float], costs: FloatArray, counts: IntArray
) -> bool:
    """Tell whether to pull the leader, by both arms' parts in the statistic and their costs."""
    total = sum(gains)
    share = gains[0] / total if total > 0.0 else 0.5
    share = min(max(share, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
    # The share is one of the cost: a dear pull is asked for the less often.
    per_pull = share / costs[0]
    of_pulls = per_pull / (per_pull + (1.0 - share) / costs[1])
    # A count decides instead of a coin: asking twice must give the same answer.
    under_way = int(counts.sum()) - known.pulls
    return bool(((known.told + under_way) * _GOLDEN_RATIO) % 1.0 < of_pulls)


def _fidelity_for(
    costs: FloatArray,
    counts: IntArray,
    variances: FloatArray,
    distances: FloatArray,
    edges: FloatArray,
) -> int:
    """Return the fidelity with the largest plausible distance per square root of the cost.

    `distances` and `edges` are the distances of means and target mean from the nearest alternative,
    shape (M,) as most. The `counts` of the arms that share them have shape (n, M).
    """
    # Of unknown noise scales: the largest known one, or 1.
    is_known = np.isfinite(variances)
    sigmas = np.sqrt(np.where(is_known, variances, variances[is_known].max(initial=0.0)))
    if not is_known.any():
        sigmas = np.ones(len(costs))
    logs = np.log(np.maximum(2, counts.sum(axis=1, keepdims=True)))
    doubt = (sigmas * np.sqrt(2.0 * logs / np.maximum(counts, 1))).sum(axis=0)
    seen = (counts > 0).all(axis=0)
    farthest = float(np.min((edges + doubt)[seen])) if seen.any() else math.inf
    if math.isinf(farthest):
        return 0
    hoped = np.where(seen, np.minimum(distances + doubt, farthest), farthest)
    # Without noise, what counts is the cost; next to none, one value says nearly all.
    largest = float(sigmas.max())
    scales = np.maximum(sigmas, _LEAST_NOISE * largest) if largest > 0.0 else np.ones(len(costs))
    index = hoped / (scales * np.sqrt(costs))
    return int(np.argmax(index)) if index.max() > 0.0 else len(costs) - 1


class MFTopTwo(Race):
    """Top-two sampling across fidelities, with a stop by likelihood ratios.

    Each pull goes

    1. to the leader and the rival with the smallest likelihood ratio plus log counts (Jourdan et
       al., "Top Two Algorithms Revisited", NeurIPS 2022);
    2. of the two, to each in proportion to what the statistic owes to its observations (You et al.,
       "Information-Directed Selection for Top-Two Algorithms", COLT 2023);
    3. to the fidelity with the largest distance from the nearest alternative, in units of sigma
       and per square root of the cost, optimistically: as far as it may be.

    These rules decide about cost alone; the certificate rests on the stop.

    Parameters
    ----------
    variant
        "max" or "order": the kind of bias bounds to estimate, if they are (`estimated_bias`). A
        ValueError says that it contradicts the declared ones.
    radius
        Not taken (TypeError). The intervals that are shown are the tightest for the noise.

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

    def __init__(self, problem: Problem, *, variant: Kind | None = None, **options: Any) -> None:
        check_options("MFTopTwo", problem, variant, options)
        super().__init__(problem, TopTwo(LikelihoodStop(variant)), **options)


def check_options(
    name: str, problem: Problem, variant: Kind | None, options: dict[str, Any]
) -> None:
    """Raise TypeError or ValueError for what a race by likelihood ratios does not take."""
    check_instance("problem", problem, Problem, "a mfhpo.Problem")
    check_variant(variant, problem.bias)
    if options.pop("radius", None) is not None:
        raise TypeError(
            f"radius: {name} decides by likelihood ratios and takes none; leave it out, or use "
            f"IISE or MFLUCB."
        )
