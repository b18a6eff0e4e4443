"""Best-arm identification with fixed confidence."""

from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.bounds.lower_bound import CostPrediction, cost_lower_bound, predict_cost
from mfhpo.identification.bounds.tight_bound import TightBound, tight_cost_lower_bound
from mfhpo.identification.elimination import (
    IISE,
    Elimination,
    MaximumFidelityExploit,
    SuccessiveElimination,
)
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB, FidelityExhaustedWarning
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.racing.race import ArmWithdrawnWarning

__all__ = [
    "IISE",
    "MFLUCB",
    "ArmWithdrawnWarning",
    "BestArmPolicy",
    "CostPrediction",
    "Elimination",
    "FidelityExhaustedWarning",
    "MFGrad",
    "MFTopTwo",
    "MaximumFidelityExploit",
    "SuccessiveElimination",
    "TightBound",
    "cost_lower_bound",
    "predict_cost",
    "tight_cost_lower_bound",
]
