"""How often evidence is ever wrong under rules that read the values: at most with its level."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from mfhpo.identification.likelihood.likelihood import prior_count
from mfhpo.identification.likelihood.one_sided import Pairs
from mfhpo.knowledge.confidence import studentised_radius
from tests.core.identification.many_races import (
    ManyRaces,
    at_random,
    for_a_lead,
    for_a_small_spread,
)

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


def largest_evidence(arms, rule, is_known, threshold=THRESHOLD, n=3000):
    """The most that ever speaks for arm 0 being better than arm 1, of the same mean."""
    most = np.full(n, -np.inf)
    for races in played(arms, rule, n):
        variances, degrees = races.pooled(2)
        gaps = races.means[:, 0] - races.means[:, 1]
        told = (gaps > 0.0) & (races.counts[:, :2] > 0).all(axis=1) & (is_known | (degrees > 0.0))
        of_both = np.ones(n) if is_known else variances
        pairs = Pairs(
            gaps[told],
            races.counts[told, :2].T,
            np.tile(of_both[told], (2, 1)),
            None if is_known else degrees[told],
        )
        found = pairs.evidence(prior_count(LEVEL), threshold)
        most[told] = np.maximum(most[told], found)
    return most


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(("arms", "rule"), RULES)
def test_evidence_of_pairs(arms, rule, is_known):
    assert not exceeds_the_level(largest_evidence(arms, rule, is_known) >= THRESHOLD)


@pytest.mark.parametrize("is_known", [False, True])
def test_evidence_that_is_too_large_by_2_is_found_out(is_known):
    too_low = THRESHOLD - 2.0
    assert exceeds_the_level(largest_evidence(2, for_a_lead, is_known, too_low, 1000) >= too_low)


@pytest.mark.parametrize(("arms", "rule"), RULES)
def test_studentised_radii(arms, rule):
    missed, missed_by_half = np.zeros((2, 3000), dtype=bool)
    for races in played(arms, rule):
        variances, degrees = races.pooled(1)
        radii = studentised_radius(races.counts[:, 0], LEVEL, variances, degrees)
        missed |= np.abs(races.means[:, 0]) > radii
        missed_by_half |= np.abs(races.means[:, 0]) > 0.5 * radii
    assert not exceeds_the_level(missed)
    assert arms > 2 or exceeds_the_level(missed_by_half)  # so that the test could tell
