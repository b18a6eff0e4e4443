"""Replicates whose values are not fixed: no answer is exact, and few are wrong."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from mfhpo import Bounded, NoiseContradictedWarning, Pull
from tests.core.certification import races

race_of = partial(races.race_of, races.in_blocks)

FOLDS = np.array([[1.0, 5.0, 3.5], [2.0, 6.0, 4.0], [0.0, 0.1, 0.2]])


def told_once(values, **options):
    """A race that was told all values of a table, (K, N), once."""
    race = race_of(len(values), replicates=values.shape[1], **options)
    for (arm, block), value in np.ndenumerate(values):
        race.tell(Pull(arm, 0, block=block), float(value))
    return race


def play(race, draw, at_most=2_000):
    while not race.finished and race.evaluations < at_most:
        pull = race.ask()
        race.tell(pull, draw(pull))
    return race.certificate("all of them", "given")


def asked(race, values, n):
    """The next pulls, which give the values of the table."""
    pulls = []
    for _ in range(n):
        pulls.append(race.ask())
        race.tell(pulls[-1], float(values[pulls[-1].arm, pulls[-1].block]))
    return [(pull.arm, pull.block) for pull in pulls]


def test_all_are_evaluated_twice_on_a_replicate():
    race = told_once(FOLDS)
    before = race.certificate("", "")
    assert (race.finished, before.certified, before.is_exact) == (False, False, False)
    assert (before.within, before.interval) == (math.inf, (-math.inf, math.inf))
    assert (before.remaining, "made twice" in before.reason) == (3.0, True)
    assert asked(race, FOLDS, 3) == [(1, 0), (0, 1), (2, 2)]
    after = race.certificate("", "")
    assert (race.finished, after.certified, after.is_exact, after.evaluations) == (*[True] * 3, 12)


def test_coarse_values_are_evaluated_twice_more_often():
    """If a fifth differs, that is seen with probability 1 - delta: 0.8^14 < 0.05."""
    race = told_once(np.round(FOLDS))
    pairs = asked(race, np.round(FOLDS), 9)
    assert pairs[:4] == [(1, 0), (0, 1), (2, 2), (1, 1)]
    assert (race.finished, len({*pairs})) == (True, 9)
    many = np.tile([[0.0], [1.0]], 100)
    answer = play(told_once(many, sigma=Bounded(0, 1)), lambda pull: many[pull.arm, pull.block])
    assert answer.evaluations == 200 + 14


def test_a_failure_says_nothing_and_another_one_is_evaluated_twice():
    race = told_once(FOLDS)
    race.tell(race.ask(), None)
    assert asked(race, FOLDS, 3) == [(0, 1), (2, 2), (1, 1)]
    answer = race.certificate("", "")
    assert (answer.is_exact, answer.evaluations) == (True, 13)


def test_without_any_second_value_nothing_is_exact_and_the_race_ends():
    race = told_once(FOLDS)
    while not race.finished:
        race.tell(race.ask(), None)
    answer = race.certificate("", "")
    assert (answer.is_exact, answer.evaluations) == (False, 9 + 9)


def test_an_arm_that_is_ruled_out_has_no_second_value():
    race = told_once(FOLDS)
    for _ in range(10):
        if not race.finished:
            pull = race.ask()
            race.tell(pull, -math.inf if pull.arm == 0 else FOLDS[pull.arm, pull.block])
    assert race.finished


def test_large_values_of_another_arm_hide_no_difference():
    values = np.array([[1.0, 5.0, 3.5], [2.0, 6.0, 4.0], [0.0, -1e13, 0.2]])
    race = told_once(values)
    with pytest.warns(NoiseContradictedWarning):
        race.tell(race.ask(), 2.01)


def test_under_way_the_next_one_is_asked_for():
    race = told_once(FOLDS)
    first = race.ask()
    second = race.ask([first])
    third = race.ask([first, second])
    pulls = [first, second, third]
    assert {(pull.arm, pull.block) for pull in pulls} == {(1, 0), (0, 1), (2, 2)}
    assert race.policy.is_ahead(pulls)  # nothing else is begun


@pytest.mark.parametrize("maximise", [True, False])
def test_a_second_value_that_differs_ends_the_finite_set(maximise):
    race = told_once(FOLDS, maximise=maximise)
    with pytest.warns(NoiseContradictedWarning, match=r"gave (1|2|0) and then 1\.7 on the same"):
        race.tell(race.ask(), 1.7)
    answer = race.certificate("", "")
    assert (race.finished, answer.certified, answer.is_exact) == (False, False, False)
    assert answer.replicates == 3
    [notice] = answer.notices
    assert "Fix what is random, or seed it by the replicate" in notice
    rng = np.random.default_rng(0)
    answer = play(race, lambda pull: FOLDS[pull.arm, pull.block % 3] + 0.1 * rng.normal())
    assert (answer.certified, answer.winner) == (True, 1 if maximise else 2)
    assert 0.0 < answer.within <= answer.epsilon
    text = str(answer)
    assert "wrong with probability at most 0.05 if what is random on a replicate is drawn" in text
    assert "the mean over these 3 replicates" in text
    assert "(exact)" not in text


def test_rounding_is_no_difference():
    race = told_once(FOLDS)
    pull = race.ask()
    race.tell(pull, FOLDS[pull.arm, pull.block] * (1.0 + 1e-15))
    assert play(race, lambda pull: FOLDS[pull.arm, pull.block]).is_exact


def test_a_budget_for_one_evaluation_of_each_is_too_small():
    answer = play(race_of(3, replicates=3, budget=9), lambda pull: FOLDS[pull.arm, pull.block])
    assert (answer.finished, answer.certified, answer.is_exact) == (True, False, False)
    assert answer.reason.startswith("the budget of 9 is spent and a few evaluations are made twice")
    assert (answer.remaining, answer.within) == (3.0, math.inf)
    assert "(exact)" not in str(answer)


def test_a_candidate_that_fails_on_all_of_two_folds_has_failed():
    values = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]])
    race = race_of(3, replicates=2, baseline=1)
    answer = play(race, lambda pull: values[pull.arm, pull.block])
    assert answer.candidates[1].standing == "failed"
    assert answer.baseline.verdict == "failed"
    assert (answer.winner, answer.certified, answer.is_exact) == (2, True, True)


def normal(rng, n_arms, n_folds):
    """A table of true values, and what draws around it."""
    truth = 0.1 * rng.normal(size=(n_arms, n_folds)) + rng.normal(size=n_folds)
    return truth, lambda arm, fold: truth[arm, fold] + 0.5 * rng.normal()


def coarse(rng, n_arms, n_folds):
    """Scores on 30 samples, a few of which may go either way."""
    sure = rng.binomial(24, 0.9, (n_arms, n_folds))
    return (sure + 3.0) / 30.0, lambda arm, fold: (sure[arm, fold] + rng.binomial(6, 0.5)) / 30.0


@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
@pytest.mark.parametrize("made", [normal, coarse])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_answers_are_rarely_wrong(made, n_folds):
    n_races, delta = 60, 0.2
    n_wrong = n_exact = 0
    for seed in range(n_races):
        rng = np.random.default_rng(seed)
        truth, draw = made(rng, 4, n_folds)
        race = race_of(4, replicates=n_folds, delta=delta, seed=seed, measure=0)
        answer = play(race, lambda pull, d=draw: d(pull.arm, pull.block % n_folds), 200)
        n_exact += answer.is_exact
        means = truth.mean(axis=1)
        n_wrong += answer.certified and means[answer.winner] < means.max() - answer.epsilon - 1e-9
    assert n_wrong <= binom.ppf(0.999, n_races, delta)
    assert n_exact == 0
