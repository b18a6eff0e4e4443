"""What `plot_race` draws, read from the figure."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest

from mfhpo_optuna import Fidelity, IISESampler, plot_race
from mfhpo_optuna.visualization.race_story import POINTS_PER_ARM
from tests.optuna.samplers.races import BEST_ARM, REWARD

pytest.importorskip("plotly")
optuna.logging.set_verbosity(optuna.logging.WARNING)

ARMS = [{"x": x} for x in (0.0, 0.1, 0.5, 1.0)]


def quadratic(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    epochs = trial.suggest_int("epochs", 1, 9)
    noise = np.random.default_rng(trial.number).normal(0.0, 0.1)
    return float(x**2 + 0.05 / epochs + noise)


def race(
    objective: Callable[[optuna.Trial], float] = quadratic,
    direction: str = "minimize",
    n_trials: int | None = None,
    make: Callable[..., Any] = IISESampler,
    **options: Any,
) -> optuna.Study:
    if make not in REWARD.values():
        options = {"epsilon": 0.05} | options
    sampler = make("epochs", seed=0, **({"arms": ARMS} | options))
    study = optuna.create_study(direction=direction, sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=n_trials, catch=(ArithmeticError,))
    return study


def trace(figure: Any, name: str) -> Any:
    """The trace that the legend shows under a name."""
    found = [t for t in figure.data if t.name == name and t.showlegend is not False]
    assert len(found) == 1, f"{name}: {[trace.name for trace in figure.data]}"
    return found[0]


def numbers(values: Any) -> list[float]:
    """The coordinates without the gaps between lines."""
    return [value for value in values if value is not None and not math.isnan(value)]


def test_a_certified_race_names_its_winner_and_marks_every_elimination() -> None:
    study = race()
    answer = study.sampler.recommendation(study)
    figure = plot_race(study)

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


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_values_keep_the_sign_of_the_objective(direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    study = race(lambda trial: sign * quadratic(trial), direction)
    figure = plot_race(study)
    # Arm 0 is the best of both, with a mean of about 0.05 / 9.
    label = f"arm {study.sampler.recommendation(study).arm}, certified"
    assert abs(numbers(trace(figure, label).y)[-1]) < 0.1
    last = numbers(y for trace in figure.data if trace.xaxis == "x2" for y in trace.y)
    assert max(last, key=abs) * sign > 0.5
    better = "lower" if direction == "minimize" else "higher"
    assert f"{better} is better" in figure.layout.yaxis.title.text


def test_intervals_wider_than_the_means_leave_the_axis_alone() -> None:
    study = race(n_trials=40, sigma=1e4, bias=[0.05, 0.05, 0.0])
    figure = plot_race(study)
    low, high = figure.layout.yaxis.range
    assert -1.0 < low < high < 3.0
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert bands
    assert not any(numbers(band.y) for band in bands)


def test_arms_that_failed_are_marked_apart() -> None:
    def failing(trial: optuna.Trial) -> float:
        value = quadratic(trial)
        if trial.params["x"] == 1.0:
            raise ArithmeticError
        return value

    figure = plot_race(race(failing))
    assert [text.split(":")[0] for text in trace(figure, "left by failing").text] == ["arm 3"]


def test_a_race_under_way_is_said_not_to_be_certified() -> None:
    figure = plot_race(race(n_trials=30))
    assert "leads after 30 trials, not certified" in figure.layout.title.text
    assert any(trace.name.endswith(", leading") for trace in figure.data if trace.name)


@pytest.mark.slow
def test_long_races_are_thinned() -> None:
    study = race(n_trials=1500, sigma=1.0, bias=[0.05, 0.05, 0.0], epsilon=0.001)
    figure = plot_race(study)
    drawn = sum(len(numbers(trace(figure, f"epochs = {level}").x)) for level in (1, 3, 9))
    assert len(ARMS) * 10 < drawn <= len(ARMS) * POINTS_PER_ARM
    assert len(figure.to_json()) < 100_000


def test_a_loaded_study_is_drawn_with_a_sampler_of_the_same_arguments() -> None:
    study = race()
    expected = plot_race(study)
    sampler = study.sampler
    study.sampler = optuna.samplers.RandomSampler()
    assert plot_race(study, sampler=sampler) == expected


def test_other_samplers_are_refused() -> None:
    study = optuna.create_study(sampler=optuna.samplers.TPESampler())
    with pytest.raises(TypeError, match=r"study\.sampler is a TPESampler; pass sampler="):
        plot_race(study)


@pytest.mark.parametrize("levels", [None, [1, 9]])
def test_a_study_without_trials_is_refused_or_empty(levels: list[int] | None) -> None:
    sampler = IISESampler(Fidelity("epochs", levels=levels), arms=ARMS)
    study = optuna.create_study(sampler=sampler)
    if levels is None:
        with pytest.raises(ValueError, match="nothing to recommend yet"):
            plot_race(study)
    else:
        assert "after 0 trials" in plot_race(study).layout.title.text


def test_without_plotly_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=r"pip install 'mfhpo\[plot\]'"):
        plot_race(optuna.create_study())


# Policies that go back and forth between levels, or eliminate nobody.


@pytest.mark.parametrize("make", (BEST_ARM | REWARD).values(), ids=(BEST_ARM | REWARD).keys())
def test_every_sampler_s_race_has_one_line_for_each_arm_and_level(make: Callable[..., Any]) -> None:
    study = race(make=make, n_trials=150, sigma=0.1)
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


@pytest.mark.parametrize(
    ("make", "n_trials", "words"),
    [
        (
            BEST_ARM["top-two"],
            2,
            ["4/4 arms left", "cost 18", "leader: arm", "at epochs=9"],
        ),
        (BEST_ARM["top-two"], 60, ["arms left", "epochs=", "leader: arm", "in ["]),
        (BEST_ARM["LUCB-C"], 60, ["arms left", "epochs=", "leader: arm"]),
        (REWARD["UCB"], 60, ["4/4 arms in play", "epochs=", "leader: arm"]),
        (REWARD["elimination"], 60, ["arms in play", "epochs=", "leader: arm"]),
    ],
)
def test_the_line_of_progress(make: Callable[..., Any], n_trials: int, words: list[str]) -> None:
    study = race(make=make, n_trials=n_trials, pilot_arms=2)
    text = study.sampler._of(study).progress_text()
    for word in words:
        assert word in text
