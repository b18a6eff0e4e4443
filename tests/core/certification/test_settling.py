"""When trials are settled: by hand, and what holds for any values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mfhpo.certification.settling import N_FIRST, N_IN_A_ROW, Outlook, Settling

VALUES = arrays(float, st.integers(0, 60), elements=st.integers(-50, 50).map(float))


def test_the_tail_by_hand():
    """Nine of 36 values are the tail, 1 to 9 above the next one: their mean excess is 5."""
    values = [*range(-27, 0), *range(9)]
    each = 9 / 36 * math.exp(-(9 + 1) / 5)
    found = Settling(epsilon=1.0, trials=50).outlook(values)
    assert found.chance == pytest.approx(1 - (1 - each) ** 50)
    assert (found.n_ended, found.best, found.epsilon, found.trials) == (36, 8.0, 1.0, 50)


def test_trials_without_a_value_found_nothing():
    values = [*range(-27, 0), *range(9)]
    each = 9 / 72 * math.exp(-(9 + 1) / 5)
    for missing in (math.nan, -math.inf):
        found = Settling(epsilon=1.0, trials=50).outlook([*values, *[missing] * 36])
        assert found.chance == pytest.approx(1 - (1 - each) ** 50)


def test_equal_values_do_not_settle_it():
    """Thirty trials that all predict the larger class say nothing about the next ones."""
    found = Settling(epsilon=0.1, trials=50).outlook([0.5] * 30)
    assert found.chance == 50 / 80
    assert not Settling(epsilon=0.1).is_settled([0.5] * 30)


def test_epsilon_is_a_share_of_what_was_gained():
    first, later = [float(n) for n in range(N_FIRST)], [29.5] * 20
    assert Settling().outlook([*first, *later]).epsilon == pytest.approx(0.05 * (29.5 - 9.5))


@pytest.mark.parametrize("values", [[], [math.nan] * 40, [1.0] * 8])
def test_too_few_values_tell_nothing(values):
    assert Settling().outlook(values).chance == 1.0
    assert not Settling().is_settled(values)


def test_it_is_settled_after_ten_in_a_row():
    values = np.random.default_rng(1).normal(size=400)
    rule = Settling(epsilon=1.0)
    settled = [rule.is_settled(values[:n]) for n in range(len(values))]
    few = [rule.outlook(values[:n]).chance <= rule.delta for n in range(len(values))]
    assert any(settled)
    assert settled == [
        n >= N_FIRST + N_IN_A_ROW - 1 and all(few[n - N_IN_A_ROW + 1 : n + 1])
        for n in range(len(values))
    ]


@given(VALUES, st.floats(0, 100), st.integers(1, 1000))
def test_more_trials_find_more_and_a_larger_epsilon_less(values, epsilon, trials):
    def chance(epsilon, trials):
        return Settling(epsilon, trials).outlook(values).chance

    assert 0.0 <= chance(epsilon, trials) <= 1.0
    assert chance(epsilon, trials) <= chance(epsilon, 2 * trials)
    assert chance(epsilon + 1.0, trials) <= chance(epsilon, trials)


@given(VALUES, st.integers(-3, 3))
def test_units_do_not_matter(values, power):
    scale, shift = 2.0**power, 8.0
    mine, theirs = Settling().outlook(values), Settling().outlook(scale * values + shift)
    assert theirs.chance == pytest.approx(mine.chance)
    assert theirs.epsilon == pytest.approx(scale * mine.epsilon)


def test_what_it_promises_is_true_for_independent_trials():
    """Exponential values, as the rule supposes: 300 studies of 100 trials and 50 more."""
    rng, rule = np.random.default_rng(0), Settling(epsilon=0.5, trials=50)
    values = rng.exponential(size=(300, 150))
    promised = np.mean([rule.outlook(study[:100]).chance for study in values])
    better = np.mean(values[:, 100:].max(axis=1) > values[:, :100].max(axis=1) + 0.5)
    assert abs(promised - better) < 3 * math.sqrt(0.25 / 300)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"epsilon": -1.0}, "epsilon"), ({"trials": 0}, "trials"), ({"delta": 1.0}, "delta")],
)
def test_bad_arguments(options, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        Settling(**options)


def test_the_sentence():
    assert str(Outlook(143, 0.9312, 0.002, 50, 0.0612)) == (
        "the best of 143 trials is 0.9312; the next 50 find something better by more than 0.002 "
        "with an estimated probability of 6.1%"
    )
