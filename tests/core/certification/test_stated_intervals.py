"""Which intervals a certificate states: none that says nothing, and no value that cannot be."""

import math

import pytest

from mfhpo import Bounded
from tests.core.certification.races import by_looks, race_of, tell


def answer_after(pairs, **options):
    race = race_of(by_looks, first_look=2, claims=[0.97, 0.96], delta=0.05, **options)
    for pair in pairs:
        for arm, value in enumerate(pair):
            tell(race, arm, value)
    return race, race.certificate("both", "by hand")


TWO = [(0.971, 0.962), (0.979, 0.971)]


def test_an_interval_wider_than_all_that_was_seen_is_not_stated():
    race, answer = answer_after(TWO)
    _, high = race.interval(answer.winner)
    assert high > 1.05, "which no accuracy is"
    assert answer.interval == (-math.inf, math.inf)
    assert "0.975 (no interval yet), of 2 new evaluations" in str(answer)
    assert f"{high:.5g}" not in str(answer)


def test_with_more_evaluations_there_is_an_interval():
    race, answer = answer_after(4 * TWO)
    assert answer.interval == race.interval(answer.winner)
    assert answer.interval[1] < 1.0


@pytest.mark.parametrize(("maximise", "bounds"), [(True, (0, 1)), (False, (-1, 0.99))])
def test_an_interval_is_cut_to_the_declared_range(maximise, bounds):
    race, answer = answer_after(4 * TWO, sigma=Bounded(*bounds), maximise=maximise)
    low, high = race.interval(answer.winner)
    assert high > bounds[1]
    assert answer.interval == (max(low, bounds[0]), bounds[1])
    assert all(one.interval[1] == bounds[1] for one in answer.candidates)


def test_a_declared_noise_states_its_intervals_however_wide():
    race, answer = answer_after(TWO, sigma=0.2)
    assert answer.interval == race.interval(answer.winner)
