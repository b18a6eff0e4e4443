"""The time limit of a pull as a decision: learning from pulls that were stopped."""

from mfhpo.censored.baselines import LimitThompson, LimitUCB
from mfhpo.censored.charges import Capped, Charge, Deadline, Linear, par
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.policy import CensoredPolicy
from mfhpo.censored.rcucb import RCUCB
from mfhpo.censored.recommendation import LimitRecommendation, SurvivalPoint
from mfhpo.censored.zooming import ZoomingRCUCB

__all__ = [
    "RCUCB",
    "Capped",
    "CensoredPolicy",
    "Charge",
    "Deadline",
    "GainEstimates",
    "LimitRecommendation",
    "LimitThompson",
    "LimitUCB",
    "Linear",
    "SurvivalPoint",
    "ZoomingRCUCB",
    "par",
]
