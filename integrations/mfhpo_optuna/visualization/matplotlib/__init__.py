"""Figures of matplotlib, with the names and the content of those of plotly.

>>> from mfhpo_optuna.visualization.matplotlib import plot_race
"""

from mfhpo_optuna.visualization.matplotlib.gain import plot_gain
from mfhpo_optuna.visualization.matplotlib.race import plot_race

__all__ = ["plot_gain", "plot_race"]
