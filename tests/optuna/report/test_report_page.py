import html
import json
import re
import sys

import optuna
import pytest
from optuna.distributions import CategoricalDistribution

from mfhpo_optuna import (
    Fidelity,
    IISESampler,
    NashSampler,
    SearchSampler,
    certify,
    write_report,
)
from mfhpo_optuna.report.reading import read_study
from tests.optuna.report.conftest import load, noisy


def page_of(study, tmp_path, **options):
    path = tmp_path / "report.html"
    write_report(study, path, **options)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["race", "search"])
def test_a_page_has_all_parts(storage, tmp_path, name):
    page = page_of(load(storage, name), tmp_path)
    for part in ("answer", "pictures", "rests", "budget", "trials", "json"):
        assert f'<section id="{part}">' in page
    [answer] = re.findall(r'<code id="answer-json">(.*?)</code>', page, re.DOTALL)
    assert json.loads(html.unescape(answer)) == read_study(load(storage, name)).answer


def test_nothing_is_fetched(storage, tmp_path):
    page = page_of(load(storage, "race"), tmp_path)
    assert not re.search(r'<(script|link|img|iframe)[^>]*\b(src|href)="(?!data:)', page)
    assert len(page) < 8_000_000  # plotly.js is 4.9 MB, and there once


def test_every_trial_is_a_row(storage, tmp_path):
    study = load(storage, "race")
    page = page_of(study, tmp_path)
    body = page.split('<table id="table">')[1].split("</table>")[0].split("<tbody>")[1]
    assert body.count("<tr>") == len(study.trials)


@pytest.mark.parametrize("kind", ["limits", "game"])
def test_other_kinds_of_study(request, tmp_path, kind):
    page = page_of(request.getfixturevalue(kind), tmp_path)
    assert '<section id="pictures">' in page
    assert page.count('class="plot"') == {"limits": 1, "game": 2}[kind]


def test_pictures_of_slices_and_of_a_search_without_finalists_are_not_called_otherwise(tmp_path):
    def objective(trial):
        moves = [trial.suggest_float(name, 0, 1) for name in ("x", "y", "z")]
        return sum(moves), moves[0] - moves[2]

    sampler = NashSampler({"row": ["x", "y"], "column": ["z"]}, budget=4, seed=0)
    game = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    game.optimize(objective)
    assert "what its owner would gain by moving it alone" in page_of(game, tmp_path)
    search = optuna.create_study(sampler=SearchSampler(trials=9, certify_share=0.0, seed=0))
    search.optimize(lambda trial: trial.suggest_float("x", 0, 1))
    assert "Below, once there are finalists" in page_of(search, tmp_path)


def test_a_study_without_answer_has_its_trials(storage, tmp_path):
    page = page_of(load(storage, "plain"), tmp_path)
    assert "No sampler of mfhpo has answered in this study." in page
    assert "6 trials" in page
    assert len(page) < 50_000  # no plotly.js without a figure
    assert 'id="answer"' not in page


def test_an_empty_study_has_a_page(tmp_path):
    study = optuna.create_study(sampler=IISESampler("epochs", arms=4))
    assert "There are none yet." in page_of(study, tmp_path)


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

    study = optuna.create_study(
        sampler=IISESampler("epochs", arms=arms, epsilon=0.2, sigma=0.1, seed=0)
    )
    study.optimize(objective, n_trials=9)
    page = page_of(study, tmp_path)
    [answer] = re.findall(r'<code id="answer-json">(.*?)</code>', page, re.DOTALL)
    assert json.loads(html.unescape(answer))["params"] == {"layer": str(Relu)}


def test_levels_are_shown_as_they_are(tmp_path):
    sampler = IISESampler(Fidelity("rows", levels=[1234, 12345]), arms=2, budget=50_000, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) * t.suggest_int("rows", 1, 99_999))
    budget = page_of(study, tmp_path).split('<section id="budget">')[1].split("</section>")[0]
    assert "<td>12345</td>" in budget


def test_who_cannot_give_a_sampler_is_not_told_to(tmp_path):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(noisy(0), n_trials=4)
    assert "give <code>write_report</code>" in page_of(study, tmp_path)
    record = load(study._storage, certify(study, noisy(1), top=2, timeout=1e-9).study_name)
    assert "give <code>write_report</code>" not in page_of(record, tmp_path)


def test_a_study_must_be_given(tmp_path):
    with pytest.raises(TypeError, match=r"study must be an optuna\.Study, got 3"):
        write_report(3, tmp_path / "report.html")


def test_a_sampler_must_be_of_ours(storage, tmp_path):
    with pytest.raises(TypeError, match="sampler must be a sampler of mfhpo"):
        write_report(load(storage, "race"), tmp_path / "x.html", sampler=3)


def test_without_jinja2_the_extra_is_named(storage, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'mfhpo\[report\]'"):
        write_report(load(storage, "race"), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


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


def test_the_sampler_of_a_game_does_not_read_a_race(storage, tmp_path):
    sampler = NashSampler({"row": ["x"], "column": ["kind"]}, budget=8)
    page = page_of(load(storage, "race"), tmp_path, sampler=sampler)
    assert "has 1 objectives, but there are 2 players" in page
