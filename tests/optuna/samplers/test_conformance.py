"""Optuna's own suite for samplers, on the race and on each way of drawing its arms.

Not applied: `MultiObjectiveSamplerTestCase`, because a race has no best arm in two directions, and
a sampler refuses such a study, which `SingleOnlySamplerTestCase` checks.

`RelativeSamplerTestCase` is for samplers that draw parameters jointly. Optuna itself does not apply
it to a plain `TPESampler`.

The suite's objectives never ask for the fidelity, so what runs here is the drawing of arms, which
all samplers over a fidelity share. For a race under way see `test_race.py`.
"""

from __future__ import annotations

import pytest
from optuna.samplers import TPESampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from mfhpo_optuna import IISESampler, ZoomingRCUCBSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore:fidelity='fidelity', but the objective did not ask for it",
    "ignore:.*nobody enforces it",
    "ignore:.*were drawn equal",
    "ignore:.*evaluated .* instead of arm",  # ranges that change are meant to in this suite
    "ignore::optuna.exceptions.ExperimentalWarning",
)

JOINT = {
    "hypercube": lambda: None,
    "multivariate-TPE": lambda: TPESampler(seed=0, multivariate=True, n_startup_trials=0),
}


class TestJointly(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture(params=JOINT.values(), ids=JOINT.keys())
    def sampler(self, request):
        return lambda: IISESampler(fidelity="fidelity", arm_sampler=request.param(), seed=0)


class TestIndependently(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: IISESampler(fidelity="fidelity", arm_sampler=TPESampler(seed=0), seed=0)


class TestWithTimeLimits(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    # It wants a best trial, although none of the trials is an answer; for NaN see `test_rcucb.py`.
    test_nan_objective_value = None

    @pytest.fixture
    def sampler(self):
        return lambda: ZoomingRCUCBSampler(32, longest=60.0, seed=0)
