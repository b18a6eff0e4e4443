import numpy as np
import pytest

from mfhpo.censored import RCUCB, ZoomingRCUCB
from tests.contract.censored_contract import (
    COST,
    HORIZON,
    LIMITS,
    PENALTY,
    CensoredPolicyContract,
    PlayedAtOnceContract,
)


class TestRCUCB(PlayedAtOnceContract):
    def make(self, n_arms=4, horizon=HORIZON):
        return RCUCB(n_arms, LIMITS, cost=COST, penalty=PENALTY, horizon=horizon)


class TestRCUCBByKL(PlayedAtOnceContract):
    def make(self, n_arms=4, horizon=HORIZON):
        return RCUCB(n_arms, LIMITS, cost=COST, penalty=PENALTY, horizon=horizon, confidence="kl")


class TestRCUCBAsPrinted(PlayedAtOnceContract):
    def make(self, n_arms=4, horizon=HORIZON):
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
    longest = 3.0

    def make(self, n_arms=4, horizon=HORIZON):
        return RCUCB(n_arms, 4, longest=3.0, reward_range=None, horizon=horizon)

    def test_it_cannot_be_played_at_once_from_the_start(self):
        with pytest.raises(ValueError, match=r"not known yet|declared one"):
            self.make().play(lambda arm, size: (np.zeros(size), np.zeros(size)), 10)


class TestZoomingRCUCB(PlayedAtOnceContract):
    knows_limits = False

    def make(self, n_arms=4, horizon=HORIZON):
        return ZoomingRCUCB(n_arms, 4.0, cost=COST, penalty=PENALTY, horizon=horizon)
