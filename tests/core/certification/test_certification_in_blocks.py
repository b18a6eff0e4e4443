import math
from functools import partial

import numpy as np
import pytest

from mfhpo import Pull
from tests.core.certification import races

race_of = partial(races.race_of, races.in_blocks)


def tell_block(race, block, values):
    for arm, value in enumerate(values):
        race.tell(Pull(arm, 0, block=block), value)


def test_differences_decide_and_values_give_the_intervals():
    race = race_of(2, epsilon=0.5, delta=0.5, measure=0)
    effects = (0.0, 50.0, -3.0, 7.0, 1.0)
    for block, difference in enumerate((0.9, 1.1, 1.0, 0.9, 1.1)):
        tell_block(race, block, [effects[block], effects[block] + difference])
    answer = race.certificate("both", "by hand")
    assert race.finished
    assert answer.certified
    assert (answer.winner, answer.evaluations) == (1, 10)
    assert answer.mean == pytest.approx(12.0)
    # Far apart as they are from block to block, 1 is ahead by 1 in all of them.
    assert answer.within < 0.5
    assert answer.candidates[0].interval[0] < -10 < 30 < answer.candidates[0].interval[1]


def test_smallest_tolerance_is_where_the_race_is_certified():
    values = np.random.default_rng(1).normal([0.3, 0.0], 1.0, (40, 2)).tolist()

    def answers(epsilon, n=40):
        race = race_of(2, epsilon=epsilon)
        for block, row in enumerate(values[:n]):
            tell_block(race, block, row)
            yield race.certificate("", "")

    within = [answer.within for answer in answers(0.0)]
    n = int(np.argmin(within)) + 1
    assert n > 20
    assert 0.1 < within[n - 1] < 2.0
    *_, smaller = answers(within[n - 1] * 0.999, n)
    *_, larger = answers(within[n - 1] * 1.001, n)
    assert (smaller.certified, larger.certified) == (False, True)


def test_it_takes_no_more_than_all_replicates():
    race = race_of(2, replicates=20, epsilon=0.0)
    values = np.random.default_rng(0).normal([0.0, 0.01], 0.2, (20, 2)).tolist()
    for block, row in enumerate(values[:12]):
        tell_block(race, block, row)
    answer = race.certificate("", "")
    assert (answer.certified, answer.remaining) == (False, 16.0)
    assert "to certify  about 16 more" in str(answer)


def test_epsilon_is_the_spread_over_replicates():
    race, rng, values = race_of(2, measure=0), np.random.default_rng(3), []
    for block in range(4):
        assert math.isnan(race.certificate("", "").epsilon) == (block < 2)
        values.append(2.0 * rng.normal() + 0.3 * rng.normal(size=2))
        tell_block(race, block, values[-1].tolist())
    pooled = math.sqrt(np.var(values, axis=0, ddof=1).mean())
    assert race.certificate("", "").epsilon == pytest.approx(pooled)


def test_two_values_of_one_block_count_once():
    values = np.random.default_rng(0).normal([0.5, 0.0], 0.2, (6, 2)).tolist()
    once, twice = race_of(2), race_of(2)
    for block, row in enumerate(values):
        tell_block(once, block, row)
        tell_block(twice, block, row)
        tell_block(twice, block, [value + 9.0 for value in reversed(row)])
    one, two = once.certificate("", ""), twice.certificate("", "")
    assert (two.mean, two.interval, two.within) == (one.mean, one.interval, one.within)
    assert (one.evaluations, two.evaluations) == (12, 24)
