import time

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mfhpo import Bias
from mfhpo_optuna import Fidelity, IISESampler
from mfhpo_optuna.study.distributions import levels_in
from tests.optuna.samplers.races import ARMS, noise, run


@pytest.mark.parametrize(
    ("distribution", "levels"),
    [
        (IntDistribution(1, 81), (1, 3, 9, 27, 81)),
        (IntDistribution(1, 10_000), (41, 123, 370, 1111, 3333, 10_000)),
        (IntDistribution(20, 100), (33, 100)),  # 20 is next to 33, as ratios go
        (IntDistribution(5, 100), (5, 11, 33, 100)),
        (IntDistribution(1, 81, log=True), (1, 3, 9, 27, 81)),
        (IntDistribution(10, 100, step=10), (10, 30, 100)),
        (FloatDistribution(0.1, 0.9), (0.1, 0.3, 0.9)),
        (FloatDistribution(0.0, 0.81), (0.81 / 3**5, 0.81 / 81, 0.03, 0.09, 0.27, 0.81)),
        (CategoricalDistribution(("low", "high")), ("low", "high")),
        (IntDistribution(5, 5), (5,)),
    ],
)
def test_levels_are_geometric_below_the_upper_bound(distribution, levels):
    found = levels_in(Fidelity("epochs"), distribution)
    if isinstance(levels[0], str):
        assert found == levels
    else:
        assert found == pytest.approx(levels)
    assert all(distribution._contains(distribution.to_internal_repr(level)) for level in found)


@pytest.mark.parametrize(
    "fidelity",
    [
        Fidelity("epochs", levels=[2, 5, 9]),
        Fidelity("epochs", levels=(2, 5, 9), costs=(1.0, 2.0, 10.0)),
        Fidelity("epochs", levels=(2, 5, 9), bias=(0.2, 0.1, 0.0)),
        Fidelity("epochs", levels=(2, 5, 9), bias=Bias.order(0.2, 0.1, 0.0)),
    ],
)
def test_declared_levels_costs_and_bias(fidelity):
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        return x**2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    sampler = IISESampler(fidelity, ARMS, epsilon=0.1, seed=0)
    study = run(sampler, objective)
    answer = sampler.recommendation(study)
    assert {t.params["epochs"] for t in study.trials if "epochs" in t.params} <= {2, 5, 9}
    assert answer.certified
    assert answer.params == {"x": 0.0}
    assert answer.level == 9
    costs = dict(zip(fidelity.levels, fidelity.costs or fidelity.levels, strict=True))
    pulls = [t for t in study.trials if "mfhpo:pull" in t.user_attrs]
    assert answer.cost == pytest.approx(sum(costs[t.params["epochs"]] for t in pulls))
    assert answer.trials == len(pulls)
    declared = any("bias bounds" in a and "declared" in a for a in answer.assumptions)
    assert declared == (fidelity.bias is not None)


def test_categorical_fidelity_with_costs():
    bias = {"small": -0.3, "full": 0.0}

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        return x**2 + bias[trial.suggest_categorical("data", ["small", "full"])] + noise(trial)

    fidelity = Fidelity("data", levels=["small", "full"], costs=[1, 10])
    sampler = IISESampler(fidelity, ARMS, epsilon=0.1, seed=0)
    study = run(sampler, objective)
    assert study.best_params == {"x": 0.0, "data": "full"}
    assert study.best_value == pytest.approx(0.0, abs=0.1)


def test_measured_costs_are_seconds():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        time.sleep(0.0005 * trial.suggest_int("epochs", 1, 9))
        return x**2 + noise(trial)

    sampler = IISESampler(
        Fidelity("epochs", levels=[1, 9], costs="measured"), ARMS, epsilon=0.15, seed=0
    )
    study = run(sampler, objective)
    answer = sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"x": 0.0}
    pulls = [t for t in study.trials if "mfhpo:pull" in t.user_attrs]
    seconds = sum((t.datetime_complete - t.datetime_start).total_seconds() for t in pulls)
    assert 0.0005 * sum(t.params["epochs"] for t in pulls) <= answer.cost <= 1.01 * seconds


def test_a_fidelity_the_objective_overrides_ends_the_race_or_is_an_error():
    """`suggest_int("epochs", 9, 9)` never reaches a sampler, so the cheap levels never come."""

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        trial.suggest_int("epochs", 9, 9)
        return x**2 + noise(trial)

    fidelity = Fidelity("epochs", levels=[1, 3, 9])
    sampler = IISESampler(fidelity, ARMS, epsilon=0.1, estimated_bias="eliminate", seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match="epochs"):
        study.optimize(objective, n_trials=300)
