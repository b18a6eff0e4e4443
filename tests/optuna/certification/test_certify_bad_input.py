import numpy as np
import optuna
import pytest

from mfhpo_optuna import certify


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 + 1 / epochs + 0.1 * np.random.default_rng(trial.number).normal()


@pytest.fixture(scope="module")
def study():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    return study


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"top": 1}, ValueError, ["top", "at least 2", "1"]),
        ({"fidelity": "epoch"}, ValueError, ["'epoch'", "Did you mean", "'epochs'"]),
    ],
)
def test_bad_options(study, options, error, words):
    before = len(optuna.get_all_study_names(study._storage))
    with pytest.raises(error) as caught:
        certify(study, objective, **options)
    for word in words:
        assert word in str(caught.value)
    assert len(optuna.get_all_study_names(study._storage)) == before


def test_too_few_configurations():
    study = optuna.create_study()
    with pytest.raises(ValueError, match=r"has 0 different configurations in its 0 trials"):
        certify(study, objective)
    study.enqueue_trial({"x": 0.0, "epochs": 9})
    study.enqueue_trial({"x": 0.0, "epochs": 9})
    study.optimize(objective, n_trials=2)
    with pytest.raises(ValueError, match=r"has 1 different configurations in its 2 trials"):
        certify(study, objective)


def test_an_empty_study_of_another_direction_is_no_record(study):
    empty = optuna.create_study(storage=study._storage, study_name="empty", direction="maximize")
    with pytest.raises(ValueError, match=r"name='empty' is a study .* with other directions; give"):
        certify(study, objective, name="empty")
    assert not empty.user_attrs


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda t: objective(t) + t.suggest_float("y", 0, 1), r"asks for 'y'.*\['epochs', 'x'\]"),
        (lambda t: t.suggest_float("x", -1, 1), "did not ask for 'epochs'"),
        (lambda t: t.suggest_float("x", 5, 6), r"x=-?[\d.e-]+ of trial \d+ is not a value"),
    ],
    ids=["asks for more", "asks for less", "another range"],
)
def test_another_objective(study, other, words, request):
    with pytest.raises(ValueError, match=words):
        certify(study, other, top=2, name=request.node.callspec.id)


def test_a_mended_objective_goes_on_and_what_was_evaluated_wrongly_is_paid(study):
    for _ in range(2):
        with pytest.raises(ValueError, match="did not ask for 'epochs'"):
            certify(study, lambda t: t.suggest_float("x", -1, 1), top=2, name="mended")
    answer = certify(study, objective, top=2, budget=7, name="mended")
    assert sum(result.values for result in answer.candidates) == 5
    assert [result.failures for result in answer.candidates] == [0, 0]
