"""The run of a choice of limits: what was told, who is in the race, what is known, the answer."""

import math
import warnings
from collections.abc import Collection, Sequence
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from mfhpo._validation import (
    MOST_ARMS,
    MOST_AT_ONCE,
    check_choice,
    check_count,
    check_index,
    check_instance,
    check_limit,
    check_nonnegative,
    check_positive,
    check_probability,
    check_sequence,
)
from mfhpo.censored.gain import GainEstimates, Survival
from mfhpo.censored.limits import (
    History,
    Refinement,
    SharedLimits,
    assumptions_in_words,
    estimated_in_words,
    planned_rounds,
    reason_in_words,
)
from mfhpo.censored.options import Charge
from mfhpo.censored.upper_bounds import CONFIDENCES, PLAYS, Rule, choose
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.statistics import SurvivalPoint
from mfhpo.problem import Observation, Policy, Pull, Recommendation
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo.racing.rule import Roster

Confidence: TypeAlias = Literal["kl", "kl+", "bernstein", "printed", "published curves"]

# Seconds up to which charges are looked at where no limit is known yet.
_LIKELY = 3600.0


class CensoredPolicy(Policy):
    """Plays the pair of arm and limit with the highest upper bound on its gain (see `RCUCB`).

    Parameters
    ----------
    n_arms
        Number of arms.
    limits
        The limits that arms have at first: `mfhpo.censored.limits.SharedLimits`.
    refinement
        How arms get others: `mfhpo.censored.limits.Refinement`. None: they do not.
    cost, penalty, reward_range, delta, horizon, max_failures
        See `mfhpo.censored.options.RCUCBOptions`.
    confidence
        The upper bound, see the notes of `RCUCB`.
    exploration
        Its alpha, positive, see the notes of `RCUCB`.
    survival
        How probably a pull runs beyond a limit. "kaplan-meier": by the share of the pulls running
        at each limit that had ended by the next one. "count" is Eq. 9 of the paper, where a pull
        that was stopped before counts as running beyond: biased, and able to keep a good limit from
        being tried again.
    """

    certifies = False  # it is after rewards
    fidelity = 0  # there is one
    cost = 0.0

    def __init__(
        self,
        n_arms: int,
        limits: SharedLimits,
        refinement: Refinement | None = None,
        *,
        cost: Charge | None = None,
        penalty: Charge | None = None,
        reward_range: tuple[float, float] | None = (0.0, 1.0),
        confidence: Confidence = "kl+",
        survival: Survival = "kaplan-meier",
        exploration: float = 1.0,
        delta: float = 0.05,
        horizon: int | None = None,
        max_failures: int = 3,
    ) -> None:
        check_choice("confidence", confidence, CONFIDENCES)
        rule = Rule(
            confidence=CONFIDENCES.index(confidence),
            exploration=check_positive("exploration", exploration, "; try 1"),
            smoothness=0.0 if refinement is None else refinement.smoothness,
        )
        self.n_arms = check_count("n_arms", n_arms, 1, MOST_ARMS)
        self._limits, self._refinement = limits, refinement
        self.delta = check_probability("delta", delta)
        self._make_estimates = partial(
            GainEstimates,
            cost=cost,
            penalty=penalty,
            survival=survival,
            rule=rule,
            delta=self.delta,
            parts=None if refinement is None else refinement.parts,
        )
        self.history = History(reward_range)
        """All pulls in the order in which they were told."""
        self.horizon = None if horizon is None else check_count("horizon", horizon, 1)
        self._max_failures = check_count("max_failures", max_failures, 1)
        self._roster = Roster(self.n_arms)
        self._owners: dict[int, int] = {}  # of arms that were merged
        self._estimates: GainEstimates | None = None  # None until limits are known
        # Raises for charges that are none before any pull is made, also where limits are not known.
        if limits.known is None:
            likely = _LIKELY if math.isinf(limits.longest) else limits.longest
            self._make_estimates(1, [likely], reward_range=self.reward_range)
        else:
            self._retell()

    def ask(
        self, n: int = 1, pending: Sequence[Pull] = (), *, without: Collection[int] = ()
    ) -> list[Pull]:
        """Propose pulls (see `Policy.ask`), none of arms in `without`, which cannot be pulled now.

        Each has a limit, except while limits are derived.
        """
        n = check_count("n", n, 1, MOST_AT_ONCE)
        under_way: list[Pull] = check_sequence("pending", pending, "a list of pulls")
        for position, pull in enumerate(under_way):
            self._check_pull(pull, f"pending[{position}]")
        allowed = self._roster.active.copy()
        if not isinstance(without, (set, frozenset)):
            without = check_sequence("without", without, "the indices of arms")
        for arm in without:
            allowed[check_index("without", arm, self.n_arms)] = False
        while len(under_way) < len(pending) + n and allowed.any():
            under_way.append(self._next_pull(under_way, allowed))
        return under_way[len(pending) :]

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`), whose cost is in seconds.

        A pull that ended beyond its limit, because nobody stopped it, counts as one that was
        stopped there; so does one that was stopped earlier.
        """
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self._check_pull(pull)
        arm = self._owners.get(int(pull.arm), int(pull.arm))
        limit = math.inf if pull.limit is None else float(pull.limit)
        seconds, stopped_at = observation.cost, observation.censored_at
        if stopped_at is not None:
            check_nonnegative("censored_at", stopped_at)
        if observation.failed:
            self.cost += seconds or 0.0
            self._count_failure(arm)
            return
        if stopped_at is None and seconds is None:
            raise ValueError("cost=None: tell how many seconds the pull took.")
        if stopped_at is not None and math.isinf(limit):
            limit = float(stopped_at)
        self.cost += limit if seconds is None else float(seconds)
        self._roster.failures[arm] = 0
        # Where it was stopped a little early, larger limits must not count the pulls that ended
        # alone: it is taken to have been stopped at its limit.
        if stopped_at is not None or seconds is None or seconds > limit:
            self._learn(arm, limit, math.nan, math.inf)
        else:
            self._learn(arm, limit, float(observation.value or 0.0), float(seconds))

    @property
    def finished(self) -> bool:
        """Whether the horizon is reached, or no arm is left."""
        if not self._roster.active.any():
            return True
        return self.horizon is not None and self.pulls >= self.horizon

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out (see `Policy.withdraw`); what was seen of a repeat is the other arm's."""
        check_index("arm", arm, self.n_arms)
        if duplicate_of is None:
            self._roster.withdraw(arm)
        else:
            check_index("duplicate_of", duplicate_of, self.n_arms)
            owner = self._owners.get(duplicate_of, duplicate_of)
            if owner == arm:
                raise ValueError(f"duplicate_of must be another arm than arm {arm}.")
            self._roster.merge(arm, owner)
            self._owners[arm] = owner
            for repeat, other in self._owners.items():
                self._owners[repeat] = owner if other == arm else other
            self.history.merge(arm, owner)
        self._retell()

    def recommend(self) -> Recommendation:
        """Return the pair with the best lower bound, and its gain (see `Policy.recommend`)."""
        arm, mean, interval, fidelity = self.leader()
        limit: float | None = None
        curve: tuple[SurvivalPoint, ...] = ()
        if arm is not None:
            known = self._known()
            limit = float(known.limits(arm)[known.surest(arm)])
            curve = known.curve(arm)
        roster = self._roster
        return Recommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=self.delta,
            epsilon=0.0,
            finished=self.finished,
            certified=False,
            reason=reason_in_words(self._limits, roster, arm, self.pulls, self.horizon),
            cost=self.cost,
            pulls=self.pulls,
            survivors=tuple(self.active.tolist()),
            compared=self.n_arms - int((roster.withdrawn | roster.merged).sum()),
            assumptions=assumptions_in_words(self.history, self._limits, roster, self.labels),
            limit=limit,
            survival=curve,
            censored=self.n_censored / max(1, self.pulls),
            estimated=estimated_in_words(self.history, self._limits),
        )

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return arm, estimated gain, its bounds, and fidelity 0, of the best answer so far."""
        arm = None if self._estimates is None else self._estimates.best_arm(self.active)
        if arm is None:
            return None, math.nan, (-math.inf, math.inf), 0
        return arm, *self._known().believed(arm), 0

    def summary(self, arm: int, fidelity: int = 0) -> tuple[int, float, float]:
        """Return an arm's pulls, its gain at the surest limit, and half of that interval."""
        self._check_pull(Pull(arm, fidelity))
        count = self.history.arms.count(arm)
        if self._estimates is None or not self._estimates.counts(arm).any():
            return count, math.nan, math.inf
        mean, (low, high) = self._estimates.believed(arm)
        return count, mean, 0.5 * (high - low)

    # What is known.

    @property
    def limits(self) -> FloatArray | None:
        """The limits in seconds, shape (m,), or None while they are being found out."""
        return None if self._limits.known is None else self._limits.known.copy()

    @property
    def largest_limit(self) -> float | None:
        """The largest limit in seconds that a pull may have now; None: it has none."""
        known, longest = self._limits.known, self._limits.longest
        if known is not None:
            return float(known[-1])
        return None if math.isinf(longest) else longest

    @property
    def plays(self) -> IntArray:
        """Plays of every arm at every limit, shape (n, m); ValueError before limits are known."""
        return self._known().tallies.cells[:, :, PLAYS].astype(np.int64)

    @property
    def n_censored(self) -> int:
        """Number of pulls that were stopped at their limit."""
        return self.history.n_censored

    @property
    def pulls(self) -> int:
        """Number of rounds: pulls that ended with a reward or were stopped."""
        return len(self.history)

    def estimate(self, arm: int) -> FloatArray:
        """Return the estimated gain at an arm's limits, (m,), NaN where unknown, or raise."""
        check_index("arm", arm, self.n_arms)
        return self._known().gains(arm)

    def interval(self, arm: int, point: int) -> tuple[float, float]:
        """Return always-valid bounds on a pair's gain; ValueError if the arm has no such limit."""
        check_index("arm", arm, self.n_arms)
        lows, highs = self._known().intervals(arm)
        if not 0 <= point < len(lows):
            raise ValueError(f"point must be one of {len(lows)} of arm {arm}, from 0, got {point}.")
        return float(lows[point]), float(highs[point])

    def survival(self, arm: int) -> FloatArray:
        """Return the estimated probability of running beyond each limit of an arm, shape (m,)."""
        check_index("arm", arm, self.n_arms)
        return self._known().survival(arm)

    @property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest reward: declared, or seen so far."""
        return self.history.bounds

    @property
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,)."""
        return np.flatnonzero(self._roster.active)

    @property
    def piloting(self) -> bool:
        """Whether limits are still being found out."""
        return self._limits.known is None

    # Pulls.

    def _check_pull(self, pull: Pull, name: str = "pull") -> None:
        check_instance(name, pull, Pull, "a mfhpo.Pull, as it was asked for")
        check_index("arm", pull.arm, self.n_arms)
        if check_count("fidelity", pull.fidelity, 0) != 0:
            raise ValueError(f"fidelity must be 0, got {pull.fidelity}: there is only one.")
        check_limit("limit", pull.limit)

    def _next_pull(self, under_way: Sequence[Pull], allowed: BoolArray) -> Pull:
        known = self._estimates
        if known is None:
            arms = [*self.history.arms, *(pull.arm for pull in under_way)]
            counts = np.bincount(arms, minlength=self.n_arms)
            left = np.flatnonzero(allowed)
            return Pull(int(left[np.argmin(counts[left])]), 0, self.largest_limit)
        pairs = [
            (self._owners.get(pull.arm, pull.arm), math.inf if pull.limit is None else pull.limit)
            for pull in under_way
        ]
        now = self.pulls + len(pairs) + 1
        arm, limit = choose(known.tallies, known.rule, known.latest, pairs, allowed, now)
        return Pull(arm, 0, limit)

    def _learn(self, arm: int, limit: float, reward: float, seconds: float) -> None:
        scale, known = self.reward_range, self._estimates
        arms, note = np.array([arm]), np.array([[limit, reward, seconds]])
        self.history.add_all(arms, note)
        self.history.check(reward, self.labels)
        if known is None or self.reward_range != scale:
            self._retell()  # with limits, or on another scale
            return
        known.learn(arms, *note.T)
        if self._refinement is not None:
            self._refinement.refine(known, self.history)
            self._set_level(known)

    def _count_failure(self, arm: int) -> None:
        self._roster.failures[arm] += 1
        failures = int(self._roster.failures[arm])
        if failures >= self._max_failures and not self._roster.withdrawn[arm]:
            warnings.warn(
                f"{self.labels.arm(arm)} leaves the race: {failures} pulls in a row neither gave a "
                f"reward nor ran into their limit; mend the objective for this configuration, or "
                f"raise max_failures={self._max_failures}",
                ArmWithdrawnWarning,
                stacklevel=3,
            )
            self.withdraw(arm)

    def _retell(self) -> None:
        self._limits.find(self.history, self.active)
        limits = self._limits.known
        if limits is None:
            return
        estimates = self._make_estimates(self.n_arms, limits, reward_range=self.reward_range)
        if self._refinement is not None:
            for arm, points in enumerate(self._refinement.points):
                estimates.set_limits(arm, points)
            self._set_level(estimates)
        estimates.learn(*self.history.arrays())
        for arm in np.flatnonzero(~self._roster.active).tolist():
            estimates.tallies.points[arm] = 0  # it is never chosen again
        self._estimates = estimates

    def _set_level(self, estimates: GainEstimates) -> None:
        """Let bounds hold up to the horizon; those for a later one are wider."""
        planned = planned_rounds(self.horizon, self.pulls)
        level = math.log(self.n_arms * float(planned) ** 2 / self.delta)
        estimates.rule = estimates.rule._replace(level=level)

    def _known(self) -> GainEstimates:
        if self._estimates is None:
            raise ValueError(
                "the limits are not known yet: they are derived from the first durations."
            )
        return self._estimates
