"""SearchSampler: search with cheap and full evaluations, then certify."""

from mfhpo_optuna import SearchSampler

__all__ = ["SearchSampler"]
