"""IISESampler: the best of given configurations, with a certificate."""

from mfhpo_optuna import IISESampler

__all__ = ["IISESampler"]
