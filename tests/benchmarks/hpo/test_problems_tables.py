import numpy as np
import pytest

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.scikit_learn import MODELS
from benchmarks.hpo.problems.table import FOLDER, Table, TableProblem, configurations_of, table_file
from benchmarks.hpo.space import Integer
from benchmarks.hpo.tables import __main__ as command

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

    def test_saved_and_loaded(self, tmp_path):
        table, file = small(), tmp_path / "table.npz"
        table.save(file)
        again = Table.load(file)
        assert (again.name, again.grid, again.fidelity) == (table.name, GRID, table.fidelity)
        np.testing.assert_array_equal(again.values, table.values)
        np.testing.assert_array_equal(again.seconds, table.seconds)
        assert configurations_of(again.grid)[1] == {"C": 1.0, "gamma": 0.5}


@pytest.mark.slow
def test_real_trainings(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "GRIDS", {"svm": {"C": (1.0, 4.0), "gamma": (0.1, 4.0)}})
    arguments = ["--problems", "svm wine", "--seeds=2", "--workers=1", f"--output={tmp_path}"]
    assert command.main(arguments) == 0
    problem = TableProblem(Table.load(table_file("svm wine", tmp_path)))
    assert problem.best_value > 90.0
    assert problem.true_value({"C": 0, "gamma": 1}) < 60.0
    with pytest.raises(SystemExit):
        command.main(["--seeds=0"])


@pytest.mark.parametrize(
    "name", ["logistic_regression digits", "svm digits", "gradient_boosting breast_cancer"]
)
def test_tables(name):
    file = table_file(name)
    assert file.parent == FOLDER
    assert file.stat().st_size < 300_000
    table = Table.load(file)
    model = name.split()[0]
    assert table.grid == command.GRIDS[model]
    assert table.fidelity == MODELS[model].fidelity
    assert table.values.shape[2] == 10
    # The lowest level tells something of the target, but not all.
    ranks = table.values.mean(axis=2).argsort(axis=0).argsort(axis=0)
    assert 0.3 < np.corrcoef(ranks[:, 0], ranks[:, -1])[0, 1] < 0.995
    assert (np.diff(np.median(table.seconds, axis=0)) > 0.0).all()
