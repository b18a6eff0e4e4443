"""Asynchronous halving that skips levels which do not agree with the next one."""

from collections.abc import Sequence

import numpy as np

from mfhpo.problem import Pull
from mfhpo.search.policy import Begin, SearchPolicy

_LEAST_AGREEMENT = 0.2  # with the next level, of one that is not skipped
_PRIOR_AGREEMENT, _PRIOR_ARMS = 0.5, 4


class HalvingSearch(SearchPolicy):
    """Promotes the best third of each level, whenever an arm is among it.

    The promotions are those of asynchronous successive halving (Li et al., A system for massively
    parallel hyperparameter tuning, MLSys 2020), but for the first arms, which go up as in any
    search (see `initial`). Arms are drawn by whoever asks. They begin at the lowest level that can
    be relied on: a level is skipped while its rank correlation with the next one is below 0.2. It
    is Spearman's, over the arms that were evaluated at both, taken together with four arms' worth
    of a correlation of one half, since a few arms say little.

    Parameters
    ----------
    costs, continues, initial, seed
        See `SearchPolicy`.

    Examples
    --------
    >>> from mfhpo.problem import Observation
    >>> search = HalvingSearch(costs=(1.0, 3.0), initial=3)
    >>> for arm, value in enumerate([0.1, 0.9, 0.5]):
    ...     search.tell(Pull(arm, 0), Observation(value))
    >>> search.ask(begun=3)
    Pull(arm=1, fidelity=1, limit=None, block=None)
    """

    def ask(self, begun: int, pending: Sequence[Pull] = ()) -> Begin | Pull | None:
        """What to evaluate next."""
        step = self._first_arms(begun, pending)
        if step is not None:
            return step
        grace = self.grace_level()
        step = self._promotion(grace, pending) or self._begin(grace, pending)
        # Of arms that are given, the rest goes up once nothing is left to begin.
        return self._promotion(grace, pending, 1) if step is None and not pending else step

    def grace_level(self) -> int:
        """The level at which new arms begin."""
        for level in range(self.lowest, self.target):
            if self.agreement(level) >= _LEAST_AGREEMENT:
                return level
        return self.target

    def agreement(self, level: int) -> float:
        """Rank correlation of a level with the next one, drawn to one half by few arms."""
        from scipy.stats import spearmanr  # slow to import, and not needed before

        both = [arm for arm in self._values[level] if arm in self._values[level + 1]]
        low = [self.mean(arm, level) for arm in both]
        high = [self.mean(arm, level + 1) for arm in both]
        seen = 0.0
        if len(set(low)) > 1 and len(set(high)) > 1:
            seen = float(spearmanr(low, high).statistic)
        weight = len(both) / (len(both) + _PRIOR_ARMS)
        return float(np.clip(weight * seen + (1.0 - weight) * _PRIOR_AGREEMENT, -1.0, 1.0))
