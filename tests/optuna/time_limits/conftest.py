import sys

import pytest

from tests.optuna.time_limits.processes import below, until


@pytest.fixture(autouse=True)
def _nothing_is_left():
    if sys.platform != "linux":
        pytest.skip("looks into /proc")
    before = below()
    yield
    assert until(lambda: below() <= before), "processes are left"
