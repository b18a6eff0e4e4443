"""Figures need plotly, and studies of the same races serve several tests."""

import optuna
import pytest

from tests.optuna.visualization.figures import race, search

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


@pytest.fixture(autouse=True)
def _needs_plotly():
    pytest.importorskip("plotly")


@pytest.fixture(scope="session")
def certified():
    return race()


@pytest.fixture(scope="session")
def finished():
    return search()
