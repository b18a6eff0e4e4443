"""mfhpo in Optuna: samplers that certify, pruners that know what they cannot know."""

from mfhpo_optuna._arms import draw_arms
from mfhpo_optuna._fidelity import Fidelity
from mfhpo_optuna._iise import IISESampler
from mfhpo_optuna._plot import plot_race
from mfhpo_optuna._pruner import IISEPruner
from mfhpo_optuna._recommendation import StudyRecommendation

__all__ = [
    "Fidelity",
    "IISEPruner",
    "IISESampler",
    "StudyRecommendation",
    "draw_arms",
    "plot_race",
]
