"""Intervals and certificate that hold at any time: `certify` of a study or of a fitted search.

A search's best few are evaluated again, from scratch, by the policy that `recommend_policy`
chooses, or in blocks by `BlockElimination`. The values of the search have made the shortlist, so
they are biased by their own luck: no mean contains them.
"""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo._validation import check_count
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.choice import choose_blocks, recommend_policy
from mfhpo.certification.contest import HIDDEN_NOISE, Contest
from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.identification.likelihood.likelihood_ratio import LikelihoodRatioPolicy
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, SubGaussian
from mfhpo.policy import Labels, Policy
from mfhpo.problem import Observation, Problem, Pull
from mfhpo.racing.claims import joined
from mfhpo.racing.declaration import SigmaLike, as_noise, mirrored_noise
from mfhpo.racing.race import RacingPolicy

# To which share of the interval's width the tolerance is worked out.
_PRECISION = 1e-4

# The tolerance is looked for up to so many times the values' spread.
_MOST_SPREADS = 1e6

# Candidates often have equal scores on one split, so that a few equal replicates hide no noise.
_LEAST_REPLICATES = 10

_HIDDEN_IN_BLOCKS = (
    "all evaluations of a candidate gave exactly the same value, so that their noise cannot be "
    "seen: a score that has few values on such data, or a seed or split that is always the same; "
    "take a finer score or more data, and draw a new seed in every replicate"
)


class Certification(Contest):
    """A race among the candidates of a shortlist.

    Evaluate what `ask` names, anywhere and in any order, and `tell` the values. The `policy`
    chooses the evaluations.

    Parameters
    ----------
    candidates, luckiest, maximise
        The shortlist, at least two; the position of the one that the search would have handed over;
        and whether larger values are better.
    delta, epsilon
        Probability of a wrong certificate, in (0, 1), and tolerance in the unit of the values;
        None: one standard deviation of the noise.
    budget, measure
        Largest number of evaluations, failures included, or None; and least number for the winner.
    sigma
        What is known of the noise (see `mfhpo.racing.declaration.as_noise`); None: estimated.
    blocks
        Whether evaluations of the same block share their replicate, a split or a seed. Candidates
        are then compared by their differences in the same blocks, and the claim is about the mean
        over replicates. A `sigma` has no part in it, and the budget must pay for one block
        (ValueError).
    max_failures
        See `mfhpo.racing.failures.fails_too_often`; who does leaves, and is not compared.
    seed
        Of the order in which candidates are evaluated first.

    Examples
    --------
    >>> import numpy as np
    >>> truth, rng = [0.2, 0.9, 0.5], np.random.default_rng(0)
    >>> candidates = [Candidate(f"trial {k}", {"x": k}, claim=1.0) for k in range(3)]
    >>> race = Certification(candidates, luckiest=0, maximise=True)
    >>> while not race.finished:
    ...     pull = race.ask()
    ...     race.tell(pull, rng.normal(truth[pull.arm], 0.1))
    >>> answer = race.certificate("the 3 best of 10 trials", "by their values")
    >>> answer.params, answer.certified
    ({'x': 1}, True)
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        luckiest: int,
        maximise: bool,
        delta: float = 0.05,
        epsilon: float | None = None,
        budget: int | None = None,
        sigma: SigmaLike = None,
        measure: int = 10,
        max_failures: int = 3,
        seed: int = 0,
        blocks: bool = False,
    ) -> None:
        super().__init__(candidates, luckiest, maximise, delta, epsilon, max_failures)
        if blocks and sigma is not None:
            raise ValueError(f"sigma={sigma!r} has no part in blocks; leave it out.")
        noise = as_noise(sigma) if maximise else mirrored_noise(as_noise(sigma))
        least = len(candidates) if blocks else 1
        problem = Problem(len(candidates), costs=(1.0,), bias=Bias.max(0.0), noise=noise)
        choice = choose_blocks() if blocks else recommend_policy(problem)
        self.policy: Policy = choice.make(
            problem,
            delta=delta,
            epsilon=epsilon,
            budget=None if budget is None else check_count("budget", budget, least),
            measure=measure,
            max_failures=max_failures,
            seed=seed,
        )
        self.policy.labels = Labels(
            arm=lambda arm: f"{self.candidates[arm].name} {self.candidates[arm].params}",
            fidelity=lambda fidelity: "the target",
            value=lambda value: self._sign * value,
        )
        # Whoever declares that there is no noise is not told that none is seen.
        self._noiseless = isinstance(noise, SubGaussian) and noise.at(0, 1) == 0.0
        self._is_bounded = isinstance(noise, Bounded)
        self._in_blocks = blocks

    def ask(self, pending: Sequence[Pull] = ()) -> Pull | None:
        """The pull to evaluate next, given those under way; None when all have failed.

        Its `arm` is the candidate, and its `block` names the replicate.
        """
        pulls = self.policy.ask(1, pending)
        return pulls[0] if pulls else None

    def tell(self, pull: Pull, value: float | None) -> None:
        """Learn from an evaluation that was asked for; None or what is not finite is a failure."""
        observation = Observation(None if value is None else self._sign * value)
        self.policy.tell(pull, observation)
        self.note(pull.arm, value)

    def note(self, arm: int, value: float | None) -> None:
        """Take note of an evaluation of which the policy was told by someone else."""
        self._count(arm, None if Observation(value).failed else value)

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, out of budget, or without a noise to be seen."""
        return self.policy.finished or self.noise_is_hidden

    @property
    def noise_is_hidden(self) -> bool:
        """Whether all evaluations of each candidate gave exactly the same value."""
        if self._in_blocks:
            return bool(self.counts.max() >= _LEAST_REPLICATES and not self._vary.any())
        return not self._noiseless and self._repeats_are_equal

    def certificate(self, about: str, shortlist: str) -> Certificate:
        """The answer so far.

        `about` is what the claim is about, such as "the 8 best of 200 trials", and `shortlist` how
        these were chosen.
        """
        answer = self.policy.recommend()
        hidden = self.noise_is_hidden
        winner = answer.arm if self.counts.any() else None
        certified = answer.certified and not hidden
        within = math.inf
        if winner is not None and not hidden and answer.compared > 1:
            within = _tolerance(self.policy, winner)
            if certified:
                # A certificate stays true when further evaluations make it look less sure.
                within = min(within, answer.epsilon)
        arms = range(len(self.candidates))
        counts, means, radii = zip(*(self.policy.summary(arm, 0) for arm in arms), strict=True)
        assert isinstance(self.policy, RacingPolicy)
        results = self._results(
            winner,
            certified,
            counts=counts,
            means=means,
            radii=[math.inf] * len(arms) if hidden else radii,
            failed=self.policy._roster.withdrawn,
            worse=~np.isin(arms, self.policy.active) & (not hidden),
        )
        epsilon_is_unknown = self._epsilon is None and (hidden or self.policy.piloting)
        unit = "replicates" if self._in_blocks else "evaluations"
        rests_on_what_was_seen = not (self._noiseless or self._is_bounded)
        return self._answer(
            hidden,
            candidates=results,
            finished=self.finished,
            winner=winner,
            epsilon=math.nan if epsilon_is_unknown else answer.epsilon,
            within=within,
            certified=certified,
            reason=self._hidden_in_words if hidden else answer.reason,
            evaluations=round(answer.cost),
            remaining=None if hidden else answer.remaining_cost,
            about=about,
            shortlist=shortlist,
            assumptions=answer.assumptions,
            conditions=(*answer.conditions, *self._constant_candidates()),
            unseen=self._unseen(results, winner, unit) if rests_on_what_was_seen else "",
            notices=answer.notices,
        )

    @property
    def _hidden_in_words(self) -> str:
        return _HIDDEN_IN_BLOCKS if self._in_blocks else HIDDEN_NOISE

    def _constant_candidates(self) -> list[str]:
        vary = self._vary
        if self._noiseless or not vary.any():
            return []
        constant = [self.candidates[arm].name for arm in np.flatnonzero(~vary & (self.counts >= 3))]
        if not constant:
            return []
        return [f"the equal values of {joined(constant)} are not due to a fixed seed or split"]


def _tolerance(policy: Policy, leader: int) -> float:
    """The smallest epsilon for which no candidate is better than the leader by more.

    It rests on the event that the policy's certificate rests on, which does not depend on epsilon.
    """
    others = policy.active[policy.active != leader]
    if not others.size:
        return 0.0
    found = math.inf
    if not isinstance(policy, BlockElimination):
        # In blocks, arms are compared by their differences alone.
        _, mean, radius = policy.summary(leader, 0)
        summaries = [policy.summary(int(arm), 0) for arm in others]
        found = max(0.0, max(other + half for _, other, half in summaries) - (mean - radius))
    if isinstance(policy, (BlockElimination, LikelihoodRatioPolicy)):
        found = min(found, _least_tolerance(policy, leader))
    return found


def _least_tolerance(policy: BlockElimination | LikelihoodRatioPolicy, leader: int) -> float:
    """The epsilon at which the evidence against all others reaches the threshold, or infinity."""
    most = spread = policy.spread
    while policy.falls_short(leader, most) > 0.0:
        if not 0.0 < most < _MOST_SPREADS * spread:
            return math.inf
        most *= 2.0
    low, high = 0.0, most
    while high - low > _PRECISION * most:
        middle = (low + high) / 2.0
        falls_short = policy.falls_short(leader, middle) > 0.0
        low, high = (middle, high) if falls_short else (low, middle)
    return high
