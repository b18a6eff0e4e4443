"""NashSampler: pure Nash equilibria of expensive games."""

from mfhpo_optuna import NashSampler

__all__ = ["NashSampler"]
