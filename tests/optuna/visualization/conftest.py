import pytest

from tests.optuna.visualization.figures import race, search


@pytest.fixture(autouse=True)
def _needs_plotly():
    pytest.importorskip("plotly")


@pytest.fixture(scope="session")
def certified():
    return race()


@pytest.fixture(scope="session")
def finished():
    return search()
