"""mfhpo in Ray Tune: searches and schedulers that certify, time limits that hold."""

from mfhpo_ray._choice import MFSearch
from mfhpo_ray._elimination_scheduler import MFEliminationScheduler
from mfhpo_ray._grad import MFGradSearch
from mfhpo_ray._iise import IISESearch
from mfhpo_ray._iise_scheduler import IISEScheduler
from mfhpo_ray._lucb import MFLUCBSearch
from mfhpo_ray._pull_scheduler import PullScheduler
from mfhpo_ray._race_search import RaceSearch
from mfhpo_ray._rcucb import RCUCBSearch, ZoomingRCUCBSearch
from mfhpo_ray._rcucb_scheduler import RCUCBScheduler
from mfhpo_ray._recommendation import (
    Luckiest,
    TuneLimitRecommendation,
    TuneRaceRecommendation,
    TuneRecommendation,
    recommendation,
)

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
