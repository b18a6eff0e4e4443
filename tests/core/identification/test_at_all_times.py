"""How often evidence is ever wrong under rules that read the values: at most with its level."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from mfhpo.identification.likelihood.likelihood import prior_count
from mfhpo.identification.likelihood.one_sided import evidence
from mfhpo.identification.likelihood.unknown_variances import Pairs
from mfhpo.racing.noise_evidence import MOST_RATIO


class ManyRaces:
    """Statistics of arms of many short races, (races, arms): all means 0 and all variances 1."""

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


LEVEL = 0.1
THRESHOLD = math.log(1.0 / LEVEL)
RULES = [(2, at_random), (2, for_a_lead), (10, for_a_lead), (30, for_a_small_spread)]


def exceeds_the_level(wrong):
    return wrong.sum() > binom.ppf(1.0 - 1e-6, len(wrong), LEVEL)


def played(arms, rule, n=3000):
    races, rng = ManyRaces(n, arms, seed=5), np.random.default_rng(1)
    for _ in range(50 + 2 * arms):
        races.pull(rule(races, rng))
        yield races


def largest_evidence(arms, rule, threshold=THRESHOLD, n=3000):
    """The most that ever speaks for arm 0 being better than arm 1, of the same mean."""
    most = np.full(n, -np.inf)
    for races in played(arms, rule, n):
        gaps = races.means[:, 0] - races.means[:, 1]
        told = (gaps > 0.0) & (races.counts[:, :2] > 0).all(axis=1)
        counts, variances = races.counts[told, :2].T, np.ones((2, told.sum()))
        found = evidence(gaps[told], counts, variances, prior_count(LEVEL), threshold)
        most[told] = np.maximum(most[told], found)
    return most


@pytest.mark.parametrize(("arms", "rule"), RULES)
def test_evidence_of_pairs(arms, rule):
    assert not exceeds_the_level(largest_evidence(arms, rule) >= THRESHOLD)


def test_evidence_that_is_too_large_by_2_is_found_out():
    too_low = THRESHOLD - 2.0
    assert exceeds_the_level(largest_evidence(2, for_a_lead, too_low, 1000) >= too_low)


def largest_excess(arms, rule, scales, shift=0.0, n=400):
    """The most by which evidence from own variances ever exceeds what is wanted, as above."""
    most = np.full(n, -np.inf)
    for races in played(arms, rule, n):
        gaps = scales[0] * races.means[:, 0] - scales[1] * races.means[:, 1] + shift
        squares = races.squares[:, :2].T * np.square(scales)[:, None]
        counts = races.counts[:, :2].T.astype(float)
        excess = Pairs(gaps, counts, squares, np.zeros((2, n))).excess(LEVEL, n_others=1)
        np.maximum(most, excess, out=most)
    return most


@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.1, 1.0), (1.0, 0.03)])
@pytest.mark.parametrize(("arms", "rule"), RULES[:2])
def test_evidence_from_own_variances_whatever_their_ratio(arms, rule, scales):
    assert not exceeds_the_level(largest_excess(arms, rule, scales) >= 0.0)


def test_evidence_from_own_variances_that_is_too_large_is_found_out():
    assert exceeds_the_level(largest_excess(2, for_a_lead, (1.0, 1.0), shift=1.0) >= 0.0)


def test_an_arm_that_spreads_as_much_as_is_supposed_at_most():
    """It has two or three values, beside many arms that spread a quarter as much."""
    n, rng = 5_000, np.random.default_rng(3)
    for count in (2, 3):
        values = MOST_RATIO * rng.standard_normal((n, count))
        squares = np.square(values - values.mean(axis=1, keepdims=True)).sum(axis=1)
        pairs = Pairs(
            -values.mean(axis=1),  # to a leader whose mean is the same, and known
            np.stack([np.full(n, 1e6), np.full(n, float(count))]),
            np.stack([np.full(n, 1e-6), squares]),
            # 30 others with two values each
            np.stack([MOST_RATIO**2 * rng.chisquare(30, n), np.full(n, 15.0)]),
        )
        assert not exceeds_the_level(pairs.excess(LEVEL, n_others=30) >= 0.0)
