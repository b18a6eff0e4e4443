"""Optuna's own suite for samplers, on `RaceSampler` and on each way of proposing configurations.

What is not applied, and why, is said in `test_conformance.py`; it is the same here. The objectives
of the suite have no fidelity, and neither do these races. Besides, `test_nan_objective_value` wants
a best trial although single trials are no answers; what follows from NaN is tested in
`test_race_sampler.py`.
"""

from __future__ import annotations

import pytest
from optuna.samplers import TPESampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from mfhpo_optuna import RaceSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*evaluated .* instead of arm",  # ranges that change are meant to in this suite
    "ignore::optuna.exceptions.ExperimentalWarning",
)

JOINT = {
    "model": lambda: None,
    "multivariate-TPE": lambda: TPESampler(seed=0, multivariate=True, n_startup_trials=0),
}
INDEPENDENT = {"TPE": lambda: TPESampler(seed=0)}


def make(proposer):
    return lambda: RaceSampler(proposer=proposer(), seed=0)


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
