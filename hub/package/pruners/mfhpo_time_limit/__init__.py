"""TimeLimitPruner: stop trials that run too long."""

from mfhpo_optuna import TimeLimitPruner

__all__ = ["TimeLimitPruner"]
