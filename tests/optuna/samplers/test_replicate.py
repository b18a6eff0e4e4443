import time
import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import IntDistribution

from mfhpo import BlockElimination
from mfhpo_optuna import MFSampler
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.trials.under_way import UnderWay
from tests.optuna.samplers.races import BEST_ARM, CLASSES, PULL, Clock, answers, pulls, run

ARMS = [{"x": x} for x in (-0.9, -0.3, 0.0, 0.2, 0.6)]


def objective(trial):
    """The effect of the split is the same for all arms, and ten times their own noise."""
    split = trial.suggest_int("split", 0, 2**31 - 1)
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    of_split = 0.5 * np.random.default_rng(split).standard_normal()
    own = 0.05 * np.random.default_rng([split, int(1000 * (x + 1))]).standard_normal()
    return x**2 + 0.1 / epochs + of_split + own


def make(cls=MFSampler, **options):
    return cls("epochs", ARMS, **{"epsilon": 0.08, "seed": 0, "replicate": "split", **options})


def splits(study):
    found = {}
    for trial in pulls(study):
        found.setdefault(trial.user_attrs[PULL]["block"], set()).add(trial.params["split"])
    return found


@pytest.mark.parametrize("cls", [*BEST_ARM.values(), MFSampler])
def test_arms_share_their_splits_and_are_told_apart_by_them(cls):
    study = run(make(cls), objective)
    if cls is MFSampler:
        assert study.sampler.choice(study).policy is BlockElimination
    assert study.best_params["x"] in (0.0, 0.2)
    assert all(len(of_block) == 1 for of_block in splits(study).values())
    assert len({next(iter(of_block)) for of_block in splits(study).values()}) == len(splits(study))
    assert {trial.params["epochs"] for trial in pulls(study)} == {9}
    assert len(pulls(study)) < 60  # the noise of an evaluation is six times epsilon
    assert "same replicates" in str(answers(study)[-1].user_attrs["mfhpo:certificate"]["reason"])


def test_a_split_that_was_set_by_somebody_else_does_not_count():
    study = optuna.create_study(sampler=make())
    study.enqueue_trial({"x": 0.2, "split": 5})
    with pytest.warns(UserWarning, match="split=5, which is not what the sampler chose"):
        study.optimize(objective, n_trials=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(objective)
    assert study.best_params["x"] in (0.0, 0.2)


def on_folds(sd, ask=lambda trial: trial.suggest_int("fold", 0, 8, step=2), seconds=0.0):
    """What a fold does to all arms, and noise of an arm's own, on the folds that are asked for."""

    def objective(trial):
        x, fold = trial.suggest_float("x", -1, 1), ask(trial)
        epochs = trial.suggest_int("epochs", 1, 9)
        rng = np.random.default_rng([5, ord(str(fold)), int(1000 * (x + 1))])
        time.sleep(seconds * rng.random())
        return x**2 + 0.1 / epochs + np.cos(ord(str(fold))) + sd * rng.standard_normal()

    return objective


def folds_of(study):
    found = {}
    for trial in pulls(study):
        found.setdefault(trial.params["x"], []).append(trial.params["fold"])
    return found


@pytest.mark.parametrize(
    ("ask", "n_jobs"),
    [
        (lambda trial: trial.suggest_int("fold", 0, 8, step=2), 1),
        (lambda trial: trial.suggest_categorical("fold", list("abcde")), 4),
    ],
)
def test_five_folds_are_enough_where_arms_differ_clearly(ask, n_jobs):
    sampler = make(replicate="fold", delta=0.2)
    study = optuna.create_study(sampler=sampler)
    study.optimize(on_folds(0.002, ask, seconds=0.01), n_jobs=n_jobs, timeout=120)
    answer = sampler.recommendation(study)
    assert (answer.certified, answer.params["x"]) == (True, 0.0)
    assert len(set(folds_of(study)[0.0])) == 5
    assert len(folds_of(study)[0.0]) == 5 + 1  # one of them twice
    assert study.best_params["x"] == 0.0


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_the_race_ends_with_an_exact_answer_when_all_folds_were_used(n_jobs):
    sampler = make(replicate="fold", epsilon=0.001)
    study = optuna.create_study(sampler=sampler)
    study.optimize(on_folds(0.5, seconds=0.01), n_jobs=n_jobs, timeout=120)
    answer = sampler.recommendation(study)
    assert (answer.finished, answer.certified) == (True, True)
    assert answer.reason == "all 5 replicates were used"
    assert answer.interval == (answer.mean, answer.mean)
    assert study.best_params == answer.params | {"epochs": 9}
    assert all(sorted(set(folds)) == [0, 2, 4, 6, 8] for folds in folds_of(study).values())
    assert len(folds_of(study)) == 5
    assert sorted(map(len, folds_of(study).values())) == [6] * 5
    assert "evaluations made twice, with the same values: 5" in str(answer)
    again = make(replicate="fold", epsilon=0.001).recommendation(study)
    assert (again.finished, again.params) == (True, answer.params)


def test_a_worker_waits_while_what_may_end_the_race_is_under_way(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(StudySampler, "_sleep", staticmethod(clock.sleep))
    monkeypatch.setattr(UnderWay, "clock", staticmethod(clock.monotonic))
    study = optuna.create_study(sampler=make())
    study.optimize(objective, n_trials=5)
    slow = study.ask()
    clock.after(100.0, lambda: study.tell(slow, objective(slow)))
    study.optimize(objective, timeout=60)
    assert study.sampler.recommendation(study).certified
    assert len(pulls(study)) < 80  # with no slow one it takes less than 60
    idle = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    assert len(idle) == 4  # each waits as long as those before it: 10, 10, 20, 40 seconds


def without(trial):
    return trial.suggest_float("x", -1, 1) + trial.suggest_int("epochs", 1, 9)


def fraction(trial):
    return without(trial) + trial.suggest_float("split", 0, 1)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        (without, ValueError, "did not ask for it in trial 0"),
        (fraction, TypeError, "as a whole number"),
    ],
)
def test_how_the_objective_must_ask(asked, error, words):
    study = optuna.create_study(sampler=make(epsilon=0.0))
    with pytest.raises(error, match=words):
        study.optimize(asked, n_trials=50)


@pytest.mark.parametrize(
    ("cls", "options", "word"),
    [
        ("choice", {"sigma": 0.1}, "sigma"),
        ("choice", {"bias": [0.1, 0.0]}, "bias"),
        ("choice", {"aim": "reward per cost", "epsilon": None}, "aim"),
        ("IISE", {"variant": "se"}, "variant"),
        ("LUCB-C", {"explore": "A"}, "explore"),
        ("grad", {"learning_rate": 0.25}, "learning_rate"),
        ("choice", {"pilot_arms": 4}, "pilot_arms"),
        ("choice", {"replicate": "epochs"}, "fidelity"),
    ],
)
def test_what_has_no_part_in_blocks(cls, options, word):
    with pytest.raises(ValueError, match=f"{word}.*replicate|replicate.*{word}"):
        make(CLASSES[cls], **options)


def test_the_replicate_is_no_parameter_of_an_arm():
    with pytest.raises(ValueError, match=r"arms\[0\] contains 'split', which the sampler"):
        MFSampler("epochs", [{"x": 0.0, "split": 1}], replicate="split")
    with pytest.raises(ValueError, match=r"arms\['split'\] is given, but the sampler itself sets"):
        MFSampler("epochs", {"split": IntDistribution(0, 9)}, replicate="split")
