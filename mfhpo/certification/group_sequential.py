"""Intervals and certificate from a few looks at a shortlist: a search's on a budget.

All candidates are evaluated equally often and looked at after 5, 10, 20, ... evaluations of each (a
group-sequential design). Intervals that hold at all times are much wider after five evaluations of
an unknown noise.

Why it is valid. A look rests on the first so many values of each candidate, in the order in which
the evaluations were begun, so each mean is one of independent values. Each candidate has a variance
and a Student interval of its own. For the difference of two, the same quantile is taken with the
sum of both variances, which is conservative for every ratio of these (Mickey and Brown 1966). Look
j has the error probability delta / 2^j, divided among the K - 1 comparisons with the best
candidate, each on one side. So with probability 1 - delta the best is never found worse, and
whoever is within epsilon of all that are left is within epsilon of the best. The intervals of the
candidates' own means, at level delta / (2^j K) on two sides, are another event of the same
probability.

A candidate whose evaluations fail too often leaves (`mfhpo.racing.failures`). The claim is then
about the others, and nothing is certified if it may have been the best by its values.
"""

import math
import warnings
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import check_count
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.contest import HIDDEN_NOISE, Contest
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.noise import (
    CONTRADICTED,
    Bounded,
    NoiseAudit,
    NoiseContradictedWarning,
    SubGaussian,
    declared_sigmas,
)
from mfhpo.knowledge.normality import notices_of
from mfhpo.racing.declaration import SigmaLike, as_noise
from mfhpo.racing.race import ArmWithdrawnWarning

FIRST_LOOK = 5
"""Evaluations of each candidate before the first look, by default."""

LEAST_FIRST_LOOK = 2
"""Fewer do not show any noise."""

# Normal values are never all equal. Rounded ones may be, by chance: an interval of no width is only
# believed after so many.
_COUNT_WITHOUT_SPREAD = 10


class GroupSequentialCertification(Contest):
    """A race among the candidates of a shortlist that is looked at a few times.

    Evaluate what `ask` names, anywhere, and `tell` the values: those of a candidate in the order in
    which its evaluations were begun (see `mfhpo.racing.in_order`), candidates in any order.

    Parameters
    ----------
    candidates, luckiest, maximise, delta, epsilon, sigma, max_failures
        See `Certification`. Each candidate has a variance of its own unless sigma declares the
        noise. The default epsilon is the root of their mean. A declared sigma that the values
        contradict is given up, with a warning (`NoiseAudit`).
    first_look
        Evaluations of each candidate before the first look, at least 2; each later look takes twice
        as many as the one before. One does if sigma says that there is no noise.
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
        super().__init__(candidates, luckiest, maximise, delta, epsilon, max_failures)
        n = len(candidates)
        self.looks = 0
        self._noise = as_noise(sigma)
        declared = declared_sigmas(self._noise, 1)
        self._sigma = None if declared is None else declared[0]
        self._audit: NoiseAudit | None = None
        if self._sigma is not None and isinstance(self._noise, SubGaussian):
            self._audit = NoiseAudit(self._sigma)
        if epsilon is None:
            self._epsilon = self._sigma
        self._finds_epsilon = self._epsilon is None
        check_count("first_look", first_look, LEAST_FIRST_LOOK)
        self._first_look = 1 if self._sigma == 0.0 else first_look
        self._values: list[list[float]] = [[] for _ in candidates]
        self._beaten_by: IntArray = np.full(n, -1, dtype=np.int64)
        # As of the last look that a candidate took part in.
        self._counts: IntArray = np.zeros(n, dtype=np.int64)
        self._means: FloatArray = np.full(n, np.nan)
        self._radii: FloatArray = np.full(n, np.inf)
        self._leader: int | None = None
        self._behind = math.inf  # by how much the leader may be behind another candidate
        self._radius = math.inf  # of the comparison that decides on it
        self._is_certified = False

    def ask(self, pending: Sequence[int] = ()) -> int | None:
        """The candidate to evaluate next, given those under way; None when the race is over."""
        counts = self._expected(pending)
        left = np.flatnonzero(self._is_left)
        return None if self.finished else int(left[np.argmin(counts[left])])

    def looks_with(self, pending: Sequence[int]) -> int:
        """Number of looks once what is under way has ended, if all of it gives values."""
        return self.looks if self.finished else self._looks_due(self._expected(pending))

    def missing(self, pending: Sequence[int] = ()) -> int:
        """Evaluations that the next look takes besides those that are under way.

        Where those will do for it, the look after it is meant.
        """
        counts = self._expected(pending)[self._is_left]
        return int(np.maximum(self._size(self.looks_with(pending)) - counts, 0).sum())

    def tell(self, arm: int, value: float | None) -> None:
        """Learn from an evaluation of a candidate; None, or what is not finite, is a failure.

        A ValueError says that there is no such candidate.
        """
        self._check(arm)
        if value is None or not math.isfinite(value):
            self._count(arm, None)
            if not self._is_out[arm] and self._fails_too_often(arm):
                self._take_out(arm)
        else:
            self._audit_sigma(arm, self._sign * value)
            self._values[arm].append(self._sign * value)
            self._count(arm, value)
        while not self.finished and self._looks_due(self.counts) > self.looks:
            self._look()

    @property
    def finished(self) -> bool:
        """Whether the race is over: certified, nothing left to compare, or no noise to be seen.

        If all but one fail, that one is evaluated until the first look, to know what it is worth.
        """
        counts = self._counts[self._is_left]
        nothing_left = counts.size == 0 or (counts.size == 1 and counts[0] > 0)
        return self._is_certified or bool(nothing_left) or self.noise_is_hidden

    @property
    def noise_is_hidden(self) -> bool:
        """Whether all evaluations of each candidate gave exactly the same value."""
        return self._sigma != 0.0 and self._repeats_are_equal

    def _audit_sigma(self, arm: int, value: float) -> None:
        n = len(self._values[arm])
        if self._audit is None or not n:
            return
        contradicted = self._audit.add((value - self._mean(arm)) ** 2 * n / (n + 1), value)
        if not contradicted:
            return
        words = (
            f"{contradicted}; each candidate's variance is estimated from now on, and candidates "
            f"that were found worse are compared again"
        )
        warnings.warn(words, NoiseContradictedWarning, stacklevel=3)
        self._sigma = None
        self._beaten_by[:] = -1
        self._radii[:] = self._behind = math.inf
        self._is_certified = False

    def _take_out(self, arm: int) -> None:
        self._led[arm] = self._leads(arm)
        self._is_out[arm] = True
        if self._is_beaten[arm]:
            return
        candidate = self.candidates[arm]
        failures = int(self.failures[arm])
        warnings.warn(
            f"{candidate.name} {candidate.params} leaves the race: {failures} of "
            f"{failures + len(self._values[arm])} evaluations gave no value; mend the objective "
            f"for this configuration, or raise max_failures={self._max_failures}",
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

    def _leads(self, arm: int) -> bool:
        if not self._values[arm] or self._is_beaten[arm]:
            return False
        seen = np.flatnonzero(self._is_left & (self.counts > 0)).tolist()
        return arm == self._leader or self._mean(arm) >= max(map(self._mean, seen))

    @property
    def _is_left(self) -> BoolArray:
        return np.asarray(~self._is_out & ~self._is_beaten)

    @property
    def _is_beaten(self) -> BoolArray:
        return np.asarray(self._beaten_by >= 0)

    @property
    def _is_lost(self) -> BoolArray:
        """Who left without a comparison."""
        return np.asarray(self._is_out & ~self._is_beaten)

    def _mean(self, arm: int) -> float:
        return float(np.mean(self._values[arm]))

    def _expected(self, pending: Sequence[int]) -> IntArray:
        counts = self.counts.copy()
        np.add.at(counts, np.array(pending, dtype=np.int64), 1)
        return counts

    def _size(self, look: int) -> int:
        return self._first_look << look

    def _looks_due(self, counts: IntArray) -> int:
        """Number of looks that all that are left have enough values for, shape (K,)."""
        looks = self.looks
        while (counts[self._is_left] >= self._size(looks)).all():
            looks += 1
        return looks

    def _look(self) -> None:
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
        self._radii[left] = self._radius_of(size, variances, level / (2.0 * k))
        leader = int(np.argmax(means))
        self._leader = int(left[leader])
        if len(left) == 1:
            self._radius = self._behind = math.inf
            return
        others = np.arange(len(left)) != leader
        sums = variances + variances[leader]
        radii = self._radius_of(size, sums, level / (k - 1), of_two=True)[others]
        ahead = means[leader] - means[others]
        worst = int(np.argmax(radii - ahead))
        self._radius = float(radii[worst])
        self._behind = max(0.0, float(radii[worst] - ahead[worst]))
        if self._finds_epsilon:
            self._epsilon = float(np.sqrt(variances.mean()))
        assert self._epsilon is not None
        if self._audit is not None and self._audit.missing:
            return  # too few values to see that the declared sigma is too small
        self._beaten_by[left[others][ahead > radii]] = self._leader
        self._is_certified = self._behind <= self._epsilon

    def _radius_of(
        self, size: int, variances: FloatArray, level: float, of_two: bool = False
    ) -> FloatArray:
        """Radii on one side of means, or of differences of two, with such variances of a value."""
        if self._sigma is not None:
            times = 2.0 if of_two else 1.0
            width = self._sigma * math.sqrt(2.0 * times * math.log(1.0 / level) / size)
            return np.full(variances.shape, width)
        if size < LEAST_FIRST_LOOK:
            return np.full(variances.shape, np.inf)
        radii = -stdtrit(size - 1, level) * np.sqrt(variances / size)
        return np.where((variances == 0.0) & (size < _COUNT_WITHOUT_SPREAD), np.inf, radii)

    def certificate(self, about: str, shortlist: str) -> Certificate:
        """The answer as of the last look; see `Certification.certificate`."""
        n = len(self.candidates)
        hidden = self.noise_is_hidden
        winner = self._winner()
        ended = self._is_certified and winner == self._leader
        refusal = ""
        if ended and winner is not None:
            ahead = [
                bool(v) and self._mean(k) > self._means[winner] for k, v in enumerate(self._values)
            ]
            refusal = self._refusal(self._is_lost & (self._led | ahead))
        certified = ended and not refusal
        looked_at = self.looks > 0 and winner == self._leader and not hidden
        provisional = (self.counts > 0) & ((self._counts == 0) | self._is_lost)
        means = [self._mean(arm) if provisional[arm] else self._means[arm] for arm in range(n)]
        results = self._results(
            winner,
            certified,
            counts=np.where(provisional, self.counts, self._counts),
            means=means,
            radii=np.where(provisional | hidden, math.inf, self._radii),
            failed=self._is_lost,
            worse=self._is_beaten,
        )
        rests_on_what_was_seen = not (isinstance(self._noise, Bounded) or self._sigma == 0.0)
        return self._answer(
            hidden,
            candidates=results,
            finished=self.finished,
            winner=winner,
            epsilon=math.nan if self._epsilon is None or hidden else self._epsilon,
            within=self._behind if looked_at else math.inf,
            certified=certified,
            reason=refusal or self._reason(winner, certified, hidden),
            evaluations=self.evaluations,
            remaining=0.0 if certified else None if refusal else self._remaining(looked_at),
            about=about,
            shortlist=shortlist,
            assumptions=(f"looks after {self._size(0)}, {self._size(1)}, ... evaluations of each",),
            conditions=self._conditions(),
            notices=() if self._sigma is not None else self._notices(),
            unseen=self._unseen(results, winner) if rests_on_what_was_seen else "",
        )

    def _winner(self) -> int | None:
        """The leader of the last look; before any, the search's: a few values do not unseat it."""
        if self._leader is not None and not self._is_out[self._leader]:
            return self._leader
        seen = np.flatnonzero(self._is_left & (self.counts > 0)).tolist()
        if not self.looks and not self.noise_is_hidden:
            return next(iter(seen), None)
        return max(seen, key=self._mean, default=None)

    def _reason(self, winner: int | None, certified: bool, hidden: bool) -> str:
        if winner is None:
            return "no candidate gave a value"
        if hidden:
            return HIDDEN_NOISE
        left = int(self._is_left.sum())
        if certified:
            other = "other candidate"
            if self._is_lost.any():
                other += " that was compared"
            if left == 1:
                return f"every {other} was found worse"
            return f"no {other} can be better by more than epsilon"
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
        missing = self._size(self.looks - 1 + looks) - self.counts[self._is_left]
        return float(np.maximum(missing, 0).sum())

    def _notices(self) -> tuple[str, ...]:
        contradicted = self._audit is not None and self._audit.contradicted
        values = [self._sign * np.array(seen) for seen in self._values]
        return (
            *((CONTRADICTED,) if contradicted else ()),
            *notices_of(values, [candidate.name for candidate in self.candidates]),
        )

    def _conditions(self) -> tuple[str, ...]:
        if self._sigma == 0.0:
            return ("evaluations have no noise",)
        noise = "the noise of each candidate is normal"
        if isinstance(self._noise, Bounded):
            noise = "all values lie within the declared bounds"
        elif self._sigma is not None:
            noise = f"the noise is sub-Gaussian with sigma = {self._sigma:g}"
        return "evaluations are independent", noise
