"""What all policies share that choose an arm and a time limit: scale, limits, choice, answers.

All knowledge is a function of the history of pulls. So it can be made anew when the limits or the
range of the rewards are found out.
"""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from mfhpo._validation import (
    MOST_ARMS,
    MOST_AT_ONCE,
    MOST_LEVELS,
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
from mfhpo.censored.charges import Charge, Linear
from mfhpo.censored.gain import GainEstimates, Survival, check_range
from mfhpo.censored.history import History
from mfhpo.censored.limits import check_limits, derived_limits
from mfhpo.censored.recommendation import LimitRecommendation, SurvivalPoint
from mfhpo.censored.upper_bounds import CONFIDENCES, LIMIT, PLAYS, Rule, choose
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Pull
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo.racing.roster import Roster

Confidence: TypeAlias = Literal["kl", "kl+", "bernstein", "printed", "published curves"]

# Share of the rewards' range that the largest limit costs when no cost is declared.
_DEFAULT_COST = 0.1
# Seconds up to which charges are looked at where no limit is known yet.
_LIKELY = 3600.0


class CensoredPolicy(Policy):
    """Plays the pair of arm and limit with the highest upper bound on its gain (see `RCUCB`).

    Parameters
    ----------
    n_arms
        Number of arms.
    limits
        Limits in seconds, or how many are to be derived.
    longest, cost, penalty, reward_range, delta, horizon, max_failures
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

    _smoothness = 0.0  # fall of the gain per second between limits, where these are refined

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray | int = 10,
        *,
        longest: float | None = None,
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
        self._rule = Rule(
            confidence=CONFIDENCES.index(confidence),
            counted=False,
            exploration=check_positive("exploration", exploration, "; try 1"),
            level=0.0,
            top=1.0,
            smoothness=self._smoothness,
        )
        self.n_arms = check_count("n_arms", n_arms, 1, MOST_ARMS)
        self._n_derived = 0
        self._limits: FloatArray | None = None
        if isinstance(limits, (int, np.integer)):
            self._n_derived = check_count("limits", limits, 1, MOST_LEVELS)
        else:
            self._limits = check_limits(limits)
        self._longest = math.inf if longest is None else check_positive("longest", longest)
        if longest is not None and self._limits is not None:
            raise ValueError(
                f"longest={longest!r} is for limits that are derived, but limits="
                f"{self._limits.tolist()} are given; leave longest out."
            )
        self._cost, self._penalty = cost, penalty
        self._declared_range = None if reward_range is None else check_range(reward_range)
        self._survival: Survival = survival
        self.delta = check_probability("delta", delta)
        self.horizon = None if horizon is None else check_count("horizon", horizon, 1)
        self._max_failures = check_count("max_failures", max_failures, 1)
        self._roster = Roster(self.n_arms)
        self._history = History()
        self._owners: dict[int, int] = {}  # of arms that were merged
        self._spent = 0.0
        self._gain: GainEstimates | None = None
        self._lowest: dict[int, FloatArray] = {}
        self._warned_of_range = False
        # Raises for charges that are none before any pull is made, also where limits are not known.
        if self._limits is None:
            likely = [_LIKELY if longest is None else self._longest]
            GainEstimates(1, likely, **self._scale(likely))
        else:
            self._retell()

    # What subclasses add.

    def _set_points(self, estimates: GainEstimates) -> None:
        """Give arms limits of their own, before the estimates learn from the history."""

    # The contract.

    def ask(
        self, n: int = 1, pending: Sequence[Pull] = (), *, without: Collection[int] = ()
    ) -> list[Pull]:
        """Propose pulls (see `Policy.ask`); each has a limit, except while limits are derived.

        Arms in `without` cannot be pulled now, though they are in the race: others are proposed, or
        none.
        """
        n = check_count("n", n, 1, MOST_AT_ONCE)
        under_way = self._checked(pending)
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
        stopped there; so does one that was stopped earlier. Raises ValueError also if the seconds
        of a reward are missing.
        """
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self._check(pull)
        arm = self._owners.get(int(pull.arm), int(pull.arm))
        limit = math.inf if pull.limit is None else float(pull.limit)
        seconds, stopped_at = observation.cost, observation.censored_at
        if stopped_at is not None:
            check_nonnegative("censored_at", stopped_at)
        if observation.failed:
            self._spent += seconds or 0.0
            self._count_failure(arm)
            return
        if stopped_at is None and seconds is None:
            raise ValueError("cost=None: tell how many seconds the pull took.")
        if stopped_at is not None and math.isinf(limit):
            limit = float(stopped_at)
        self._spent += limit if seconds is None else float(seconds)
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
        self._check_arm(arm)
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
            self._history.arms = [owner if k == arm else k for k in self._history.arms]
        self._retell()

    def recommend(self) -> LimitRecommendation:
        """Return the pair with the best lower bound, and its gain (see `Policy.recommend`)."""
        best = self._best_pair()
        arm, mean, interval, fidelity = self.leader()
        limit: float | None = None
        curve: list[SurvivalPoint] = []
        if best is not None and arm is not None:
            estimates = self._known()
            limits = estimates.limits(arm)
            limit = float(limits[best[1]])
            shares = self._share_of_delta(estimates, arm)
            survival = estimates.survival(arm)
            lows, highs = estimates.survival_bounds(arm, np.array(shares))
            inside = np.clip(survival, lows, highs)
            rows = np.stack([limits, inside, lows, highs], axis=1).tolist()
            curve = [SurvivalPoint(*row) for row in rows]
        roster = self._roster
        return LimitRecommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=self.delta,
            epsilon=0.0,
            finished=self.finished,
            certified=False,
            reason=self._reason(arm),
            cost=self._spent,
            pulls=self.pulls,
            survivors=tuple(self.active.tolist()),
            compared=self.n_arms - int((roster.withdrawn | roster.merged).sum()),
            assumptions=self._assumptions(),
            limit=limit,
            survival=tuple(curve),
            censored=self.n_censored / max(1, self.pulls),
            estimated=self._estimated(),
        )

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return arm, estimated gain, its bounds, and fidelity 0, of the best answer so far."""
        best = self._best_pair()
        if best is None:
            return None, math.nan, (-math.inf, math.inf), 0
        return best[0], *self._estimate(*best), 0

    def summary(self, arm: int, fidelity: int = 0) -> tuple[int, float, float]:
        """Return an arm's pulls, its gain at the surest limit, and half of that interval."""
        self._check(Pull(arm, fidelity))
        if self._gain is None:
            return self._history.arms.count(arm), math.nan, math.inf
        count = int(self._gain.tallies.totals[arm])
        if not self._gain.counts(arm).any():
            return count, math.nan, math.inf
        point = int(np.argmax(self._lower_bounds(arm)))
        mean, (low, high) = self._estimate(arm, point)
        return count, mean, 0.5 * (high - low)

    # What is known.

    @property
    def limits(self) -> FloatArray | None:
        """The limits in seconds, shape (m,), or None while they are being found out."""
        return None if self._limits is None else self._limits.copy()

    @property
    def plays(self) -> IntArray:
        """Plays of every arm at every limit, shape (n, m); ValueError before limits are known.

        Where arms differ in their limits, m is at least the largest number of them.
        """
        return self._known().tallies.cells[:, :, PLAYS].astype(np.int64)

    @property
    def n_censored(self) -> int:
        """Number of pulls that were stopped at their limit."""
        return self._history.n_censored

    @property
    def pulls(self) -> int:
        """Number of rounds: pulls that ended with a reward or were stopped."""
        return len(self._history)

    def estimate(self, arm: int) -> FloatArray:
        """Return the estimated gain at an arm's limits, (m,), NaN where unknown, or raise."""
        self._check_arm(arm)
        return self._known().gains(arm)

    def interval(self, arm: int, point: int) -> tuple[float, float]:
        """Return always-valid bounds on a pair's gain; ValueError if the arm has no such limit."""
        self._check_arm(arm)
        estimates = self._known()
        n_points = len(estimates.limits(arm))
        if not 0 <= point < n_points:
            raise ValueError(f"point must be one of {n_points} of arm {arm}, from 0, got {point}.")
        return estimates.bounds(arm, point, self._share_of_delta(estimates, arm)[point])

    def survival(self, arm: int) -> FloatArray:
        """Return the estimated probability of running beyond each limit of an arm, shape (m,)."""
        self._check_arm(arm)
        return self._known().survival(arm)

    @property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest reward: declared, or seen so far."""
        if self._declared_range is not None:
            return self._declared_range
        low, high = self._history.lowest, self._history.highest
        if not low <= high:
            return 0.0, 1.0
        # One value alone has no range; any positive one will do until there are more.
        half = 0.5 * max(1.0, abs(low))
        return (low, high) if low < high else (low - half, high + half)

    @property
    def range_is_known(self) -> bool:
        """Whether the range of the rewards is declared, or two different ones were seen."""
        return self._declared_range is not None or self._history.lowest < self._history.highest

    @property
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,)."""
        return self._roster.arms

    @property
    def fidelity(self) -> int:
        """0: there is one fidelity."""
        return 0

    @property
    def piloting(self) -> bool:
        """Whether limits are still being found out."""
        return self._limits is None

    @property
    def cost(self) -> float:
        """Seconds spent on all pulls."""
        return self._spent

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        return self._history.state_dict() | {
            "grid": None if self._limits is None else self._limits.tolist(),
            "roster": self._roster.state_dict(),
            "owners": [list(pair) for pair in self._owners.items()],
            "spent": self._spent,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        self._check_arguments(state)
        self._roster.load_state_dict(state["roster"])
        self._history = History.of(state)
        self._owners = {int(arm): int(owner) for arm, owner in state["owners"]}
        self._spent = float(state["spent"])
        self._limits = None if state["grid"] is None else np.array(state["grid"])
        self._retell()

    def _check_arguments(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError if a state was saved by a policy with other arms or limits."""
        n_arms = len(state["roster"]["active"])
        if n_arms != self.n_arms:
            raise ValueError(
                f"the state is of a race of {n_arms} arms, but n_arms is {self.n_arms}; make the "
                f"policy with the arguments that it was saved with."
            )
        if self._limits is None or self._n_derived:
            return
        if self._limits.tolist() != state["grid"]:
            raise ValueError(
                f"limits={self._limits.tolist()}, but the state was saved with limits="
                f"{state['grid']}; give the limits, or the longest one, that it was saved with."
            )

    # Pulls.

    def _check(self, pull: Pull, name: str = "pull") -> None:
        super()._check(pull, name)
        self._check_arm(pull.arm)
        if check_count("fidelity", pull.fidelity, 0) != 0:
            raise ValueError(f"fidelity must be 0, got {pull.fidelity}: there is only one.")
        check_limit("limit", pull.limit)

    def _check_arm(self, arm: int) -> None:
        check_index("arm", arm, self.n_arms)

    def _next_pull(self, under_way: Sequence[Pull], allowed: BoolArray) -> Pull:
        if self._gain is None:
            arms = [*self._history.arms, *(pull.arm for pull in under_way)]
            counts = np.bincount(arms, minlength=self.n_arms)
            left = np.flatnonzero(allowed)
            arm = int(left[np.argmin(counts[left])])
            return Pull(arm, 0, None if math.isinf(self._longest) else self._longest)
        tallies = self._gain.tallies
        # Pulls under way, where they tell of a pair or of an arm.
        extra, all_extra = np.zeros(tallies.cells.shape[:2]), np.zeros(self.n_arms)
        for pull in under_way:
            arm = self._owners.get(pull.arm, pull.arm)
            limits = self._gain.limits(arm)
            extra[arm, : len(limits)] += limits <= (math.inf if pull.limit is None else pull.limit)
            all_extra[arm] += 1.0
        points = np.where(allowed, tallies.points, 0)
        arm, point = choose(
            tallies._replace(points=points),
            self._gain.rule,
            self._gain.latest,
            extra,
            all_extra,
            self.pulls + len(under_way) + 1,
        )
        if arm < 0:
            # Every arm is under way for the first time: the one that fewest are.
            left = np.flatnonzero(allowed)
            arm = int(left[np.argmin(all_extra[left])])
            point = int(tallies.points[arm]) - 1
        return Pull(int(arm), 0, float(tallies.cells[arm, point, LIMIT]))

    def _learn(self, arm: int, limit: float, reward: float, seconds: float) -> None:
        seen = self._history.lowest, self._history.highest
        self._history.add_all(np.array([arm]), np.array([[limit, reward, seconds]]))
        self._check_reward(reward)
        if self._gain is None:
            self._derive_limits()
            return
        is_seen = seen == (self._history.lowest, self._history.highest)
        if self._declared_range is None and not is_seen:
            self._retell()  # on another scale
            return
        self._gain.record(arm, limit, reward, seconds)
        self._lowest.pop(arm, None)
        self._take_note(arm, limit)

    def _take_note(self, arm: int, limit: float) -> None:
        """Take note of a pull, after the estimates have learned from it."""
        self._known().note_latest(arm, limit)

    def _check_reward(self, reward: float) -> None:
        if self._declared_range is None or self._warned_of_range or math.isnan(reward):
            return
        least, most = self._declared_range
        if not least <= reward <= most:
            self._warned_of_range = True
            shown = self.labels.value(reward)
            low, high = sorted(map(self.labels.value, self._declared_range))
            warnings.warn(
                f"a value of {shown:g} lies outside reward_range=({low:g}, {high:g}): it counts as "
                f"the nearest one inside, and so will others. Declare the range that values really "
                f"have, or leave it out.",
                stacklevel=4,
            )

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

    # Limits and scale.

    def _derive_limits(self) -> None:
        limits = derived_limits(self._history, self.active, self._n_derived, self._longest)
        if limits is not None:
            self._limits = limits
            self._retell()

    def _scale(self, limits: Sequence[float]) -> dict[str, Any]:
        low, high = self.reward_range
        cost = self._cost
        if cost is None:
            cost = Linear(_DEFAULT_COST * (high - low) / limits[-1])
        return {
            "cost": cost,
            "penalty": cost if self._penalty is None else self._penalty,
            "reward_range": (low, high),
            "survival": self._survival,
            "rule": self._rule,
        }

    def _retell(self) -> None:
        self._lowest.clear()
        if self._limits is None:
            self._gain = None
            self._derive_limits()
            return
        self._gain = GainEstimates(self.n_arms, self._limits, **self._scale(self._limits.tolist()))
        self._set_points(self._gain)
        self._gain.record_all(*self._history.arrays())
        if self.pulls:
            self._gain.note_latest(self._history.arms[-1], self._history.limits[-1])
        for arm in np.flatnonzero(~self._roster.active).tolist():
            self._gain.tallies.points[arm] = 0  # it is never chosen again

    def _known(self) -> GainEstimates:
        if self._gain is None:
            raise ValueError(
                "the limits are not known yet: they are derived from the first durations."
            )
        return self._gain

    # Answers.

    def _share_of_delta(self, estimates: GainEstimates, arm: int) -> list[float]:
        """Return the part of delta that each limit of an arm may use."""
        points = int(estimates.tallies.points[arm])
        return [self.delta / (self.n_arms * points)] * points

    def _lower_bounds(self, arm: int) -> FloatArray:
        """Return lower bounds on the gain at an arm's limits, kept until its next pull."""
        if arm not in self._lowest:
            estimates = self._known()
            shares = self._share_of_delta(estimates, arm)
            self._lowest[arm] = estimates.lower_bounds(arm, np.array(shares))
        return self._lowest[arm]

    def _best_pair(self) -> tuple[int, int] | None:
        best, highest = None, -math.inf
        if self._gain is None:
            return None
        for arm in self._gain.pulled(self.active).tolist():
            bounds = self._lower_bounds(arm)
            point = int(np.argmax(bounds))
            if bounds[point] > highest:
                best, highest = (arm, point), float(bounds[point])
        return best

    def _estimate(self, arm: int, point: int) -> tuple[float, tuple[float, float]]:
        """Return the estimated gain, clipped to its bounds, and the bounds."""
        low, high = self.interval(arm, point)
        return min(max(float(self._known().gains(arm)[point]), low), high), (low, high)

    def _reason(self, arm: int | None) -> str:
        if not self._roster.active.any():
            return "every arm left: their pulls kept failing"
        if self.piloting:
            return "the limits are still being derived from the first durations"
        if arm is None:
            return "nothing was observed yet"
        rounds = f"{self.pulls} rounds"
        if self.finished:
            return (
                f"the horizon of {rounds} is reached; the aim was reward, and nothing is certified"
            )
        return f"after {rounds}; the aim is reward while it runs, and nothing is certified"

    def _contradiction(self) -> str:
        """Say how many rewards contradict the declared range; "" for none."""
        low, high = self.reward_range
        if low <= self._history.lowest and self._history.highest <= high:
            return ""
        rewards = self._history.arrays()[2]
        n = int(((rewards < low) | (rewards > high)).sum())
        of_all = int((~np.isnan(rewards)).sum())
        count = "counts" if n == 1 else "count"
        return f": contradicted by {n} of {of_all}, which {count} as the nearest value inside"

    def _estimated(self) -> str:
        """Name in words what the bounds rest on and was not declared."""
        if self._declared_range is not None:
            return "the limits are estimated" if self._n_derived else ""
        if self._n_derived:
            return "the range of the values and the limits are estimated"
        return "the range of the values is estimated"

    def _assumptions(self) -> tuple[str, ...]:
        low, high = sorted(self.labels.value(bound) for bound in self.reward_range)
        if self._declared_range is not None:
            parts = [
                f"rewards lie within the declared range {low:g} to {high:g}{self._contradiction()}"
            ]
        elif self.range_is_known:
            parts = [
                f"rewards lie within the range seen so far, {low:.5g} to {high:.5g}: estimated, so "
                f"that the bounds are approximate"
            ]
        else:
            parts = [
                "the range of the rewards is unknown, because no two different ones were seen: the "
                "bounds mean nothing yet"
            ]
        if self._n_derived and self._limits is not None:
            parts.append("limits derived from the first durations: the bounds are approximate")
        parts.append("pulls of an arm are alike: neither reward nor duration drifts")
        parts.append(
            "all pulls that were begun have been told; where several run at once, the quick ones "
            "come back first, and until the others have, bounds and estimates lean towards them"
        )
        if self._roster.withdrawn.any():
            gone = ", ".join(map(self.labels.arm, np.flatnonzero(self._roster.withdrawn).tolist()))
            parts.append(f"not compared, because their pulls gave no result: {gone}")
        return tuple(parts)
