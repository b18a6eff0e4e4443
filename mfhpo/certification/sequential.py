"""A certificate for the best of a shortlist, whatever search has drawn the shortlist up.

A search ends with the configuration whose value was the luckiest. Its best few are evaluated again,
with fresh noise, until the best of them is known with the confidence that is asked for: a race for
the best arm with fixed confidence, at one fidelity, by the policy that `recommend_policy` chooses.
The values of the search have made the shortlist, so they are biased by their own luck: they decide
which configurations are compared, and no mean contains them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count
from mfhpo.identification.choice import recommend_policy
from mfhpo.identification.likelihood.likelihood import OwnBiasLikelihood, prior_count
from mfhpo.identification.likelihood.likelihood_ratio import LikelihoodRatioPolicy
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.labels import Labels
from mfhpo.knowledge.noise import Bounded, SubGaussian
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Problem, Pull, plain
from mfhpo.racing.claims import joined, unseen_in_words, wrong_in_words
from mfhpo.racing.declaration import SigmaLike, as_noise, check_options, mirrored_noise
from mfhpo.racing.failures import outcomes_in_words
from mfhpo.racing.race import RacingPolicy
from mfhpo.racing.recommendation import short

__all__ = [
    "HIDDEN_NOISE",
    "LEAST_REPEATS",
    "Candidate",
    "CandidateResult",
    "Certificate",
    "Certification",
    "Standing",
    "check_shortlist",
    "refusal_in_words",
    "unseen_of",
]

Standing = Literal["certified", "best so far", "not told apart", "worse", "failed"]

IntArray = npt.NDArray[np.int64]

LEAST_REPEATS = 4
"""Repeats that must all be equal before it is said that there is no noise to be seen."""

HIDDEN_NOISE = (
    "all evaluations of a candidate gave exactly the same value, so that their noise cannot be "
    "seen: with a fixed seed or split, the search's own values say which is best for that one, and "
    "nothing is known of others"
)
"""Why nothing is certified then."""


@dataclass(frozen=True)
class Candidate:
    """A configuration of the shortlist, as the search has left it.

    Parameters
    ----------
    name
        How it is called, such as "trial 41".
    params
        The configuration.
    claim
        Its value in the search (the mean, where it has several).
    """

    name: str
    params: dict[str, Any]
    claim: float


def check_shortlist(candidates: Sequence[Candidate], luckiest: int) -> None:
    """Raise a ValueError unless there are two candidates at least, and the luckiest is one."""
    if len(candidates) < 2:
        raise ValueError(f"candidates must be at least 2, got {len(candidates)}.")
    if not 0 <= luckiest < len(candidates):
        raise ValueError(f"luckiest must be 0 to {len(candidates) - 1}, got {luckiest}.")


@dataclass(frozen=True)
class CandidateResult:
    """What the new evaluations say of a candidate.

    Parameters
    ----------
    name, params, claim
        See `Candidate`.
    evaluations
        Number of new evaluations that gave a value and that the mean rests on.
    mean
        Their mean; NaN without any.
    interval
        Bounds on the true mean that hold for all candidates together, at all times, with
        probability 1 - delta.
    gap
        By how much the claim was better than the mean: positive if it promised too much.
    gap_interval
        Bounds on by how much it was better than the true mean.
    standing
        "certified"; "best so far", if it leads without being certified; "not told apart" from the
        leader; "worse" than another candidate; "failed", if it left because its evaluations fail
        too often: it was not compared.
    values, failures
        Number of new evaluations with and without a value. The mean and the interval are those of
        evaluations that do not fail.
    """

    name: str
    params: dict[str, Any]
    claim: float
    evaluations: int
    mean: float
    interval: tuple[float, float]
    gap: float
    gap_interval: tuple[float, float]
    standing: Standing
    values: int = 0
    failures: int = 0

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        *,
        sign: float,
        count: int,
        mean: float,
        radius: float,
        standing: Standing,
        values: int | None = None,
        failures: int = 0,
    ) -> CandidateResult:
        """Compare a candidate's claim with its new evaluations.

        Parameters
        ----------
        candidate
            The candidate.
        sign
            1 if larger values are better, else -1.
        count, mean, radius
            Of the new evaluations; the mean is not used where the count is 0.
        standing, failures
            See `CandidateResult`.
        values
            Number of evaluations with a value; None: `count`.
        """
        mean = mean if count else math.nan
        low, high = (mean - radius, mean + radius) if count else (-math.inf, math.inf)
        gaps = sorted(sign * (candidate.claim - bound) for bound in (low, high))
        return cls(
            name=candidate.name,
            params=dict(candidate.params),
            claim=candidate.claim,
            evaluations=count,
            mean=mean,
            interval=(low, high),
            gap=sign * (candidate.claim - mean),
            gap_interval=(gaps[0], gaps[1]),
            standing=standing,
            values=count if values is None else values,
            failures=failures,
        )

    @property
    def outcomes(self) -> str:
        """How many of its evaluations failed, such as "failed 3 of 13"."""
        return outcomes_in_words(self.values, self.failures)


@dataclass(frozen=True)
class Certificate:
    """Which configuration of a shortlist to be content with, what it is worth, how sure that is.

    ``print`` it: the text says all of it.

    Parameters
    ----------
    candidates
        The shortlist, in the order of the search.
    winner
        Position of the winner among them, or None when all of them failed.
    luckiest
        Position of the candidate that the search would have handed over.
    delta, epsilon
        The error probability and the tolerance that were asked for; epsilon is NaN as long as it is
        to be derived from a noise that is not known.
    within
        The smallest tolerance that holds now: with probability at least 1 - delta, no compared
        candidate is better than the winner by more than this. At most epsilon where that is
        certified; infinite where nothing can be said.
    finished
        Whether the race is over: certified, out of budget, or without a noise that can be seen.
    certified
        Whether epsilon is reached.
    reason
        Why, or why not.
    evaluations
        Number of evaluations that were paid for, failures included.
    remaining
        A guess at how many more a certificate takes: 0 when certified, infinite for a tie with
        epsilon = 0, None when too little is known.
    about
        What the claim is about, such as "the 8 best of 200 trials".
    shortlist
        How these were chosen.
    assumptions
        How it was found, where that matters.
    conditions
        What must be true for the claim and the intervals, as clauses: "wrong with probability at
        most delta if ...".
    unseen
        Which rare outcomes the evaluations of the winner and of its closest rival cannot exclude;
        empty if nothing rests on that.
    notices
        What was observed that speaks against the conditions.

    Notes
    -----
    The tolerance that is certified and `within` rest on one event of probability 1 - delta; the
    intervals, which say what each candidate is worth, on another one.
    """

    candidates: tuple[CandidateResult, ...]
    winner: int | None
    luckiest: int
    delta: float
    epsilon: float
    within: float
    finished: bool
    certified: bool
    reason: str
    evaluations: int
    remaining: float | None
    about: str
    shortlist: str
    assumptions: tuple[str, ...]
    conditions: tuple[str, ...] = field(default=(), kw_only=True)
    unseen: str = field(default="", kw_only=True)
    notices: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def not_compared(self) -> tuple[CandidateResult, ...]:
        """The candidates that left because their evaluations fail too often."""
        return tuple(result for result in self.candidates if result.standing == "failed")

    @property
    def compared(self) -> int:
        """Number of candidates that the claim is about."""
        return len(self.candidates) - len(self.not_compared)

    @property
    def params(self) -> dict[str, Any]:
        """The winner's parameters; empty when all candidates failed."""
        return {} if self.winner is None else dict(self.candidates[self.winner].params)

    @property
    def mean(self) -> float:
        """Mean of the winner's new evaluations; NaN without any."""
        return math.nan if self.winner is None else self.candidates[self.winner].mean

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds on the winner's true mean."""
        if self.winner is None:
            return -math.inf, math.inf
        return self.candidates[self.winner].interval

    @property
    def luckiest_result(self) -> CandidateResult:
        """What became of the candidate that the search would have handed over."""
        return self.candidates[self.luckiest]

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain JSON values (what is not finite becomes None)."""
        content: dict[str, Any] = plain(asdict(self))
        return content

    def __str__(self) -> str:
        lines = [*self._head(), *self._luckiest_in_words(), *self._cost_in_words()]
        lines.append(f"  shortlist   {self.shortlist}")
        lines += [
            f"  not compared  {result.name}: {result.outcomes} evaluations"
            for result in self.not_compared
        ]
        lines += [f"  notice      {notice}" for notice in self.notices]
        lines += [f"  rests on    {assumption}" for assumption in self.assumptions]
        return "\n".join([*lines, *self._table()])

    def _head(self) -> list[str]:
        if self.winner is None:
            return ["NOT CERTIFIED: no candidate gave a value", f"  because     {self.reason}"]
        winner = self.candidates[self.winner]
        params = ", ".join(f"{name}={short(value)}" for name, value in winner.params.items())
        lines = [
            f"{'CERTIFIED' if self.certified else 'NOT CERTIFIED'}: {winner.name}, {params}",
            f"  value       {_value(winner)}, of {_evaluations(winner)}",
            *self._claim_in_words(),
        ]
        if not self.certified:
            epsilon = "one standard deviation of the noise"
            if math.isfinite(self.epsilon):
                epsilon = f"{self.epsilon:.3g}"
            lines.append(f"  aim         epsilon = {epsilon}, delta = {self.delta:g}")
        return [*lines, f"  because     {self.reason}"]

    def _claim_in_words(self) -> list[str]:
        """The claim and all that it is subject to."""
        lines = []
        tolerance = self.epsilon if self.certified else self.within
        if math.isfinite(tolerance):
            among = self.about
            if self.not_compared:
                among = f"the {self.compared} compared, of {self.about}"
            lines.append(
                f"  {'claim' if self.certified else 'what holds':12}within {tolerance:.3g} of the "
                f"best of {among}, {wrong_in_words(self.delta, self.conditions)}"
            )
        bounds = [result.interval for result in self.candidates]
        if any(math.isfinite(high - low) for low, high in bounds):
            wrong = wrong_in_words(self.delta, self.conditions)
            if lines:
                wrong = "wrong with the same probability on top, under the same conditions"
            lines.append(f"  intervals   at least one of them {wrong}")
        if self.unseen and lines:
            lines.append(f"  not excluded  {self.unseen}")
        return lines

    def _luckiest_in_words(self) -> list[str]:
        result = self.luckiest_result
        who = "the same" if self.luckiest == self.winner else result.name
        words = f"  luckiest    {who}, promised {result.claim:.5g} by the search; "
        if not result.evaluations:
            return [f"{words}no new evaluation gave a value"]
        words += f"{_value(result)} in {_evaluations(result)}"
        better = "too much" if result.gap >= 0.0 else "too little"
        low, high = result.gap_interval
        if not math.isfinite(high - low):
            return [words]
        amount = f"promised {abs(result.gap):.3g} {better} (too much by {low:.3g} to {high:.3g})"
        return [words, f"              {amount}"]

    def _cost_in_words(self) -> list[str]:
        failures = sum(result.failures for result in self.candidates)
        cost = f"  cost        {self.evaluations} evaluations"
        if failures:
            values = sum(result.values for result in self.candidates)
            cost += f"; {outcomes_in_words(values, failures)}, all values are those of the others"
        lines = [cost]
        if self.certified:
            return lines
        if self.remaining is None:
            return lines
        if math.isinf(self.remaining):
            return [*lines, "  to certify  no number will do (a tie); set epsilon above 0"]
        return [*lines, f"  to certify  about {self.remaining:.3g} more"]

    def _table(self) -> list[str]:
        rows = [("candidate", "promised", "evaluations", "mean", "interval", "", "")]
        for result in self.candidates:
            low, high = result.interval
            known = math.isfinite(high - low)
            rows.append(
                (
                    result.name,
                    f"{result.claim:.5g}",
                    str(result.evaluations),
                    f"{result.mean:.5g}" if result.evaluations else "-",
                    f"[{low:.5g}, {high:.5g}]" if known else "-",
                    result.standing,
                    result.outcomes if result.failures else "",
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                ["", *(cell.ljust(width) for cell, width in zip(row, widths, strict=True))]
            ).rstrip()
            for row in rows
        ]


class Certification:
    """A race among the candidates of a shortlist.

    Evaluate what `ask` names, anywhere and in any order, and `tell` the values.

    Parameters
    ----------
    candidates
        The shortlist, at least two.
    luckiest
        Position of the candidate that the search would have handed over.
    maximise
        Whether larger values are better.
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the values; None: one standard deviation of the noise.
    budget
        Largest number of evaluations, failures included, or None.
    sigma
        What is known of the noise (see `mfhpo.racing.declaration.as_noise`); None: estimated.
    measure
        Number of evaluations that the winner has at least.
    max_failures
        A candidate without any value leaves the race after so many failures; one with values once
        more than half of its evaluations surely fail (`mfhpo.racing.failures`). It is not compared
        then.
    seed
        Of the order in which candidates are evaluated first.

    Attributes
    ----------
    candidates, maximise
        As given.
    policy
        What chooses the evaluations.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong type, or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> truth, rng = [0.2, 0.9, 0.5], np.random.default_rng(0)
    >>> candidates = [Candidate(f"trial {k}", {"x": k}, claim=1.0) for k in range(3)]
    >>> race = Certification(candidates, luckiest=0, maximise=True)
    >>> while not race.finished:
    ...     arm = race.ask()
    ...     race.tell(arm, rng.normal(truth[arm], 0.1))
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
    ) -> None:
        check_shortlist(candidates, luckiest)
        check_options({"delta": delta, "epsilon": epsilon})
        if budget is not None:
            budget = check_count("budget", budget, 1)
        self.candidates = tuple(candidates)
        self.maximise = maximise
        self._luckiest = luckiest
        self._finds_epsilon = epsilon is None
        self._sign = 1.0 if maximise else -1.0
        noise = as_noise(sigma) if maximise else mirrored_noise(as_noise(sigma))
        problem = Problem(len(candidates), costs=(1.0,), bias=Bias.max(0.0), noise=noise)
        self.policy: Policy = recommend_policy(problem).make(
            problem,
            delta=delta,
            epsilon=epsilon,
            budget=budget,
            measure=measure,
            max_failures=max_failures,
            seed=seed,
        )
        self.policy.labels = Labels(
            arm=lambda arm: f"{self.candidates[arm].name} {self.candidates[arm].params}",
            fidelity=lambda fidelity: "the target",
            value=lambda value: self._sign * value,
        )
        self._failures = np.zeros(len(candidates), dtype=np.int64)
        self._counts = np.zeros(len(candidates), dtype=np.int64)
        self._lows = np.full(len(candidates), np.inf)
        self._highs = np.full(len(candidates), -np.inf)
        # Whoever declares that there is no noise is not told that none is seen.
        self._noiseless = isinstance(noise, SubGaussian) and noise.at(0, 1) == 0.0
        self._is_bounded = isinstance(noise, Bounded)

    def ask(self, pending: Sequence[int] = ()) -> int | None:
        """The candidate to evaluate next; None when all have failed.

        Parameters
        ----------
        pending
            Candidates of which an evaluation is under way, once for each.
        """
        pulls = self.policy.ask(1, [Pull(arm, 0) for arm in pending])
        return pulls[0].arm if pulls else None

    def tell(self, arm: int, value: float | None) -> None:
        """Learn from an evaluation of a candidate; None, or what is not finite, is a failure."""
        observation = Observation(None if value is None else self._sign * value)
        self.policy.tell(Pull(arm, 0), observation)
        self.note(arm, value)

    def note(self, arm: int, value: float | None) -> None:
        """Take note of an evaluation of which the policy was told by someone else."""
        observation = Observation(value)
        if value is None or observation.failed:
            self._failures[arm] += 1
            return
        self._counts[arm] += 1
        self._lows[arm] = min(self._lows[arm], value)
        self._highs[arm] = max(self._highs[arm], value)

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, out of budget, or without a noise to be seen."""
        return self.policy.finished or self.noise_is_hidden

    @property
    def noise_is_hidden(self) -> bool:
        """Whether all evaluations of each candidate gave exactly the same value."""
        if self._noiseless:
            return False
        repeats = int(np.maximum(self._counts - 1, 0).sum())
        varies = bool((self._highs > self._lows).any())
        return repeats >= max(LEAST_REPEATS, len(self.candidates)) and not varies

    def certificate(self, about: str, shortlist: str) -> Certificate:
        """The answer so far.

        Parameters
        ----------
        about
            What the claim is about, such as "the 8 best of 200 trials".
        shortlist
            How these were chosen.
        """
        answer = self.policy.recommend()
        hidden = self.noise_is_hidden
        certified = answer.certified and not hidden
        unknown = hidden or self.policy.piloting
        within = math.inf
        if answer.arm is not None and not hidden and answer.compared > 1:
            within = _tolerance(self.policy, answer.arm)
            if certified:
                # A certificate stays true when further evaluations make it look less sure.
                within = min(within, answer.epsilon)
        results = tuple(
            self._result(arm, answer.arm, certified) for arm in range(len(self.candidates))
        )
        rests_on_what_was_seen = not (hidden or self._noiseless or self._is_bounded)
        return Certificate(
            candidates=results,
            winner=answer.arm,
            luckiest=self._luckiest,
            delta=answer.delta,
            epsilon=math.nan if self._finds_epsilon and unknown else answer.epsilon,
            within=within,
            finished=self.finished,
            certified=certified,
            reason=HIDDEN_NOISE if hidden else answer.reason,
            evaluations=round(answer.cost),
            remaining=None if hidden else answer.remaining_cost,
            about=about,
            shortlist=shortlist,
            assumptions=() if hidden else answer.assumptions,
            conditions=() if hidden else (*answer.conditions, *self._constant_candidates()),
            unseen=unseen_of(results, answer.arm, self._sign, answer.delta)
            if rests_on_what_was_seen
            else "",
            notices=() if hidden else answer.notices,
        )

    def _result(self, arm: int, winner: int | None, certified: bool) -> CandidateResult:
        count, mean, radius = self.policy.summary(arm, 0)
        return CandidateResult.of(
            self.candidates[arm],
            sign=self._sign,
            count=count,
            mean=self._sign * mean,
            radius=math.inf if self.noise_is_hidden else radius,
            standing=self._standing(arm, winner, certified),
            values=int(self._counts[arm]),
            failures=int(self._failures[arm]),
        )

    def _standing(self, arm: int, winner: int | None, certified: bool) -> Standing:
        if arm == winner:
            return "certified" if certified else "best so far"
        if self._has_left(arm):
            return "failed"
        told_apart = arm not in self.policy.active and not self.noise_is_hidden
        return "worse" if told_apart else "not told apart"

    def _has_left(self, arm: int) -> bool:
        """Whether a candidate left the race without a comparison."""
        assert isinstance(self.policy, RacingPolicy)
        return bool(self.policy._roster.withdrawn[arm])

    def _constant_candidates(self) -> list[str]:
        """What must be true of candidates without noise where others have some."""
        if self._noiseless or not (self._highs > self._lows).any():
            return []
        constant = [
            candidate.name
            for arm, candidate in enumerate(self.candidates)
            if self._lows[arm] == self._highs[arm] and self._counts[arm] >= 3
        ]
        if not constant:
            return []
        return [f"the equal values of {joined(constant)} are not due to a fixed seed or split"]


def _tolerance(policy: Policy, leader: int) -> float:
    """The smallest epsilon for which no candidate is better than the leader by more.

    It rests on the event that the policy's certificate rests on, which does not depend on epsilon:
    that the best arm is never beaten by the statistic, or that all intervals hold.
    """
    others = policy.active[policy.active != leader]
    if not others.size:
        return 0.0
    _, mean, radius = policy.summary(leader, 0)
    summaries = [policy.summary(int(arm), 0) for arm in others]
    by_intervals = max(other + half for _, other, half in summaries) - (mean - radius)
    if not math.isfinite(by_intervals):
        return math.inf
    noisy = radius > 0.0 or any(half > 0.0 for _, _, half in summaries)
    if not (isinstance(policy, LikelihoodRatioPolicy) and noisy):
        return max(0.0, by_intervals)
    return _tolerance_by_ratio(policy, np.append(leader, others))


def _tolerance_by_ratio(policy: LikelihoodRatioPolicy, arms: IntArray) -> float:
    """The epsilon at which the statistic against each other arm reaches the threshold.

    With one fidelity it is ``w_i w_j / (w_i + w_j) (mean_i - mean_j + epsilon)^2`` less the
    penalties (`PairLikelihood`), where i leads, which is solved for epsilon.
    """
    evidence = policy._evidence
    likelihood = OwnBiasLikelihood(
        evidence.all_means(arms),
        evidence.counts[arms],
        evidence.variance_bounds(arms),
        np.zeros(1),
        prior_count(math.exp(-policy.threshold)),
    )
    means, weights, penalties = (
        array[:, 0] for array in (likelihood.means, likelihood.weights, likelihood.penalties)
    )
    joint = weights[0] / (weights[0] + weights[1:]) * weights[1:]
    needed = np.sqrt((policy.threshold + penalties[0] + penalties[1:]) / joint)
    return max(0.0, float(np.max(needed - means[0] + means[1:])))


def _value(result: CandidateResult) -> str:
    low, high = result.interval
    if not math.isfinite(high - low):
        return f"{result.mean:.5g}"
    return f"{result.mean:.5g} ± {(high - low) / 2.0:.2g} (in [{low:.5g}, {high:.5g}])"


def _evaluations(result: CandidateResult) -> str:
    words = f"{result.evaluations} new evaluation{'s' * (result.evaluations != 1)}"
    return f"{words} ({result.outcomes})" if result.failures else words


def refusal_in_words(lost: Sequence[tuple[str, int, int]]) -> str:
    """Why nothing is certified after candidates left that may be the best; empty if none did.

    Parameters
    ----------
    lost
        Name of each of them, and its evaluations with and without a value.

    Examples
    --------
    >>> refusal_in_words([("trial 3", 2, 19)]).split(": ")[1]
    'trial 3 failed 19 of 21 evaluations; mend the objective for it, or leave it out'
    """
    if not lost:
        return ""
    outcomes = [
        f"{name} {outcomes_in_words(values, failures)} evaluations"
        for name, values, failures in lost
    ]
    return (
        f"a candidate that could not be compared led when it left, or has a better mean than the "
        f"winner: {joined(outcomes)}; mend the objective for it, or leave it out"
    )


def unseen_of(
    results: Sequence[CandidateResult], winner: int | None, sign: float, delta: float
) -> str:
    """Which rare outcomes the values of the winner and of its closest rival cannot exclude.

    Parameters
    ----------
    results
        All candidates.
    winner
        Position of the winner, or None.
    sign
        1 if larger values are better, else -1.
    delta
        See `mfhpo.racing.claims.unseen_in_words`.
    """
    if winner is None:
        return ""
    rivals = [
        result
        for arm, result in enumerate(results)
        if arm != winner and result.standing != "failed" and result.evaluations
    ]
    # The closest one has the highest upper bound, and if that is infinite, the highest mean.
    closest = sorted(
        rivals, key=lambda result: (_highest(result, sign), sign * result.mean), reverse=True
    )
    seen = [(result.name, result.evaluations) for result in (results[winner], *closest[:1])]
    return unseen_in_words(seen, delta)


def _highest(result: CandidateResult, sign: float) -> float:
    return max(sign * bound for bound in result.interval)
