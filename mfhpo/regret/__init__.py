"""Cumulative reward: policies that earn while they learn, and what they missed."""

from mfhpo.regret.elimination import MFElimination
from mfhpo.regret.mf_ucb import MFUCB
from mfhpo.regret.regret import regret_per_cost, regret_per_play

__all__ = ["MFUCB", "MFElimination", "regret_per_cost", "regret_per_play"]
