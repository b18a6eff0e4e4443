"""mfhpo in Optuna: samplers that certify, pruners that know what they cannot know."""

from mfhpo_optuna._arms import draw_arms
from mfhpo_optuna._best_arm import MFGradSampler, MFLUCBSampler, MFTopTwoSampler
from mfhpo_optuna._choice import MFSampler
from mfhpo_optuna._elimination_pruner import MFEliminationPruner
from mfhpo_optuna._fidelity import Fidelity
from mfhpo_optuna._iise import IISESampler
from mfhpo_optuna._plot import plot_race
from mfhpo_optuna._pruner import IISEPruner
from mfhpo_optuna._recommendation import StudyRecommendation
from mfhpo_optuna._reward import MFEliminationSampler, MFUCBSampler

__all__ = [
    "Fidelity",
    "IISEPruner",
    "IISESampler",
    "MFEliminationPruner",
    "MFEliminationSampler",
    "MFGradSampler",
    "MFLUCBSampler",
    "MFSampler",
    "MFTopTwoSampler",
    "MFUCBSampler",
    "StudyRecommendation",
    "draw_arms",
    "plot_race",
]
