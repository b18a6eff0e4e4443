import numpy as np
import pytest

from benchmarks.hpo.certainty_answers import Race as ListRace
from benchmarks.hpo.certainty_pools import Bounds, kept_pool
from benchmarks.ray_tune.comparison import Outcome, Setting, holds, judged, summary
from benchmarks.ray_tune.methods import DELTA, METHODS, Answer, Race
from benchmarks.ray_tune.replacement import METHODS as REPLACEMENTS
from benchmarks.ray_tune.tables import EPOCHS

# Three arms, and a fourth configuration beyond them; two of the arms cross.
CURVES = np.vstack(
    [
        np.linspace(20.0, 80.0, EPOCHS),
        np.linspace(60.0, 70.0, EPOCHS),
        np.linspace(10.0, 30.0, EPOCHS),
        np.linspace(10.0, 90.0, EPOCHS),
    ]
)


def race(**changes):
    return Race(**{"values": CURVES, "arms": 3, "sigma": 0.1, "epsilon": 0.1, "seed": 0} | changes)


class TestMethods:
    def test_random_search_trains_all_to_the_end(self):
        answer = METHODS["random search"](race(sigma=0.0))
        assert answer == Answer(0, 80.0, False, pytest.approx(3.0), pytest.approx(1.0))

    def test_asha_falls_for_what_crosses(self):
        # One slot would see arm 0 first and keep it; on eight, arm 1 leads at every rung but the
        # last, and arm 0 is below the upper quartile after one epoch.
        answer = METHODS["ASHA"](race(sigma=0.0, values=CURVES[[1, 0, 2, 3]]))
        assert answer.configuration == 0
        assert answer.claim == 70.0
        assert not answer.certified
        assert answer.cost < 1.1

    @pytest.mark.parametrize(
        "name", [name for name in METHODS if "declared" in name and "MFElim" not in name]
    )
    def test_ours_certify_the_best(self, name):
        curves = np.vstack([CURVES[:3]] * 4) + np.arange(12)[:, None]  # the last of the best: 89
        answer = METHODS[name](race(values=curves, arms=12, sigma=0.5, epsilon=0.5))
        assert answer.configuration == 9
        assert answer.certified
        assert answer.claim == pytest.approx(89.0, abs=1.0)
        assert 10.0 <= answer.cost < 150.0
        assert 0.999 * answer.cost / 8 <= answer.makespan <= answer.cost


class TestComparison:
    def test_an_answer_is_held_against_the_table(self):
        setting = Setting("made up", 0.1, 3, 0)
        found = judged("x", setting, race(), Answer(1, 71.5, True, 5.0, 1.0))
        assert (found.regret, found.gap, found.wrong) == (10.0, 1.5, True)
        found = judged("x", setting, race(), Answer(1, 71.5, False, 5.0, 1.0))
        assert not found.wrong
        found = judged("x", setting, race(epsilon=10.0), Answer(1, 71.5, True, 5.0, 1.0))
        assert not found.wrong
        beyond = judged("x", setting, race(), Answer(3, 91.0, False, 5.0, 1.0))
        assert (beyond.regret, beyond.gap) == (-10.0, 1.0)

    def test_figures_over_races(self):
        outcomes = [
            Outcome("m", task, 0.5, seed, cost, 1.0, regret, gap, seed == 0, False)
            for task, seed, cost, regret, gap in (
                ("a", 0, 10.0, 0.0, 1.0),
                ("a", 1, 20.0, 1.0, -1.0),
                ("b", 0, 30.0, 2.0, 0.5),
                ("b", 1, 40.0, 0.2, 0.5),
            )
        ]
        whole, first, second = summary(outcomes)
        assert (whole["task"], first["task"], second["task"]) == (None, "a", "b")
        assert (whole["cost"], first["cost"], second["cost"]) == (25.0, 15.0, 35.0)
        assert whole["cost_quartiles"] == [17.5, 32.5]
        assert (whole["regret"], whole["regret_largest"]) == (0.8, 2.0)
        assert (whole["gap"], whole["gap_absolute"]) == (0.25, 0.75)
        assert (whole["races"], whole["beyond_epsilon"], whole["certified"]) == (4, 2, 2)

    def test_too_many_wrong_certificates_are_noticed(self):
        row = {"sigma": 0.5, "task": None, "method": "m", "certified": 100, "wrong": 13}
        assert DELTA == 0.05
        assert all(holds([row]).values())
        [(words, true)] = holds([row | {"wrong": 14}]).items()
        assert not true
        assert words.endswith("but m")
        assert holds([row | {"certified": 0}]) == {}


def test_schedulers_in_the_place_of_asha_keep_to_its_cost(data_folder):
    """One list, of trials that go on from checkpoints."""
    names = ["ASHA", "IISEScheduler", "IISEScheduler, no seed to set, at ASHA's cost"]
    pool = kept_pool("lcbench 3945", None, 16, 0, data_folder / "yahpo")
    on_a_list = ListRace(pool, 0.5, 0.5, Bounds(pool.costs, pool.costs), 0)
    asha, ours, cheap = (REPLACEMENTS[name](on_a_list) for name in names)
    assert cheap.cost <= asha.cost < ours.cost <= 10.0  # six, and a quarter of 16
    assert not cheap.certified
