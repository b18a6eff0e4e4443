"""Fixtures of the tests of the Optuna integration."""

import pytest

from tests.optuna.time_limits.processes import below, until


@pytest.fixture
def nothing_is_left():
    """Fails a test of which processes are left."""
    before = below()
    yield
    assert until(lambda: below() <= before), "processes are left"
