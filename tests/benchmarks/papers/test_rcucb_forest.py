import numpy as np
import pytest

from benchmarks.papers.rcucb_forest import N_CONFIGURATIONS, ForestTable, problem


def made_up(seed=0):
    """Configurations from quick to slow, of which the quickest fifth is a little worse."""
    rng = np.random.default_rng(seed)
    typical = np.linspace(0.01, 0.2, N_CONFIGURATIONS)[:, None]
    seconds = typical * rng.uniform(0.8, 1.2, (N_CONFIGURATIONS, 6))
    rewards = rng.uniform(0.7, 0.9, (N_CONFIGURATIONS, 6)) - 0.1 * (typical < 0.05)
    return ForestTable(rewards, seconds)


def test_limits_are_over_the_interquartile_range_of_one_run_each():
    made = made_up()
    instance, limits = problem(made)
    assert len(limits) == 10
    assert limits[-1] == 1.0
    once = instance.consumptions[:, 0]
    assert (once < limits[0]).mean() == pytest.approx(0.25, abs=0.002)
    assert (once <= 1.0).mean() == pytest.approx(0.75, abs=0.002)
    assert np.allclose(np.diff(limits, 2), 0.0)
