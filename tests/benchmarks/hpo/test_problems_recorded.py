import itertools

import numpy as np
import pytest

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems import tables
from benchmarks.hpo.problems.networks import Networks, trained_networks
from benchmarks.hpo.problems.scikit_learn import trained, trainings
from benchmarks.hpo.problems.table import Table, TableProblem, table_file
from benchmarks.hpo.space import Categorical, Condition, Integer
from benchmarks.hpo.tables import grids

GRID = {"C": (1.0, 2.0), "gamma": (0.25, 0.5, 1.0)}


def small():
    # Row r at level l with seed s: 10 r + l + s / 4; it takes r + 1 seconds at the lower level.
    rows, levels, seeds = np.ogrid[:6, :2, :4]
    values = 10.0 * rows + levels + seeds / 4
    seconds = (1.0 + np.arange(6.0))[:, None] * [1.0, 3.0]
    return Table("svm wine", GRID, FidelitySpace("share", (0.5, 1.0), False), values, seconds)


class TestReplay:
    def test_by_hand(self):
        problem = TableProblem(small())
        assert problem.name == "svm wine table"
        assert dict(problem.space.parameters) == {"C": Integer(0, 1), "gamma": Integer(0, 2)}
        assert problem.true_value({"C": 1, "gamma": 2}) == 51.375  # row 5: (0 + 1 + 2 + 3) / 16
        assert problem.best_value == 51.375
        assert problem.full_cost == problem.seconds == 10.5  # between rows 2 and 3
        results = [
            [problem.objective_function({"C": 1, "gamma": 0}, level, s) for level in (0.5, 1.0)]
            for s in range(50)
        ]
        for low, high in results:
            assert (low.cost, high.cost) == (4.0, 12.0)
            assert high.value - low.value == 1.0  # one recorded training at both levels
        assert {low.value for low, _ in results} == {30.0, 30.25, 30.5, 30.75}


def layers():
    # Row r of three: one layer, two without a shortcut, two with one.
    grid = {"depth": (1, 2), "skip": ("no", "yes")}
    values = 10.0 * np.arange(3.0)[:, None, None] * np.ones((1, 1, 2))
    return Table(
        "nas digits",
        grid,
        FidelitySpace("epochs", (9,), True),
        values,
        seconds=np.ones((3, 1)),
        log_loss=-values,
        conditions={"skip": Condition("depth", (2,))},
    )


class TestConditions:
    def test_what_does_not_apply_makes_no_other_configuration(self):
        problem = TableProblem(layers())
        assert dict(problem.space.parameters) == {
            "depth": Integer(0, 1),
            "skip": Categorical(("no", "yes")),
        }
        assert problem.true_value({"depth": 0}) == 0.0
        assert problem.true_value({"depth": 1, "skip": "no"}) == 10.0
        assert problem.true_value({"depth": 1, "skip": "yes"}) == 20.0
        with pytest.raises(ValueError, match="what applies"):
            problem.true_value({"depth": 0, "skip": "yes"})


@pytest.mark.parametrize(
    ("make", "second"),
    [(small, {"C": 1.0, "gamma": 0.5}), (layers, {"depth": 2, "skip": "no"})],
)
def test_saved_and_loaded(make, second, tmp_path):
    table, file = make(), tmp_path / "table.npz"
    table.save(file)
    again = Table.load(file)
    for name in ("name", "grid", "fidelity", "conditions"):
        assert getattr(again, name) == getattr(table, name)
    for name in ("values", "seconds", "log_loss"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name), strict=True)
    assert again.configurations[1] == second


def test_networks_are_tested_on_the_way_as_if_they_were_trained_anew():
    given = {"depth": 2, "width": 16, "batch_size": 64, "alpha": 0.1, "learning_rate_init": 0.01}
    levels = (3.0, 9.0, 27.0)
    on_the_way = trainings("mlp", "wine", given, levels, seed=1)
    anew = [trained("mlp", "wine", given, level, seed=1) for level in levels]
    assert [one[:2] for one in on_the_way] == [one[:2] for one in anew]
    assert 0.0 < on_the_way[0].seconds < on_the_way[1].seconds < on_the_way[2].seconds


@pytest.mark.parametrize("task", tables())
def test_tables(task):
    name = task.removesuffix(" table")
    table, recording = Table.load(table_file(name)), grids.recording_of(name)
    assert (table.grid, table.conditions) == (recording.grid, recording.conditions)
    assert table.fidelity == recording.fidelity
    assert table.values.shape[2] == recording.seeds
    assert ((table.values >= 0.0) & (table.values <= 100.0)).all()
    assert table.log_loss is None or ((table.log_loss >= 0.0) & (table.log_loss < 50.0)).all()
    assert (table.seconds > 0.0).all()
    # The lowest level tells something of the target, but not all.
    ranks = table.values.mean(axis=2).argsort(axis=0).argsort(axis=0)
    assert 0.3 < np.corrcoef(ranks[:, 0], ranks[:, -1])[0, 1] < 0.995
    assert (np.diff(np.median(table.seconds, axis=0)) > 0.0).all()


ARCHITECTURE = {"depth": 3, "width_1": 8, "width_2": 24, "width_3": 8}


@pytest.mark.parametrize(
    ("activation", "normalisation", "skip"),
    [*itertools.product(["tanh", "sigmoid"], ["none", "batch", "layer"], ["no", "yes"])],
)
def test_gradients_are_those_of_finite_differences(activation, normalisation, skip):
    given = {"activation": activation, "normalisation": normalisation, "skip": skip}
    networks = Networks(ARCHITECTURE | given, 64, [np.random.default_rng(seed) for seed in (0, 1)])
    rng = np.random.default_rng(2)
    x = rng.random((2, 100, 64), dtype=np.float32)
    wanted = np.eye(10, dtype=np.float32)[rng.integers(10, size=(2, 100))]

    def loss():
        return -(networks.backpropagate(x, wanted) * wanted).sum(2, dtype=float).mean(1)

    start = networks.values.copy()
    loss()
    gradients = networks.gradients.copy()
    for direction in (gradients, *rng.standard_normal((2, *start.shape), dtype=np.float32)):
        step = 0.005 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        networks.values[:] = start + step
        above = loss()
        networks.values[:] = start - step
        below = loss()
        np.testing.assert_allclose((above - below) / 2, (gradients * step).sum(1), 0.01, 2e-6)


def test_networks_are_the_same_alone_and_together_and_on_the_way():
    given = ARCHITECTURE | {"activation": "relu", "normalisation": "batch", "skip": "yes"}
    together = trained_networks(given, [1, 4], seeds=[3, 5])
    alone = trained_networks(given, [4], seeds=[5])
    assert together.shape == (3, 2, 2)
    assert together[0, 1, 1] == alone[0, 0, 0]
    assert together[1, 1, 1] == pytest.approx(alone[1, 0, 0], rel=1e-4)
    assert (together[2, 0] < together[2, 1]).all()  # seconds add up
    assert (together[1, 0] > together[1, 1]).all()  # the log-loss falls
