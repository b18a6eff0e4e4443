import lightgbm
import numpy as np
import optuna
import pytest

from mfhpo_optuna import SearchSampler
from mfhpo_optuna.lightgbm import train_from_checkpoint

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=300)
PARAMS = {"objective": "l2", "verbose": -1, "num_threads": 1, "seed": 0}


def data():
    train = lightgbm.Dataset(X[:200], Y[:200])
    return train, train.create_valid(X[200:], Y[200:])


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
