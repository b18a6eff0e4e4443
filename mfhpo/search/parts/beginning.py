"""The beginning of a search: arms that are drawn at random, fewer at each level."""

import math
from collections.abc import Callable, Sequence

from mfhpo._validation import check_count

FEWEST, _MOST = 9, 27
"""Number of the first arms."""

_REDUCTION = 3  # one in so many goes up
# At every level, because a single value at the target does not say how far the levels agree.
_FIRST_EVERYWHERE = 2


class Beginning:
    """The number of arms drawn at random before anything is concluded from their values.

    An `initial` number holds; without one, `find` finds it. All of them may cost `most`.
    """

    def __init__(self, initial: int | None) -> None:
        self.n = FEWEST if initial is None else check_count("initial", initial, 2)
        self._is_given = initial is not None
        self.most, self._is_short = math.inf, False

    def shorten(self, most: float, is_short: bool) -> None:
        """Let all of it cost `most`, and have the least usual number at most if it `is_short`."""
        self.most, self._is_short = most, is_short

    def find(self, price: Callable[[int, int], float], levels: Sequence[int]) -> None:
        """Find how many arms there are, by the price from a level, -1 for none, to another."""
        if self._is_given:
            return
        affordable = round(price(-1, levels[-1]) / price(-1, levels[0]))
        self.n = min(max(affordable, FEWEST), FEWEST if self._is_short else _MOST)
        while self.n > 2 and self._price(price, levels) > self.most:
            self.n -= 1

    def _price(self, price: Callable[[int, int], float], levels: Sequence[int]) -> float:
        counts = zip(levels, self.counts(levels), strict=True)
        return sum(n * price(level - 1, level) for level, n in counts)

    def counts(self, levels: Sequence[int]) -> list[int]:
        """Return how many of the first arms are evaluated at each level."""
        least = min(_FIRST_EVERYWHERE, math.ceil(self.n / _REDUCTION))
        counts = [self.n]
        for _ in levels[1:]:
            counts.append(max(least, math.ceil(counts[-1] / _REDUCTION)))
        return counts
