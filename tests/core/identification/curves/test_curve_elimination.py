import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.identification.curves.curves import PhasedCurves
from mfhpo.identification.curves.declared_bounds import BoundedCurves

NAN = math.nan


def curve(*values):
    return np.array(values, dtype=float)


SYMMETRIC = [(-0.4, 0.4), (-0.1, 0.1), (0.0, 0.0)]


def test_worked_example():
    curves = BoundedCurves(SYMMETRIC, noise=0.05)
    assert curves.add("a", curve(0.5, 0.8, 0.85)) == []
    # a ends in [.8, .9]: its final value less the noise says most, .85 - .05.
    assert curves.stops("b", curve(0.34, NAN, NAN))  # at most .34 + .4 + .05 = .79
    assert not curves.stops("b", curve(0.36, NAN, NAN))
    assert curves.stops("b", curve(0.36, 0.64, NAN))  # .64 + .1 + .05
    assert curves.stops("b", curve(0.34, 0.9, NAN))  # what was seen first still holds


def test_an_arm_is_never_stopped_by_itself():
    curves = BoundedCurves(SYMMETRIC)
    curves.add("a", curve(0.5, 0.8, 0.85))
    again = [("a", curve(0.9, 0.9, NAN))]
    assert not curves.stops("a", curve(-5.0, NAN, NAN), again)
    assert curves.stops("a", curve(0.5, NAN, NAN), [("b", curve(NAN, 1.2, NAN))])


def test_what_is_not_finite_counts_for_nothing():
    curves = BoundedCurves(SYMMETRIC)
    curves.add("a", curve(NAN, math.inf, 0.5))
    assert not curves.stops("b", curve(NAN, NAN, NAN))
    assert not curves.stops("b", curve(0.2, NAN, NAN), [("c", curve(math.inf, NAN, NAN))])
    assert curves.stops("b", curve(-math.inf, NAN, NAN))


def test_a_contradiction_widens_the_bound_as_far_as_needed():
    curves = BoundedCurves(SYMMETRIC, noise=0.05)
    curves.add("a", curve(0.5, 0.8, 0.9))
    assert curves.stops("c", curve(0.3, NAN, NAN))
    assert curves.add("b", curve(0.0, 0.6, 0.65)) == [0]  # gained .65; .4 and twice .05 allowed
    np.testing.assert_allclose(curves.gains, [(-0.4, 0.55), (-0.1, 0.1), (0.0, 0.0)])
    assert not curves.stops("c", curve(0.3, NAN, NAN))
    assert curves.add("d", curve(0.0, 0.6, 0.65)) == []
    assert curves.add("e", curve(1.0, 0.6, 0.2)) == [0, 1]
    np.testing.assert_allclose(curves.gains, [(-0.7, 0.55), (-0.3, 0.1), (0.0, 0.0)])
    assert curves.stops("c", curve(0.2, NAN, NAN))  # .2 + .55 + .05, and a has .9 - .05


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1)), min_size=2),
    st.floats(0.01, 0.5),
    st.randoms(use_true_random=False),
)
def test_the_best_arm_is_never_stopped_while_the_bounds_hold(rows, noise, random):
    finals = [row[0] for row in rows]
    curves = BoundedCurves(SYMMETRIC, noise)
    shown = [np.full(3, NAN) for _ in rows]
    alive = list(range(len(rows)))
    while alive:
        arm = random.choice(alive)
        final, first, second = rows[arm]
        truth = (final - 0.4 * first, final - 0.1 * second, final)
        step = int(np.isnan(shown[arm]).argmax())
        shown[arm][step] = truth[step] + noise * random.uniform(-1, 1)
        if step == 2:
            assert curves.add(arm, shown[arm]) == []
            alive.remove(arm)
            continue
        others = [(other, shown[other]) for other in alive if other != arm]
        if curves.stops(arm, shown[arm], others):
            alive.remove(arm)
            assert any(finals[arm] < final for final in finals)


def test_worked_example_of_phases():
    curves = PhasedCurves(4)
    assert curves.tolerance(0) == math.inf
    for value in np.linspace(0.0, 1.0, 11):
        curves.begin(curve(value, NAN, NAN, NAN))
    assert [curves.tolerance(p) for p in range(3)] == pytest.approx([1.6, 0.8, 0.4])
    curves.add("a", curve(0.5, 0.9, 1.0, 1.1))
    assert not curves.stops("b", 0, 0.0)
    assert curves.stops("b", 1, 0.05)  # .05 + .8 < .9
    assert not curves.stops("b", 1, 0.15)
    assert curves.stops("b", 2, 0.55)
    assert not curves.stops("b", 2, 0.65)
    assert curves.stops("b", 2, 0.65, [("c", curve(NAN, NAN, 1.2, NAN))])
    assert not curves.stops("a", 2, -5.0)


@pytest.mark.parametrize("rounding", [0.0, 1e-13])
def test_equal_values_stop_nothing_and_the_first_spread_takes_their_place(rounding):
    curves = PhasedCurves(4)
    for k in range(11):
        curves.begin(curve(0.1 + k * rounding, k / 10, NAN, NAN))
    curves.add("a", curve(0.1, 1.0, 1.0, 1.0))
    assert [curves.tolerance(p) for p in range(3)] == pytest.approx([math.inf, 1.6, 0.8])
    assert not curves.stops("b", 0, 0.0)
    assert not curves.stops("b", 1, -0.5)  # -.5 + 1.6 > 1
    assert curves.stops("b", 1, -0.7)
    assert curves.stops("b", 2, 0.15)  # .15 + .8 < 1
    assert not curves.stops("b", 2, 0.25)


def test_runs_that_diverge_do_not_widen_the_tolerance():
    curves = PhasedCurves(2)
    for value in [*np.linspace(0.0, 1.0, 19), -1e9, -math.inf, NAN]:
        curves.begin(curve(value, NAN))
    assert curves.tolerance(1) < 1.0
