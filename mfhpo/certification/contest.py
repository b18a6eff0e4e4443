"""What the three contests among candidates keep; each computes its intervals itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mfhpo.certification.candidates import Candidate, CandidateResult
from mfhpo.knowledge.arrays import BoolArray, IntArray
from mfhpo.racing.claims import joined, unseen_in_words
from mfhpo.racing.failures import fails_too_often, outcomes_in_words

__all__ = ["HIDDEN_NOISE", "Contest"]


HIDDEN_NOISE = (
    "all evaluations of a candidate gave exactly the same value, so that their noise cannot be "
    "seen: with a fixed seed or split, the search's own values say which is best for that one, and "
    "nothing is known of others"
)
"""Why nothing is certified then."""

# Repeats that must all be equal before it is said that there is no noise to be seen.
_LEAST_REPEATS = 4


class Contest:
    """The candidates, their direction, and how often each gave a value or failed.

    `sign` is 1 if larger values are better, else -1; `counts` and `failures` are the numbers of
    evaluations with and without a value, shape (K,).
    """

    def __init__(self, candidates: Sequence[Candidate], luckiest: int, maximise: bool) -> None:
        n = len(candidates)
        if n < 2:
            raise ValueError(f"candidates must be at least 2, got {n}.")
        if not 0 <= luckiest < n:
            raise ValueError(f"luckiest must be 0 to {n - 1}, got {luckiest}.")
        self.candidates = tuple(candidates)
        self.luckiest = luckiest
        self.sign = 1.0 if maximise else -1.0
        self.counts: IntArray = np.zeros(n, dtype=np.int64)
        self.failures: IntArray = np.zeros(n, dtype=np.int64)
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

    def check(self, arm: int) -> None:
        """Raise ValueError unless there is such a candidate."""
        if not 0 <= arm < len(self.candidates):
            raise ValueError(f"arm must be 0 to {len(self.candidates) - 1}, got {arm}.")

    @property
    def evaluations(self) -> int:
        """Number of evaluations, failures included."""
        return int(self.counts.sum() + self.failures.sum())

    @property
    def vary(self) -> BoolArray:
        """Whose values are not all the same, shape (K,)."""
        return np.asarray(self._highs > self._lows)

    @property
    def hides_noise(self) -> bool:
        """Whether all values of each candidate are the same although there were repeats."""
        repeats = int(np.maximum(self.counts - 1, 0).sum())
        return repeats >= max(_LEAST_REPEATS, len(self.counts)) and not self.vary.any()

    def fails_too_often(self, arm: int, max_failures: int) -> bool:
        """Whether a candidate is to leave; see `mfhpo.racing.failures.fails_too_often`."""
        return fails_too_often(int(self.counts[arm]), int(self.failures[arm]), max_failures)

    def results(
        self,
        winner: int | None,
        certified: bool,
        *,
        counts: npt.ArrayLike,
        means: npt.ArrayLike,
        radii: npt.ArrayLike,
        failed: BoolArray,
        worse: BoolArray,
    ) -> tuple[CandidateResult, ...]:
        """What the new evaluations say of all candidates.

        All arrays have the shape (K,). Means are of maximised values; `failed` are those that left
        without a comparison.
        """
        standings = np.where(failed, "failed", np.where(worse, "worse", "not told apart")).tolist()
        if winner is not None:
            standings[winner] = "certified" if certified else "best so far"
        figures = [np.asarray(column).tolist() for column in (counts, means, radii)]
        columns = zip(self.candidates, *figures, standings, strict=True)
        return tuple(
            CandidateResult.of(
                candidate,
                sign=self.sign,
                count=count,
                mean=self.sign * mean,
                radius=radius,
                standing=standing,
                values=int(self.counts[arm]),
                failures=int(self.failures[arm]),
            )
            for arm, (candidate, count, mean, radius, standing) in enumerate(columns)
        )

    def refusal(self, lost: BoolArray) -> str:
        """Why nothing is certified after these left and may be the best; empty if none did."""
        outcomes = [
            f"{self.candidates[arm].name} "
            f"{outcomes_in_words(int(self.counts[arm]), int(self.failures[arm]))} evaluations"
            for arm in np.flatnonzero(lost).tolist()
        ]
        if not outcomes:
            return ""
        return (
            f"a candidate that could not be compared led when it left, or has a better mean than "
            f"the winner: {joined(outcomes)}; mend the objective for it, or leave it out"
        )

    def unseen(self, results: Sequence[CandidateResult], winner: int | None, delta: float) -> str:
        """Which rare outcomes the values of the winner and its closest rival cannot exclude."""
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
            key=lambda one: (max(self.sign * b for b in one.interval), self.sign * one.mean),
            reverse=True,
        )
        seen = [(result.name, result.evaluations) for result in (results[winner], *closest[:1])]
        return unseen_in_words(seen, delta)
