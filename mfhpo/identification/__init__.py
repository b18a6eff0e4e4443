"""Best-arm identification with fixed confidence."""

from mfhpo.identification.elimination import (
    IISE,
    ArmWithdrawnWarning,
    Elimination,
    MaximumFidelityExploit,
    SuccessiveElimination,
)

__all__ = [
    "IISE",
    "ArmWithdrawnWarning",
    "Elimination",
    "MaximumFidelityExploit",
    "SuccessiveElimination",
]
