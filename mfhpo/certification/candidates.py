"""The candidates of a shortlist: what the search promised, and what new evaluations say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from mfhpo.racing.noise_evidence import LEAST_REPEATS
from mfhpo.racing.sentences import joined, outcomes_in_words

Standing = Literal["certified", "best so far", "not told apart", "worse", "failed"]

T = TypeVar("T")

TOP = 6
"""The configurations that are compared by default: of fewer, the best is more often left out."""

_FAR_BELOW = 3.0  # standard errors by which a configuration is far below the best


@dataclass(frozen=True)
class Candidate:
    """A configuration of the shortlist; the `claim` is its mean value in the search, or NaN.

    `best_value` is that of the search's best trial, for the candidate that the trial is one of.
    """

    name: str
    params: dict[str, Any]
    claim: float
    best_value: float | None = field(default=None, kw_only=True)

    @property
    def promise(self) -> float:
        """What whoever trusts the search expects of it: the best trial's value, or the claim."""
        return self.claim if self.best_value is None else self.best_value


@dataclass(frozen=True)
class Shortlist:
    """The candidates, the best first, and where they come from."""

    candidates: tuple[Candidate, ...]
    luckiest: int  # the position of the search's own answer
    about: str  # the subject of a claim, such as "the 8 best of 200 trials"
    words: str  # how they were chosen
    baseline: int | None = field(default=None, kw_only=True)  # its position
    # Of the search for each candidate; the n-th ones of all may come from the same split.
    own_values: tuple[tuple[float, ...], ...] = field(default=(), kw_only=True)
    shares_splits: bool = field(default=False, kw_only=True)


def own_noise(own_values: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation of values of the same configuration; None if too few repeat."""
    degrees = sum(max(len(values) - 1, 0) for values in own_values)
    if degrees < LEAST_REPEATS:
        return None
    squares = sum(float(np.var(values)) * len(values) for values in own_values if len(values))
    return math.sqrt(squares / degrees) or None


def n_finalists(
    own_values: Sequence[Sequence[float]], sign: float, top: int | None
) -> tuple[int, int]:
    """Return how many of a ranking to compare, and how many of `TOP` are far below the first."""
    if top is not None:
        return top, 0
    own_values = own_values[:TOP]
    noise, kept = own_noise(own_values), len(own_values)
    while noise is not None and kept > 2:
        best, last = own_values[0], own_values[kept - 1]
        error = noise * math.sqrt(1.0 / len(best) + 1.0 / len(last))
        if sign * (float(np.mean(best)) - float(np.mean(last))) <= _FAR_BELOW * error:
            break
        kept -= 1
    return kept, len(own_values) - kept


def best_of(
    ranked: Sequence[T], luckiest: int, top: int, baseline: T | None = None
) -> tuple[list[T], int, int | None]:
    """Return the first `top` of a ranking, and the places of the luckiest and of the baseline.

    The luckiest takes the last place if it is not among them, and the baseline comes besides.
    """
    kept = list(ranked[:top])
    if luckiest >= top:
        kept[-1], luckiest = ranked[luckiest], top - 1
    if baseline is None:
        return kept, luckiest, None
    if not any(one is baseline for one in kept):
        kept.append(baseline)
    if len(kept) < 2:
        kept += [one for one in ranked if one is not baseline][:1]
    if len(kept) < 2:
        raise ValueError(
            "the baseline is the only configuration: there is nothing to compare it with."
        )
    return kept, luckiest, [one is baseline for one in kept].index(True)


def chosen_in_words(
    whose: str, n_trials: int, n_kept: int, n_configurations: int, why_not: str, n_far: int = 0
) -> str:
    """Return how a shortlist was chosen: by whose values, out of what, and what was left out."""
    words = f"by the {whose}'s own values, out of {n_configurations} configurations"
    if n_kept > n_configurations:
        words += f" in {n_kept} trials (repeats by their mean)"
    if n_trials > n_kept:
        n_left_out = n_trials - n_kept
        words += f"; {n_left_out} trial{'s' * (n_left_out != 1)} left out ({why_not})"
    words += far_in_words(n_far)
    return f"{words}; the means below use new evaluations only"


def far_in_words(n_far: int) -> str:
    """Say how many finalists a shortlist does without."""
    return f"; {n_far} more left out, whose own values are far below the best" if n_far else ""


@dataclass(frozen=True)
class CandidateResult(Candidate):
    """A candidate, and what the new evaluations say about it.

    Parameters
    ----------
    evaluations, mean
        Number of new evaluations that the mean rests on, and that; NaN without any.
    interval
        Bounds on the true mean that hold for all candidates together, at all times, with
        probability 1 - delta; infinite where there are too few evaluations.
    gap, gap_interval
        By how much the promise was better than the mean; and bounds on by how much it was better
        than the true mean.
    standing
        "certified"; "best so far", if it leads without being certified; "not told apart" from the
        leader; "worse" than another candidate; "failed" too often, and not compared.
    values, failures, stops
        Number of new evaluations with a value, that failed, and that were stopped at a time limit.
    """

    evaluations: int
    mean: float
    interval: tuple[float, float]
    gap: float
    gap_interval: tuple[float, float]
    standing: Standing
    values: int = 0
    failures: int = 0
    stops: int = 0

    @classmethod
    def of(cls, candidate: Candidate, sign: float, **told: Any) -> CandidateResult:
        """Compare a promise with new evaluations; `sign` is -1 where values are minimised."""
        low, high = sorted(sign * (candidate.promise - bound) for bound in told["interval"])
        gap = sign * (candidate.promise - told["mean"])
        return cls(**vars(candidate), gap=gap, gap_interval=(low, high), **told)

    @property
    def outcomes(self) -> str:
        """Number of evaluations without a value, such as "failed 3 of 13"; empty for none."""
        if not self.failures + self.stops:
            return ""
        return outcomes_in_words(self.values, self.failures, self.stops)


def vary(values: Sequence[float]) -> bool:
    """Return whether values differ."""
    return any(value != values[0] for value in values)


def on_constant_values(told: Sequence[tuple[str, Sequence[float]]]) -> list[str]:
    """Return the condition on candidates whose values are equal, though others' vary."""
    constant = [name for name, own in told if len(own) >= 3 and not vary(own)]
    if not (constant and any(vary(own) for _, own in told)):
        return []
    return [f"the equal values of {joined(constant)} are not due to a fixed seed or split"]


def on_coarse_values(told: Sequence[tuple[str, Sequence[float]]], in_blocks: bool) -> list[str]:
    """Return a notice if scores in [0, 1] are too coarse for normal noise."""
    coarse = [
        name
        for name, own in told
        if len(own) >= LEAST_REPEATS and 2 * Counter(own).most_common(1)[0][1] > len(own)
    ]
    lies_within = all(0.0 <= value <= 1.0 for _, own in told for value in own)
    if not (coarse and lies_within):
        return []
    remedy = "take a finer score or more data"
    if not in_blocks:
        remedy = f"declare Bounded(0, 1) if no value can lie outside, or {remedy}"
    return [
        f"more than half of the values of {joined(coarse)} are equal, and all values lie in "
        f"[0, 1]: claims that rest on normal noise may be wrong; {remedy}"
    ]
