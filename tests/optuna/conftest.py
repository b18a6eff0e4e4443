"""Fixtures of the tests of the Optuna integration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.optuna.time_limits.processes import below, until


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Fails a test of which processes are left."""
    before = below()
    yield
    assert until(lambda: below() <= before), "processes are left"
