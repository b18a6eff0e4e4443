import pytest

from mfhpo_optuna.study.study_experiment import StudyExperiment
from tests.optuna.samplers.races import CLOCK


@pytest.fixture
def clock(monkeypatch):
    """No time passes but what objectives take by `takes`."""
    monkeypatch.setattr(StudyExperiment, "clock", CLOCK.monotonic)
