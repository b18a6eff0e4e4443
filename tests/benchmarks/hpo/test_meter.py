import pytest

from benchmarks.hpo.meter import BudgetSpent, Meter
from tests.benchmarks.hpo.made_up import Parabola

X = {"kind": "a", "x": 0.5}


def test_going_on_costs_the_difference_and_beginning_anew_costs_all():
    meter = Meter(Parabola(), budget=10.0, seed=0)
    first = meter.evaluate(X, 0)
    assert meter.cost == pytest.approx(1 / 9)
    meter.evaluate(X, 2)
    assert meter.cost == pytest.approx(1.0)
    # A run at the target level cannot go on: the next one is another run.
    assert meter.evaluate(X, 0) != first
    assert meter.cost == pytest.approx(10 / 9)
    assert meter.evaluations == [2, 0, 1]
    meter = Meter(Parabola(continues=False), budget=10.0, seed=0)
    meter.evaluate(X, 0)
    meter.evaluate(X, 2)
    assert meter.cost == pytest.approx(10 / 9)


def test_what_cannot_be_paid_is_not_evaluated():
    meter = Meter(Parabola(), budget=1.2, seed=0)
    meter.evaluate(X, 2)
    with pytest.raises(BudgetSpent):
        meter.evaluate({"kind": "a", "x": 0.1}, 1)
    assert meter.cost == pytest.approx(1.0)
    meter.evaluate({"kind": "a", "x": 0.1}, 0)
    assert meter.evaluations == [1, 0, 1]


def test_noise_is_paired_whatever_was_evaluated_before():
    first, second = (Meter(Parabola(), budget=100.0, seed=3) for _ in range(2))
    other = {"kind": "a", "x": 0.1}
    early = [first.evaluate(X, 0), first.evaluate(X, 1), first.evaluate(X, 1)]
    for level in (0, 2, 1):
        second.evaluate(other, level)
    assert [second.evaluate(X, 0), second.evaluate(X, 1), second.evaluate(X, 1)] == early
    assert len(set(early)) == 3
    assert Meter(Parabola(), budget=100.0, seed=4).evaluate(X, 0) != early[0]


def test_what_does_not_apply_is_dropped_and_what_was_tried_is_kept_once():
    meter = Meter(Parabola(), budget=100.0, seed=0)
    meter.evaluate({"kind": "b", "x": 0.3}, 0)
    meter.evaluate({"kind": "b", "x": 0.7}, 1)
    meter.evaluate(X, 2)
    meter.evaluate(X, 2)
    assert meter.tried == [{"kind": "b"}, X]
    assert meter.failures == 2
    meter.recommend({"kind": "b", "x": 0.7}, None)
    assert meter.steps[0].configuration == {"kind": "b"}
