"""mfhpo in Optuna: samplers that certify, pruners that know what they cannot know."""

from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.certification import StudyCertificate, certify
from mfhpo_optuna.games.equilibrium import StudyDeviation, StudyEquilibrium
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.pruners.elimination_pruner import MFEliminationPruner
from mfhpo_optuna.pruners.iise_pruner import IISEPruner
from mfhpo_optuna.pruners.time_limit_pruner import TimeLimitPruner
from mfhpo_optuna.recommendations import (
    RaceRecommendation,
    StudyLimitRecommendation,
    StudyRecommendation,
)
from mfhpo_optuna.report.dashboard import DashboardCallback, publish_to_dashboard
from mfhpo_optuna.report.page import write_report
from mfhpo_optuna.samplers.best_arm import (
    IISESampler,
    MFGradSampler,
    MFLUCBSampler,
    MFTopTwoSampler,
)
from mfhpo_optuna.samplers.choice import MFSampler
from mfhpo_optuna.samplers.race_sampler import RaceSampler, training_of
from mfhpo_optuna.samplers.rcucb import RCUCBSampler, ZoomingRCUCBSampler
from mfhpo_optuna.samplers.reward import MFEliminationSampler, MFUCBSampler
from mfhpo_optuna.study.arms import draw_arms
from mfhpo_optuna.time_limits.time_limited import TimeLimited, time_limited
from mfhpo_optuna.visualization import plot_dissatisfaction, plot_equilibrium, plot_gain, plot_race

__all__ = [
    "DashboardCallback",
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
    "publish_to_dashboard",
    "time_limited",
    "training_of",
    "write_report",
]
