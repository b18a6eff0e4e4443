"""Optuna's own suite for samplers, on the race and on each way of drawing its arms.

Not applied: `MultiObjectiveSamplerTestCase`. It asks a sampler for values in a study with two
directions, where a race has no best arm: `IISESampler` refuses such a study, which is what
`SingleOnlySamplerTestCase` checks.

`RelativeSamplerTestCase` calls `sample_relative` with a space of its own and wants all of it back.
Optuna applies it only to samplers that draw parameters jointly, not to `RandomSampler` or a plain
`TPESampler`, which return nothing there; so neither is it applied to races that draw with them.

The suite's objectives never ask for the fidelity, so what runs here is the drawing of arms. Its
`test_dynamic_range_objective` and `test_partial_fixed_sampling` with a race under way, and an
objective that does ask, are in `test_race.py`, `test_arms.py` and `test_fidelity.py`.
"""

from __future__ import annotations

import pytest
from optuna.samplers import QMCSampler, RandomSampler, TPESampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from mfhpo_optuna import IISESampler
from tests.optuna.samplers.races import CLASSES

pytestmark = pytest.mark.filterwarnings(
    "ignore:fidelity='fidelity', but the objective did not ask for it",
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


def race(arm_sampler):
    return lambda: IISESampler(fidelity="fidelity", arm_sampler=arm_sampler(), seed=0)


class TestJointly(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture(params=JOINT.values(), ids=JOINT.keys())
    def sampler(self, request):
        return race(request.param)


class TestIndependently(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture(params=INDEPENDENT.values(), ids=INDEPENDENT.keys())
    def sampler(self, request):
        return race(request.param)


class TestEveryOtherSampler(
    BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
):
    @pytest.fixture(params=list(CLASSES.values())[1:], ids=list(CLASSES)[1:])
    def sampler(self, request):
        return lambda: request.param(fidelity="fidelity", seed=0)
