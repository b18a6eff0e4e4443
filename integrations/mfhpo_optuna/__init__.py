"""mfhpo in Optuna: samplers that certify their answer, pruners, time limits and reports."""

import threading
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfhpo.knowledge.fidelity import Fidelity
    from mfhpo_optuna.certification import StudyCertificate, certify
    from mfhpo_optuna.games.sampler import NashSampler
    from mfhpo_optuna.games.study import StudyDeviation, StudyEquilibrium
    from mfhpo_optuna.pruners.elimination_pruner import MFEliminationPruner
    from mfhpo_optuna.pruners.iise_pruner import IISEPruner
    from mfhpo_optuna.pruners.time_limit_pruner import TimeLimitPruner
    from mfhpo_optuna.report.dashboard import publish_to_dashboard
    from mfhpo_optuna.report.page import write_report
    from mfhpo_optuna.samplers.answer import (
        SearchRecommendation,
        StudyLimitRecommendation,
        StudyRecommendation,
    )
    from mfhpo_optuna.samplers.best_arm import (
        IISESampler,
        MFGradSampler,
        MFLUCBSampler,
        MFTopTwoSampler,
    )
    from mfhpo_optuna.samplers.choice import MFSampler
    from mfhpo_optuna.samplers.rcucb import RCUCBSampler, ZoomingRCUCBSampler
    from mfhpo_optuna.samplers.reward import MFEliminationSampler, MFUCBSampler
    from mfhpo_optuna.samplers.search_sampler import SearchSampler, training_of
    from mfhpo_optuna.study.arms import draw_arms
    from mfhpo_optuna.study.forgotten import ForgottenReplicateWarning
    from mfhpo_optuna.study.settled import StopWhenSettled
    from mfhpo_optuna.study.trials.seeds import seed_of
    from mfhpo_optuna.time_limits.time_limited import TimeLimited, time_limited
    from mfhpo_optuna.visualization import (
        plot_dissatisfaction,
        plot_equilibrium,
        plot_gain,
        plot_race,
    )

__all__ = [
    "Fidelity",
    "ForgottenReplicateWarning",
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
    "SearchRecommendation",
    "SearchSampler",
    "StopWhenSettled",
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
    "seed_of",
    "time_limited",
    "training_of",
    "write_report",
]

# A name is imported when it is first used, so that a sampler does not wait for figures and reports.
_MODULES = {
    "Fidelity": "mfhpo.knowledge.fidelity",
    "ForgottenReplicateWarning": "mfhpo_optuna.study.forgotten",
    "IISEPruner": "mfhpo_optuna.pruners.iise_pruner",
    "IISESampler": "mfhpo_optuna.samplers.best_arm",
    "MFEliminationPruner": "mfhpo_optuna.pruners.elimination_pruner",
    "MFEliminationSampler": "mfhpo_optuna.samplers.reward",
    "MFGradSampler": "mfhpo_optuna.samplers.best_arm",
    "MFLUCBSampler": "mfhpo_optuna.samplers.best_arm",
    "MFSampler": "mfhpo_optuna.samplers.choice",
    "MFTopTwoSampler": "mfhpo_optuna.samplers.best_arm",
    "MFUCBSampler": "mfhpo_optuna.samplers.reward",
    "NashSampler": "mfhpo_optuna.games.sampler",
    "RCUCBSampler": "mfhpo_optuna.samplers.rcucb",
    "SearchRecommendation": "mfhpo_optuna.samplers.answer",
    "SearchSampler": "mfhpo_optuna.samplers.search_sampler",
    "StopWhenSettled": "mfhpo_optuna.study.settled",
    "StudyCertificate": "mfhpo_optuna.certification",
    "StudyDeviation": "mfhpo_optuna.games.study",
    "StudyEquilibrium": "mfhpo_optuna.games.study",
    "StudyLimitRecommendation": "mfhpo_optuna.samplers.answer",
    "StudyRecommendation": "mfhpo_optuna.samplers.answer",
    "TimeLimitPruner": "mfhpo_optuna.pruners.time_limit_pruner",
    "TimeLimited": "mfhpo_optuna.time_limits.time_limited",
    "ZoomingRCUCBSampler": "mfhpo_optuna.samplers.rcucb",
    "certify": "mfhpo_optuna.certification",
    "draw_arms": "mfhpo_optuna.study.arms",
    "plot_dissatisfaction": "mfhpo_optuna.visualization",
    "plot_equilibrium": "mfhpo_optuna.visualization",
    "plot_gain": "mfhpo_optuna.visualization",
    "plot_race": "mfhpo_optuna.visualization",
    "publish_to_dashboard": "mfhpo_optuna.report.dashboard",
    "seed_of": "mfhpo_optuna.study.trials.seeds",
    "time_limited": "mfhpo_optuna.time_limits.time_limited",
    "training_of": "mfhpo_optuna.samplers.search_sampler",
    "write_report": "mfhpo_optuna.report.page",
}

# Threads that import parts of a package in different orders would wait for each other.
_importing = threading.RLock()

if not TYPE_CHECKING:  # a type checker that saw it would accept every name

    def __getattr__(name):
        with _importing:
            if name == "visualization":
                return import_module("mfhpo_optuna.visualization")
            if name not in _MODULES:
                renamed = import_module("mfhpo._validation.renamed").renamed
                old_names = import_module("mfhpo_optuna.arguments").OLD_NAMES
                return renamed(__name__, old_names, stacklevel=3)(name)
            value = globals()[name] = getattr(import_module(_MODULES[name]), name)
            import_module("mfhpo._validation.parameters").document(value)
            return value

    def __dir__():
        return sorted({*globals(), *__all__, "visualization"})
