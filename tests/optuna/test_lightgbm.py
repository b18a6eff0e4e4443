import lightgbm
import numpy as np
import optuna
import pytest

from mfhpo_optuna import SearchSampler, TimeLimitPruner
from mfhpo_optuna.lightgbm import ReportRounds, train_from_checkpoint

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=300)
PARAMS = {"objective": "l2", "verbose": -1, "num_threads": 1, "seed": 0}


def data():
    train = lightgbm.Dataset(X[:200], Y[:200])
    return train, train.create_valid(X[200:], Y[200:])


def trained(trial, rounds=9, callbacks=(), **options):
    train, valid = data()
    callbacks = [ReportRounds(trial), *callbacks]
    options |= {"valid_sets": [train, valid], "callbacks": callbacks}
    return lightgbm.train(PARAMS, train, rounds, **options)


def one_trial(objective, **options):
    study = optuna.create_study(**options)
    study.optimize(objective, n_trials=1)
    return study.trials[0]


def test_rounds_are_steps():
    history = {}
    callbacks = [lightgbm.record_evaluation(history)]
    trial = one_trial(lambda t: trained(t, callbacks=callbacks).best_score["valid_1"]["l2"])
    expected = dict(enumerate(history["valid_1"]["l2"], 1))
    assert trial.intermediate_values == expected
    assert trial.value == expected[9]


def test_steps_go_on_where_the_model_was_begun():
    train, _ = data()
    first = lightgbm.train(PARAMS, train, 5)
    trial = one_trial(lambda t: trained(t, 3, init_model=first).num_trees())
    assert list(trial.intermediate_values) == [6, 7, 8]
    assert trial.value == 8


def test_cross_validation_and_estimators():
    def cross_validate(trial, eval_train_metric):
        options = {"nfold": 3, "stratified": False, "eval_train_metric": eval_train_metric}
        found = lightgbm.cv(PARAMS, data()[0], 3, callbacks=[ReportRounds(trial)], **options)
        return found["valid l2-mean"][-1]

    for eval_train_metric in (False, True):  # which is left out
        trial = one_trial(lambda t, each=eval_train_metric: cross_validate(t, each))
        assert list(trial.intermediate_values) == [1, 2, 3]
        assert trial.intermediate_values[3] == trial.value

    def fit(trial):
        model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1)
        measured = {"eval_set": [(X[200:], Y[200:] > 1)], "eval_metric": "auc"}
        model.fit(X[:200], Y[:200] > 1, callbacks=[ReportRounds(trial, "auc")], **measured)
        return model.best_score_["valid_0"]["auc"]

    trial = one_trial(fit, direction="maximize")
    assert trial.intermediate_values[4] == trial.value


def test_pruner_stops_the_training():
    class AfterThree(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.last_step >= 3

    trial = one_trial(lambda t: trained(t).num_trees(), pruner=AfterThree())
    assert trial.state == optuna.trial.TrialState.PRUNED
    assert trial.last_step == 3
    limited = one_trial(lambda t: trained(t).num_trees(), pruner=TimeLimitPruner(limit=1e-9))
    assert limited.user_attrs["mfhpo:censored_at"] == 1e-9


def test_race_goes_on_from_checkpoints(tmp_path):
    paid = []

    def objective(trial):
        rate = trial.suggest_float("learning_rate", 0.01, 1, log=True)
        rounds = trial.suggest_int("rounds", 1, 27)
        train, valid = data()
        params, steps = PARAMS | {"learning_rate": rate}, []
        options = {"valid_sets": [valid], "callbacks": [lambda env: steps.append(env.iteration)]}
        folder = tmp_path / "checkpoints"
        model = train_from_checkpoint(trial, params, train, rounds, folder, **options)
        paid.append(len(steps))
        assert model.current_iteration() == rounds
        whole = lightgbm.train(params, data()[0], rounds)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-6)
        return float(np.mean((model.predict(X[200:]) - Y[200:]) ** 2))

    sampler = SearchSampler("rounds", budget=300, checkpoints=True, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective)
    answer = sampler.recommendation(study)
    assert sum(paid) == pytest.approx(answer.cost)
    assert min(paid) > 0
    assert len(list((tmp_path / "checkpoints").glob("*.part"))) == 0


def test_a_checkpoint_of_more_rounds_is_cut(tmp_path):
    models = []

    def objective(trial):
        trial.suggest_float("learning_rate", 0.1, 0.2)
        rounds = trial.suggest_int("rounds", 1, 9)
        for each in (9, rounds, 4):
            models.append(train_from_checkpoint(trial, PARAMS, data()[0], each, tmp_path))
        return 0.0

    study = optuna.create_study(sampler=SearchSampler("rounds", budget=20, seed=0))
    study.optimize(objective, n_trials=1)
    assert [model.current_iteration() for model in models] == [9, 1, 4]
    short = lightgbm.train(PARAMS, data()[0], 4)
    np.testing.assert_allclose(models[-1].predict(X), short.predict(X), atol=1e-9)


def early_stopped(tmp_path, params, callbacks=()):
    """The models of three evaluations at rising levels, each of which goes on from the last."""
    models = []

    def objective(trial):
        trial.suggest_float("learning_rate", 0.8, 0.9)
        trial.suggest_int("rounds", 1, 81)
        for rounds in (1, 27, 81):
            train, valid = data()
            options = {"valid_sets": [valid], "callbacks": list(callbacks)}
            own = PARAMS | params
            models.append(train_from_checkpoint(trial, own, train, rounds, tmp_path, **options))
        return 0.0

    study = optuna.create_study(sampler=SearchSampler("rounds", budget=200, seed=0))
    study.optimize(objective, n_trials=1)
    return models


def test_early_stopping_does_not_go_with_checkpoints(tmp_path):
    with pytest.raises(ValueError, match="early stopping has cut the model off after"):
        early_stopped(tmp_path, {"learning_rate": 0.9}, [lightgbm.early_stopping(3, verbose=False)])
    [checkpoint] = tmp_path.iterdir()
    assert lightgbm.Booster(model_file=checkpoint).current_iteration() == 1
    # A model that no further split improves has fewer rounds, too.
    models = early_stopped(tmp_path / "constant", {"min_data_in_leaf": 200})
    assert models[-1].current_iteration() < 81
