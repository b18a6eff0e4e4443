"""What a sampler notes in its study: before a trial, and never while it only reads."""

import contextlib

import optuna
import pytest

from mfhpo_optuna import IISESampler, SearchSampler
from mfhpo_optuna.study.trials.attributes import FIDELITY_KEY, SAMPLER_KEY
from tests.optuna.visualization.figures import quadratic


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('notes') / 'study.db'}"


@pytest.fixture(scope="module")
def study(url):
    """A study that has a parameter beside its fidelity that might be one as well."""
    study = optuna.create_study(
        storage=url, study_name="race", sampler=IISESampler("epochs", arms=3, seed=0)
    )

    def objective(trial):
        return quadratic(trial) / trial.suggest_int("size", 1, 9)

    study.optimize(objective, n_trials=8)
    return study


@pytest.mark.filterwarnings("ignore:.*none of the levels")
@pytest.mark.parametrize(
    "reader", [IISESampler("size", arms=3, seed=0), SearchSampler("size", budget=9, seed=0)]
)
def test_a_sampler_for_another_fidelity_that_reads_a_study_changes_nothing(study, reader):
    noted = dict(study.user_attrs)
    assert noted[FIDELITY_KEY] == "epochs"
    reader.known(study)
    with contextlib.suppress(ValueError):  # it may have nothing to recommend
        reader.recommendation(study)
    assert study.user_attrs == noted


@pytest.mark.filterwarnings("ignore:.*none of the levels")
def test_a_study_that_cannot_be_written_is_read(study, url):
    path = url.removeprefix("sqlite:///")
    read_only = f"sqlite:///file:{path}?mode=ro&uri=true"
    loaded = optuna.load_study(study_name="race", storage=read_only)
    IISESampler("epochs", arms=3, seed=0).recommendation(loaded)
    with contextlib.suppress(ValueError):
        IISESampler("size", arms=3, seed=0).recommendation(loaded)


def test_the_next_trial_notes_how_it_is_run():
    study = optuna.create_study()
    for fidelity in ("epochs", "size", "epochs"):
        study.sampler = IISESampler(fidelity, arms=3, seed=0)
        study.ask()
        assert study.user_attrs[FIDELITY_KEY] == fidelity
        assert study.user_attrs[SAMPLER_KEY]["arguments"]["fidelity"] == fidelity


def test_a_search_without_a_fidelity_notes_none():
    study = optuna.create_study(sampler=SearchSampler(budget=9, seed=0))
    study.ask()
    assert FIDELITY_KEY not in study.user_attrs
    assert SAMPLER_KEY in study.user_attrs
