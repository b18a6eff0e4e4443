import optuna
import pytest

from mfhpo_optuna.time_limits import time_limited, worker
from tests.optuna import workers  # noqa: F401  (SQLite waits for no disk from then on)
from tests.optuna.time_limits.processes import SharedClock

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


@pytest.fixture
def shared_clock(monkeypatch):
    """A clock that goes on when it is told to, by which `time_limited` counts."""
    clock = SharedClock()
    for module in (time_limited, worker):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(time_limited, "_LOOK_FOR_PROGRAM", 0.01)
    return clock
