"""Figures of plotly: `mfhpo_optuna.visualization.plot_race(study)` and others return one."""

from mfhpo_optuna.visualization.gain import plot_gain
from mfhpo_optuna.visualization.games import plot_dissatisfaction, plot_equilibrium
from mfhpo_optuna.visualization.race import plot_race

__all__ = ["plot_dissatisfaction", "plot_equilibrium", "plot_gain", "plot_race"]
