"""mfhpo in Optuna: samplers that certify, pruners that know what they cannot know."""

from mfhpo.fidelity import Fidelity
from mfhpo_optuna._arms import draw_arms
from mfhpo_optuna._best_arm import MFGradSampler, MFLUCBSampler, MFTopTwoSampler
from mfhpo_optuna._certify import StudyCertificate, certify
from mfhpo_optuna._choice import MFSampler
from mfhpo_optuna._elimination_pruner import MFEliminationPruner
from mfhpo_optuna._iise import IISESampler
from mfhpo_optuna._limit_recommendation import StudyLimitRecommendation
from mfhpo_optuna._nash_equilibrium import StudyDeviation, StudyEquilibrium
from mfhpo_optuna._nash_sampler import NashSampler
from mfhpo_optuna._plot import plot_race
from mfhpo_optuna._plot_dissatisfaction import plot_dissatisfaction
from mfhpo_optuna._plot_equilibrium import plot_equilibrium
from mfhpo_optuna._plot_gain import plot_gain
from mfhpo_optuna._pruner import IISEPruner
from mfhpo_optuna._race_recommendation import RaceRecommendation
from mfhpo_optuna._race_sampler import RaceSampler, training_of
from mfhpo_optuna._rcucb import RCUCBSampler, ZoomingRCUCBSampler
from mfhpo_optuna._recommendation import StudyRecommendation
from mfhpo_optuna._reward import MFEliminationSampler, MFUCBSampler
from mfhpo_optuna._time_limit_pruner import TimeLimitPruner
from mfhpo_optuna._time_limited import TimeLimited, time_limited

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
    "NashSampler",
    "RCUCBSampler",
    "RaceRecommendation",
    "RaceSampler",
    "StudyCertificate",
    "StudyDeviation",
    "StudyEquilibrium",
    "StudyLimitRecommendation",
    "StudyRecommendation",
    "TimeLimitPruner",
    "TimeLimited",
    "ZoomingRCUCBSampler",
    "certify",
    "draw_arms",
    "plot_dissatisfaction",
    "plot_equilibrium",
    "plot_gain",
    "plot_race",
    "time_limited",
    "training_of",
]
