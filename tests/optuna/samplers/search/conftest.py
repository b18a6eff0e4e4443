import pytest

from mfhpo_optuna.study.trials.under_way import UnderWay
from tests.optuna.samplers.races import CLOCK


@pytest.fixture
def clock(monkeypatch):
    """No time passes but what objectives take by `takes`."""
    monkeypatch.setattr(UnderWay, "clock", CLOCK.monotonic)
