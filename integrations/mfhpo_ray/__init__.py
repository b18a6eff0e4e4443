"""mfhpo in Ray Tune: searches and schedulers that certify, time limits that hold."""

from mfhpo_ray.experiment.recommendation import (
    Luckiest,
    TuneLimitRecommendation,
    TuneRaceRecommendation,
    TuneRecommendation,
    recommendation,
)
from mfhpo_ray.schedulers.elimination_scheduler import MFEliminationScheduler
from mfhpo_ray.schedulers.iise_scheduler import IISEScheduler
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.schedulers.rcucb_scheduler import RCUCBScheduler
from mfhpo_ray.searchers.best_arm import IISESearch, MFGradSearch, MFLUCBSearch, MFSearch
from mfhpo_ray.searchers.race_search import RaceSearch
from mfhpo_ray.searchers.rcucb import RCUCBSearch, ZoomingRCUCBSearch

__all__ = [
    "IISEScheduler",
    "IISESearch",
    "Luckiest",
    "MFEliminationScheduler",
    "MFGradSearch",
    "MFLUCBSearch",
    "MFSearch",
    "PullScheduler",
    "RCUCBScheduler",
    "RCUCBSearch",
    "RaceSearch",
    "TuneLimitRecommendation",
    "TuneRaceRecommendation",
    "TuneRecommendation",
    "ZoomingRCUCBSearch",
    "recommendation",
]
