"""IISEPruner: stop what finished curves call hopeless."""

from mfhpo_optuna import IISEPruner

__all__ = ["IISEPruner"]
