"""What one player's utility was seen to be; what was seen of it twice is merged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mfhpo.games.marginal_likelihood import Observations

__all__ = ["ObservedUtilities"]

FloatArray = npt.NDArray[np.float64]


class ObservedUtilities:
    """Collects the observations of one player.

    Examples
    --------
    >>> seen = ObservedUtilities()
    >>> for value in (1.0, 3.0):
    ...     seen.add(np.array([0.5]), 0, value)
    >>> found = seen.observations()
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

    def __len__(self) -> int:
        """Number of observations."""
        return self._n

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

    def worst(self, level: int) -> float | None:
        """The smallest utility that was seen at a level, or at all if none was seen there."""
        return self._least.get(level, min(self._least.values(), default=None))

    def observations(self) -> Observations:
        """All of them, those of the same utility as one."""
        return Observations(
            np.array(self._features),
            np.array(self._levels),
            np.array(self._means),
            np.array(self._counts, dtype=float),
            np.array(self._squares),
        )
