"""mfhpo in Ray Tune: searches and schedulers that certify, time limits that hold."""

from typing import TYPE_CHECKING

from mfhpo._validation.parameters import document
from mfhpo._validation.renamed import renamed
from mfhpo_ray.certification import TuneCertificate, certify
from mfhpo_ray.experiment.results import (
    TuneLimitRecommendation,
    TuneRecommendation,
    TuneSearchRecommendation,
    recommendation,
)
from mfhpo_ray.rcucb import RCUCBScheduler, RCUCBSearch, ZoomingRCUCBSearch
from mfhpo_ray.schedulers.elimination_scheduler import MFEliminationScheduler
from mfhpo_ray.schedulers.iise_scheduler import IISEScheduler
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.searches import (
    IISESearch,
    MFEliminationSearch,
    MFGradSearch,
    MFLUCBSearch,
    MFSearch,
    MFUCBSearch,
    SpaceSearch,
)
from mfhpo_ray.settled import StopWhenSettled

__all__ = [
    "IISEScheduler",
    "IISESearch",
    "MFEliminationScheduler",
    "MFEliminationSearch",
    "MFGradSearch",
    "MFLUCBSearch",
    "MFSearch",
    "MFUCBSearch",
    "PullScheduler",
    "RCUCBScheduler",
    "RCUCBSearch",
    "SpaceSearch",
    "StopWhenSettled",
    "TuneCertificate",
    "TuneLimitRecommendation",
    "TuneRecommendation",
    "TuneSearchRecommendation",
    "ZoomingRCUCBSearch",
    "certify",
    "recommendation",
]

document(*map(globals().get, __all__))

if not TYPE_CHECKING:  # a type checker that saw it would accept every name
    __getattr__ = renamed(
        __name__,
        {"RaceSearch": "SpaceSearch", "TuneRaceRecommendation": "TuneSearchRecommendation"},
    )
