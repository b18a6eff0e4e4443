import pytest

from benchmarks.hpo import ours
from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import HEADLINE, OURS, methods_of
from benchmarks.hpo.play import play
from benchmarks.hpo.problems import problem_named
from mfhpo_optuna import Fidelity

METHODS = methods_of(OURS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [HEADLINE, "mfhpo halving + tpe"])
def test_a_run_on_a_table_uses_its_whole_budget(name):
    # Good configurations train faster than others here, so that the sampler expects to pay more.
    record = play(name, METHODS[name], problem_named("svm digits table"), budget=12.0, seed=0)
    assert record.crash is None
    assert record.total_cost > 10.0  # less is left than the dearest evaluation costs


@pytest.mark.parametrize(
    ("task", "expected"),
    [("currin", (1 / 27, 1 / 9, 1 / 3, 1.0)), ("svm digits table", (0.0370, 0.1404, 0.9642))],
)
def test_costs_are_what_a_user_would_know(task, expected, monkeypatch):
    told = []

    def noted(*arguments, costs, **options):
        told.append(costs)
        return Fidelity(*arguments, costs=costs, **options)

    monkeypatch.setattr(ours, "Fidelity", noted)
    with pytest.raises(BudgetSpent):
        ours.optimise(Meter(problem_named(task), 1.0, 0), 0)
    assert told == [pytest.approx(expected, abs=1e-4)]
