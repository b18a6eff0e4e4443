import math

import pytest

from benchmarks.hpo import play as playing
from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import methods_of
from benchmarks.hpo.play import main, play
from benchmarks.hpo.record import read
from tests.benchmarks.hpo.made_up import Parabola


def at(x):
    return {"kind": "a", "x": x}


def careful(meter, seed):
    for x in (0.2, 0.5, 0.4):
        meter.evaluate(at(x), 0)
    for x in (0.2, 0.4):
        meter.recommend(at(x), claim=meter.evaluate(at(x), 2))
        meter.recommend(at(x), claim=meter.steps[-1].claim)
    while True:
        meter.evaluate(at(0.4), 2)


def broken(meter, seed):
    meter.recommend(at(0.2), claim=math.nan)
    meter.evaluate(at(0.2), 2)
    raise RuntimeError("out of ideas")


def test_a_record_tells_the_truth_of_recommendations():
    record = play("careful", careful, Parabola(), budget=3.0, seed=1)
    assert record.run == ("careful", "parabola", 3.0, 1)
    assert record.value == pytest.approx((-0.09, -0.01))
    assert record.cost == pytest.approx((11 / 9, 19 / 9))
    assert all(claim > value for claim, value in zip(record.claim, record.value, strict=True))
    assert (record.tried, record.best_tried) == (3, 0.0)
    assert record.evaluations == (3, 0, 2)
    assert record.total_cost == pytest.approx(19 / 9)
    assert record.crash is None


def test_a_crash_is_kept_with_what_came_before():
    record = play("broken", broken, Parabola(), budget=3.0, seed=1)
    assert "out of ideas" in record.crash
    assert record.value == pytest.approx((-0.09,))
    assert record.claim == (None,)
    assert record.total_cost == 1.0


@pytest.mark.parametrize(("peer", "again"), [("random_search", False), ("ours", True)])
def test_other_code_is_played_again_if_it_is_ours(peer, again, tmp_path, monkeypatch, capsys):
    [name, *_] = methods_of(peer)
    command = [f"--peer={peer}", f"--method={name}", "--problem=branin", "--budget=1.5"]
    command += ["--seeds=0", f"--output={tmp_path}"]
    versions = iter(["1", "2", "2"])
    monkeypatch.setattr(playing, "identity_of", lambda peer: next(versions))
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert main(command) == 0
    assert "there are records of versions ['1'], this is '2'" in capsys.readouterr().err
    [file] = tmp_path.iterdir()
    expected = ["1", "2"] if again else ["1"]
    assert [record.identity for record in read([file])] == expected
    assert main(command) == 0  # of two records the later one counts
    assert [record.identity for record in read([file])] == expected


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
