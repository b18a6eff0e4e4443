"""RaceSampler: search with cheap and full evaluations, then certify."""

from mfhpo_optuna import RaceSampler

__all__ = ["RaceSampler"]
