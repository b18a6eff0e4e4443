"""What one player's utility was seen to be; what was seen of it twice is merged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

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

    def worst(self, level: int) -> float:
        """The smallest utility that was seen at a level, or at all if none was seen there."""
        return self._least.get(level, min(self._least.values()))

    def observations(self, length_scales: FloatArray) -> Observations:
        """All of them, those of the same utility as one, and failures as the worst utilities.

        Parameters
        ----------
        length_scales
            Of the player's model, shape (d,): failures count where two are within one of them, and
            nothing was observed within half of one, which would tell that it can be measured there.
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
        """Failures that are the profiles' own, each with its level and the worst utility there."""
        if not self._failed or not self.has_seen:
            return []
        failed = np.array([features for features, _ in self._failed]) / length_scales
        apart = cdist(failed, failed)
        np.fill_diagonal(apart, np.inf)
        observed = cdist(failed, np.array(self._features) / length_scales)
        together, apart_from_all = apart.min(axis=1) <= _TOGETHER, observed.min(axis=1) > _NEAR
        return [
            (features, level, self.worst(level))
            for (features, level), counts in zip(
                self._failed, together & apart_from_all, strict=True
            )
            if counts
        ]
