"""The order bounds learned from finished curves, and the rule that uses them."""

from __future__ import annotations

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


def matrices(min_rows, max_rows, columns):
    row = st.lists(values, min_size=columns, max_size=columns)
    return st.lists(row, min_size=min_rows, max_size=max_rows)


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


@given(matrices(1, 40, 3), st.sampled_from([0.05, 0.1, 0.2, 0.4]))
def test_bounds_are_at_least_as_tight_as_a_union_over_the_fidelities(rows, level):
    gains = np.array(rows)
    union = [gain_bounds(column[:, None], level / 3)[0] for column in gains.T]
    assert (gain_bounds(gains, level) <= union).all()


@given(matrices(2, 12, 2), st.sampled_from([0.2, 0.3, 0.5]))
def test_at_most_the_stated_share_of_any_arms_exceeds_the_bounds_of_the_others(rows, level):
    # The theorem itself, for every data set and not on average: leave out each of the n + 1 arms
    # in turn, bound it by the others, and count.
    gains = np.array(rows)
    exceeding = sum(
        bool((gains[i] > gain_bounds(np.delete(gains, i, axis=0), level)).any())
        for i in range(len(gains))
    )
    assert exceeding <= level * len(gains) + 1e-9


def test_arms_late_at_every_fidelity_need_fewer_curves_than_a_union():
    gains = np.outer(np.arange(9.0), [3.0, 2.0, 1.0])
    assert gain_bounds(gains, 0.2).tolist() == [24.0, 16.0, 8.0]
    assert math.isinf(gain_bounds(gains[:, :1], 0.2 / 3)[0])


def test_unknown_gains_count_as_unbounded():
    gains = np.full((20, 1), 0.1)
    gains[:3] = np.inf
    assert gain_bounds(gains, 0.2)[0] == 0.1  # the 4th largest of 20
    gains[:4] = np.inf
    assert math.isinf(gain_bounds(gains, 0.2)[0])


def test_worked_example():
    # Gains .4 .1 .2 .3 of four arms: at coverage .8 the ceil(5 * .8) = 4th smallest, .4.
    race = race_of([(0.3, 0.7), (0.8, 0.9), (0.4, 0.6), (0.1, 0.4)], coverage=0.8)
    assert race.bounds == pytest.approx([0.4])
    verdict = race.judge("new", 0, 0.45)
    assert (verdict.stop, verdict.incumbent) == (True, 1)
    assert (verdict.reach, verdict.bar) == (pytest.approx(0.85), 0.9)
    assert not race.judge("new", 0, 0.55).stop


def test_worked_example_with_repeats():
    # Arm a runs at 0 and 2 (mean 1), and ends at 4 and 6 (mean 5): both variances are 2.
    race = CurveRace(2, coverage=0.5, noise_level=0.1)
    for arm, curve in [("a", (0.0, 4.0)), ("a", (2.0, 6.0)), ("b", (0.0, 3.0)), ("c", (1.0, 5.1))]:
        race.add(arm, np.array(curve))
    quantile = float(student_t.ppf(0.9, 1))
    assert race.radii == pytest.approx([quantile * math.sqrt(2)] * 2)
    assert race.n_curves == 4
    # Gains 4, 3, 4.1 of the arms: the ceil(4 * .5) = 2nd smallest. c is the luckiest, not the best:
    # a's bar 5 - q is above c's 5.1 - q sqrt(2).
    verdict = race.judge("d", 0, -7.0)
    assert verdict.incumbent == "a"
    assert verdict.bar == pytest.approx(5 - quantile)
    assert verdict.reach == pytest.approx(-7 + quantile * math.sqrt(2) + 4)
    # b has run before: its value is averaged, its radius shrinks.
    assert race.judge("b", 0, -8.0).reach == pytest.approx(-4 + quantile + 4)


def test_the_incumbent_is_the_best_mean_and_never_stopped():
    curves = [(0.0, value) for value in (1.0, 1.1, 0.9, 1.0, 1.05, 0.95)]
    race = CurveRace(2, coverage=0.5)
    for curve in curves:
        race.add("steady", np.array(curve))
    for curve in ((0.0, 1.2), (0.0, 0.4)):
        race.add("lucky", np.array(curve))
    assert race.judge("new", 0, -50.0).incumbent == "steady"
    assert race.judge("new", 0, -50.0).stop
    assert race.judge("lucky", 0, -500.0).stop
    assert not race.judge("steady", 0, -500.0).stop


@given(matrices(0, 3, 3), values)
def test_nothing_stops_before_there_are_enough_curves(rows, value):
    race = CurveRace(3, coverage=0.8)
    for arm, curve in enumerate(rows):
        race.add(arm, np.array(curve))
    # 4 curves at the least, and 9 for two fidelities if none of the gains are equal.
    assert not race.judge("new", 0, value).stop
    assert not race.judge("new", 1, value).stop


@given(matrices(15, 30, 3), st.floats(0, 10))
def test_an_arm_ahead_of_the_incumbent_goes_on_unless_it_must_gain_less(rows, lead):
    race = race_of(rows)
    best = max(rows, key=lambda row: row[-1])
    for fidelity in (0, 1):
        verdict = race.judge("new", fidelity, best[fidelity] + lead)
        # Order bound: stopped only if the incumbent gained more than the bound and the lead.
        incumbents_gain = best[-1] - best[fidelity]
        assert verdict.stop == (best[fidelity] + lead + race.bounds[fidelity] <= verdict.bar)
        if incumbents_gain < race.bounds[fidelity] + lead - 1e-9:
            assert not verdict.stop


@given(matrices(15, 25, 2), st.integers(0, 24), values)
def test_a_worse_value_is_stopped_whenever_a_better_one_is(rows, arm, value):
    race = race_of(rows)
    if race.judge(arm, 0, value).stop:
        assert race.judge(arm, 0, value - 1.0).stop


def test_a_fidelity_that_was_not_seen_has_no_bound():
    race = race_of([(math.nan, 0.1 * i, 1.0) for i in range(20)])
    assert math.isinf(race.bounds[0])
    assert math.isfinite(race.bounds[1])
    assert not race.judge("new", 0, -1e9).stop
    assert race.judge("new", 1, -1e9).stop


def test_infinite_values_stop_nothing_by_accident():
    race = race_of([(-math.inf, 0.1 * i, 1.0) for i in range(20)])
    assert not race.judge("new", 0, -math.inf).stop
    assert race.judge("new", 1, -math.inf).stop
    assert not race.judge("new", 1, math.inf).stop
    assert not race.judge("new", 1, math.nan).stop


def test_many_arms_outgrow_the_arrays():
    rng = np.random.default_rng(1)
    curves = rng.normal(size=(100, 3))
    race = race_of(curves)
    np.testing.assert_array_equal(
        race.bounds, gain_bounds(curves[:, -1:] - curves[:, :-1], 1.0 - 0.8)
    )
    assert race.judge("new", 0, 0.0).bar == curves[:, -1].max()


def test_wrong_arguments_are_named():
    race = CurveRace(2)
    for call, message in (
        (lambda: CurveRace(0), "n_fidelities must be at least 1, got 0"),
        (lambda: CurveRace(2, coverage=1.0), "coverage must lie strictly between 0 and 1, got 1"),
        (lambda: CurveRace(2, noise_level=0.7), "noise_level must be below 0.5, got 0.7"),
        (lambda: race.add(0, np.zeros(3)), r"curve must have shape \(2,\)"),
        (lambda: race.add(0, np.array([0.0, np.nan])), "finite value at the target"),
        (lambda: race.judge(0, 1, 0.0), "below the target, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def draw_noisy(rng, n):
    """Arms whose early values are their final ones, biased and noisy."""
    final = rng.normal(size=n)
    early = final[:, None] - [1.0, 0.4, 0.1] + rng.normal(size=(n, 3)) * [0.8, 0.4, 0.2]
    return np.column_stack((early, final))


def draw_learners(rng, n):
    """Arms that learn at different speeds, so that the gains at all fidelities go together."""
    rate = np.exp(0.7 * rng.normal(size=n) - 0.5)
    height = 3.0 + rng.normal(size=n)
    return height[:, None] * (1.0 - np.exp(-np.outer(rate, [1, 3, 9, 27]) / 3.0))


@pytest.mark.parametrize("draw", [draw_noisy, draw_learners])
@pytest.mark.parametrize("n", [14, 30])
def test_exchangeable_curves_respect_the_bounds_with_the_stated_coverage(draw, n):
    coverage, runs = 0.8, 1500
    exceeded = stopped = beaten = wrong = 0
    rng = np.random.default_rng(2)
    for _ in range(runs):
        curves = draw(rng, n + 1)
        race, new = race_of(curves[:-1], coverage=coverage), curves[-1]
        would_win = new[-1] > curves[:-1, -1].max()
        stop = any(race.judge("new", m, new[m]).stop for m in range(3))
        exceeded += bool((new[-1] - new[:-1] > race.bounds).any())
        stopped += stop
        beaten += would_win
        wrong += stop and would_win
    margin = 3.5 * math.sqrt(coverage * (1 - coverage) / runs)
    assert exceeded / runs <= 1 - coverage + margin
    assert wrong <= exceeded
    # Of use, not only safe: the bounds are not far wider than they need to be.
    assert exceeded / runs >= (1 - coverage) / 4
    assert stopped / runs > 0.3


def test_noisy_repeats_rarely_stop_an_arm_that_is_better_on_average():
    # Arms differ in their mean only; a new one is really a little better than all the others.
    rng = np.random.default_rng(3)
    runs, wrong, wrong_without = 400, 0, 0
    for _ in range(runs):
        means = rng.normal(size=20) * 0.3
        race, single = CurveRace(2, coverage=0.8), CurveRace(2, coverage=0.8)
        for arm, mean in enumerate(means):
            for repeat in range(3):
                curve = mean + np.array([-1.0, 0.0]) + rng.normal(size=2) * 0.5
                race.add(arm, curve)
                if repeat == 0:
                    single.add(arm, curve)
        value = means.max() + 0.05 - 1.0 + rng.normal() * 0.5
        wrong += race.judge("new", 0, value).stop
        wrong_without += single.judge("new", 0, value).stop
    assert wrong / runs < 0.05
    assert wrong < wrong_without
