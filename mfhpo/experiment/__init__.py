"""One experiment, told once: events go in, assignments and answers come out."""

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.assignment import Assignment, Done, Refused, Wait
from mfhpo.experiment.configurations import Configurations, key_of
from mfhpo.experiment.events import Answered, Begun, Ended, Event, Found, Joined, Lost, event_of
from mfhpo.experiment.experiment import Experiment
from mfhpo.experiment.races.settings import RaceSettings
from mfhpo.experiment.settings import (
    GameSettings,
    LateSettings,
    LimitSettings,
    SearchSettings,
    ShortlistSettings,
)
from mfhpo.experiment.space import DistributionSpace

__all__ = [
    "Answer",
    "Answered",
    "Assignment",
    "Begun",
    "Configurations",
    "DistributionSpace",
    "Done",
    "Ended",
    "Event",
    "Experiment",
    "Found",
    "GameSettings",
    "Joined",
    "LateSettings",
    "LimitSettings",
    "Lost",
    "RaceSettings",
    "Refused",
    "SearchSettings",
    "ShortlistSettings",
    "Wait",
    "event_of",
    "key_of",
]
