"""What one player's utility was seen to be; what was seen of it twice is merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray

_NEAR, _TOGETHER = 0.5, 1.0  # length scales
_SEVERAL = 5


@dataclass(frozen=True, eq=False)
class Observations:
    """What one player's utility was seen to be, by features, shape (n, d), and levels, shape (n,).

    Each value is the mean of so many ``counts``, shape (n,); ``squares`` sum their squared
    distances from it.
    """

    features: FloatArray
    levels: IntArray
    values: FloatArray
    counts: FloatArray
    squares: FloatArray

    @classmethod
    def once(cls, features: FloatArray, levels: IntArray, values: FloatArray) -> Observations:
        """Return observations with one value each."""
        return cls(features, levels, values, np.ones(len(values)), np.zeros(len(values)))


class Failure(NamedTuple):
    """A profile that cannot be measured at a level, and the worst utility that was seen there."""

    features: FloatArray
    level: int
    worst: float


class ObservedUtilities:
    """Collects the observations of one player."""

    def __init__(self) -> None:
        # Features and values of each profile at a level.
        self._seen: dict[tuple[bytes, int], tuple[FloatArray, list[float]]] = {}
        self._n = 0
        # Features, level and how many times, of each profile that failed at a level.
        self._failed: dict[tuple[bytes, int], tuple[FloatArray, int, int]] = {}

    def __len__(self) -> int:
        """Return the number of observations and failures."""
        return self._n

    @property
    def has_seen(self) -> bool:
        """Whether any utility was observed."""
        return bool(self._seen)

    @property
    def constant(self) -> float | None:
        """The only value that was observed, in several places; None if there is none."""
        values = {value for _, several in self._seen.values() for value in several}
        return values.pop() if len(self._seen) >= _SEVERAL and len(values) == 1 else None

    def add(self, features: FloatArray, level: int, value: float) -> None:
        """Note the utility of a profile with these features, shape (d,), at a level."""
        self._seen.setdefault((features.tobytes(), level), (features, []))[1].append(value)
        self._n += 1

    def fail(self, features: FloatArray, level: int) -> None:
        """Note that a profile could not be measured."""
        key = (features.tobytes(), level)
        *_, times = self._failed.get(key, (0,))
        self._failed[key] = features, level, times + 1
        self._n += 1

    def observations(self, length_scales: FloatArray) -> Observations:
        """Return all observations, merged by utility; failures count as the worst utility."""
        failed = self.failures(length_scales)
        features, values = self._features_and_values()
        return Observations(
            np.array(features + [one.features for one in failed]),
            np.array([level for _, level in self._seen] + [one.level for one in failed]),
            np.array([np.mean(each) for each in values] + [one.worst for one in failed]),
            np.array([len(each) for each in values] + [1] * len(failed), dtype=float),
            np.array([np.var(each) * len(each) for each in values] + [0.0] * len(failed)),
        )

    def _features_and_values(self) -> tuple[list[FloatArray], list[list[float]]]:
        return [one for one, _ in self._seen.values()], [each for _, each in self._seen.values()]

    def failures(self, length_scales: FloatArray) -> list[Failure]:
        """Return failures that the profiles cause, one for each profile and level.

        A profile counts if it failed again at the same level, and never gave a value there. It also
        counts if another failure is within a length scale of the player's model, unless something
        at no lower level was observed within half of one. The worst utility is that at the
        failure's level, or that of all levels if nothing was observed there.
        """
        if not self._failed or not self.has_seen:
            return []
        from scipy.spatial.distance import cdist  # slow to import, and not needed before

        failed, levels, times = zip(*self._failed.values(), strict=True)
        features_seen, values = self._features_and_values()
        levels_seen = np.array([level for _, level in self._seen])
        least = np.array([min(each) for each in values])
        at = np.array(failed) / length_scales
        apart = cdist(at, at)
        np.fill_diagonal(apart, np.inf)
        observed = cdist(at, np.array(features_seen) / length_scales)
        observed[levels_seen[None, :] < np.array(levels)[:, None]] = np.inf
        nearest = observed.min(axis=1)
        again = (np.array(times) > 1) & (nearest > 0.0)
        has_company = (apart.min(axis=1) <= _TOGETHER) & (nearest > _NEAR)
        return [
            Failure(features, level, float(least[levels_seen == level].min(initial=least.max())))
            for features, level, counts in zip(failed, levels, again | has_company, strict=True)
            if counts
        ]
