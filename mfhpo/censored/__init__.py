"""The time limit of a pull as a decision: learning from pulls that were stopped."""

from mfhpo._validation.parameters import document
from mfhpo.censored.charges import Charge, Linear, par
from mfhpo.censored.draws import Draw
from mfhpo.censored.gain import Survival
from mfhpo.censored.policy import CensoredPolicy
from mfhpo.censored.rcucb import RCUCB, Confidence
from mfhpo.censored.recommendation import LimitRecommendation, SurvivalPoint
from mfhpo.censored.zooming import ZoomingRCUCB

__all__ = [
    "RCUCB",
    "CensoredPolicy",
    "Charge",
    "Confidence",
    "Draw",
    "LimitRecommendation",
    "Linear",
    "Survival",
    "SurvivalPoint",
    "ZoomingRCUCB",
    "par",
]

document(*map(globals().get, __all__))
