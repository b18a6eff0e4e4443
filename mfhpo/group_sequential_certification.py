"""A certificate for the best of a shortlist from few evaluations of each candidate.

Intervals that hold at all times, as those of `mfhpo.certification`, are many standard deviations
wide after five evaluations of an unknown noise. Here all candidates are evaluated equally often and
looked at a few times only, after 5, 10, 20, ... evaluations of each: the error probability is
divided among the looks, and at each of them ordinary t-intervals hold (a group-sequential design).

Why it is valid. A look rests on the first so many evaluations of each candidate, in the order in
which they were begun, whatever their values, so each mean is one of independent values, and the
variance of the candidates that are left is pooled (who is left depends on earlier looks; that
shifts its distribution, but less than can be counted). With probability at least 1 - delta / 2^j,
at look j the best candidate is behind each of the K - 1 others by less than the radius of their
difference: each comparison has the level delta / (2^j (K - 1)), on one side. Over all looks that
makes delta. Then the best candidate is never found worse than another one, and whoever is claimed
to be within epsilon of all that are left is within epsilon of the best. The intervals of the
candidates' own means, at level delta / (2^j K) on two sides, are another event of the same
probability.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri, stdtrit

from mfhpo._validation import check_count, check_nonnegative, check_probability
from mfhpo.certification import (
    HIDDEN_NOISE,
    LEAST_REPEATS,
    Candidate,
    CandidateResult,
    Certificate,
    Standing,
    check_shortlist,
)
from mfhpo.declared import SigmaLike, as_noise, check_options
from mfhpo.noise import Bounded, EstimatedNoise, Gaussian, declared_sigmas
from mfhpo.racing import ArmWithdrawnWarning

__all__ = ["FIRST_LOOK", "LEAST_FIRST_LOOK", "GroupSequentialCertification"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FIRST_LOOK = 5
"""Evaluations of each candidate before the first look, by default."""

LEAST_FIRST_LOOK = 2
"""Fewer do not show any noise."""

# Normal values are never all equal. Rounded ones may be, by chance: an interval of no width is only
# believed after so many.
_COUNT_WITHOUT_SPREAD = 10

# A variance above this quantile of what chance makes of the pooled one is a candidate's own.
_OWN_VARIANCE = 0.95


class GroupSequentialCertification:
    """A race among the candidates of a shortlist that is looked at a few times.

    Evaluate what `ask` names, anywhere, and `tell` the values: those of a candidate in the order in
    which its evaluations were begun (see `mfhpo.in_order`), candidates in any order.

    Parameters
    ----------
    candidates, luckiest, maximise, delta, epsilon, sigma, max_failures
        See `mfhpo.certification.Certification`. An estimated noise is taken to have the same
        variance for all candidates; one that clearly varies more than that is given its own.
    first_look
        Evaluations of each candidate before the first look, at least 2; each later look takes twice
        as many as the one before. One does if sigma says that there is no noise.

    Attributes
    ----------
    candidates, maximise
        As given.
    looks
        Number of looks so far.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong type, or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> truth, rng = [0.2, 0.9, 0.5], np.random.default_rng(0)
    >>> candidates = [Candidate(f"trial {k}", {"x": k}, claim=1.0) for k in range(3)]
    >>> race = GroupSequentialCertification(candidates, luckiest=0, maximise=True)
    >>> while not race.finished:
    ...     arm = race.ask()
    ...     race.tell(arm, rng.normal(truth[arm], 0.1))
    >>> answer = race.certificate("the 3 best of 10 trials", "by their values")
    >>> answer.params, answer.certified, answer.evaluations
    ({'x': 1}, True, 15)
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        luckiest: int,
        maximise: bool,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        max_failures: int = 3,
        first_look: int = FIRST_LOOK,
    ) -> None:
        check_shortlist(candidates, luckiest)
        n = len(candidates)
        check_options({"delta": delta, "epsilon": epsilon})
        check_probability("delta", delta)
        if epsilon is not None:
            check_nonnegative("epsilon", epsilon)
        self.candidates = tuple(candidates)
        self.maximise = maximise
        self.looks = 0
        self._luckiest = luckiest
        self._sign = 1.0 if maximise else -1.0
        self._delta = delta
        self._noise = as_noise(sigma)
        declared = declared_sigmas(self._noise, 1)
        self._sigma = None if declared is None else declared[0]
        self._epsilon = self._sigma if epsilon is None else epsilon
        self._finds_epsilon = self._epsilon is None
        self._max_failures = check_count("max_failures", max_failures, 1)
        check_count("first_look", first_look, LEAST_FIRST_LOOK)
        self._first_look = 1 if self._sigma == 0.0 else first_look
        self._evaluations = 0
        self._values: list[list[float]] = [[] for _ in candidates]
        self._failures: IntArray = np.zeros(n, dtype=np.int64)
        self._beaten_by: IntArray = np.full(n, -1, dtype=np.int64)
        # As of the last look that a candidate took part in.
        self._counts: IntArray = np.zeros(n, dtype=np.int64)
        self._means: FloatArray = np.full(n, np.nan)
        self._radii: FloatArray = np.full(n, np.inf)
        self._leader: int | None = None
        self._behind = math.inf  # by how much the leader may be behind another candidate
        self._radius = math.inf  # of the comparison that decides on it
        self._is_certified = False

    # Running it.

    def ask(self, pending: Sequence[int] = ()) -> int | None:
        """The candidate to evaluate next; None when the race is over.

        Parameters
        ----------
        pending
            Candidates of which an evaluation is under way, once for each.
        """
        counts = self._expected(pending)
        left = np.flatnonzero(self._is_left)
        return None if self.finished else int(left[np.argmin(counts[left])])

    def looks_with(self, pending: Sequence[int]) -> int:
        """Number of looks once what is under way has ended, if all of it gives values."""
        counts = self._expected(pending)[self._is_left]
        looks = self.looks
        if not self.finished:
            while (counts >= self._size(looks)).all():
                looks += 1
        return looks

    def missing(self, pending: Sequence[int] = ()) -> int:
        """Evaluations that the next look takes besides those that are under way.

        Where those will do for it, the look after it is meant.
        """
        counts = self._expected(pending)[self._is_left]
        return int(np.maximum(self._size(self.looks_with(pending)) - counts, 0).sum())

    def tell(self, arm: int, value: float | None) -> None:
        """Learn from an evaluation of a candidate; None, or what is not finite, is a failure.

        Raises
        ------
        ValueError
            If there is no such candidate.
        """
        if not 0 <= arm < len(self.candidates):
            raise ValueError(f"arm must be 0 to {len(self.candidates) - 1}, got {arm}.")
        self._evaluations += 1
        if value is None or not math.isfinite(value):
            self._failures[arm] += 1
            if self._failures[arm] == self._max_failures:
                self._take_out(arm)
        else:
            self._values[arm].append(self._sign * value)
            if not self._is_out[arm]:
                self._failures[arm] = 0
        while not self.finished and self._is_due:
            self._look()

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, nothing left to compare, or no noise to be seen.

        If all but one fail, that one is evaluated until the first look, to know what it is worth.
        """
        left = np.flatnonzero(self._is_left)
        nothing_left = left.size == 0 or (left.size == 1 and self._counts[left[0]] > 0)
        return self._is_certified or nothing_left or self.noise_is_hidden

    @property
    def noise_is_hidden(self) -> bool:
        """Whether all evaluations of each candidate gave exactly the same value."""
        if self._sigma == 0.0:
            return False
        repeats = sum(max(len(values) - 1, 0) for values in self._values)
        varies = any(len(set(values)) > 1 for values in self._values)
        return repeats >= max(LEAST_REPEATS, len(self.candidates)) and not varies

    def _take_out(self, arm: int) -> None:
        """Draw the consequences of a candidate's last failure."""
        if self._is_beaten[arm]:
            return
        candidate = self.candidates[arm]
        warnings.warn(
            f"{candidate.name} {candidate.params} leaves the race: {self._max_failures} "
            f"evaluations in a row gave no value; mend the objective for this configuration, or "
            f"raise max_failures={self._max_failures}",
            ArmWithdrawnWarning,
            stacklevel=3,
        )
        # Those that only this one has beaten may be the best of the others.
        freed = [arm]
        while freed:
            by_it = np.flatnonzero(self._beaten_by == freed.pop())
            self._beaten_by[by_it] = -1
            freed += by_it[self._is_out[by_it]].tolist()
        if arm == self._leader:
            self._is_certified = False
        left = np.flatnonzero(self._is_left)
        if left.size == 1 and self._is_beaten.any():
            self._leader, self._behind, self._is_certified = int(left[0]), 0.0, True

    # What it knows.

    @property
    def _is_out(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._failures >= self._max_failures)

    @property
    def _is_left(self) -> npt.NDArray[np.bool_]:
        return np.asarray(~self._is_out & ~self._is_beaten)

    @property
    def _is_beaten(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._beaten_by >= 0)

    def _expected(self, pending: Sequence[int]) -> IntArray:
        counts = np.array([len(values) for values in self._values], dtype=np.int64)
        np.add.at(counts, np.array(pending, dtype=np.int64), 1)
        return counts

    def _size(self, look: int) -> int:
        return self._first_look << look

    @property
    def _is_due(self) -> bool:
        size = self._size(self.looks)
        left = np.flatnonzero(self._is_left)
        return all(len(self._values[arm]) >= size for arm in left)

    def _look(self) -> None:
        """Compare the candidates that are left by equally many values of each."""
        size = self._size(self.looks)
        self.looks += 1
        level = self._delta / 2.0**self.looks
        left = np.flatnonzero(self._is_left)
        values = np.array([self._values[arm][:size] for arm in left])
        means = values.mean(axis=1)
        # Rounding must not give values that are all the same a variance.
        squares = ((values - means[:, None]) ** 2).sum(axis=1) / max(size - 1, 1)
        variances = np.where(np.ptp(values, axis=1) == 0.0, 0.0, squares)
        k = len(self.candidates)
        self._counts[left], self._means[left] = size, means
        self._radii[left] = self._radius_of(size, variances, variances, 1.0, level / (2.0 * k))
        leader = int(np.argmax(means))
        self._leader = int(left[leader])
        if len(left) == 1:
            self._radius = self._behind = math.inf
            return
        others = np.arange(len(left)) != leader
        pairs = (variances + variances[leader]) / 2.0
        radii = self._radius_of(size, pairs, variances, 2.0, level / (k - 1))[others]
        ahead = means[leader] - means[others]
        worst = int(np.argmax(radii - ahead))
        self._radius = float(radii[worst])
        self._behind = max(0.0, float(radii[worst] - ahead[worst]))
        self._beaten_by[left[others][ahead > radii]] = self._leader
        if self._finds_epsilon:
            self._epsilon = float(np.sqrt(variances.mean()))
        assert self._epsilon is not None
        self._is_certified = self._behind <= self._epsilon

    def _radius_of(
        self, size: int, own: FloatArray, all_left: FloatArray, times: float, level: float
    ) -> FloatArray:
        """Radii on one side, shape of `own`, for means with `times` the variance of one mean.

        Parameters
        ----------
        size
            Values of each mean.
        own
            Variances of those that are meant, shape (n,).
        all_left
            Variances of all candidates that are left, shape (m,).
        times
            1 for means, 2 for differences of two.
        level
            Error probability on one side.
        """
        if self._sigma is not None:
            width = self._sigma * math.sqrt(2.0 * times * math.log(1.0 / level) / size)
            return np.full(own.shape, width)
        pooled, degrees = float(all_left.mean()), len(all_left) * (size - 1)
        most = pooled * fdtri(size - 1, degrees, _OWN_VARIANCE)
        is_own = (own > most) | isinstance(self._noise, Gaussian)
        variances = np.where(is_own, own, pooled)
        quantiles = -stdtrit(np.where(is_own, size - 1, degrees), level)
        radii = quantiles * np.sqrt(times * variances / size)
        return np.where((variances == 0.0) & (size < _COUNT_WITHOUT_SPREAD), np.inf, radii)

    # The answer.

    def certificate(self, about: str, shortlist: str) -> Certificate:
        """The answer as of the last look; see `mfhpo.certification.Certification.certificate`."""
        hidden = self.noise_is_hidden
        winner = self._winner()
        certified = self._is_certified and winner == self._leader
        looked_at = self.looks > 0 and winner == self._leader and not hidden
        return Certificate(
            candidates=tuple(
                self._result(arm, winner, certified, hidden) for arm in range(len(self.candidates))
            ),
            winner=winner,
            luckiest=self._luckiest,
            delta=self._delta,
            epsilon=math.nan if self._epsilon is None or hidden else self._epsilon,
            within=self._behind if looked_at else math.inf,
            finished=self.finished,
            certified=certified,
            reason=self._reason(winner, certified, hidden),
            evaluations=self._evaluations,
            remaining=0.0 if certified else self._remaining(looked_at),
            about=about,
            shortlist=shortlist,
            assumptions=() if hidden else self._assumptions(),
        )

    def _winner(self) -> int | None:
        """The leader of the last look; before any, the search's: a few values do not unseat it."""
        if self._leader is not None and not self._is_out[self._leader]:
            return self._leader
        seen = [arm for arm in np.flatnonzero(self._is_left).tolist() if self._values[arm]]
        if not self.looks and not self.noise_is_hidden:
            return next(iter(seen), None)
        return max(seen, key=lambda arm: float(np.mean(self._values[arm])), default=None)

    def _result(
        self, arm: int, winner: int | None, certified: bool, hidden: bool
    ) -> CandidateResult:
        count, mean = int(self._counts[arm]), float(self._means[arm])
        if not count and self._values[arm]:
            count, mean = len(self._values[arm]), float(np.mean(self._values[arm]))
        return CandidateResult.of(
            self.candidates[arm],
            sign=self._sign,
            count=count,
            mean=self._sign * mean,
            radius=math.inf if hidden else float(self._radii[arm]),
            standing=self._standing(arm, winner, certified),
        )

    def _standing(self, arm: int, winner: int | None, certified: bool) -> Standing:
        if arm == winner:
            return "certified" if certified else "best so far"
        if self._is_beaten[arm]:
            return "worse"
        return "failed" if self._is_out[arm] else "not told apart"

    def _reason(self, winner: int | None, certified: bool, hidden: bool) -> str:
        if winner is None:
            return "no candidate gave a value"
        if hidden:
            return HIDDEN_NOISE
        left = int(self._is_left.sum())
        if certified:
            if left == 1:
                return "every other candidate was found worse"
            return "no other candidate can be better by more than epsilon"
        if left == 1:
            return "every other candidate failed without being compared"
        look = f"after {self._size(self.looks)} evaluations of each"
        if not self.looks:
            return f"nothing can be said yet; the first look is {look}"
        return f"{left} candidates are not told apart yet; the next look is {look}"

    def _remaining(self, looked_at: bool) -> float | None:
        """A guess: the radius shrinks as the root of the count, and the lead stays."""
        if not looked_at or self._epsilon is None:
            return None
        lead = self._radius - self._behind + self._epsilon
        if not math.isfinite(lead):
            return None
        if lead <= 0.0:
            return math.inf
        looks = max(1, math.ceil(2.0 * math.log2(self._radius / lead)))
        left = np.flatnonzero(self._is_left)
        needed = self._size(self.looks - 1 + looks)
        return float(sum(max(0, needed - len(self._values[arm])) for arm in left))

    def _assumptions(self) -> tuple[str, ...]:
        looks = f"looked at after {self._size(0)}, {self._size(1)}, ... evaluations of each"
        noise = {
            EstimatedNoise: "normal noise, one variance for all candidates, estimated",
            Gaussian: "normal noise, each candidate's variance its own, estimated",
            Bounded: "values within the declared bounds",
        }.get(type(self._noise), f"sub-Gaussian noise, sigma = {self._sigma}")
        parts = [f"independent evaluations; {noise}", looks]
        failed = np.flatnonzero(self._is_out & ~self._is_beaten)
        if failed.size:
            names = ", ".join(self.candidates[arm].name for arm in failed)
            parts.append(f"not compared, because their evaluations failed: {names}")
        return tuple(parts)
