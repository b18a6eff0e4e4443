"""Which of the values that were told a model learns from, and on what scale."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray

# Gaps to the best are as they are up to about so many times that of the median of so many first
# values; what is far beyond is hopeless.
_NEAR, _FIRST = 5.0, 20
_HOPELESS = 2.0  # logarithm from which on it hardly matters how far
_MOST_BEYOND = 50.0  # of a logarithm: farther than any value, and no overflow
_LEAST_GAP = -0.9  # in units of what is near: nothing is better than the best by more
_ROUNDING = 1e-12  # of the best value: what is nearer to it than this is equal to it
# Shares of the rows: those that were told last, and at most so many below an arm's highest level.
_LATEST, _LOWER = 0.5, 0.25
_WHOLE = 25  # arms whose values at all levels are kept, at most
_MOST_TOLD = 10_000  # rows that are remembered
_FAILED = -1  # in place of a level


@dataclass(frozen=True)
class Rows:
    """Observations of arms at levels, all arrays of one shape (n,).

    `values` are means of `counts` evaluations, as `scores`; rows became known in the order `told`.
    """

    arms: IntArray
    levels: IntArray
    values: FloatArray
    counts: IntArray
    told: IntArray

    def most_telling(self, most: int) -> Rows:
        """Return the rows to keep if there are too many."""
        chosen = self.places_of_most_telling(most)
        return Rows(*(column[chosen] for column in vars(self).values()))

    def places_of_most_telling(self, most: int) -> IntArray:
        """Return the places of the rows to keep if there are too many, increasing.

        Of arms at their highest levels half are the latest, the others those that came furthest. A
        few keep lower values, to show how levels go together.
        """
        if len(self.values) <= most:
            return np.arange(len(self.values))
        arms, which, n_rows = np.unique(self.arms, return_inverse=True, return_counts=True)
        reached = np.full(len(arms), -1)
        np.maximum.at(reached, which, self.levels)
        top = np.flatnonzero(self.levels == reached[which])
        told, value = np.zeros(len(arms), dtype=np.int64), np.zeros(len(arms))
        told[which[top]] = self.told[top]
        value[which[top]] = self.values[top]
        value[reached < reached.max()] = 0.0
        latest = top[np.argsort(self.told[top])[-int(_LATEST * most) :]]
        is_new = np.isin(np.arange(len(arms)), which[latest])
        first = np.lexsort((-told, -value, ~is_new, -reached))
        n_whole = min(_WHOLE, int(_LOWER * most / max(1, self.levels.max())))
        whole = first[n_rows[first] > 1][:n_whole]
        lower = np.setdiff1d(np.flatnonzero(np.isin(which, whole)), top)
        place = np.argsort(first)
        others = np.setdiff1d(top, latest)
        others = others[np.argsort(place[which[others]], kind="stable")]
        return np.sort(np.concatenate([latest, lower, others])[:most])


class Told:
    """Values of arms at levels, each as one row; of very many, the most telling."""

    def __init__(self, n_levels: int) -> None:
        self._n_levels = n_levels
        self.changed_at = 0  # how much had been read when rows were last forgotten
        self._n_read = 0  # of the history
        # The place of an arm at a level, in the order in which they were first told, in arrays of
        # arms, levels, sums of values and their numbers.
        self._places: dict[tuple[int, int], int] = {}
        self._arms, self._levels, self._counts = np.zeros((3, _MOST_TOLD), dtype=np.int64)
        self._sums = np.zeros(_MOST_TOLD)

    def read(self, history: Sequence[tuple[int, int, float | None]]) -> None:
        """Take in what is new in a growing history; arms without a value failed for good."""
        for arm, level, value in history[self._n_read :]:
            self._n_read += 1
            key = (arm, _FAILED) if value is None else (arm, level)
            if key not in self._places and len(self._places) == _MOST_TOLD:
                self._forget()
                self.changed_at = self._n_read
            place = self._places.setdefault(key, len(self._places))
            self._arms[place], self._levels[place] = key
            self._sums[place] += value or 0.0
            self._counts[place] += 1

    def rows(self, n_levels: int, without: Collection[int] = ()) -> Rows:
        """Return rows of the lowest levels; failed arms get the worst value at the last."""
        return self._rows(self._in_order(n_levels, without), n_levels)

    def scale(self, level: int, without: Collection[int] = ()) -> Scale:
        """Return the scale of the values at a level that `rows` has."""
        places = self._in_order(level + 1, without)
        here = places[self._levels[places] == level]
        return Scale.of(self._sums[here] / self._counts[here])

    def _in_order(self, n_levels: int, without: Collection[int]) -> IntArray:
        n = len(self._places)
        used = self._levels[:n] < n_levels
        if without:
            used &= ~np.isin(self._arms[:n], list(without))
        places = np.flatnonzero(used)
        levels = self._levels[places]
        return places[np.argsort(np.where(levels == _FAILED, n_levels, levels), kind="stable")]

    def _rows(self, places: IntArray, n_levels: int) -> Rows:
        levels, counts = self._levels[places], self._counts[places]
        values = self._sums[places] / counts
        failed = levels == _FAILED
        for level in np.unique(levels[~failed]):
            values[levels == level] = scores(values[levels == level])
        values[failed] = values[~failed].min(initial=0.0)
        levels = np.where(failed, n_levels - 1, levels)
        return Rows(self._arms[places], levels, values, counts, places)

    def _forget(self) -> None:
        """Keep the more telling half, and of each level the first ones, which set its scale."""
        places = self._in_order(self._n_levels, ())
        rows = self._rows(places, self._n_levels)
        telling = places[rows.places_of_most_telling(_MOST_TOLD // 2)]
        levels = range(self._n_levels)
        first = [np.flatnonzero(self._levels == level)[:_FIRST] for level in levels]
        kept = np.union1d(telling, np.concatenate(first)[: _MOST_TOLD // 4])
        for column in (self._arms, self._levels, self._sums, self._counts):
            column[: len(kept)] = column[kept]
            column[len(kept) :] = 0
        keys = zip(self._arms.tolist(), self._levels.tolist(), strict=True)
        self._places = {key: place for place, key in enumerate(islice(keys, len(kept)))}


def scores(values: FloatArray) -> FloatArray:
    """Return minus each value's gap to the best one, large gaps shortened: see `Scale`."""
    return Scale.of(values).scores(values)


@dataclass(frozen=True)
class Scale:
    """The scale on which a model sees values: their gaps to the best, with unit variance.

    A model of the values themselves would spend itself on hopeless configurations, so gaps are
    shortened to their logarithms, from about the median gap on.
    """

    best: float
    near: float  # from which gap on it is shortened
    mean: float  # of the shortened gaps
    spread: float

    @classmethod
    def of(cls, values: FloatArray) -> Scale:
        """Return the scale of values, in the order in which they became known."""
        best = float(values.max())
        gaps = _gaps(best, values)
        # A search comes to where gaps are as small as the noise; the first ones say what a gap is.
        typical = float(np.median(gaps[:_FIRST]))
        # With half of them at the best, the mean gap says so; with all, there is none.
        near = _NEAR * typical or _NEAR * float(gaps.mean()) or 1.0
        shortened = _shortened(gaps / near)
        return cls(best, near, float(shortened.mean()), float(shortened.std()) or 1.0)

    def scores(self, values: FloatArray) -> FloatArray:
        """Return the values on this scale."""
        shortened = _shortened(_gaps(self.best, values) / self.near)
        return np.asarray((self.mean - shortened) / self.spread)

    def values(self, scores: FloatArray) -> FloatArray:
        """Return the values that have these scores."""
        shortened = self.mean - self.spread * scores
        beyond = np.minimum(np.expm1(np.clip(shortened - _HOPELESS, 0.0, 5.0)), _MOST_BEYOND)
        found: FloatArray = self.best - self.near * np.expm1(
            np.minimum(shortened, _HOPELESS) + beyond
        )
        return found


def _gaps(best: float, values: FloatArray) -> FloatArray:
    gaps = best - values
    gaps[np.abs(gaps) <= _ROUNDING * abs(best)] = 0.0
    return gaps


def _shortened(gaps: FloatArray) -> FloatArray:
    shortened = np.log1p(np.maximum(gaps, _LEAST_GAP))
    hopeless = np.maximum(shortened - _HOPELESS, 0.0)
    return np.asarray(np.minimum(shortened, _HOPELESS) + np.log1p(hopeless))
