"""What `certify` has answered about a study is found by report, command and dashboard."""

import json

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from mfhpo_optuna import SearchSampler, certify, plot_race, publish_to_dashboard, write_report
from mfhpo_optuna.command_line import app
from mfhpo_optuna.report.page import figures_of
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.attributes import CERTIFICATE_KEY
from mfhpo_optuna.visualization.reading import read_study
from tests.optuna.report.conftest import load, summarised
from tests.optuna.visualization.figures import row_labels

RNG = np.random.default_rng(0)


def noisy(trial):
    return trial.suggest_float("x", -1, 1) ** 2 + 0.1 * RNG.normal()


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """A certificate, and the URL of the database with the study that it is about."""
    url = f"sqlite:///{tmp_path_factory.mktemp('certified') / 'study.db'}"
    random = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(storage=url, study_name="mine", sampler=random)
    study.optimize(noisy, n_trials=8)
    return certify(study, noisy, top=3, budget=60, progress=False), url


@pytest.mark.parametrize("is_record", [False, True])
def test_a_page_has_the_answer_and_its_picture(certified, tmp_path, is_record):
    answer, url = certified
    study = load(url, answer.study_name if is_record else "mine")
    summary = write_report(study, tmp_path / "page.html")
    assert summary.status == ("certified" if answer.certified else "not certified")
    assert dict(summary.params) == answer.params
    assert summary.values[0].value == answer.mean
    assert (("recorded in", f"study {answer.study_name!r}") in summary.facts) != is_record
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('class="plot"') == 1
    [(title, _, figure)] = figures_of(read_study(study))
    assert title == "The certificate"
    best = answer.candidates[answer.winner]
    for shown in (figure, plot_race(study)):
        assert best.name.capitalize() in shown.layout.title.text.split("<br>")[0]
        assert len(row_labels(shown)) == 3
        low, high = shown.layout.xaxis.range
        assert low < best.interval[0] < best.interval[1] < high


def test_command_and_dashboard_show_it(certified):
    answer, url = certified
    shown = CliRunner().invoke(app, ["show", url, "mine", "--json"])
    assert shown.exit_code == 0, shown.output
    said = json.loads(shown.stdout)["answer"]
    assert said["candidates"][said["winner"]]["params"] == answer.params
    assert f"{answer.mean:.5g} in [" in CliRunner().invoke(app, ["show", url, "mine"]).stdout
    dashboard = pytest.importorskip("optuna_dashboard")
    study = load(url, "mine")
    assert publish_to_dashboard(study).values[0].value == answer.mean
    assert f"{answer.mean:.5g}" in dashboard.get_note(study)


def test_trials_that_came_later_are_said(certified):
    study = load(certified[1], "mine")
    study.optimize(noisy, n_trials=2)
    assert "the study has 2 trials more since this certificate" in summarised(study).notices
    assert dict(summarised(study).facts)["trials"].startswith("10 in the study")


def test_a_certified_search_is_not_outdone_by_a_certificate_that_was_not_reached():
    def clear(trial):
        return trial.suggest_categorical("x", [0.0, 1.0]) + 0.01 * RNG.normal()

    study = optuna.create_study(sampler=SearchSampler(budget=60, certify_share=0.5, seed=0))
    study.optimize(clear)
    own = study.sampler.recommendation(study)
    assert own.certified
    later = certify(study, clear, top=2, budget=3, progress=False)
    assert not later.certified
    assert read_study(study).answer == own.to_dict()
    assert len(list(figures_of(read_study(study)))) == 1
    assert certify(study, clear, top=2, budget=60, progress=False).certified
    reading = read_study(study)
    assert reading.is_of_certify
    titles = [title for title, _, _ in figures_of(reading)]
    assert titles == ["The certificate", "The search and its certificate"]


@pytest.mark.parametrize("damage", [{"winner": 7}, {"mean": "x"}, {}])
def test_a_damaged_certificate_is_no_answer(damage, tmp_path):
    study = optuna.create_study()
    content = {"arm": 0, "candidates": [{"name": "trial 0"}], "winner": 0, **damage}
    study.add_trial(optuna.trial.create_trial(value=0.0, user_attrs={CERTIFICATE_KEY: content}))
    summary = write_report(study, tmp_path / "page.html")
    assert str(summary) == "No answer: The answer that the study holds cannot be used."


FORGED = [{"arm": 0, "candidates": 3}, {"arm": 0, "candidates": [{"name": []}]}, {"arm": []}, [], 7]


@pytest.mark.filterwarnings("ignore:the user attribute")
@pytest.mark.parametrize("forged", FORGED)
def test_what_mfhpo_would_not_have_written_is_ignored(forged, tmp_path):
    study = optuna.create_study()
    for key in (attributes.SAMPLER_KEY, attributes.SHORTLIST_KEY):
        study.set_user_attr(key, forged)
    keys = (CERTIFICATE_KEY, attributes.SECONDS_KEY, attributes.ARM_KEY, attributes.LIMIT_KEY)
    noted = dict.fromkeys(keys, forged)
    study.add_trial(optuna.trial.create_trial(value=0.0, user_attrs=noted))
    assert write_report(study, tmp_path / "page.html").status == "no answer"
    with pytest.raises(TypeError, match="its sampler cannot be used"):
        plot_race(study)


def test_a_long_certificate_is_put_together(monkeypatch, tmp_path):
    monkeypatch.setattr(attributes, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(attributes, "_PIECE", 900)
    study = optuna.create_study()
    study.optimize(noisy, n_trials=8)
    answer = certify(study, noisy, top=4, epsilon=1.0, progress=False)
    assert answer.certified
    summaries = [write_report(study, tmp_path / "page.html"), publish_to_dashboard(study)]
    assert [summary.status for summary in summaries] == ["certified"] * 2
