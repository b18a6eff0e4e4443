"""Which of the values that were told a model learns from, and on what scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray

# Gaps to the best are as they are up to about so many times that of the median of so many first
# values; what is far beyond is hopeless.
_NEAR, _FIRST = 5.0, 20
_HOPELESS = 2.0  # logarithm from which on it hardly matters how far
_ROUNDING = 1e-12  # of the best value: what is nearer to it than this is equal to it
_LATEST = 30  # arms that are kept for being new
_WHOLE = 25  # arms whose values at all levels are kept


@dataclass(frozen=True)
class Rows:
    """Observations of arms at levels, all arrays of one shape (n,).

    ``values`` are means, as `scores` of the level, and ``counts`` of how many evaluations.
    """

    arms: IntArray
    levels: IntArray
    values: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, arms: IntArray, levels: IntArray, values: FloatArray, n_levels: int) -> Rows:
        """Take what was told, in the order in which it was, all of one shape (n,).

        A value of NaN, for an arm that failed for good, counts as the worst value at the target.
        """
        failed = np.isnan(values)
        out = arms[failed]
        arms, levels, values = arms[~failed], levels[~failed], values[~failed]
        _, first, row = np.unique(arms * n_levels + levels, return_index=True, return_inverse=True)
        counts = np.bincount(row)
        means = np.bincount(row, values) / counts
        order = np.lexsort((first, levels[first]))
        first, means, counts = first[order], means[order], counts[order]
        levels = levels[first]
        for level in np.unique(levels):
            means[levels == level] = scores(means[levels == level])
        worst = means.min() if len(means) else 0.0
        return cls(
            np.append(arms[first], out),
            np.append(levels, np.full_like(out, n_levels - 1)),
            np.append(means, np.full(len(out), worst)),
            np.append(counts, np.ones_like(out)),
        )

    def most_telling(self, most: int) -> Rows:
        """The rows to keep if there are too many.

        An arm's value at its highest level says nearly all about the target. Its lower ones are
        kept for a few arms alone, to show how levels go together: first for those that came
        furthest, among these the latest and the best. Of the others the latest are kept: their best
        are merely their luckiest.
        """
        if len(self.values) <= most:
            return self
        arms, which = np.unique(self.arms, return_inverse=True)
        reached = np.full(len(arms), -1)
        np.maximum.at(reached, which, self.levels)
        at_top = self.levels == reached[which]
        value = np.full(len(arms), -np.inf)
        value[which[at_top]] = self.values[at_top]
        value[reached < reached.max()] = 0.0
        latest = arms > arms[-1] - _LATEST
        place = np.empty(len(arms), dtype=np.int64)
        place[np.lexsort((-arms, -value, ~latest, -reached))] = np.arange(len(arms))
        kept = at_top | (place[which] < _WHOLE)
        order = np.lexsort((~at_top, place[which], ~kept))
        chosen = np.sort(order[: min(most, int(kept.sum()))])
        return Rows(
            self.arms[chosen], self.levels[chosen], self.values[chosen], self.counts[chosen]
        )


def scores(values: FloatArray) -> FloatArray:
    """Minus each value's gap to the best one, large gaps shortened, with mean 0 and unit variance.

    Values are better the larger they are, and in the order in which they became known. A model of
    the values themselves would spend itself on hopeless configurations, so gaps are shortened to
    their logarithms, from about the median gap on, and those of the hopeless further.

    Examples
    --------
    >>> scores(np.array([0.1, 0.5, 0.8, 0.9])).round(2).tolist()
    [-1.47, -0.34, 0.71, 1.11]
    """
    best = values.max()
    gaps = best - values
    gaps[gaps <= _ROUNDING * abs(best)] = 0.0
    # A search comes to where gaps are as small as the noise; the first ones say what a gap is.
    typical = float(np.median(gaps[:_FIRST]))
    # With half of them at the best, the mean gap says so; with all, there is none.
    near = _NEAR * typical or _NEAR * float(gaps.mean()) or 1.0
    shortened = np.log1p(gaps / near)
    hopeless = np.maximum(shortened - _HOPELESS, 0.0)
    shortened = np.minimum(shortened, _HOPELESS) + np.log1p(hopeless)
    spread = float(shortened.std())
    scaled: FloatArray = (shortened.mean() - shortened) / (spread or 1.0)
    return scaled
