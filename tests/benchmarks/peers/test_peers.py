import itertools

import pytest

from benchmarks.hpo import ours
from benchmarks.hpo.ask_tell import Setting
from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import HEADLINE, OURS, methods_of
from benchmarks.hpo.play import play
from benchmarks.hpo.problems import problem_named
from benchmarks.hpo.space import same_configuration
from benchmarks.peers.regularised_evolution import Evolution
from mfhpo_optuna import Fidelity
from tests.benchmarks.peers.curves import Curves

PEERS = ("random_search", "regularised_evolution", "optuna", "ray")
METHODS = {name: method for peer in PEERS for name, method in methods_of(peer).items()}
TARGET_ONLY = ("random", "regularised evolution", "optuna random", "optuna tpe")


def played(method, problem, budget, seed=0):
    meter = Meter(problem, budget, seed)
    with pytest.raises(BudgetSpent):
        method(meter, seed)
    return meter


@pytest.fixture(params=METHODS)
def name(request):
    return str(request.param)


def test_a_run_spends_its_budget_in_the_space_and_as_the_method_means_to(name):
    problem = Curves()
    meter = played(METHODS[name], problem, budget=12.0)
    # What is left does not pay for the evaluation that was asked for.
    assert 11.0 < meter.cost <= 12.0 + 1e-9
    assert {configuration["solver"] for configuration, _, _ in problem.seen} == {"sgd", "adam"}
    for configuration, _, _ in problem.seen:
        assert ("momentum" in configuration) == (configuration["solver"] == "sgd")
        assert 1e-4 <= configuration["rate"] <= 1.0
        assert configuration["layers"] in range(1, 9)
    counts = meter.evaluations
    if name in TARGET_ONLY:
        assert counts == [0, 0, 0, 12]
    else:
        # Upwards one level at a time, and something is stopped at each of the lower ones.
        assert all(low >= high for low, high in itertools.pairwise(counts))
        assert counts[0] > 1.5 * counts[3] > 0
    if name != "ray asha":  # which recommends the best of all last reports
        finished = {
            same_configuration(configuration): value
            for configuration, level, value in problem.seen
            if level == 3
        }
        best = max(finished, key=lambda key: finished[key])
        assert same_configuration(meter.steps[-1].configuration) == best
        assert meter.steps[-1].claim == finished[best]


def test_evolution_draws_one_parameter_anew_and_forgets_the_oldest():
    evolution = Evolution(Setting(Curves(), budget=100.0, workers=1, seed=0))
    told = []
    for number in range(40):
        job = evolution.ask()
        if number >= 10:  # the first ones are drawn, and the very best leaves with them
            assert any(differences(job.configuration, one) == 1 for one in told[-10:])
        told.append(job.configuration)
        evolution.tell(job, 100.0 - number, seconds=1.0)
    assert evolution.advice() == (told[0], 100.0)


def differences(one, other):
    """Number of parameters that differ; what one of two solvers has comes with it."""
    names = {*one, *other} - ({"momentum"} if one["solver"] != other["solver"] else set())
    return sum(one[name] != other[name] for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("name", [HEADLINE, "mfhpo halving + tpe"])
def test_a_run_on_a_table_uses_its_whole_budget(name):
    # Good configurations train faster than others here, so that the sampler expects to pay more.
    record = play(
        name, methods_of(OURS)[name], problem_named("svm digits table"), budget=12.0, seed=0
    )
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
