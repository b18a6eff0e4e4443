"""The race among the candidates of a shortlist, and its certificate.

The values of the search have made the shortlist, so they are biased by their own luck: the means
contain new evaluations only.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from mfhpo._validation import check_count, check_index, check_probability, shown
from mfhpo.certification.baseline import AgainstBaseline, Baseline, delta_of_race
from mfhpo.certification.candidates import (
    Candidate,
    CandidateResult,
    on_coarse_values,
    on_constant_values,
    vary,
)
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.choice import recommend_policy
from mfhpo.certification.selection import excess_in_blocks, excess_of
from mfhpo.certification.tolerance import tolerance
from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.identification.likelihood.blocks import Blocks
from mfhpo.identification.round_elimination import RoundElimination
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian, within_range
from mfhpo.problem import Labels, Observation, Policy, Problem, Pull
from mfhpo.racing.declaration import SigmaLike, as_noise, mirrored_noise
from mfhpo.racing.noise_evidence import LEAST_REPEATS
from mfhpo.racing.race import Race
from mfhpo.racing.sentences import joined, unseen_in_words

MakeCertifier: TypeAlias = Callable[..., Policy]
"""Makes the policy that certifies a shortlist, of a problem with one level and of options."""

# Candidates often have equal scores on one split, so that a few equal replicates hide no noise.
_LEAST_REPLICATES = 10

# A radius that is stated, at most, as a multiple of the range of all values.
_WIDEST = 2.0

_HIDDEN = (
    "all evaluations of a candidate gave exactly the same value, so that their noise cannot be "
    "seen: draw a new seed or split in every evaluation, or take a finer score or more data"
)


class Certification:
    """A race among the candidates of a shortlist, whose `policy` chooses the evaluations.

    Evaluate what `ask` names, anywhere, and `tell` the values.

    Parameters
    ----------
    candidates, luckiest, baseline
        The shortlist, at least two, and the positions of the search's own answer and of the
        configuration in use today.
    delta, epsilon, sigma, max_failures
        See `mfhpo.search.BudgetedSearch`.
    budget, measure
        Largest number of evaluations, failures included, and least number of the winner's.
    blocks, replicates
        Whether candidates share the replicates of a block, a split or a seed, and how many there
        are, such as 5 folds, which the claim is then about.
    first_look
        Evaluations of each candidate before the first planned look (`GroupSequential`), without a
        budget and `measure`. None: the race is looked at after each evaluation.
    certifier
        Makes the policy, where neither `blocks` nor `first_look` is given.
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
        replicates: int | None = None,
        first_look: int | None = None,
        certifier: MakeCertifier | None = None,
        baseline: int | None = None,
    ) -> None:
        n = len(candidates)
        if n < 2:
            raise ValueError(f"candidates must be at least 2, got {n}.")
        check_index("luckiest", luckiest, n)
        self.candidates = tuple(candidates)
        self._values: list[list[float]] = [[] for _ in candidates]
        self._ruled_out: Counter[int] = Counter()  # evaluations that gave the worst value
        self._luckiest = luckiest
        self._sign = 1.0 if maximise else -1.0
        self._worst = -math.inf * self._sign
        self._noise = as_noise(sigma)  # of the values as they are told
        usable = (EstimatedNoise,) if first_look is not None else (EstimatedNoise, Bounded)
        if blocks and not isinstance(self._noise, usable):
            raise ValueError(
                f"sigma={shown(sigma)} has no part in blocks; declare Bounded(low, high) if no "
                f"value lies outside, or leave it out."
            )
        if replicates is not None and not blocks:
            raise ValueError(f"replicates={replicates} has no part without blocks; leave it out.")
        if first_look is not None and budget is not None:
            raise ValueError(f"budget={budget} has no part beside first_look; leave one out.")
        noise = mirrored_noise(self._noise, self._sign)
        problem = Problem(n, costs=(1.0,), bias=Bias.max(0.0), noise=noise)
        self._delta = check_probability("delta", delta)
        options: dict[str, Any] = {"delta": delta_of_race(self._delta, baseline), "seed": seed}
        options |= {"epsilon": epsilon, "max_failures": max_failures}
        made: Policy
        if first_look is not None:
            made = GroupSequential(problem, first_look=first_look, blocks=blocks, **options)
        else:
            least = n if blocks else 1
            options["budget"] = None if budget is None else check_count("budget", budget, least)
            make = BlockElimination if blocks else certifier or _certifier_of(problem)
            made = make(problem, measure=measure, **options)
        assert isinstance(made, Race)
        self.policy = made
        made.most_blocks = None if replicates is None else check_count("replicates", replicates, 1)
        self._baseline = None
        if baseline is not None:
            self._baseline = AgainstBaseline(made, check_index("baseline", baseline, n))
        made.labels = Labels(
            arm=lambda arm: f"{self.candidates[arm].name} {self.candidates[arm].params}",
            fidelity=lambda fidelity: "the target",
            value=lambda value: self._sign * value,
        )
        self._finds_epsilon = epsilon is None
        # Whoever declares that there is no noise is not told that none is seen.
        self._noiseless = isinstance(noise, SubGaussian) and noise.at(0, 1) == 0.0
        self._is_bounded = isinstance(noise, Bounded)
        self._in_blocks = blocks

    def ask(self, pending: Sequence[Pull] = ()) -> Pull | None:
        """Return the next candidate to pull and its replicate, `block`; None when all failed."""
        pulls = self.policy.ask(1, pending)
        return pulls[0] if pulls else None

    def tell(self, pull: Pull, value: float | None, stopped_at: float | None = None) -> None:
        """Learn from an evaluation; None or what is not finite is a failure, unless it was stopped.

        The values of a candidate belong in the order in which their evaluations were begun, but in
        blocks.
        """
        signed = None if value is None else self._sign * value
        observation = Observation(signed, censored_at=stopped_at)
        self.policy.tell(pull, observation)
        if value is not None and observation.has_value:
            self._values[pull.arm].append(value)
        if self._baseline is not None:
            self._baseline.look()

    def rule_out(self, arm: int) -> None:
        """Note an evaluation that gave the worst value, such as -inf: so is the mean then."""
        self._ruled_out[arm] += 1
        self.policy.held_cost += 1.0
        self.policy.rule_out(arm)
        if self._baseline is not None:
            self._baseline.look()

    @property
    def evaluations(self) -> int:
        """How many evaluations were told, failures included."""
        missing = int(self.policy.known.missing.sum())
        return sum(map(len, self._values)) + missing + self._ruled_out.total()

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, out of budget, or without a noise to be seen."""
        return self.policy.finished or self.noise_is_hidden

    @property
    def noise_is_hidden(self) -> bool:
        """Whether all evaluations of each candidate gave exactly the same value."""
        if not self._rests_on_noise or any(map(vary, self._values)):
            return False
        counts = [len(values) for values in self._values]
        if self._in_blocks:
            return max(counts) >= _LEAST_REPLICATES
        repeats = sum(max(count - 1, 0) for count in counts)
        return repeats >= max(LEAST_REPEATS, len(counts))

    def certificate(self, about: str, shortlist: str) -> Certificate:
        """Return the answer so far (see `Certificate` for `about` and `shortlist`)."""
        answer, hidden, worst = self.policy.recommend(), self.noise_is_hidden, self._worst
        winner = None if math.isnan(answer.mean) else answer.arm
        reason, notices = answer.reason, [*answer.notices]
        named = [*zip((one.name for one in self.candidates), self._values, strict=True)]
        if self._rests_on_noise and not self._is_bounded:
            notices += on_coarse_values(named, self._in_blocks)
        if hidden:
            seen = [arm for arm in self.policy.active.tolist() if self._values[arm]]
            winner = max(seen, key=lambda arm: self._sign * min(self._values[arm]), default=None)
            reason, notices = _HIDDEN, []
        n_left = len(self.candidates) - len(self._ruled_out)
        is_last = winner is not None and n_left == 1 and not hidden
        if is_last or not n_left:
            reason = f"every {'other ' if is_last else ''}candidate gave {worst}"
        constant = on_constant_values(named) if self._rests_on_noise else []
        if self._ruled_out:
            names = joined([self.candidates[arm].name for arm in sorted(self._ruled_out)])
            notices += [f"{names} gave {worst}, and so on average: no other candidate is worse"]
        epsilon = answer.epsilon
        if self._finds_epsilon and (hidden or self.policy.piloting):
            epsilon = 0.0 if is_last else math.nan
        certified = is_last or (answer.certified and not hidden)
        within = 0.0 if is_last else math.inf
        if winner is not None and not is_last and not hidden and answer.compared > 1:
            # A certificate stays true when further evaluations make it look less sure.
            most = answer.epsilon if certified else math.inf
            within = min(tolerance(self.policy, winner), most)
        results = self._results(winner, certified)
        return Certificate(
            luckiest=self._luckiest,
            delta=self._delta,
            candidates=results,
            finished=self.finished,
            winner=winner,
            epsilon=epsilon,
            within=within,
            certified=certified,
            reason=reason,
            evaluations=self.evaluations,
            remaining=0.0 if is_last else None if hidden else answer.remaining_cost,
            about=about,
            shortlist=shortlist,
            assumptions=() if hidden else answer.assumptions,
            conditions=() if hidden else (*answer.conditions, *constant),
            unseen="" if hidden else self._unseen(results, winner),
            notices=tuple(notices),
            corrected_mean=self._corrected_mean(results, winner),
            baseline=self._compared_with_baseline(winner, within if certified else None),
            replicates=self.policy.replicates,
            is_exact=answer.is_exact,
        )

    def _compared_with_baseline(self, winner: int | None, most: float | None) -> Baseline | None:
        if winner is None or self._baseline is None:
            return None
        today = self.candidates[self._baseline.arm]
        found = self._baseline.compared(winner, most, today.params, today.name)
        if self.noise_is_hidden and found.verdict != "failed":
            return replace(found, verdict="not told apart", at_least=-math.inf)
        return found

    @property
    def _rests_on_noise(self) -> bool:
        known = self.policy.known
        return not self._noiseless and known.needs.rests_on_noise(known)

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on a candidate's true mean, however wide."""
        count, mean, radius = self.policy.summary(arm, 0)
        if not count or self.noise_is_hidden:
            return -math.inf, math.inf
        return self._sign * mean - radius, self._sign * mean + radius

    def _stated(self, interval: tuple[float, float], seen: float) -> tuple[float, float]:
        low, high = within_range(interval, self._noise)
        is_declared = isinstance(self._noise, (Bounded, SubGaussian))
        if not is_declared and high - low > 2.0 * _WIDEST * seen:
            return -math.inf, math.inf
        return low, high

    def _results(self, winner: int | None, certified: bool) -> tuple[CandidateResult, ...]:
        arms, known = np.arange(len(self.candidates)), self.policy.known
        worse = ~np.isin(arms, self.policy.active) & (not self.noise_is_hidden)
        standings = np.where(worse, "worse", "not told apart")
        standings[known.roster.withdrawn] = "failed"
        if winner is not None:
            standings[winner] = "certified" if certified else "best so far"
        standings[list(self._ruled_out)] = "worse"
        values = [*chain(*self._values), *(candidate.claim for candidate in self.candidates)]
        seen = float(np.nanmax(values) - np.nanmin(values))
        results = []
        for arm, candidate in enumerate(self.candidates):
            count, mean, _ = self.policy.summary(arm, 0)
            mean, n_values = self._sign * mean, len(self._values[arm]) + self._ruled_out[arm]
            widest = math.inf if arm == winner and certified else seen
            interval = self._stated(self.interval(arm), widest)
            if arm in self._ruled_out:
                count, mean, interval = n_values, self._worst, (self._worst, self._worst)
            found = CandidateResult.of(
                candidate,
                self._sign,
                mean=mean if count else math.nan,
                interval=interval,
                evaluations=count,
                standing=standings[arm].item(),
                values=n_values,
                failures=int(known.failures[arm, 0]),
                stops=int(known.stops[arm, 0]),
            )
            results.append(found)
        return tuple(results)

    def _corrected_mean(self, results: Sequence[CandidateResult], winner: int | None) -> float:
        if winner is None:
            return math.nan
        mean, policy = results[winner].mean, self.policy
        rivals = [
            arm
            for arm, result in enumerate(results)
            if arm != winner and result.standing == "not told apart" and result.evaluations
        ]
        arms = [winner, *rivals]
        if self._in_blocks and isinstance(policy.known.needs.intake, Blocks):
            blocks = policy.known.needs.intake
            seen = blocks.seen(winner)[: results[winner].evaluations]
            size = policy.most_blocks or math.inf
            found = excess_in_blocks(blocks.values[arms][:, seen], 0, size)
        else:
            values = [self._values[arm][: results[arm].evaluations] for arm in arms]
            found = excess_of([self._sign * np.array(each) for each in values], 0)
        low, high = results[winner].interval
        return min(max(mean - self._sign * found, low), high)

    def _unseen(self, results: Sequence[CandidateResult], winner: int | None) -> str:
        if winner is None or self._is_bounded or not self._rests_on_noise:
            return ""
        rivals = [
            result
            for arm, result in enumerate(results)
            if arm not in {winner, *self._ruled_out}
            and result.standing != "failed"
            and result.evaluations
        ]
        closest = sorted(rivals, key=lambda one: self._sign * one.mean)[-1:]
        seen = [(result.name, result.evaluations) for result in (results[winner], *closest)]
        unit = "replicates" if self._in_blocks else "evaluations"
        return unseen_in_words(seen, self._delta, unit)


def _certifier_of(problem: Problem) -> MakeCertifier:
    """Return what makes the policy that suits a few candidates at the target."""
    if isinstance(problem.noise, (EstimatedNoise, Gaussian)):
        return RoundElimination  # rounds need the fewest evaluations of a few candidates
    return recommend_policy(problem).make
