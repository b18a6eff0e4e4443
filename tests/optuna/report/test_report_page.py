import html
import json
import re

import optuna
import pytest
from optuna.distributions import CategoricalDistribution

from mfhpo_optuna import IISESampler, SearchSampler, write_report
from mfhpo_optuna.visualization.reading import read_study
from tests.optuna.report.conftest import load


def page_of(study, tmp_path, **options):
    path = tmp_path / "report.html"
    write_report(study, path, **options)
    return path.read_text(encoding="utf-8")


def answer_in(page):
    [answer] = re.findall(r'<code id="answer-json">(.*?)</code>', page, re.DOTALL)
    return json.loads(html.unescape(answer))


@pytest.mark.parametrize("name", ["race", "search"])
def test_a_page_has_all_parts(storage, tmp_path, name):
    page = page_of(load(storage, name), tmp_path)
    for part in ("answer", "pictures", "rests", "budget", "trials", "json"):
        assert f'<section id="{part}">' in page
    assert answer_in(page) == read_study(load(storage, name)).answer


def test_nothing_is_fetched_and_every_trial_is_a_row(storage, tmp_path):
    study = load(storage, "race")
    page = page_of(study, tmp_path)
    assert not re.search(r'<(script|link|img|iframe)[^>]*\b(src|href)="(?!data:)', page)
    assert len(page) < 1_500_000  # the part of plotly.js that draws it is 1.2 MB, and there once
    body = page.split('<table id="table">')[1].split("</table>")[0].split("<tbody>")[1]
    assert body.count("<tr>") == len(study.trials)


def test_a_study_without_answer_has_its_trials(storage, tmp_path):
    page = page_of(load(storage, "plain"), tmp_path)
    assert "No sampler of mfhpo has answered in this study." in page
    assert "6 trials" in page
    assert len(page) < 50_000  # no plotly.js without a figure
    assert 'id="answer"' not in page


class Relu:
    pass


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@pytest.mark.parametrize("are_listed", [True, False])
def test_a_choice_may_be_anything(tmp_path, are_listed):
    arms = [{"layer": Relu}, {"layer": None}]
    if not are_listed:
        arms = {"layer": CategoricalDistribution([Relu, None])}

    def objective(trial):
        chosen = trial.suggest_categorical("layer", [Relu, None])
        return float(chosen is None) + 0.1 * (trial.number % 2) / trial.suggest_int("epochs", 1, 3)

    sampler = IISESampler("epochs", arms=arms, epsilon=0.2, sigma=0.1, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=9)
    page = page_of(study, tmp_path)
    assert answer_in(page)["params"] == {"layer": str(Relu)}


@pytest.mark.parametrize("sampler", [IISESampler("epochs", arms=4), SearchSampler("epochs")])
def test_a_sampler_that_cannot_run_the_study_says_so(tmp_path, sampler):
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.add_trial(optuna.trial.create_trial(values=[0.5, 0.25]))
    page = page_of(study, tmp_path)
    assert "is for one objective, and the study is multi-objective" in html.unescape(page)
    assert ">0.25</td>" in page


def test_long_values_are_whole_in_the_json_alone(tmp_path):
    long = "x" * 300_000
    study = optuna.create_study(sampler=IISESampler("epochs", arms=2, budget=60, seed=0))

    def objective(trial):
        text = trial.suggest_categorical("text", [long, f"{long}y"])
        return len(text) / trial.suggest_int("epochs", 1, 3) + 0.1 * (trial.number % 3)

    study.optimize(objective)
    page = page_of(study, tmp_path)
    assert page.count(long) == 1
    assert long in page.split('<code id="answer-json">')[1]
