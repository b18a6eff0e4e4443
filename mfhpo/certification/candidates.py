"""The candidates of a shortlist: what the search promised, and what new evaluations say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from mfhpo.racing.claims import joined, unseen_in_words
from mfhpo.racing.failures import outcomes_in_words

__all__ = [
    "HIDDEN_NOISE",
    "Candidate",
    "CandidateResult",
    "Shortlist",
    "Standing",
    "Tally",
    "best_of",
    "check_shortlist",
    "refusal_in_words",
    "results_of",
    "unseen_of",
]

Standing = Literal["certified", "best so far", "not told apart", "worse", "failed"]

T = TypeVar("T")

# Repeats that must all be equal before it is said that there is no noise to be seen.
_LEAST_REPEATS = 4

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


@dataclass(frozen=True)
class Shortlist:
    """What is compared, and where it comes from.

    Parameters
    ----------
    candidates
        The configurations, the best first.
    luckiest
        Position of the one that the search would have handed over.
    about
        What a claim is about, such as "the 8 best of 200 trials".
    words
        How they were chosen.
    """

    candidates: tuple[Candidate, ...]
    luckiest: int
    about: str
    words: str


def best_of(ranked: Sequence[T], luckiest: int, top: int) -> tuple[list[T], int]:
    """The first `top` of a ranking and the luckiest one's place; it replaces the last if need be.

    Examples
    --------
    >>> best_of("abcd", luckiest=3, top=2)
    (['a', 'd'], 1)
    """
    kept = list(ranked[:top])
    if luckiest >= top:
        kept[-1], luckiest = ranked[luckiest], top - 1
    return kept, luckiest


def check_shortlist(candidates: Sequence[Candidate], luckiest: int) -> tuple[Candidate, ...]:
    """Return at least two candidates as a tuple; ValueError unless the luckiest is one of them."""
    if len(candidates) < 2:
        raise ValueError(f"candidates must be at least 2, got {len(candidates)}.")
    if not 0 <= luckiest < len(candidates):
        raise ValueError(f"luckiest must be 0 to {len(candidates) - 1}, got {luckiest}.")
    return tuple(candidates)


class Tally:
    """How many values and failures each candidate has, and whether its values vary.

    Attributes
    ----------
    counts, failures
        Evaluations with and without a value, shape (K,).
    """

    def __init__(self, n: int) -> None:
        self.counts: npt.NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self.failures: npt.NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self._lows = np.full(n, np.inf)
        self._highs = np.full(n, -np.inf)

    def add(self, arm: int, value: float | None) -> None:
        """Count an evaluation; None is a failure."""
        if value is None:
            self.failures[arm] += 1
            return
        self.counts[arm] += 1
        self._lows[arm] = min(self._lows[arm], value)
        self._highs[arm] = max(self._highs[arm], value)

    @property
    def vary(self) -> npt.NDArray[np.bool_]:
        """Whose values are not all the same, shape (K,)."""
        return np.asarray(self._highs > self._lows)

    @property
    def hides_noise(self) -> bool:
        """Whether all values of each candidate are the same although there were repeats."""
        repeats = int(np.maximum(self.counts - 1, 0).sum())
        return repeats >= max(_LEAST_REPEATS, len(self.counts)) and not self.vary.any()


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


def results_of(
    candidates: Sequence[Candidate],
    sign: float,
    *,
    winner: int | None,
    certified: bool,
    counts: npt.ArrayLike,
    means: npt.ArrayLike,
    radii: npt.ArrayLike,
    failed: npt.ArrayLike,
    worse: npt.ArrayLike,
    tally: Tally,
) -> tuple[CandidateResult, ...]:
    """What the new evaluations say of all candidates.

    Parameters
    ----------
    candidates, sign
        The candidates; 1 if larger values are better, else -1.
    winner, certified
        Who leads, and whether that is certified.
    counts, means, radii
        Of the maximised values, shape (K,).
    failed, worse
        Who left without a comparison, and who is worse than another one, shape (K,).
    tally
        All that was told.
    """
    standings = np.where(failed, "failed", np.where(worse, "worse", "not told apart")).tolist()
    if winner is not None:
        standings[winner] = "certified" if certified else "best so far"
    figures = [np.asarray(column).tolist() for column in (counts, means, radii)]
    return tuple(
        CandidateResult.of(
            candidate,
            sign=sign,
            count=count,
            mean=sign * mean,
            radius=radius,
            standing=standing,
            values=int(tally.counts[arm]),
            failures=int(tally.failures[arm]),
        )
        for arm, (candidate, count, mean, radius, standing) in enumerate(
            zip(candidates, *figures, standings, strict=True)
        )
    )


def refusal_in_words(
    candidates: Sequence[Candidate], lost: npt.NDArray[np.bool_], tally: Tally
) -> str:
    """Why nothing is certified after candidates left that may be the best; empty if none did.

    Parameters
    ----------
    candidates
        The candidates.
    lost
        Who left and may be the best, shape (K,).
    tally
        All that was told.
    """
    if not lost.any():
        return ""
    outcomes = [
        f"{candidates[arm].name} "
        f"{outcomes_in_words(int(tally.counts[arm]), int(tally.failures[arm]))} evaluations"
        for arm in np.flatnonzero(lost).tolist()
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
        rivals,
        key=lambda result: (max(sign * bound for bound in result.interval), sign * result.mean),
        reverse=True,
    )
    seen = [(result.name, result.evaluations) for result in (results[winner], *closest[:1])]
    return unseen_in_words(seen, delta)
