"""The benchmark of what earlier results are worth: its table, worked out by hand."""

import pytest

from benchmarks.hpo.earlier import Space, table
from benchmarks.hpo.record import Record
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.space import Categorical, Condition, ConfigurationSpace, Float, Integer


def record(method, task, seed, cost, value):
    return Record(
        method=method, problem=task, budget=50.0, seed=seed, cost=cost, seconds=(0.0,) * len(cost),
        value=value, claim=(None,) * len(cost), evaluations=(1,), failures=0, total_cost=50.0,
        total_seconds=0.0, tried=1, best_tried=None,
    )  # fmt: skip


def test_regrets_are_of_the_last_recommendation_within_a_budget():
    tasks = {"lcbench 1": Reference(90.0, 50.0), "rbv2_xgboost 1": Reference(80.0, 60.0)}
    records = []
    for task in tasks:
        records += [record("search", task, 0, (4.0, 20.0), (70.0, 78.0))]
        records += [record("search", task, 1, (3.0, 50.0), (60.0, 76.0))]
        records += [record("search, earlier", task, seed, (1.0,), (75.0,)) for seed in range(2)]
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
