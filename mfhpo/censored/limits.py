"""The pulls so far, which time limits others may have, and what answers rest on, in words."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from mfhpo._validation import (
    MOST_ARMS,
    MOST_LEVELS,
    check_count,
    check_numbers,
    check_positive,
    shown,
)
from mfhpo.censored.gain import GainEstimates, check_range
from mfhpo.censored.upper_bounds import is_refinable
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Labels
from mfhpo.racing.rule import Roster

# The fewest durations that limits are derived from.
_FEWEST_DURATIONS = 4
# The least limit that is derived, in seconds: a clock may measure 0.
_SHORTEST = 1e-6
# Quantiles of the first durations between which derived limits lie (Bengs and Hüllermeier 2023,
# Section 5.2).
_QUANTILES = (0.25, 0.75)


class History:
    """Arms, limits (infinite for none), rewards and seconds of all pulls, and the rewards' range.

    A pull that was stopped has a reward of NaN and infinite seconds. The range is the `declared`
    one, or that of the rewards so far.
    """

    def __init__(self, declared: tuple[float, float] | None = None) -> None:
        self.declared = None if declared is None else check_range(declared)
        self.arms: list[int] = []
        self.limits: list[float] = []
        self.rewards: list[float] = []
        self.seconds: list[float] = []
        self.n_censored = 0
        self._lowest, self._highest = math.inf, -math.inf  # rewards
        self._has_warned = False

    def __len__(self) -> int:
        return len(self.arms)

    def add_all(self, arms: IntArray, notes: FloatArray) -> None:
        """Add pulls: arms, shape (N,); limit, reward and seconds of each, shape (N, 3)."""
        limits, rewards, seconds = notes.T
        self.arms.extend(arms.tolist())
        self.limits.extend(limits.tolist())
        self.rewards.extend(rewards.tolist())
        self.seconds.extend(seconds.tolist())
        self.n_censored += int(np.isinf(seconds).sum())
        seen = rewards[~np.isnan(rewards)]
        if seen.size:
            self._lowest = min(self._lowest, float(seen.min()))
            self._highest = max(self._highest, float(seen.max()))

    def arrays(self, arm: int | None = None) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return arms, limits, rewards and seconds, of one arm or of all, each of shape (N,)."""
        arms = np.array(self.arms, dtype=np.int64)
        chosen = slice(None) if arm is None else arms == arm
        floats = (np.array(values) for values in (self.limits, self.rewards, self.seconds))
        limits, rewards, seconds = (values[chosen] for values in floats)
        return arms[chosen], limits, rewards, seconds

    def merge(self, arm: int, into: int) -> None:
        """Let the pulls of an arm be those of another one."""
        self.arms = [into if one == arm else one for one in self.arms]

    @property
    def bounds(self) -> tuple[float, float]:
        """The range: the least and the largest reward."""
        if self.declared is not None:
            return self.declared
        low, high = self._lowest, self._highest
        if not low <= high:
            return 0.0, 1.0
        # One value alone has no range; any positive one will do until there are more.
        half = 0.5 * max(1.0, abs(low))
        return (low, high) if low < high else (low - half, high + half)

    @property
    def is_known(self) -> bool:
        """True if the range is declared, or two different rewards were seen."""
        return self.declared is not None or self._lowest < self._highest

    def check(self, reward: float, labels: Labels) -> None:
        """Warn of the first reward outside a declared range."""
        if self.declared is None or self._has_warned or math.isnan(reward):
            return
        least, most = self.declared
        if not least <= reward <= most:
            self._has_warned = True
            low, high = sorted(map(labels.value, self.declared))
            warnings.warn(
                f"a value of {labels.value(reward):g} lies outside reward_range=({low:g}, "
                f"{high:g}): it counts as the nearest one inside, and so will others. Declare the "
                f"range that values really have, or leave it out.",
                stacklevel=4,
            )

    def in_words(self, labels: Labels) -> str:
        """Return what the bounds suppose about the range."""
        low, high = sorted(map(labels.value, self.bounds))
        if self.declared is not None:
            seen = [reward for reward in self.rewards if not math.isnan(reward)]
            n = sum(not self.declared[0] <= reward <= self.declared[1] for reward in seen)
            words = f"rewards lie within the declared range {low:g} to {high:g}"
            outside = f": contradicted by {n} of {len(seen)}, taken as the nearest value inside"
            return f"{words}{outside}" if n else words
        if self.is_known:
            return (
                f"rewards lie within the range seen so far, {low:.5g} to {high:.5g}: estimated, so "
                f"that the bounds are approximate"
            )
        return (
            "the range of the rewards is unknown, because no two different ones were seen: the "
            "bounds mean nothing yet"
        )


class SharedLimits:
    """Limits in seconds that all arms have, (m,): given, or so many to be derived."""

    def __init__(
        self, limits: Sequence[float] | FloatArray | int, longest: float | None = None
    ) -> None:
        self.n_derived = 0
        self.known: FloatArray | None = None
        if isinstance(limits, (int, np.integer)):
            self.n_derived = check_count("limits", limits, 1, MOST_LEVELS)
        else:
            self.known = check_limits(limits)
        self.longest = math.inf if longest is None else check_positive("longest", longest)
        if longest is not None and self.known is not None:
            raise ValueError(
                f"longest={longest!r} is for limits that are derived, but limits="
                f"{self.known.tolist()} are given; leave longest out."
            )

    def find(self, history: History, active: IntArray) -> None:
        """Derive the limits if they are not known, equidistant over the first durations' quartiles.

        Every active arm must have been tried, with enough durations. The limits go up from 0 if
        three quarters of the first pulls were stopped at `longest`.
        """
        if self.known is not None or not len(active):
            return
        arms, limits, _, seconds = history.arrays()
        ran = np.minimum(seconds, limits)
        # Equally many of each arm: where several run at once, quick ones come back more often.
        each = -(-_FEWEST_DURATIONS // len(active))
        firsts = [np.flatnonzero(arms == arm)[:each] for arm in active]
        if min(map(len, firsts)) < each:
            return
        chosen = np.concatenate(firsts)
        first, last = np.quantile(ran[chosen], _QUANTILES)
        if first >= self.longest:  # they say no more than that most pulls take longer
            first = 0.0
        if first == last:
            last = 2.0 * first
        last = max(min(last, self.longest), _SHORTEST)
        first = max(first or last / self.n_derived, 1e-3 * last)
        is_one = self.n_derived == 1
        self.known = np.unique(np.linspace(last if is_one else first, last, self.n_derived))


def check_limits(limits: Sequence[float] | FloatArray) -> FloatArray:
    """Return limits as an array, or raise unless they are positive and strictly increasing."""
    right = "a sequence of seconds, or a whole number"
    values = np.array(check_numbers("limits", limits, right))
    if not values.size:
        raise ValueError(f"limits must be {right}, not empty, got {shown(limits)}.")
    if not (np.isfinite(values).all() and values[0] > 0.0 and (np.diff(values) > 0.0).all()):
        raise ValueError(
            f"limits must be positive, finite and strictly increasing seconds, got "
            f"{values.tolist()}; sort them and drop repeats."
        )
    return values


# Rounds that are planned for at first where no horizon is declared.
_FIRST_HORIZON = 64


def planned_rounds(horizon: int | None, pulls: int) -> int:
    """Return the horizon, which is doubled whenever it is reached if none is declared."""
    return horizon or max(_FIRST_HORIZON, 1 << pulls.bit_length())


class Refinement:
    """The limits of each arm (`points`), split where it is played (Section 4 and Algorithm 1)."""

    def __init__(self, n_arms: int, longest: float, splits: int, smoothness: float) -> None:
        self._splits = check_count("splits", splits, 2, MOST_LEVELS)
        longest = check_positive("longest", longest)
        self.smoothness = check_positive("smoothness", smoothness, "; try 1") / longest
        n_arms = check_count("n_arms", n_arms, 1, MOST_ARMS)
        self.points = [np.array([longest]) for _ in range(n_arms)]

    def refine(self, estimates: GainEstimates, history: History) -> None:
        """Split the interval that was played last, if its gain is known well enough (Eq. 14)."""
        arm, point = estimates.latest
        if point >= 0 and is_refinable(estimates.tallies, estimates.rule, arm, point):
            self.split(estimates, history)

    def split(self, estimates: GainEstimates, history: History) -> None:
        """Split the interval that was played last; all earlier pulls tell about the new limits."""
        arm, point = estimates.latest
        limits = self.points[arm]
        below = limits[point - 1] if point else 0.0
        parts = np.linspace(below, limits[point], self._splits + 1)[1:-1]
        self.points[arm] = np.union1d(limits, parts)
        estimates.set_limits(arm, self.points[arm])
        estimates.learn(*history.arrays(arm))

    def parts(self, arm: int) -> list[float]:
        """Return how many parts of an arm's share of delta there are for each of its limits.

        Points are found by looking at the data, among countably many places: a level of m^d places
        gets a share of 1 / ((d + 1) (d + 2)).
        """
        longest = float(self.points[arm][-1])
        parts = []
        for limit in self.points[arm].tolist():
            depth, place = 0, limit / longest
            while abs(place - round(place)) > 1e-9 and depth < 60:
                place *= self._splits
                depth += 1
            parts.append(float(self._splits) ** depth * (depth + 1) * (depth + 2))
        return parts


def estimated_in_words(history: History, limits: SharedLimits) -> str:
    """Name what the bounds rest on and was not declared."""
    if history.declared is not None:
        return "the limits are estimated" if limits.n_derived else ""
    if limits.n_derived:
        return "the range of the values and the limits are estimated"
    return "the range of the values is estimated"


def assumptions_in_words(
    history: History, limits: SharedLimits, roster: Roster, labels: Labels
) -> tuple[str, ...]:
    """Return what an answer supposes."""
    parts = [history.in_words(labels)]
    if limits.n_derived and limits.known is not None:
        parts.append("limits derived from the first durations: the bounds are approximate")
    parts.append("pulls of an arm are alike: neither reward nor duration drifts")
    parts.append(
        "all pulls that were begun have been told; where several run at once, the quick ones "
        "come back first, and until the others have, bounds and estimates lean towards them"
    )
    if roster.withdrawn.any():
        gone = ", ".join(map(labels.arm, np.flatnonzero(roster.withdrawn).tolist()))
        parts.append(f"not compared, because their pulls gave no result: {gone}")
    return tuple(parts)


def reason_in_words(
    limits: SharedLimits, roster: Roster, arm: int | None, pulls: int, horizon: int | None
) -> str:
    """Return why the race is over, or that it is not."""
    if not roster.active.any():
        return "every arm left: their pulls kept failing"
    if limits.known is None:
        return "the limits are still being derived from the first durations"
    if arm is None:
        return "nothing was observed yet"
    if horizon is not None and pulls >= horizon:
        over = f"the horizon of {pulls} rounds is reached; the aim was reward"
    else:
        over = f"after {pulls} rounds; the aim is reward while it runs"
    return f"{over}, and nothing is certified"
