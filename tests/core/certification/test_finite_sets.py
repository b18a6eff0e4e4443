"""Races whose replicates have an end: folds, a list of seeds, the questions of a test."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mfhpo import Bounded, Pull
from tests.core.certification import races

race_of = partial(races.race_of, races.in_blocks)


def play(race, values, order=None):
    """Evaluate what a race asks for on a table of values, (K, N); NaN is a failure."""
    order = range(values.shape[1]) if order is None else order
    while not race.finished:
        pull = race.ask()
        value = values[pull.arm, order[pull.block]]
        race.tell(pull, None if np.isnan(value) else float(value))
    return race.certificate("all of them", "given")


def test_few_replicates_are_all_used_and_the_answer_is_exact():
    values = np.array([[1.0, 5.0, 3.0], [2.0, 6.0, 4.0], [0.0, 0.0, 0.0]])
    race = race_of(3, replicates=3)
    for block in range(2):
        for arm in range(3):
            assert not race.finished
            race.tell(Pull(arm, 0, block=block), values[arm, block])
    before = race.certificate("all of them", "given")
    assert (before.certified, before.within, before.is_exact) == (False, math.inf, False)
    assert before.remaining == 3.0  # one evaluation of each
    assert before.interval == (-math.inf, math.inf)
    answer = play(race, values)
    assert (answer.winner, answer.certified, answer.evaluations) == (1, True, 9 + 9)
    assert (answer.mean, answer.interval, answer.within) == (4.0, (4.0, 4.0), 0.0)
    assert (answer.is_exact, answer.tied, answer.replicates) == (True, (), 3)
    assert [one.standing for one in answer.candidates] == ["worse", "certified", "worse"]
    text = str(answer)
    assert "4 (exact), of 3 new evaluations" in text
    assert "within 0 of the best of all of them, sure if a configuration always has" in text
    assert "about       the mean over these 3 replicates, and not over new ones, nor over" in text
    assert "all 3 replicates were used" in text
    assert "evaluations made twice, with the same values: 9" in text
    assert "wrong with" not in text
    assert "not excluded" not in text
    assert answer.to_dict()["replicates"] == 3
    assert "replicates" not in race_of(2).certificate("", "").to_dict()


@pytest.mark.parametrize("maximise", [True, False])
def test_equal_means_are_a_tie_whatever_rounding_does(maximise):
    values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]])
    sign = 1.0 if maximise else -1.0
    worse = np.full((1, 3), 0.2 - sign * 1e-6)
    answer = play(race_of(4, replicates=3, maximise=maximise), np.vstack([values, worse]))
    assert (answer.certified, answer.is_exact, len(answer.tied)) == (True, True, 2)
    assert [one.standing for one in answer.candidates].count("not told apart") == 2
    assert answer.candidates[3].standing == "worse"
    [line] = [line for line in str(answer).splitlines() if line.startswith("  tie")]
    assert all(f"row {arm}" in line for arm in range(3))


def test_one_replicate_and_constant_values_are_exact_too():
    answer = play(race_of(2, replicates=1), np.array([[1.0], [2.0]]))
    assert (answer.winner, answer.certified, answer.is_exact) == (1, True, True)
    answer = play(race_of(2, replicates=10), np.repeat([[1.0], [2.0]], 10, axis=1))
    assert (answer.winner, answer.certified, answer.is_exact) == (1, True, True)


def test_many_replicates_without_bounds_are_exact_at_the_end():
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 1.0, (2, 14))
    values[1] += values[0].mean() - values[1].mean() + 1e-3
    race = race_of(2, replicates=14, epsilon=0.0)
    answer = play(race, values, rng.permutation(14))
    assert (answer.winner, answer.certified, answer.evaluations) == (1, True, 28 + 2)
    assert answer.is_exact
    assert (answer.mean, answer.candidates[0].standing) == (
        pytest.approx(values[1].mean()),
        "worse",
    )
    few = race_of(2, replicates=14, epsilon=0.0)
    for block in range(4):
        races.tell(few, 0, values[0, block], block)
        races.tell(few, 1, values[1, block], block)
    assert "the differences of configurations on the same one are normal" in "".join(
        few.certificate("", "").conditions
    )


def right_or_wrong(rng, n=60, shares=(0.5, 0.6, 0.9)):
    """Models that mostly err on the same questions."""
    hard = rng.random(n)
    return np.array([(0.7 * hard + 0.3 * rng.random(n) < share) for share in shares], float)


def test_bounds_tell_models_apart_before_all_questions_were_asked():
    rng = np.random.default_rng(0)
    values = right_or_wrong(rng)
    order = rng.permutation(60)
    exact = play(race_of(3, replicates=60, sigma=Bounded(0, 1)), values, order)
    assert (exact.winner, exact.certified) == (2, True)
    assert exact.evaluations < 0.7 * values.size
    assert all(
        low <= values[arm].mean() <= high
        for arm, (low, high) in enumerate(one.interval for one in exact.candidates)
    )
    assert "all values lie within the declared bounds" in str(exact)
    assert "normal" not in str(exact)
    loose = play(race_of(3, replicates=60, sigma=Bounded(0, 1), epsilon=0.2), values, order)
    assert loose.certified
    assert loose.evaluations < exact.evaluations
    # Without an end of the replicates the same values say less.
    endless = race_of(3, sigma=Bounded(0, 1), epsilon=0.0, budget=exact.evaluations - 14)
    assert not play(endless, values, [*order] * 9).certified


@given(
    arrays(float, (3, 6), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    st.sampled_from([0.0, 0.1, 0.3]),
)
def test_at_the_end_a_winner_is_never_wrong(values, epsilon):
    for options in ({}, {"sigma": Bounded(0, 1)}):
        race = race_of(3, replicates=6, epsilon=epsilon, delta=1e-9, **options)
        answer = play(race, values)
        means = values.mean(axis=1)
        assert answer.certified
        assert means[answer.winner] >= means.max() - epsilon - 1e-9
        assert answer.within <= epsilon
        if answer.is_exact:
            ties = np.isclose(means, means[answer.winner], rtol=0.0, atol=1e-12).sum() - 1
            assert len(answer.tied) == ties
            assert values.size < answer.evaluations <= 2 * values.size


def test_certificates_before_the_end_are_rarely_wrong():
    wrong = missed = certified = 0
    n_races, delta = 80, 0.2
    for seed in range(n_races):
        rng = np.random.default_rng(seed)
        values = right_or_wrong(rng, 40, (0.6, 0.62, 0.64))
        race = race_of(3, replicates=40, sigma=Bounded(0, 1), delta=delta, epsilon=0.05, seed=seed)
        answer = play(race, values, rng.permutation(40))
        means = values.mean(axis=1)
        certified += answer.evaluations < values.size
        wrong += means[answer.winner] < means.max() - 0.05 - 1e-9
        missed += any(
            not one.interval[0] - 1e-9 <= mean <= one.interval[1] + 1e-9
            for one, mean in zip(answer.candidates, means, strict=True)
        )
    most = delta * n_races + 3.0 * math.sqrt(delta * (1.0 - delta) * n_races)
    assert certified > 0.5 * n_races
    assert max(wrong, missed) <= most


def test_replicates_that_fail_are_left_out():
    values = np.array([[1.0, np.nan, 3.0, np.nan], [2.0, np.nan, 4.0, 9.0]])
    answer = play(race_of(2, replicates=4), values)
    assert (answer.winner, answer.certified) == (1, True)
    assert answer.candidates[0].mean == 2.0
    text = str(answer)
    assert "these 4 replicates, which the arms shared, without 1 on which every" in text
    assert "two arms are compared on those where both gave a value" in text


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.2, "more replicates than there are, or a larger epsilon"),
        (0.0, "(a tie, or too few replicates)"),
    ],
)
def test_looks_may_need_more_replicates_than_there_are(epsilon, words):
    race = races.race_of(partial(races.by_looks, blocks=True), replicates=7, epsilon=epsilon)
    values = np.random.default_rng(0).normal([[0.0], [0.2]], 1.0, (2, 7))
    answer = play(race, values)
    assert (answer.certified, answer.remaining) == (False, math.inf)
    assert words in str(answer)


def test_arms_without_a_shared_replicate_are_not_compared():
    values = np.array([[1.0, np.nan], [np.nan, 2.0]])
    race = race_of(2, replicates=2, epsilon=0.0, max_failures=9)
    assert not play(race, values).certified


def test_wrong_declarations():
    for wrong, message in (
        ({"replicates": 0}, "replicates must be at least 1, got 0"),
        ({"replicates": 2.5}, "replicates must be a whole number"),
        ({"sigma": 0.1}, r"sigma=0.1 has no part in blocks; declare Bounded\(low, high\)"),
        ({"blocks": False, "replicates": 5}, "replicates=5 has no part without blocks"),
        ({"sigma": Bounded(0, 1), "first_look": 5}, "sigma=.* has no part in blocks"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            race_of(2, **wrong)


def test_values_beyond_the_bounds_are_noticed():
    values = np.random.default_rng(0).uniform(0.0, 1.0, (2, 30))
    values[0, 3] = 4.0
    answer = play(race_of(2, replicates=30, sigma=Bounded(0, 1)), values)
    assert any("beyond the declared bounds" in notice for notice in answer.notices)
