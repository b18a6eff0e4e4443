"""What one player's utility was seen to be; what was seen of it twice is merged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mfhpo.games.marginal_likelihood import Observations

__all__ = ["ObservedUtilities"]

FloatArray = npt.NDArray[np.float64]

_NEAR, _TOGETHER = 0.5, 1.0  # length scales


class ObservedUtilities:
    """Collects the observations of one player.

    Examples
    --------
    >>> seen = ObservedUtilities()
    >>> for value in (1.0, 3.0):
    ...     seen.add(np.array([0.5]), 0, value)
    >>> found = seen.observations(length_scales=np.ones(1))
    >>> len(seen), found.values.tolist(), found.counts.tolist(), found.squares.tolist()
    (2, [2.0], [2.0], [2.0])
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[bytes, int], int] = {}
        self._features: list[FloatArray] = []
        self._levels: list[int] = []
        self._means: list[float] = []
        self._counts: list[int] = []
        self._squares: list[float] = []
        self._least: dict[int, float] = {}
        self._n = 0
        self._failed: list[tuple[FloatArray, int]] = []

    def __len__(self) -> int:
        """Number of observations and failures."""
        return self._n

    @property
    def has_seen(self) -> bool:
        """Whether any utility was observed."""
        return bool(self._means)

    def add(self, features: FloatArray, level: int, value: float) -> None:
        """Note an observation.

        Parameters
        ----------
        features
            Of the profile, shape (d,).
        level
            Its index.
        value
            The utility.
        """
        key = (features.tobytes(), level)
        row = self._rows.setdefault(key, len(self._rows))
        if row == len(self._means):
            self._features.append(features)
            self._levels.append(level)
            self._means.append(value)
            self._counts.append(1)
            self._squares.append(0.0)
        else:
            self._counts[row] += 1
            away = value - self._means[row]
            self._means[row] += away / self._counts[row]
            self._squares[row] += away * (value - self._means[row])
        self._n += 1
        self._least[level] = min(value, self._least.get(level, value))

    def fail(self, features: FloatArray, level: int) -> None:
        """Note that a profile could not be measured; see `add` for the parameters."""
        self._failed.append((features, level))
        self._n += 1

    def is_excused(self, features: FloatArray, length_scales: FloatArray) -> bool:
        """Whether something was observed so near to a failure that the profile has no part in it.

        Parameters
        ----------
        features
            Of the profile that failed, shape (d,).
        length_scales
            In which distances are measured, shape (d,).
        """
        apart = (np.array(self._features) - features) / length_scales
        return bool(((apart**2).sum(axis=1) <= _NEAR**2).any())

    def worst(self, level: int) -> float | None:
        """The smallest utility that was seen at a level, or at all if none was seen there."""
        return self._least.get(level, min(self._least.values(), default=None))

    def observations(self, length_scales: FloatArray) -> Observations:
        """All of them, those of the same utility as one, and failures as the worst utilities.

        Parameters
        ----------
        length_scales
            See `is_excused`; such failures are left out.
        """
        failed = self._counted(length_scales)
        return Observations(
            np.array(self._features + [features for features, _, _ in failed]),
            np.array(self._levels + [level for _, level, _ in failed]),
            np.array(self._means + [worst for _, _, worst in failed]),
            np.array(self._counts + [1] * len(failed), dtype=float),
            np.array(self._squares + [0.0] * len(failed)),
        )

    def n_failures(self, length_scales: FloatArray) -> int:
        """Number of failures among the observations; see there."""
        return len(self._counted(length_scales))

    def _counted(self, length_scales: FloatArray) -> list[tuple[FloatArray, int, float]]:
        """Failures that are not excused, each with its level and the worst utility there."""
        return [
            (features, level, worst)
            for place, (features, level) in enumerate(self._failed)
            if (worst := self.worst(level)) is not None
            and self._failed_near(place, length_scales)
            and not self.is_excused(features, length_scales)
        ]

    def _failed_near(self, place: int, length_scales: FloatArray) -> bool:
        """Whether another failure was near one, so that it may be the profile's own."""
        failed = np.array([features for features, _ in self._failed])
        apart = np.delete((failed - failed[place]) / length_scales, place, axis=0)
        return bool(((apart**2).sum(axis=1) <= _TOGETHER**2).any())
