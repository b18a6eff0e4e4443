"""Many short races at once, all means 0 and all variances 1, under rules that read the values."""

import numpy as np


class ManyRaces:
    """Statistics of arms of races, shape (races, arms)."""

    def __init__(self, races, arms, seed):
        self._rng = np.random.default_rng(seed)
        self._rows = np.arange(races)
        self.counts = np.zeros((races, arms), dtype=np.int64)
        self.means = np.zeros((races, arms))
        self.squares = np.zeros((races, arms))

    def pull(self, arms):
        """One value of one arm of each race, shape (races,)."""
        cells = (self._rows, arms)
        distances = self._rng.standard_normal(len(arms)) - self.means[cells]
        self.counts[cells] += 1
        self.means[cells] += distances / self.counts[cells]
        self.squares[cells] += distances**2 * (1.0 - 1.0 / self.counts[cells])


def at_random(races, rng):
    return rng.integers(races.means.shape[1], size=len(races.means))


def for_a_lead(races, rng):
    """Arm 0 until it is lucky, arm 1 until it is not, then any."""
    odds = rng.random(races.means.shape)
    odds[:, 0] -= races.means[:, 0] <= 0.0
    odds[:, 1] -= races.means[:, 1] >= 0.0
    return odds.argmin(axis=1)


def for_a_small_spread(races, rng):
    """First a second value of other arms where it is likely to be near the first one."""
    odds = 2.0 + rng.random(races.means.shape)
    odds[races.counts == 0] -= 1.0
    odds[(races.counts == 1) & (np.abs(races.means) < 0.5)] -= 2.0
    odds[:, :2] = np.inf
    is_done = odds.min(axis=1) > 2.0
    return np.where(is_done, for_a_lead(races, rng), odds.argmin(axis=1))
