"""One experiment, told once: events go in, assignments and answers come out."""

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations, key_of
from mfhpo.experiment.events import Begun, Concluded, Ended, Event, Found, Joined, Lost, event_of
from mfhpo.experiment.experiment import Experiment
from mfhpo.experiment.following import Assignment, Done, Refused, Wait
from mfhpo.experiment.kinds.blind import LateSettings
from mfhpo.experiment.kinds.games import GameSettings
from mfhpo.experiment.kinds.limits import LimitSettings
from mfhpo.experiment.kinds.race import RaceSettings
from mfhpo.experiment.kinds.search import SearchSettings
from mfhpo.experiment.kinds.shortlist import ShortlistSettings
from mfhpo.experiment.space import DistributionSpace

__all__ = [
    "Answer",
    "Assignment",
    "Begun",
    "Concluded",
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
