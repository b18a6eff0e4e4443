import itertools
import json

import pytest

from benchmarks.hpo.earlier import Space, table
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.report import ALL, Report
from benchmarks.hpo.space import Categorical, Condition, ConfigurationSpace, Float, Integer
from tests.benchmarks.hpo.made_up import record


def steps(value):
    return [(8.0, value - 1.0, value), (60.0, value, value + 0.5)]


TASKS = ("lcbench 1", "lcbench 2", "rbv2_xgboost 1", "branin")


def made_up():
    """On all tasks but the last one, "ours" is best; a crash, and a method with a run missing."""
    shift = {"ours": 0.0, "optuna tpe": -1.0, "random": -3.0, "late": -2.0}
    records = []
    for method, task, seed in itertools.product(shift, TASKS, range(6)):
        value = 90.0 + shift[method] * (-1 if task == "branin" else 1) + 0.1 * seed
        crash = "it broke" if (method, task, seed) == ("random", "branin", 0) else None
        if (method, task) != ("late", "branin"):
            told = {"best_tried": value, "crash": crash, "evaluations": (10, 10)}
            records.append(record(method, task, seed, steps(value), total_seconds=1.0, **told))
    references = {task: Reference(92.0, 72.0) for task in TASKS}
    return Report.of(records, references, dict.fromkeys(TASKS[:3], 10.0), ["ours", "never played"])


class TestReport:
    def test_figures_are_plain_and_complete(self):
        report = made_up()
        figures = json.loads(json.dumps(report.figures(), allow_nan=False))
        assert list(figures["groups"]) == [ALL, "LCBench", "rbv2_xgboost", "synthetic"]
        assert figures["left_out"] == {"late": 18}
        assert figures["ours"] == ["ours"]
        # The best known was 92, but random found 93.5.
        assert figures["tasks"]["branin"]["best"] == 93.5
        lcbench = figures["groups"]["LCBench"]
        ours = lcbench["methods"][0]
        assert ours["points"] == [2.75, 2.75, 2.75, 1.75]
        assert ours["percent"] == [13.75, 13.75, 13.75, 8.75]
        assert ours["rank"] == [1.0] * 4
        [ratio, *_] = lcbench["over_best_optuna"]["ours"]
        assert ratio["best"] == "optuna tpe"
        assert ratio["ratio"] == pytest.approx(2.75 / 3.75, abs=1e-4)
        assert lcbench["rankings"][0]["order"] == ["ours", "optuna tpe", "random"]
        assert lcbench["rankings"][0]["alike"] == []
        assert lcbench["points_by_task"]["lcbench 2"]["random"] == [5.75, 5.75, 5.75, 4.75]

    def test_the_table_marks_the_best_and_ours(self):
        header, _, first, *_ = made_up().markdown().splitlines()
        assert header.startswith("| method | LCBench: regret in points at 10 / 20 / 50 / 100 |")
        assert first.startswith("| **ours** | **2.75** / **2.75** / **2.75** / **1.75** |")
        assert "| synthetic: regret in percent at 10 / 20 / 50 / 100 |" in header
        # Half a point of 20 on the surrogates, of 21.5 on branin.
        assert "| +2.5 % | 100 % | 50.0 |" in first

    def test_tasks_won_tied_and_lost(self):
        header, _, first, second = made_up().markdown_of_duels("ours").splitlines()
        assert header == ("| ours against | budget 10 | budget 20 | budget 50 | budget 100 |")
        # Six pairs are the fewest with a p-value below .05, but Holm's method takes eight of them.
        assert first.startswith("| optuna tpe | 0 / 4 / 0, 0.75 |")
        assert second.startswith("| random | 0 / 4 / 0, 0.75 |")


def test_regrets_are_of_the_last_recommendation_within_a_budget():
    tasks = {"lcbench 1": Reference(90.0, 50.0), "rbv2_xgboost 1": Reference(80.0, 60.0)}
    records = []
    for task in tasks:
        records.append(record("search", task, 0, [(4.0, 70.0, 0.0), (20.0, 78.0, 0.0)]))
        records.append(record("search", task, 1, [(3.0, 60.0, 0.0), (50.0, 76.0, 0.0)]))
        records += [record("search, earlier", task, k, [(1.0, 75.0, 0.0)]) for k in range(2)]
    first, second, *_ = table(records, tasks)
    assert (first["family"], first["method"]) == ("lcbench", "search")
    # 90 less: the median (50) or what was recommended last.
    assert first["regret"] == [(40 + 30) / 2, (20 + 30) / 2, 25.0, (12 + 30) / 2, (12 + 14) / 2]
    assert second["regret"] == [15.0] * 5
    assert second["ratio"] == [round(15 / one, 2) for one in first["regret"]]


def test_a_space_places_what_it_draws():
    space = Space(
        ConfigurationSpace(
            {"kind": Categorical(("a", "b")), "n": Integer(1, 100, log=True), "x": Float(0.0, 2.0)},
            {"x": Condition("kind", ("b",))},
        )
    )
    for seed in range(20):
        configuration, point = space.draw(None, [seed])
        again, _ = space.draw(space.place(configuration), [99])
        assert again.keys() == configuration.keys() == point.keys()
        assert again["n"] == configuration["n"]
        if "x" in again:
            assert again["x"] == pytest.approx(configuration["x"])
