"""mfhpo in Optuna: samplers that certify their answer, pruners, time limits and reports."""

import threading
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfhpo.knowledge.fidelity import Fidelity
    from mfhpo_optuna.certification import StudyCertificate, certify
    from mfhpo_optuna.games.sampler import NashSampler, StudyEquilibrium
    from mfhpo_optuna.pruners.curve_pruner import IISEPruner
    from mfhpo_optuna.pruners.elimination_pruner import MFEliminationPruner
    from mfhpo_optuna.pruners.time_limit_pruner import TimeLimitPruner
    from mfhpo_optuna.report.page import publish_to_dashboard, write_report
    from mfhpo_optuna.samplers.answer import (
        SearchRecommendation,
        StudyLimitRecommendation,
        StudyRecommendation,
    )
    from mfhpo_optuna.samplers.races import (
        IISESampler,
        MFEliminationSampler,
        MFGradSampler,
        MFLUCBSampler,
        MFSampler,
        MFTopTwoSampler,
        MFUCBSampler,
    )
    from mfhpo_optuna.samplers.rcucb import RCUCBSampler, ZoomingRCUCBSampler
    from mfhpo_optuna.samplers.search_sampler import SearchSampler, training_of
    from mfhpo_optuna.study.arms import draw_arms
    from mfhpo_optuna.study.forgotten import ForgottenReplicateWarning
    from mfhpo_optuna.study.portfolio import enqueue_portfolio
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
    "StudyEquilibrium",
    "StudyLimitRecommendation",
    "StudyRecommendation",
    "TimeLimitPruner",
    "TimeLimited",
    "ZoomingRCUCBSampler",
    "certify",
    "draw_arms",
    "enqueue_portfolio",
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
_NAMES = {
    "mfhpo.knowledge.fidelity": "Fidelity",
    "mfhpo_optuna.certification": "StudyCertificate certify",
    "mfhpo_optuna.games.sampler": "NashSampler StudyEquilibrium",
    "mfhpo_optuna.pruners.elimination_pruner": "MFEliminationPruner",
    "mfhpo_optuna.pruners.curve_pruner": "IISEPruner",
    "mfhpo_optuna.pruners.time_limit_pruner": "TimeLimitPruner",
    "mfhpo_optuna.report.page": "publish_to_dashboard write_report",
    "mfhpo_optuna.samplers.answer": (
        "SearchRecommendation StudyLimitRecommendation StudyRecommendation"
    ),
    "mfhpo_optuna.samplers.races": (
        "IISESampler MFEliminationSampler MFGradSampler MFLUCBSampler MFSampler MFTopTwoSampler "
        "MFUCBSampler"
    ),
    "mfhpo_optuna.samplers.rcucb": "RCUCBSampler ZoomingRCUCBSampler",
    "mfhpo_optuna.samplers.search_sampler": "SearchSampler training_of",
    "mfhpo_optuna.study.arms": "draw_arms",
    "mfhpo_optuna.study.forgotten": "ForgottenReplicateWarning",
    "mfhpo_optuna.study.portfolio": "enqueue_portfolio",
    "mfhpo_optuna.study.settled": "StopWhenSettled",
    "mfhpo_optuna.study.trials.seeds": "seed_of",
    "mfhpo_optuna.time_limits.time_limited": "TimeLimited time_limited",
    "mfhpo_optuna.visualization": "plot_dissatisfaction plot_equilibrium plot_gain plot_race",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

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
