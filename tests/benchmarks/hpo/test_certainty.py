from dataclasses import replace

import numpy as np
import pytest

from benchmarks.hpo import certainty_pools
from benchmarks.hpo.certainty_answers import Answer, Outcome, Race, judged
from benchmarks.hpo.certainty_contenders import CONTENDERS, play
from benchmarks.hpo.certainty_halving import halve
from benchmarks.hpo.certainty_pools import Bounds, Pool, bounds_elsewhere, draw_pool
from benchmarks.hpo.certainty_races import paid
from benchmarks.hpo.certainty_settings import Setting
from benchmarks.hpo.certainty_summary import holds, summary

COSTS = np.array([1 / 9, 1 / 3, 1.0])

# The best one at the target, arm 2, looks worst at first.
MISLEADING = Pool(
    "lcbench 1",
    np.array(
        [
            [50.0, 40.0, 10.0, 30.0, 20.0, 25.0],
            [60.0, 70.0, 40.0, 50.0, 30.0, 45.0],
            [70.0, 80.0, 90.0, 60.0, 40.0, 55.0],
        ]
    ),
    COSTS,
    continues=True,
)


def race(pool=MISLEADING, sigma=0.1, epsilon=1.0, seed=0):
    biases = pool.means - pool.means[-1]
    declared = Bounds(np.abs(biases).max(axis=1), np.ptp(biases, axis=1))
    return Race(pool, sigma, epsilon, declared, seed)


def test_what_is_paid_by_hand():
    counts, levels = np.array([[3, 0, 1], [0, 2, 0]]), np.array([0.25, 0.5, 1.0])
    # From scratch: 3/4 + 1 for the first arm, 2/2 for the second.
    assert paid(counts, levels, continues=False) == pytest.approx(2.75)
    # Three trainings of the first arm, of which one goes to the end: 2/4 + 1. Two of the second
    # that go halfway: 2/2.
    assert paid(counts, levels, continues=True) == pytest.approx(2.5)


class TestHalving:
    NINE = Pool("lcbench 1", np.arange(9.0) + np.zeros((3, 1)), COSTS, continues=True)

    def test_pays_for_thirds_of_thirds(self):
        rng = np.random.default_rng(0)
        found = halve(self.NINE, range(9), 0, 0.0, rng)
        assert found.order == (8, 7, 6, 5, 4, 3, 2, 1, 0)
        assert found.value == 8.0
        assert found.cost == pytest.approx(9 * 1 / 9 + 3 * 2 / 9 + 6 / 9)
        scratch = halve(replace(self.NINE, continues=False), range(9), 0, 0.0, rng)
        assert scratch.cost == pytest.approx(3.0)

    def test_is_misled_by_a_first_level_that_lies(self):
        found = halve(MISLEADING, range(6), 0, 0.0, np.random.default_rng(0))
        assert found.order[0] == 1
        assert MISLEADING.regret(1) == 10.0


class TestBounds:
    def test_hold_for_every_arm_or_not_at_all(self):
        means = np.array([[1.0, 4.0], [3.0, 5.0]])  # biases -2 and -1
        assert Bounds(np.array([2.0, 0.0]), np.array([1.0, 0.0])).hold(means) == (True, True)
        assert Bounds(np.array([1.9, 0.0]), np.array([1.0, 0.0])).hold(means) == (False, True)
        assert Bounds(np.array([2.0, 0.0]), np.array([0.9, 0.0])).hold(means) == (True, False)

    def test_elsewhere_is_the_worst_of_the_other_tasks_of_the_kind(self, monkeypatch):
        # Biases are spread evenly over 0 to -width; the task's own are far larger.
        widths = {"rbv2_xgboost 1": 1e6, "rbv2_xgboost 2": 40.0, "rbv2_xgboost 3": 100.0}

        def pool(task, *_):
            end = np.zeros(1001)
            return Pool(task, np.array([-np.linspace(0.0, widths[task], 1001), end]), COSTS, True)

        monkeypatch.setattr(certainty_pools, "DEVELOPMENT_TASKS", (*widths, "lcbench 1"))
        monkeypatch.setattr(certainty_pools, "draw_pool", pool)
        certainty_pools._seen_of.cache_clear()
        bounds = bounds_elsewhere("rbv2_xgboost 1", None)
        certainty_pools._seen_of.cache_clear()
        np.testing.assert_allclose(bounds.xi, [95.0, 0.0])
        np.testing.assert_allclose(bounds.gamma, [95.0, 0.0])  # from -97.5 to -2.5


class TestContenders:
    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=[pytest.mark.slow] * (contender.slow or "LUCB" in name))
            for name, contender in CONTENDERS.items()
            if contender.rule != "halving"
        ],
    )
    def test_finds_the_best_where_it_is_plain(self, name):
        outcome = play(name, race())
        if CONTENDERS[name].rule != "shortlist":  # which has all arms of so small a pool
            assert outcome.cost >= 1.0
        assert outcome.regret == 0.0
        assert not outcome.wrong
        assert outcome.certified == (CONTENDERS[name].rule != "once")

    def test_wrong_bounds_can_make_a_wrong_certificate(self):
        nothing = Bounds(np.zeros(3), np.zeros(3))
        misled = Race(MISLEADING, 0.1, 1.0, nothing, 0)
        assert play("IISE, bounds known", misled).wrong is False
        outcome = play("IISE, bounds declared", misled)
        assert outcome.wrong
        assert outcome.regret == 20.0  # arm 0 is the best at the first level

    def test_a_certificate_is_about_what_was_compared(self):
        answer = Answer(1, 3.0, certified=True)
        assert judged("x", race(), answer).wrong
        assert not judged("x", race(epsilon=10.0), answer).wrong
        shortlisted = judged("x", race(), replace(answer, compared=(0, 1)))
        assert (shortlisted.wrong, shortlisted.regret) == (False, 10.0)


def made_up(name, task, cost, regret, wrong=False):
    return Outcome(
        contender=name,
        task=task,
        cost=cost,
        regret=regret,
        certified=CONTENDERS[name].rule != "halving",
        unfinished=False,
        widened=False,
        from_scratch=None,
        wrong=wrong,
    )


RACES = [
    [
        made_up("successive halving", task, 20.0, 4.0),
        made_up("SE, target only", task, se, 0.2),
        made_up("MF-LUCB, bounds known", task, lucb, 0.0),
        made_up("IISE, bounds declared", task, 2.0 * se, 1.0, wrong=True),
    ]
    for task, se, lucb in (
        ("lcbench 1", 200.0, 100.0),
        ("lcbench 1", 400.0, 100.0),
        ("lcbench 2", 300.0, 300.0),
        ("rbv2_xgboost 1", 100.0, 150.0),
    )
]
SETTING = Setting(0.5, 0.5)


class TestReport:
    def test_figures_are_those_worked_out_by_hand(self):
        rows = {(row["tasks"], row["contender"]): row for row in summary(SETTING, RACES)}
        row = rows["LCBench", "MF-LUCB, bounds known"]
        assert row["races"] == 3
        assert row["cost"] == 100.0
        assert row["over_se"] == 0.5  # of 1/2, 1/4 and 1
        assert row["cheaper_than_se"] == 2
        assert row["median_cost_and_mean_regret_by_task"] == {
            "lcbench 1": [100.0, 0.0],
            "lcbench 2": [300.0, 0.0],
        }
        halving = rows["rbv2_xgboost", "successive halving"]
        assert (halving["regret"], halving["beyond_epsilon"], halving["certified"]) == (4.0, 1, 0)
        assert rows["LCBench", "IISE, bounds declared"]["wrong"] == 3

    def test_only_certificates_that_should_hold_are_held_to_delta(self):
        rows = summary(SETTING, RACES)
        assert all(holds(rows).values())
        wrong = [
            [replace(outcome, wrong=outcome.certified) for outcome in one] for one in RACES * 5
        ]
        found = holds(summary(SETTING, wrong))
        assert not any(found.values())
        assert any("MF-LUCB, bounds known" in words for words in found)


class TestSurrogates:
    def test_pools_are_drawn_afresh_and_again_alike(self, data_folder):
        data = data_folder / "yahpo"
        pool = draw_pool("lcbench 3945", (1.0, 52.0), 5, 3, data)
        assert pool.means.shape == (2, 5)
        np.testing.assert_allclose(pool.costs, [1 / 52, 1.0])
        again = draw_pool("lcbench 3945", (1.0, 52.0), 5, 3, data)
        other = draw_pool("lcbench 3945", (1.0, 52.0), 5, 4, data)
        np.testing.assert_array_equal(pool.means, again.means)
        assert (pool.means != other.means).all()
        assert not draw_pool("rbv2_xgboost 16", None, 2, 0, data).continues
