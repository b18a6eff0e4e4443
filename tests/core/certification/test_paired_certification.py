import math
from functools import partial

import numpy as np
import pytest

from mfhpo.certification.paired import PairedCertification
from tests.core.certification import races

race_of = partial(races.race_of, PairedCertification)


def test_means_and_differences_by_hand():
    race = race_of(2, epsilon=0.5, delta=0.5, measure=0)
    for level, difference in ((0.0, 0.9), (50.0, 1.1), (-3.0, 1.0), (7.0, 0.9), (1.0, 1.1)):
        race.tell({0: level, 1: level + difference})
    answer = race.certificate("both", "by hand")
    assert race.finished
    assert answer.certified
    assert (answer.winner, answer.evaluations) == (1, 10)
    assert answer.mean == pytest.approx(12.0)
    # Far apart as they are from round to round, 1 is ahead by 1 in all of them.
    assert answer.candidates[0].standing == "worse"
    assert answer.candidates[0].interval[0] < -10 < 30 < answer.candidates[0].interval[1]


def test_minimising_mirrors():
    truth = np.array([0.0, 0.3, 0.1])

    def negative(sign):
        rng, race = np.random.default_rng(0), race_of(3, maximise=sign > 0, epsilon=0.1)
        while not race.finished:
            noise = 0.1 * rng.normal(size=3)
            race.tell({arm: sign * (truth[arm] + noise[arm]) for arm in race.ask()})
        return race.certificate("", "")

    up, down = negative(1.0), negative(-1.0)
    assert (up.winner, up.evaluations, up.within) == (down.winner, down.evaluations, down.within)
    assert up.mean == -down.mean
    assert up.interval == tuple(-bound for bound in reversed(down.interval))


def test_budget_pays_for_whole_rounds():
    race, rng = race_of(3, epsilon=1e-3, budget=20), np.random.default_rng(0)
    while not race.finished:
        race.tell({arm: rng.normal() for arm in race.ask()})
    answer = race.certificate("all", "by hand")
    assert answer.evaluations == 18
    assert not answer.certified
    assert answer.finished
    assert 1e-3 < answer.within < math.inf
    assert "budget of 20 is spent and 3 candidates are not told apart" in answer.reason
    with pytest.raises(ValueError, match="budget must be at least 3, got 2"):
        race_of(3, budget=2)


def test_epsilon_is_the_noise_as_far_as_it_is_known():
    race, rng, values = race_of(2, measure=0), np.random.default_rng(3), []
    while not race.finished:
        assert math.isnan(race.certificate("", "").epsilon) == (race.rounds < 5)
        values.append(2.0 * rng.normal() + 0.3 * rng.normal(size=2))
        race.tell(dict(enumerate(values[-1])))
    pooled = math.sqrt(np.var(values, axis=0, ddof=1).mean())
    assert race.certificate("", "").epsilon == pytest.approx(pooled)
    assert race.certificate("", "").certified


def test_rounded_differences_are_not_believed_too_soon():
    race = race_of(2, epsilon=0.0)
    for number in range(9):
        race.tell({0: 0.1 * number, 1: 0.1 * number + 0.3})
        assert not race.finished
    race.tell({0: 0.9, 1: 1.2})
    assert race.certificate("", "").certified


def test_a_few_rounds_may_agree_by_chance():
    race = race_of(4)
    for score in [*[0.9] * 9, 0.8]:
        assert not race.finished
        race.tell({arm: score + 0.01 * arm for arm in race.ask()})
    assert not race.noise_is_hidden


def test_failures_count_and_a_failed_leader_gives_back_what_it_had_beaten():
    race, rng = race_of(3, epsilon=0.1, max_failures=2), np.random.default_rng(0)
    while race.ask() == [0, 1, 2]:
        race.tell({arm: 2.0 * arm + 0.1 * rng.normal() for arm in race.ask()})
    assert race.ask() == [2]  # the winner, whose value is still being measured
    while race.ask() == [2] and race.rounds < 99:
        race.tell({2: math.nan})
    assert race.ask() == [1]
    answer = race.certificate("three", "by hand")
    assert answer.candidates[2].standing == "failed"
    assert answer.winner == 1
    assert [one.name for one in answer.not_compared] == ["row 2"]
    assert not answer.certified
