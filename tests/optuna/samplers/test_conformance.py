"""Optuna's own suites for samplers, on each way of drawing configurations.

Not applied: `MultiObjectiveSamplerTestCase`, but to games; `RelativeSamplerTestCase`, where
parameters are drawn singly; `test_nan_objective_value`, which wants the luckiest trial to be the
best one, where it is none. The suites count a study's trials, so answers so far are left out.
"""

import pytest
from optuna.samplers import TPESampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from mfhpo_optuna import IISESampler, NashSampler, SearchSampler, ZoomingRCUCBSampler
from mfhpo_optuna.samplers import answer as answering

pytestmark = pytest.mark.filterwarnings(
    "ignore:fidelity='fidelity', but the objective did not ask for it",
    "ignore:.*nobody enforces it",
    "ignore:.*were drawn equal",
    "ignore:.*evaluated .* instead of arm",  # ranges that change are meant to in this suite
    "ignore::optuna.exceptions.ExperimentalWarning",
)


@pytest.fixture(autouse=True)
def no_answers_so_far(monkeypatch):
    monkeypatch.setattr(answering, "add_so_far", lambda *_: None)


def multivariate():
    return TPESampler(seed=0, multivariate=True, n_startup_trials=0)


class TestRaces(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: IISESampler(fidelity="fidelity", seed=0)


class WithoutAnswer(BasicSamplerTestCase):
    test_nan_objective_value = None


class TestTimeLimits(WithoutAnswer, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: ZoomingRCUCBSampler(32, longest=60.0, seed=0)


class TestSearchesJointly(WithoutAnswer, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture(params=[lambda: None, multivariate], ids=["model", "TPE"])
    def sampler(self, request):
        return lambda: SearchSampler(proposer=request.param(), seed=0)


class TestSearchesIndependently(WithoutAnswer, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: SearchSampler(proposer=TPESampler(seed=0), seed=0)


class TestGames(MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: NashSampler({"row": ["x"], "column": ["y"]}, budget=10, seed=0)
