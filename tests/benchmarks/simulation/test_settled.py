"""The comparison of rules that stop studies."""

import json

import numpy as np
import optuna
import pytest
from optuna import terminator

from benchmarks.hpo.problems import problem_named
from benchmarks.settled import __main__ as program
from benchmarks.settled import rules, samplers
from benchmarks.settled.rules import Played, Stop
from mfhpo.certification.settling import Settling


def played(values, sigma=1.0, trials=()):
    return Played(np.asarray(values, dtype=float), sigma, trials)


def test_patience_by_hand():
    values = [0.0, 1.0, *[0.5] * 40]
    assert rules.patience(played(values), 1.0, 30).n == 31  # none exceeds the first by more than 1
    assert rules.patience(played(values, 0.1), 1.0, 30).n == 32


def test_stagnation_is_that_of_optuna():
    values = [0.0, 2.0, 1.0, 2.0, 3.0, *[3.0] * 12]
    evaluator = terminator.BestValueStagnationEvaluator(max_stagnation_trials=10)
    trials = [optuna.trial.create_trial(value=value) for value in values]
    room = [
        evaluator.evaluate(trials[:n], optuna.study.StudyDirection.MAXIMIZE)
        for n in range(1, len(trials) + 1)
    ]
    stop = rules.stagnation(played(values), 1.0, 10)
    assert stop.n == 16
    assert next(n for n, left in enumerate(room, 1) if left < 0) == stop.n


def test_the_window_of_ax_by_hand():
    # Quartiles are 0 and about 1: the last of three trials must have gained about .1.
    values = [0.0, 1.0] * 9 + [1.2, 1.4, 1.6, 1.8, 1.85, 1.85]
    assert rules.improvement(played(values), 1.0, 3).n == 24  # 1.85 - 1.8 is less
    assert rules.improvement(played(values[:23]), 1.0, 3).n == 23  # 1.85 - 1.6 is not
    assert rules.improvement(played([0.0, 1.0] * 20), 1.0, 3).n == 20  # never before the 20th


@pytest.mark.parametrize("seed", range(3))
def test_the_window_is_that_of_ax(seed):
    stopping = pytest.importorskip("ax.global_stopping.strategies.improvement")
    api = pytest.importorskip("ax.api")
    values = np.maximum.accumulate(np.random.default_rng(seed).normal(size=60)) ** 2
    values += np.linspace(0.0, 2.0 * seed, 60)
    client = api.client.Client()
    client.configure_experiment([api.configs.RangeParameterConfig("x", (0.0, 1.0), "float")])
    client.configure_optimization("value")
    strategy = stopping.ImprovementGlobalStoppingStrategy(min_trials=20, window_size=5)
    stopped = None
    for n, value in enumerate(values, 1):
        client.complete_trial(client.attach_trial({"x": n / 60}), {"value": float(value)})
        if stopped is None and strategy.should_stop_optimization(client._experiment)[0]:
            stopped = n
    assert rules.improvement(played(values), 1.0, 5).n == (stopped or 60)


def test_a_terminator_stops_at_its_first_regret_below_so_many_epsilons(monkeypatch):
    monkeypatch.setattr(Played, "regret_bounds", {20: 9.0, 30: 4.0, 40: 1.9, 50: 0.9})
    study = played(np.zeros(60), sigma=0.5)
    assert rules.regret_bound(study, 2.0, 1.0) == Stop(50, 1.0)
    assert rules.regret_bound(study, 2.0, 2.0) == Stop(40, 1.0)
    assert rules.regret_bound(study, 1.0, 1.0) == Stop(60, 0.5)


def test_the_regrets_are_those_of_optuna_in_units_of_the_value():
    pytest.importorskip("torch")
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: 100.0 * trial.suggest_float("x", 0.0, 1.0), n_trials=31)
    of_study = played([trial.value for trial in study.trials], trials=study.trials)
    by_hundredth = played(
        of_study.values / 100.0,
        trials=[
            optuna.trial.create_trial(
                value=trial.value / 100.0, params=trial.params, distributions=trial.distributions
            )
            for trial in study.trials
        ],
    )
    for name in ("regret_bounds", "model_regrets"):
        found, hundredths = getattr(of_study, name), getattr(by_hundredth, name)
        assert min(found.values()) > 0.0
        assert found == pytest.approx({n: 100.0 * of_n for n, of_n in hundredths.items()}, rel=1e-3)


def test_the_rule_is_that_of_the_callback():
    values = np.random.default_rng(1).normal(size=400)
    stop = rules.settled(played(values, sigma=0.5), epsilons=2.0)
    rule = Settling(epsilon=1.0)
    assert rule.is_settled(values[: stop.n])
    assert not rule.is_settled(values[: stop.n - 1])
    assert stop.chance == rule.outlook(values[: stop.n]).chance


def test_what_is_lost_and_what_came_true():
    values, truths = np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.0, 2.0, 2.5, 4.0])
    judged = program._judged(Stop(2, 1.5, 0.1), values, truths)
    assert (judged["lost"], judged["better"]) == (True, True)
    judged = program._judged(Stop(2, 2.0, 0.1), values, truths)
    assert (judged["lost"], judged["better"]) == (False, False)


def test_the_setting_that_saves_most_of_those_that_lose_little_is_chosen():
    family = rules.FAMILIES["fixed"]
    lost = {100: 0.4, 150: 0.11, 160: 0.1, 200: 0.0}
    rows = [
        {"rule": family.full_name(n, 1.0), "sampler": None, "saved": 1 - n / 250, "lost": share}
        for n, share in lost.items()
    ]
    assert program.chosen(rows) == {"fixed": {"1": 160}}


def test_what_is_chosen_is_one_of_the_settings_looked_at():
    for family in rules.FAMILIES.values():
        assert set(family.chosen.values()) <= set(family.grid)
        assert bool(family.chosen) == bool(family.grid)


def test_a_slow_sampler_plays_a_few_tasks_of_each_kind():
    tasks = [f"{kind} {i}" for kind in ("a", "b") for i in range(6)]
    found = program.runs(["GP", "random"], tasks, seeds=2)
    assert [run.task for run in found if run.sampler == "GP"] == [
        f"{kind} {i}" for kind in ("a", "b") for i in range(program.SLOW_TASKS)
    ]
    assert len([run for run in found if run.sampler == "random"]) == 24


@pytest.mark.parametrize("name", ["regularised evolution", "nevergrad"])
def test_another_optimiser_plays_its_trials_through_optuna(name):
    if name == "nevergrad":
        pytest.importorskip("nevergrad", reason="a peer of the extra `stopping`, not of the tests")
    problem = problem_named("branin")
    asked, told = [], []
    sampler = samplers.SAMPLERS[name].make(problem, 30, 0)
    optimiser = sampler._optimiser
    ask, tell = optimiser.ask, optimiser.tell
    optimiser.ask = lambda: asked.append(ask()) or asked[-1]
    optimiser.tell = lambda job, value, seconds: told.append(value) or tell(job, value, seconds)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(program.Objective(problem, 0), n_trials=30)
    assert [trial.params for trial in study.trials] == [job.configuration for job in asked]
    assert [trial.value for trial in study.trials] == told


@pytest.mark.slow
def test_a_small_comparison(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "DEVELOPMENT_TASKS", ("hartmann6",))
    monkeypatch.setattr(program, "N_TRIALS", 90)
    output = tmp_path / "settled.json"
    given = ["--samplers", "random", "TPE", "--seeds", "2", "--workers", "1", "--output"]
    assert program.main([*given, str(output)]) == 0
    rows = json.loads(output.read_text())["rows"]
    assert {row["sampler"] for row in rows} == {None, "random", "TPE"}
    assert all(0.0 <= row["saved"] < 1.0 for row in rows)
    assert "| settled, defaults | all | 4 |" in capsys.readouterr().out
