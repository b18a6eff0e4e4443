"""Intervals and certificate of candidates evaluated on the same splits: scikit-learn's.

What is hard about a split is hard for all candidates and drops out of their differences, so that
these vary far less than the values. The policies of `mfhpo.identification` take evaluations to be
independent and would not gain by it.

Why it is valid. A pair's differences are independent from round to round, and taken as normal with
a variance of their own: a t-interval at level delta / (K - 1) holds at all times
(`StudentMixtureRadius`). With probability 1 - delta it does so for the best candidate and each of
the others. Then the best is never found worse, and whoever is within epsilon of all that are left
is within epsilon of the best. The intervals of the candidates' own means, at level delta / K, are
another event.

A candidate whose evaluations fail too often leaves (`mfhpo.racing.failures`). The claim is then
about the others, and nothing is certified if it may have been the best by its values.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mfhpo._validation import check_count
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.contest import Contest
from mfhpo.knowledge.arrays import BoolArray, FloatArray
from mfhpo.knowledge.confidence import StudentMixtureRadius
from mfhpo.knowledge.normality import notices_of
from mfhpo.racing.claims import unseen_in_words

# Rounds before which no noise is estimated, if epsilon is to be derived from it.
_ROUNDS_FOR_NOISE = 5

# Normal differences are never all equal. Rounded ones may be, by chance: an interval of no width is
# only believed after so many rounds.
_ROUNDS_WITHOUT_SPREAD = 10

_RADIUS = StudentMixtureRadius()

# The differences decide on the claim; the values, on the intervals.
_CONDITIONS = (
    "rounds are independent",
    "values, and the differences of two candidates in a round, are normal",
)

_HIDDEN_NOISE = (
    "all evaluations of a candidate gave exactly the same value, so that their noise cannot be "
    "seen: a score that has few values on such data, or a fixed seed; take a finer score or more "
    "data, and draw a new seed in every round"
)


class PairedCertification(Contest):
    """A race among the candidates of a shortlist, round by round.

    Evaluate the candidates that `ask` names under the same conditions, new ones in every round, and
    `tell` the values.

    Parameters
    ----------
    candidates, luckiest, maximise, delta, epsilon, budget, measure, max_failures
        See `Certification`. The budget counts evaluations, and must pay for the first round.

    Examples
    --------
    >>> import numpy as np
    >>> truth, rng = np.array([0.82, 0.83, 0.8]), np.random.default_rng(0)
    >>> candidates = [Candidate(f"row {k}", {"x": k}, claim=0.9) for k in range(3)]
    >>> race = PairedCertification(candidates, luckiest=0, maximise=True, epsilon=0.002)
    >>> while not race.finished:
    ...     split = rng.normal(0.0, 0.05)
    ...     race.tell({arm: truth[arm] + split + rng.normal(0.0, 0.005) for arm in race.ask()})
    >>> answer = race.certificate("the 3 best of 10 rows", "by their scores")
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
        measure: int = 10,
        max_failures: int = 3,
    ) -> None:
        super().__init__(candidates, luckiest, maximise, delta, epsilon, max_failures)
        self.rounds = 0
        self._finds_epsilon = epsilon is None
        self._budget = math.inf
        if budget is not None:
            self._budget = check_count("budget", budget, len(candidates))
        self._measure = check_count("measure", measure, 0)
        # Maximised values, NaN where there is none: shape (rounds, K).
        self._seen: FloatArray = np.empty((0, len(candidates)))
        self._certified: int | None = None
        self._compare()

    def ask(self) -> list[int]:
        """The candidates to evaluate next, all under the same conditions; empty at the end."""
        if self._is_measured:
            return []
        if self._certified is not None:
            return [self._certified]
        return np.flatnonzero(self._active).tolist()

    def tell(self, values: Mapping[int, float | None]) -> None:
        """Learn the values of a round by candidate; None, or what is not finite, is a failure.

        A ValueError says that there is no such candidate.
        """
        row = np.full(len(self.candidates), np.nan)
        for arm in values:
            self._check(arm)
        for arm, value in values.items():
            seen = None if value is None or not math.isfinite(value) else value
            self._count(arm, seen)
            if seen is not None:
                row[arm] = self._sign * seen
        self._seen = np.vstack([self._seen, row])
        self.rounds += 1
        self._compare()

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, out of budget, or without a noise to be seen."""
        asked = self.ask()
        needed = self._evaluations + len(asked)
        return not asked or needed > self._budget or self.noise_is_hidden

    @property
    def noise_is_hidden(self) -> bool:
        """Whether all evaluations of each candidate gave exactly the same value."""
        # Rounds, not evaluations: what makes one of them equal to the last makes all of a round.
        enough = self.counts.max() >= _ROUNDS_WITHOUT_SPREAD
        return bool(enough and not self._vary.any())

    def _compare(self) -> None:
        values = self._seen
        has_value = ~np.isnan(values)
        filled = np.where(has_value, values, 0.0)
        weights = has_value.astype(np.float64)
        common = np.einsum("ri,rj->ij", weights, weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            differences = (filled.T @ weights - weights.T @ filled) / common
        deviations = values[:, :, None] - values[:, None, :] - differences
        squares = np.nansum(deviations**2, axis=0)
        # What rounding makes of values that are all equal.
        self._tiny = (1e-12 * float(np.abs(filled).max(initial=0.0))) ** 2
        radii = self._radii(common, self._delta / (len(self.candidates) - 1), squares)
        self._common, self._differences = common.astype(np.int64), differences
        self._take_out()
        # NaN, where two were never evaluated together, compares as False.
        beaten = (differences - radii > 0.0) & ~self._is_out[:, None]
        self._active = ~self._is_out & ~beaten.any(axis=0)
        self._upper = np.where(common > 0.0, differences + radii, np.inf)
        if self._certified is not None and self._is_out[self._certified]:
            self._certified = None
        # What is claimed holds for all tolerances at once, so this one may follow the values.
        if self._finds_epsilon and self._certified is None and self.rounds >= _ROUNDS_FOR_NOISE:
            # Pooled standard deviation of the values around their candidates' means.
            degrees = int(np.maximum(self.counts - 1, 0).sum())
            squares_of_all = float(self._own_squares().sum())
            self._epsilon = math.sqrt(squares_of_all / degrees) if degrees else 0.0
        leader = self._leader()
        undecided = self._certified is None and self._epsilon is not None
        if undecided and leader is not None and self._n_compared > 1:
            assert self._epsilon is not None
            self._certified = leader if self._within(leader) <= self._epsilon else None

    def _take_out(self) -> None:
        for arm in np.flatnonzero(~self._is_out & (self.failures > 0)).tolist():
            if not self._fails_too_often(arm):
                continue
            has_values = self.counts > 0
            others = ~self._is_out & has_values & (np.arange(len(has_values)) != arm)
            self._led[arm] = has_values[arm] and not self._are_ahead(arm)[others].any()
            self._is_out[arm] = True

    def _are_ahead(self, arm: int) -> BoolArray:
        """Who has higher values than this one, in common rounds if there are any, shape (K,)."""
        means = self._means()
        in_common = np.nan_to_num(self._differences[:, arm]) > 0.0
        return np.asarray(np.where(self._common[:, arm] > 0, in_common, means > means[arm]))

    def _radii(self, counts: FloatArray, level: float, squares: FloatArray) -> FloatArray:
        """Radii of means or of mean differences; constant values have none before enough rounds."""
        constant = squares <= self._tiny * counts
        radii = _RADIUS(counts, level, squares=np.where(constant, 0.0, squares))
        return np.where(constant & (counts < _ROUNDS_WITHOUT_SPREAD), np.inf, radii)

    def _leader(self) -> int | None:
        active = np.flatnonzero(self._active)
        if not active.size or not self.counts[active].any():
            return None
        within = np.array([self._within(arm) for arm in active.tolist()])
        if np.isfinite(within).any():
            return int(active[np.argmin(within)])
        most = self.counts[active] == self.counts[active].max()
        return int(active[np.argmax(np.where(most, self._means()[active], -np.inf))])

    def _within(self, leader: int) -> float:
        others = np.flatnonzero(self._active)
        others = others[others != leader]
        return max(0.0, float(self._upper[others, leader].max())) if others.size else 0.0

    def _means(self) -> FloatArray:
        return np.asarray(np.nansum(self._seen, axis=0) / np.maximum(self.counts, 1))

    def _own_squares(self) -> FloatArray:
        return np.asarray(np.nansum((self._seen - self._means()) ** 2, axis=0))

    def certificate(self, about: str, shortlist: str) -> Certificate:
        """The answer so far; see `Certification.certificate`."""
        hidden = self.noise_is_hidden
        winner = self._leader() if self._certified is None else self._certified
        refusal = ""
        means = self._means()
        if self._is_measured and winner is not None:
            ahead = self._are_ahead(winner) | (means > means[winner])
            ahead &= self.counts > 0
            refusal = self._refusal(self._is_out & (self._led | ahead))
        certified = self._is_measured and not hidden and not refusal
        within = math.inf
        if winner is not None and not hidden and self._n_compared > 1:
            within = self._within(winner)
            if self._certified is not None and self._epsilon is not None:
                within = min(within, self._epsilon)
        radii = self._radii(
            self.counts.astype(np.float64), self._delta / len(self.candidates), self._own_squares()
        )
        results = self._results(
            winner,
            certified,
            counts=self.counts,
            means=means,
            radii=np.where(hidden, math.inf, radii),
            failed=self._is_out,
            worse=~self._active & (not hidden),
        )
        return self._answer(
            hidden,
            candidates=results,
            finished=self.finished,
            winner=winner,
            epsilon=math.nan if hidden or self._epsilon is None else self._epsilon,
            within=within,
            certified=certified,
            reason=refusal or self._reason(winner),
            evaluations=self._evaluations,
            remaining=0.0 if certified else None,
            about=about,
            shortlist=shortlist,
            assumptions=(),
            conditions=_CONDITIONS,
            notices=self._notices(),
            unseen=self._unseen_rounds(winner),
        )

    def _notices(self) -> tuple[str, ...]:
        seen = self._sign * self._seen
        values = [column[~np.isnan(column)] for column in seen.T]
        return notices_of(values, [candidate.name for candidate in self.candidates])

    def _unseen_rounds(self, winner: int | None) -> str:
        """Which rare outcomes the rounds of the winner and its closest rival cannot exclude."""
        others = np.flatnonzero(~self._is_out & (np.arange(len(self.candidates)) != winner))
        if winner is None or not others.size:
            return ""
        # Where two were never evaluated together, the bound is infinite.
        rival = int(others[np.argmax(self._upper[others, winner])])
        rounds = int(self._common[winner, rival])
        names = f"{self.candidates[winner].name} and {self.candidates[rival].name}"
        return unseen_in_words([(names, rounds)], self._delta, unit="rounds")

    @property
    def _n_compared(self) -> int:
        return int((~self._is_out).sum())

    @property
    def _is_measured(self) -> bool:
        return self._certified is not None and bool(self.counts[self._certified] >= self._measure)

    def _reason(self, winner: int | None) -> str:
        left = int(self._active.sum())
        if winner is None:
            return "no candidate gave a value"
        if self.noise_is_hidden:
            return _HIDDEN_NOISE
        if self._is_measured:
            other = "other candidate"
            if self._is_out.any():
                other += " that was compared"
            if left == 1:
                return f"every {other} was found worse in the same rounds"
            return f"in the same rounds, no {other} can be better by more than epsilon"
        if self._n_compared == 1:
            return "every other candidate failed without being compared"
        why = f"{left} candidates are not told apart yet"
        if self._certified is not None:
            why = "the winner's value is still being measured"
        return f"the budget of {self._budget:g} is spent and {why}" if self.finished else why
