"""The time limit of a pull as a decision: learning from pulls that were stopped."""

from mfhpo._validation.parameters import document
from mfhpo.censored.gain import Survival
from mfhpo.censored.options import Charge, Linear
from mfhpo.censored.policy import CensoredPolicy, Confidence
from mfhpo.censored.rcucb import RCUCB, ZoomingRCUCB
from mfhpo.knowledge.statistics import SurvivalPoint
from mfhpo.problem import Recommendation as LimitRecommendation

__all__ = [
    "RCUCB",
    "CensoredPolicy",
    "Charge",
    "Confidence",
    "LimitRecommendation",
    "Linear",
    "Survival",
    "SurvivalPoint",
    "ZoomingRCUCB",
]

document(*map(globals().get, __all__))
