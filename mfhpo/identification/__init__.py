"""Best-arm identification with fixed confidence."""

from mfhpo.identification.elimination import (
    IISE,
    ArmWithdrawnWarning,
    Elimination,
    MaximumFidelityExploit,
    SuccessiveElimination,
)
from mfhpo.identification.lower_bound import CostPrediction, cost_lower_bound, predict_cost

__all__ = [
    "IISE",
    "ArmWithdrawnWarning",
    "CostPrediction",
    "Elimination",
    "MaximumFidelityExploit",
    "SuccessiveElimination",
    "cost_lower_bound",
    "predict_cost",
]
