"""Tests of the adapters of other optimisers: those that run in the environment of the tests."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import Method, methods_of
from benchmarks.hpo.problem import Evaluation, FidelitySpace, Problem
from benchmarks.hpo.space import (
    Categorical,
    Condition,
    Configuration,
    ConfigurationSpace,
    Float,
    Integer,
    same_configuration,
)

PEERS = Path(__file__).parents[3] / "benchmarks" / "peers"
METHODS = {**methods_of("random_search"), **methods_of("optuna"), **methods_of("ray")}
TARGET_ONLY = ("random", "optuna random", "optuna tpe")
EPOCHS = (2, 6, 17, 52)
# What a training at the target level falls short by, at the other levels.
BIAS = (20.0, 10.0, 3.0, 0.0)


class Curves(Problem):
    """Learning curves without noise that never cross; `momentum` applies to one solver only."""

    name = "curves"
    space = ConfigurationSpace(
        {
            "rate": Float(1e-4, 1.0, log=True),
            "layers": Integer(1, 8),
            "solver": Categorical(("sgd", "adam")),
            "momentum": Float(0.0, 1.0),
        },
        {"momentum": Condition("solver", ("sgd",))},
    )
    full_cost = 52.0

    def __init__(self, continues: bool = True, failing: tuple[int, ...] = ()) -> None:
        self.fidelity = FidelitySpace("epochs", EPOCHS, continues)
        self.failing = failing  # numbers of layers whose training diverges
        self.seen: list[tuple[Configuration, int, float]] = []

    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        level = EPOCHS.index(int(fidelity))
        value = self.true_value(configuration) - BIAS[level]
        if configuration["layers"] in self.failing:
            value = math.nan
        self.seen.append((dict(configuration), level, value))
        return Evaluation(value, fidelity)

    def true_value(self, configuration: Configuration) -> float:
        value = -abs(math.log10(configuration["rate"]) + 2.0) - abs(configuration["layers"] - 4)
        return value - configuration.get("momentum", 0.5)


def played(method: Method, problem: Problem, budget: float, seed: int = 0) -> Meter:
    meter = Meter(problem, budget, seed)
    with pytest.raises(BudgetSpent):
        method(meter, seed)
    return meter


@pytest.fixture(params=METHODS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("continues", [True, False])
def test_a_method_spends_its_budget_and_no_more(name: str, continues: bool) -> None:
    meter = played(METHODS[name], Curves(continues), budget=6.0)
    # What is left does not pay for the evaluation that was asked for.
    assert 5.0 < meter.cost <= 6.0 + 1e-9


def test_configurations_are_of_the_space_and_hold_what_applies(name: str) -> None:
    problem = Curves()
    played(METHODS[name], problem, budget=6.0)
    assert {configuration["solver"] for configuration, _, _ in problem.seen} == {"sgd", "adam"}
    for configuration, _, _ in problem.seen:
        assert ("momentum" in configuration) == (configuration["solver"] == "sgd")
        assert 1e-4 <= configuration["rate"] <= 1.0
        assert configuration["layers"] in range(1, 9)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"ray asha"}))
def test_the_recommendation_is_the_best_at_the_target_level(name: str) -> None:
    problem = Curves()
    meter = played(METHODS[name], problem, budget=6.0)
    finished = {
        same_configuration(configuration): value
        for configuration, level, value in problem.seen
        if level == 3
    }
    best = max(finished, key=lambda key: finished[key])
    assert same_configuration(meter.steps[-1].configuration) == best
    assert meter.steps[-1].claim == finished[best]
    claims = [step.claim for step in meter.steps]
    assert claims == sorted(claims, key=float)


def test_the_seed_decides(name: str) -> None:
    first, again, other = (
        played(METHODS[name], Curves(), budget=4.0, seed=seed) for seed in (3, 3, 4)
    )
    assert [(step.cost, step.configuration) for step in first.steps] == [
        (step.cost, step.configuration) for step in again.steps
    ]
    assert first.steps[-1].configuration != other.steps[-1].configuration


def test_levels_are_used_as_the_method_means_to(name: str) -> None:
    meter = played(METHODS[name], Curves(), budget=12.0)
    if name in TARGET_ONLY:
        assert meter.evaluations == [0, 0, 0, 12]
    else:
        # Upwards one level at a time, and something is stopped at each of the lower ones.
        counts = meter.evaluations
        assert all(low >= high for low, high in itertools.pairwise(counts))
        assert counts[0] > 1.5 * counts[3] > 0


def test_every_level_is_a_rung_of_optunas_halving() -> None:
    problem = Curves()
    played(METHODS["optuna random + sha"], problem, budget=12.0)
    reached: dict[object, list[float]] = {}
    for configuration, _, value in problem.seen:
        reached.setdefault(same_configuration(configuration), []).append(value)
    # Of n values at a level, a new one goes on if it is among the best max(1, n // 3).
    arrived: list[list[float]] = [[], [], []]
    trials = list(reached.values())
    for values in trials[:-1]:  # the budget ended the last one
        for level, value in enumerate(values[:3]):
            arrived[level].append(value)
            rank = sorted(arrived[level], reverse=True).index(value)
            goes_on = rank < max(1, len(arrived[level]) // 3)
            assert goes_on == (len(values) > level + 1)


def test_failures_are_survived_and_not_recommended(name: str) -> None:
    meter = played(METHODS[name], Curves(failing=(2, 4, 6, 8)), budget=6.0)
    assert meter.failures > 0
    assert meter.steps
    assert all(step.configuration["layers"] % 2 for step in meter.steps)


def test_every_environment_is_pinned_and_has_its_module() -> None:
    for file in (PEERS / "requirements").glob("*.txt"):
        assert (PEERS / f"{file.stem.replace('-', '_')}.py").is_file(), file.name
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        loose = [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+]+", line)]
        assert loose in ([], ["--editable ."]), file.name
        # One version of what evaluates, or the peers would not see the same values.
        assert "onnxruntime==1.31.1" in lines, file.name
