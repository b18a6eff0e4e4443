"""Optuna's own suite for samplers, on `RCUCBSampler` and on each way of drawing its arms.

What is not applied, and why, is said in `test_conformance.py`; it is the same here. Besides,
`test_nan_objective_value` wants a best trial although none of the trials is an answer; what follows
from NaN is tested in `test_rcucb.py`.
"""

from __future__ import annotations

import pytest
from optuna.samplers import QMCSampler, RandomSampler, TPESampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from mfhpo_optuna import RCUCBSampler, ZoomingRCUCBSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*nobody enforces it",
    "ignore:.*were drawn equal",
    "ignore:.*evaluated .* instead of arm",  # ranges that change are meant to in this suite
    "ignore::optuna.exceptions.ExperimentalWarning",
)

JOINT = {
    "hypercube": lambda: None,
    "QMC": lambda: QMCSampler(seed=0, warn_independent_sampling=False),
    "multivariate-TPE": lambda: TPESampler(seed=0, multivariate=True, n_startup_trials=0),
}
INDEPENDENT = {
    "TPE": lambda: TPESampler(seed=0),
    "Random": lambda: RandomSampler(seed=0),
}


def make(arm_sampler):
    return lambda: RCUCBSampler(arm_sampler=arm_sampler(), seed=0)


class Basic(BasicSamplerTestCase):
    test_nan_objective_value = None


class TestJointly(Basic, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture(params=JOINT.values(), ids=JOINT.keys())
    def sampler(self, request):
        return make(request.param)


class TestIndependently(Basic, SingleOnlySamplerTestCase):
    @pytest.fixture(params=INDEPENDENT.values(), ids=INDEPENDENT.keys())
    def sampler(self, request):
        return make(request.param)


class TestZooming(Basic, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: ZoomingRCUCBSampler(32, longest=60.0, seed=0)
