"""What one player's utility was seen to be; what was seen of it twice is merged."""

from __future__ import annotations

from collections import Counter
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

    @classmethod
    def none(cls, n_features: int) -> Observations:
        """Return no observations."""
        return cls.once(np.zeros((0, n_features)), np.zeros(0, dtype=np.int64), np.zeros(0))

    def and_one(self, features: FloatArray, level: int, value: float) -> Observations:
        """Return these observations and another one."""
        return Observations(
            np.vstack([self.features, features]),
            np.append(self.levels, level),
            np.append(self.values, value),
            np.append(self.counts, 1.0),
            np.append(self.squares, 0.0),
        )


class Place(NamedTuple):
    """Features of a profile, and the level at which it was queried."""

    features: tuple[float, ...]
    level: int


class ObservedUtilities:
    """Collects the observations of one player."""

    def __init__(self) -> None:
        self._seen: dict[Place, list[float]] = {}
        self._failed: Counter[Place] = Counter()

    def __len__(self) -> int:
        """Return the number of observations and failures."""
        return sum(map(len, self._seen.values())) + self._failed.total()

    @property
    def has_seen(self) -> bool:
        """Whether any utility was observed."""
        return bool(self._seen)

    @property
    def constant(self) -> float | None:
        """The only value that was observed, in several places; None if there is none."""
        values = {value for several in self._seen.values() for value in several}
        return values.pop() if len(self._seen) >= _SEVERAL and len(values) == 1 else None

    def add(self, features: FloatArray, level: int, value: float | None) -> None:
        """Note the utility of a profile with these features, shape (d,), or None for a failure."""
        place = Place(tuple(features.tolist()), level)
        if value is None:
            self._failed[place] += 1
        else:
            self._seen.setdefault(place, []).append(value)

    def observations(self, length_scales: FloatArray) -> Observations:
        """Return all observations, merged by utility; failures count as the worst utility."""
        failures = self.failures(length_scales)
        values = [*self._seen.values(), *([worst] for worst in failures.values())]
        features, levels = zip(*self._seen, *failures, strict=True)
        return Observations(
            np.array(features),
            np.array(levels),
            np.array([sum(each) / len(each) for each in values]),
            np.array([float(len(each)) for each in values]),
            np.array([np.var(each) * len(each) if len(each) > 1 else 0.0 for each in values]),
        )

    def failures(self, length_scales: FloatArray) -> dict[Place, float]:
        """Return failures that the profiles cause, and the worst utility that was seen there.

        A profile counts if it failed again at the same level, and never gave a value there. It also
        counts if another failure is within a length scale of the player's model, unless something
        at no lower level was observed within half of one. The worst utility is that at the
        failure's level, or that of all levels if nothing was observed there.
        """
        if not self._failed or not self.has_seen:
            return {}
        from scipy.spatial.distance import cdist  # slow to import, and not needed before

        failed, levels = map(np.array, zip(*self._failed, strict=True))
        seen, levels_seen = map(np.array, zip(*self._seen, strict=True))
        least = np.array([min(each) for each in self._seen.values()])
        apart = cdist(failed / length_scales, failed / length_scales)
        np.fill_diagonal(apart, np.inf)
        observed = cdist(failed / length_scales, seen / length_scales)
        observed[levels_seen[None, :] < levels[:, None]] = np.inf
        nearest = observed.min(axis=1)
        again = (np.array([*self._failed.values()]) > 1) & (nearest > 0.0)
        counts = again | ((apart.min(axis=1) <= _TOGETHER) & (nearest > _NEAR))
        return {
            place: float(least[levels_seen == place.level].min(initial=least.max()))
            for place, is_cause in zip(self._failed, counts, strict=True)
            if is_cause
        }
