import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t

from mfhpo.identification.curves.curves import CurveRace, check_steps, gain_bounds, read_curve

values = st.floats(-100, 100)


def race_of(curves, **options):
    race = CurveRace(len(curves[0]), **options)
    for arm, curve in enumerate(curves):
        race.add(arm, np.array(curve, dtype=float))
    return race


@pytest.mark.parametrize(
    ("final_step", "factor", "first", "expected"),
    [
        (27, 3.0, 1, (1, 3, 9, 27)),
        (100, 3.0, 1, (1, 3, 11, 33, 100)),
        (8, 2.0, 1, (1, 2, 4, 8)),
        (81, 3.0, 9, (9, 27, 81)),
        (10, 1.5, 0, (1, 2, 4, 6, 10)),
        (2, 3.0, 1, (2,)),
        (0, 3.0, 1, (0,)),
        (1000, 10.0, 1, (1, 10, 100, 1000)),
    ],
)
def test_steps_are_geometric_and_end_with_the_final_one(final_step, factor, first, expected):
    assert check_steps(final_step, factor, first) == expected


def test_a_curve_is_read_at_its_first_report_in_each_interval():
    reports = {9: 0.9, 0: 0.0, 4: math.nan, 5: 0.5, 30: 3.0}
    assert read_curve(reports, (3, 9, 27)).tolist() == [0.5, 0.9, 3.0]
    np.testing.assert_array_equal(read_curve({1: 0.1, 4: 0.4}, (1, 3, 9)), [0.1, 0.4, np.nan])
    assert np.isnan(read_curve({}, (1, 3))).all()


def test_the_bound_of_one_fidelity_is_the_split_conformal_quantile():
    rng = np.random.default_rng(0)
    for n in range(1, 60):
        gains = rng.normal(size=(n, 1))
        for level in (0.1, 0.2, 0.5):
            rank = math.ceil((n + 1) * (1 - level) - 1e-9)
            expected = math.inf if rank > n else np.sort(gains[:, 0])[rank - 1]
            assert gain_bounds(gains, level)[0] == expected


@given(
    st.lists(st.tuples(values, values), min_size=2, max_size=12), st.sampled_from([0.2, 0.3, 0.5])
)
def test_at_most_the_stated_share_of_any_arms_exceeds_the_bounds_of_the_others(rows, level):
    # The theorem itself, for every data set and not on average: leave out each of the n + 1 arms
    # in turn, bound it by the others, and count.
    gains = np.array(rows)
    exceeding = sum(
        bool((gains[i] > gain_bounds(np.delete(gains, i, axis=0), level)).any())
        for i in range(len(gains))
    )
    assert exceeding <= level * len(gains) + 1e-9


def test_worked_example_with_repeats():
    # Arm a runs at 0 and 2 (mean 1), and ends at 4 and 6 (mean 5): both variances are 2.
    race = CurveRace(2, coverage=0.5)
    for arm, *curve in [("a", 0.0, 4.0), ("a", 2.0, 6.0), ("b", 0.0, 3.0), ("c", 1.0, 5.1)]:
        race.add(arm, np.array(curve))
    quantile = float(student_t.ppf(0.95, 1))
    assert race.n_curves == 4
    # Gains 4, 3, 4.1 of the arms: the ceil(4 * .5) = 2nd smallest. c is the luckiest, not the best:
    # a's bar 5 - q is above c's 5.1 - q sqrt(2).
    least = (5 - quantile) - quantile * math.sqrt(2) - 4
    assert race.stops("d", 0, least - 1e-9)
    assert not race.stops("d", 0, least + 1e-9)
    # b has run before: its value is averaged, its radius shrinks.
    least = 2 * ((5 - quantile) - quantile - 4)
    assert race.stops("b", 0, least - 1e-9)
    assert not race.stops("b", 0, least + 1e-9)
    assert not race.stops("a", 0, -100.0)  # the best one


def test_a_fidelity_that_was_not_seen_has_no_bound():
    race = race_of([(math.nan, 0.1 * i, 1.0) for i in range(20)])
    assert np.isinf(race.bounds).tolist() == [True, False]
    assert not race.stops("new", 0, -1e9)
    assert race.stops("new", 1, -1e9)
    # Nor do infinite values stop anything by accident.
    race = race_of([(-math.inf, 0.1 * i, 1.0) for i in range(20)])
    assert not race.stops("new", 0, -math.inf)
    assert race.stops("new", 1, -math.inf)
    assert not race.stops("new", 1, math.inf)
    assert not race.stops("new", 1, math.nan)


def draw_noisy(rng, n):
    final = rng.normal(size=n)
    early = final[:, None] - [1.0, 0.4, 0.1] + rng.normal(size=(n, 3)) * [0.8, 0.4, 0.2]
    return np.column_stack((early, final))


def draw_learners(rng, n):
    rate = np.exp(0.7 * rng.normal(size=n) - 0.5)
    height = 3.0 + rng.normal(size=n)
    return height[:, None] * (1.0 - np.exp(-np.outer(rate, [1, 3, 9, 27]) / 3.0))


@pytest.mark.parametrize("draw", [draw_noisy, draw_learners])
@pytest.mark.parametrize("n", [14, 30])
def test_exchangeable_curves_respect_the_bounds_with_the_stated_coverage(draw, n):
    coverage, runs = 0.8, 800
    exceeded = stopped = wrong = 0
    rng = np.random.default_rng(2)
    for _ in range(runs):
        curves = draw(rng, n + 1)
        race, new = race_of(curves[:-1], coverage=coverage), curves[-1]
        would_win = new[-1] > curves[:-1, -1].max()
        stop = any(race.stops("new", m, new[m]) for m in range(3))
        exceeded += bool((new[-1] - new[:-1] > race.bounds).any())
        stopped += stop
        wrong += stop and would_win
    margin = 3.5 * math.sqrt(coverage * (1 - coverage) / runs)
    assert exceeded / runs <= 1 - coverage + margin
    assert wrong <= exceeded
    # Of use, not only safe: the bounds are not far wider than they need to be.
    assert exceeded / runs >= (1 - coverage) / 4
    assert stopped / runs > 0.3
