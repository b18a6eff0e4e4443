"""The pulls of a race with time limits, as they were told, and the range of their rewards."""

import math
import warnings

import numpy as np

from mfhpo.censored.gain import check_range
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Labels


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
            outside = f": contradicted by {n} of {len(seen)}, taken as the nearest value inside"
            return f"rewards lie within the declared range {low:g} to {high:g}{outside * bool(n)}"
        if self.is_known:
            return (
                f"rewards lie within the range seen so far, {low:.5g} to {high:.5g}: estimated, so "
                f"that the bounds are approximate"
            )
        return (
            "the range of the rewards is unknown, because no two different ones were seen: the "
            "bounds mean nothing yet"
        )
