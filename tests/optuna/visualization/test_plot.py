"""What `plot_race` draws, read from the figure."""

import math
import sys
import warnings

import numpy as np
import optuna
import pytest

from mfhpo_optuna import IISESampler, plot_race
from tests.optuna.samplers.races import BEST_ARM, REWARD

pytest.importorskip("plotly")
optuna.logging.set_verbosity(optuna.logging.WARNING)

ARMS = [{"x": x} for x in (0.0, 0.1, 0.5, 1.0)]


def quadratic(trial):
    x = trial.suggest_float("x", -1.0, 1.0)
    epochs = trial.suggest_int("epochs", 1, 9)
    noise = np.random.default_rng(trial.number).normal(0.0, 0.1)
    return float(x**2 + 0.05 / epochs + noise)


def race(objective=quadratic, direction="minimize", n_trials=None, make=IISESampler, **options):
    if make not in REWARD.values():
        options = {"epsilon": 0.05} | options
    sampler = make("epochs", seed=0, **({"arms": ARMS} | options))
    study = optuna.create_study(direction=direction, sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=n_trials, catch=(ArithmeticError,))
    return study


@pytest.fixture(scope="module")
def certified():
    return race()


def trace(figure, name):
    """The trace that the legend shows under a name."""
    found = [t for t in figure.data if t.name == name and t.showlegend is not False]
    assert len(found) == 1, f"{name}: {[trace.name for trace in figure.data]}"
    return found[0]


def numbers(values):
    """The coordinates without the gaps between lines."""
    return [value for value in values if value is not None and not math.isnan(value)]


def test_a_certified_race_names_its_winner_and_marks_every_elimination(certified):
    answer = certified.sampler.recommendation(certified)
    figure = plot_race(certified)

    assert answer.certified
    assert f"Arm {answer.arm} of 4 is certified after {answer.trials} trials" in (
        figure.layout.title.text
    )
    assert f"{answer.mean:.4g}" in figure.layout.title.text
    winner = numbers(trace(figure, f"arm {answer.arm}, certified").y)
    assert winner[-1] == pytest.approx(answer.mean, rel=1e-4)
    gone = set(range(4)) - set(answer.survivors)
    crosses = trace(figure, "eliminated")
    assert {int(text.split(":")[0].removeprefix("arm ")) for text in crosses.text} == gone
    # The winner first, and every arm once.
    ranking = figure.layout.xaxis2.categoryarray
    assert ranking[0] == str(answer.arm)
    assert sorted(ranking) == ["0", "1", "2", "3"]


def test_values_keep_the_sign_of_the_objective():
    study = race(lambda trial: -quadratic(trial), "maximize")
    figure = plot_race(study)
    # Arm 0 is the best, with a mean of about -0.05 / 9.
    label = f"arm {study.sampler.recommendation(study).arm}, certified"
    assert abs(numbers(trace(figure, label).y)[-1]) < 0.1
    last = numbers(y for trace in figure.data if trace.xaxis == "x2" for y in trace.y)
    assert max(last, key=abs) < -0.5
    assert "higher is better" in figure.layout.yaxis.title.text


def test_arms_that_failed_are_marked_apart():
    def failing(trial):
        value = quadratic(trial)
        if trial.params["x"] == 1.0:
            raise ArithmeticError
        return value

    figure = plot_race(race(failing))
    assert [text.split(":")[0] for text in trace(figure, "left by failing").text] == ["arm 3"]


def test_a_race_under_way_is_said_not_to_be_certified():
    figure = plot_race(race(n_trials=30))
    assert "leads after 30 trials, not certified" in figure.layout.title.text
    assert any(trace.name.endswith(", leading") for trace in figure.data if trace.name)


def test_another_sampler_of_the_same_arguments_may_be_given(certified):
    study = optuna.create_study(sampler=optuna.samplers.TPESampler())
    study.add_trials(certified.trials)
    with pytest.raises(TypeError, match=r"study\.sampler is a TPESampler; pass sampler="):
        plot_race(study)
    assert plot_race(study, sampler=certified.sampler) == plot_race(certified)


def test_a_study_without_trials_is_refused():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=ARMS))
    with pytest.raises(ValueError, match="nothing to recommend yet"):
        plot_race(study)


def test_without_plotly_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=r"pip install 'mfhpo\[plot\]'"):
        plot_race(optuna.create_study())


# Policies that go back and forth between levels, or eliminate nobody.


@pytest.mark.parametrize("make", [BEST_ARM["top-two"], REWARD["UCB"]], ids=["top-two", "UCB"])
def test_every_sampler_s_race_has_one_line_for_each_arm_and_level(make):
    study = race(make=make, n_trials=60, sigma=0.1)
    assert "leader: arm" in study.sampler._of(study).progress_text()
    answer = study.sampler.recommendation(study)
    figure = plot_race(study)
    for level in (1, 3, 9):
        assert list(trace(figure, f"epochs = {level}").y).count(None) <= len(ARMS)
    state = "certified" if answer.certified else "leading"
    thick = numbers(trace(figure, f"arm {answer.arm}, {state}").y)
    assert len(thick) > 2
    last = [t for t in figure.data if t.xaxis == "x2" and t.marker.symbol != "star"]
    assert sum(len(t.x) for t in last) == len(ARMS)
    [star] = [t for t in figure.data if t.marker.symbol == "star"]
    assert star.y[0] == pytest.approx(thick[-1], rel=1e-4)
    incomplete = answer.certifies and not answer.certified
    assert ("not certified" in figure.layout.title.text) == incomplete
