"""MFEliminationPruner: stop what bounds on curves call beaten."""

from mfhpo_optuna import MFEliminationPruner

__all__ = ["MFEliminationPruner"]
