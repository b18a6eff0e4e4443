import sys

import optuna
import pytest
from optuna.samplers import RandomSampler, TPESampler

from mfhpo_optuna import IISESampler, NashSampler
from mfhpo_optuna.visualization import plot_dissatisfaction, plot_equilibrium, plot_gain, plot_race
from tests.optuna.games.nash_games import PLAYERS
from tests.optuna.samplers.time_limits.timed import make, score
from tests.optuna.visualization.figures import ARMS, search

PLOTS = [plot_dissatisfaction, plot_equilibrium, plot_gain, plot_race]


@pytest.mark.parametrize("plot", PLOTS)
def test_a_sampler_of_another_kind_is_refused(plot):
    study = optuna.create_study(sampler=TPESampler())
    words = rf"{plot.__name__} needs .*study\.sampler is a TPESampler, and .*; pass sampler="
    with pytest.raises(TypeError, match=words):
        plot(study)
    with pytest.raises(TypeError, match=r"sampler must be a .*, got .*RandomSampler"):
        plot(study, sampler=RandomSampler())


@pytest.mark.parametrize("plot", PLOTS)
def test_without_plotly_the_error_names_it(plot, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=rf'{plot.__name__} needs.*pip install "plotly>=6"$'):
        plot(optuna.create_study())


def test_the_sampler_that_a_study_names_is_of_another_kind(certified):
    certified = optuna.load_study(study_name=certified.study_name, storage=certified._storage)
    for plot in (plot_gain, plot_equilibrium):
        with pytest.raises(TypeError, match="the study was run with IISESampler"):
            plot(certified)


def test_a_study_with_nothing_to_show_is_refused():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=ARMS))
    for empty in (study, search(n_trials=0)):
        with pytest.raises(ValueError, match="nothing to recommend yet"):
            plot_race(empty)
    timed = optuna.create_study(direction="maximize", sampler=make(limits=3))
    timed.optimize(score, n_trials=2)
    with pytest.raises(ValueError, match="limits are still being derived"):
        plot_gain(timed)
    game = optuna.create_study(directions=["minimize"] * 2)
    for plot in (plot_equilibrium, plot_dissatisfaction):
        with pytest.raises(ValueError, match=r"nothing to show yet: no trial has told"):
            plot(game, sampler=NashSampler(PLAYERS, budget=5))
