"""Which time limits pulls may have: those that are given, or derived from first durations."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo._validation import MOST_LEVELS, check_count, check_numbers, check_positive, shown
from mfhpo.censored.history import History
from mfhpo.knowledge.arrays import FloatArray, IntArray

# The fewest durations that limits are derived from.
_FEWEST_DURATIONS = 4
# Pulls of each arm that may be stopped before limits are given up to be derived from durations.
_TRIES = 3
# The least limit that is derived, in seconds: a clock may measure 0.
_SHORTEST = 1e-6
# Quantiles of the first durations between which derived limits lie (Bengs and Hüllermeier 2023,
# Section 5.2).
_QUANTILES = (0.25, 0.75)


class SharedLimits:
    """Limits in seconds that all arms have, shape (m,): given, or so many to be derived.

    `known` are None until they are derived; `longest` is the limit of the pulls until then.
    """

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

        Every active arm must have been tried, with enough durations. Where no pull ended, each arm
        is tried again, and the limits go up from 0 to the one that stopped the pulls. They also do
        if three quarters of the first pulls were stopped at `longest`.
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
        if np.isfinite(seconds[chosen]).any():
            first, last = np.quantile(ran[chosen], _QUANTILES)
            if first >= self.longest:  # they say no more than that most pulls take longer
                first = 0.0
        elif min(np.bincount(arms)[active]) < _TRIES:
            return
        else:
            first, last = 0.0, float(ran.max())
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
