"""What the races among candidates share; each computes its intervals itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count, check_nonnegative, check_probability
from mfhpo.certification.candidates import Candidate, CandidateResult
from mfhpo.certification.certificate import Certificate
from mfhpo.knowledge.arrays import BoolArray, IntArray
from mfhpo.racing.claims import joined, unseen_in_words
from mfhpo.racing.failures import fails_too_often, outcomes_in_words

HIDDEN_NOISE = (
    "all evaluations of a candidate gave exactly the same value, so that their noise cannot be "
    "seen: with a fixed seed or split, the search's own values say which is best for that one, and "
    "nothing is known of others"
)
"""Why nothing is certified then."""

# Repeats that must all be equal before it is said that there is no noise to be seen.
_LEAST_REPEATS = 4


class Contest:
    """The candidates, and how often each gave a value or failed: `counts`, `failures`, shape (K,).

    For the arguments see `mfhpo.certification.sequential.Certification`.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        luckiest: int,
        maximise: bool,
        delta: float,
        epsilon: float | None,
        max_failures: int,
    ) -> None:
        n = len(candidates)
        if n < 2:
            raise ValueError(f"candidates must be at least 2, got {n}.")
        if not 0 <= luckiest < n:
            raise ValueError(f"luckiest must be 0 to {n - 1}, got {luckiest}.")
        self.candidates = tuple(candidates)
        self.counts: IntArray = np.zeros(n, dtype=np.int64)
        self.failures: IntArray = np.zeros(n, dtype=np.int64)
        self._is_out: BoolArray = np.zeros(n, dtype=bool)  # fails too often
        self._led: BoolArray = np.zeros(n, dtype=bool)  # when it left
        self._luckiest = luckiest
        self._sign = 1.0 if maximise else -1.0
        self._delta = check_probability("delta", delta)
        self._epsilon = None if epsilon is None else check_nonnegative("epsilon", epsilon)
        self._max_failures = check_count("max_failures", max_failures, 1)
        self._lows = np.full(n, np.inf)
        self._highs = np.full(n, -np.inf)

    def _count(self, arm: int, value: float | None) -> None:
        if value is None:
            self.failures[arm] += 1
            return
        self.counts[arm] += 1
        self._lows[arm] = min(self._lows[arm], value)
        self._highs[arm] = max(self._highs[arm], value)

    def _check(self, arm: int) -> None:
        if not 0 <= arm < len(self.candidates):
            raise ValueError(f"arm must be 0 to {len(self.candidates) - 1}, got {arm}.")

    @property
    def evaluations(self) -> int:
        """How many evaluations were told, failures included."""
        return int(self.counts.sum() + self.failures.sum())

    @property
    def _vary(self) -> BoolArray:
        return np.asarray(self._highs > self._lows)

    @property
    def _repeats_are_equal(self) -> bool:
        repeats = int(np.maximum(self.counts - 1, 0).sum())
        return repeats >= max(_LEAST_REPEATS, len(self.counts)) and not self._vary.any()

    def _fails_too_often(self, arm: int) -> bool:
        return fails_too_often(int(self.counts[arm]), int(self.failures[arm]), self._max_failures)

    def _results(
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
        """What the new evaluations say of all candidates, given arrays of shape (K,).

        Means are of maximised values; `failed` are those that left without a comparison.
        """
        standings = np.where(failed, "failed", np.where(worse, "worse", "not told apart")).tolist()
        if winner is not None:
            standings[winner] = "certified" if certified else "best so far"
        figures = [np.asarray(column).tolist() for column in (counts, means, radii)]
        columns = zip(self.candidates, *figures, standings, strict=True)
        return tuple(
            CandidateResult.of(
                candidate,
                sign=self._sign,
                count=count,
                mean=self._sign * mean,
                radius=radius,
                standing=standing,
                values=int(self.counts[arm]),
                failures=int(self.failures[arm]),
            )
            for arm, (candidate, count, mean, radius, standing) in enumerate(columns)
        )

    def _answer(self, hidden: bool, **content: Any) -> Certificate:
        """The certificate, without a claim where the noise is hidden."""
        certificate = Certificate(luckiest=self._luckiest, delta=self._delta, **content)
        return certificate.without_claim() if hidden else certificate

    def _refusal(self, lost: BoolArray) -> str:
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

    def _unseen(
        self, results: Sequence[CandidateResult], winner: int | None, unit: str = "evaluations"
    ) -> str:
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
            key=lambda one: (max(self._sign * b for b in one.interval), self._sign * one.mean),
            reverse=True,
        )
        seen = [(result.name, result.evaluations) for result in (results[winner], *closest[:1])]
        return unseen_in_words(seen, self._delta, unit)
