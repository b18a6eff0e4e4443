"""RCUCBSampler: configurations and time limits for runaway trials."""

from mfhpo_optuna import RCUCBSampler, ZoomingRCUCBSampler

__all__ = ["RCUCBSampler", "ZoomingRCUCBSampler"]
