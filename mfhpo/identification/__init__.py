"""Best-arm identification with fixed confidence."""

from mfhpo.identification.best_arm import ArmWithdrawnWarning, BestArmPolicy
from mfhpo.identification.elimination import (
    IISE,
    Elimination,
    MaximumFidelityExploit,
    SuccessiveElimination,
)
from mfhpo.identification.lower_bound import CostPrediction, cost_lower_bound, predict_cost

__all__ = [
    "IISE",
    "ArmWithdrawnWarning",
    "BestArmPolicy",
    "CostPrediction",
    "Elimination",
    "MaximumFidelityExploit",
    "SuccessiveElimination",
    "cost_lower_bound",
    "predict_cost",
]
