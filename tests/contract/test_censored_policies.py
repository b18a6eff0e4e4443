"""The policies with time limits pass their contract."""

from __future__ import annotations

from mfhpo.censored import RCUCB, CensoredPolicy, LimitThompson, LimitUCB, ZoomingRCUCB
from tests.contract.censored_contract import (
    COST,
    HORIZON,
    LIMITS,
    PENALTY,
    CensoredPolicyContract,
)


class TestRCUCB(CensoredPolicyContract):
    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return RCUCB(n_arms, LIMITS, cost=COST, penalty=PENALTY, horizon=horizon)


class TestRCUCBByKL(CensoredPolicyContract):
    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return RCUCB(n_arms, LIMITS, cost=COST, penalty=PENALTY, horizon=horizon, confidence="kl")


class TestRCUCBAsPrinted(CensoredPolicyContract):
    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return RCUCB(
            n_arms,
            LIMITS,
            cost=COST,
            penalty=PENALTY,
            horizon=horizon,
            confidence="printed",
            survival="count",
            exploration=0.25,
        )


class TestRCUCBWithEverythingFoundOut(CensoredPolicyContract):
    knows_limits = False
    plays = False
    longest = 3.0

    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return RCUCB(n_arms, 4, longest=3.0, reward_range=None, horizon=horizon)


class TestZoomingRCUCB(CensoredPolicyContract):
    knows_limits = False

    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return ZoomingRCUCB(n_arms, 4.0, cost=COST, penalty=PENALTY, horizon=horizon)


class TestLimitUCB(CensoredPolicyContract):
    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return LimitUCB(n_arms, LIMITS, cost=COST, penalty=PENALTY, horizon=horizon)


class TestLimitThompson(CensoredPolicyContract):
    def make(self, n_arms: int = 4, horizon: int | None = HORIZON) -> CensoredPolicy:
        return LimitThompson(n_arms, LIMITS, cost=COST, penalty=PENALTY, horizon=horizon, seed=1)
