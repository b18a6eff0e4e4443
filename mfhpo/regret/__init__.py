"""Cumulative reward: policies that earn while they learn."""

from mfhpo.regret.elimination import MFElimination
from mfhpo.regret.mf_ucb import MFUCB

__all__ = ["MFUCB", "MFElimination"]
