import numpy as np
import pytest

from benchmarks.simulation.rcucb import play as play_at_once
from mfhpo.censored import RCUCB, ZoomingRCUCB
from tests.contract.censored_contract import HORIZON, LIMITS, CensoredPolicyContract, censored

TestRCUCB = censored(RCUCB, LIMITS)
TestRCUCBByKL = censored(RCUCB, LIMITS, confidence="kl")
TestRCUCBAsPrinted = censored(
    RCUCB, LIMITS, confidence="printed", survival="count", exploration=0.25
)
TestZoomingRCUCB = censored(ZoomingRCUCB, 4.0, knows_limits=False)


class TestRCUCBWithEverythingFoundOut(CensoredPolicyContract):
    knows_limits = False
    longest = 3.0

    def make(self, n_arms=4, horizon=HORIZON):
        return RCUCB(n_arms, 4, longest=3.0, reward_range=None, horizon=horizon)

    def test_it_cannot_be_played_at_once_from_the_start(self):
        with pytest.raises(ValueError, match=r"not known yet|declared one"):
            play_at_once(self.make(), lambda arm, size: (np.zeros(size), np.zeros(size)), 10)
