from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.mf_ucb_regret import (
    INSTANCES,
    draw_instance,
    exponents,
    ratios,
    regret_per_cost,
    regret_per_play,
)
from benchmarks.simulation.instances import BernoulliInstance, GaussianInstance


def test_regrets_by_hand():
    means = [0.2, 0.9, 0.5]
    instance = GaussianInstance([means, means], [1.0, 4.0])
    policy = SimpleNamespace(counts=np.array([[3, 1], [2, 5], [0, 0]]))
    # Paid: 3 + 4 = 7 for arm 0, 2 + 20 = 22 for arm 1; of 29.5 a half earns nothing.
    earned = 7 * 0.2 + 22 * 0.9
    assert regret_per_cost(policy, instance, 29.5) == pytest.approx(29.5 * 0.9 - earned)
    # 29 plays at the cheapest fidelity and half a one, against 4 plays of arm 0 and 7 of arm 1.
    earned = 4 * 0.2 + 7 * 0.9
    assert regret_per_play(policy, instance, 29.5) == pytest.approx(29.5 * 0.9 - earned)


@pytest.mark.parametrize("number", list(INSTANCES))
def test_they_are_those_of_appendix_c(number):
    instance = draw_instance(number, np.random.default_rng(3))
    shape = {1: (3, 500), 2: (4, 500), 3: (2, 200), 4: (5, 1000)}[number]
    assert instance.means.shape == shape
    assert len(instance.costs) == shape[0]
    zeta = np.array(INSTANCES[number].zeta)
    deviations = np.abs(instance.means - instance.means[-1])
    assert (deviations <= zeta[:, None] + 1e-12).all()
    # The band is filled.
    assert (deviations.max(axis=1)[:-1] > 0.9 * zeta[:-1]).all()
    if number in (1, 2):
        assert isinstance(instance, GaussianInstance)
        assert instance.variance == pytest.approx({1: 0.04, 2: 1.0}[number])
        # The best arm looks as bad as it can.
        assert deviations[:, instance.best_arm].tolist() == pytest.approx(zeta.tolist())
        assert int(np.argmax(instance.means[0])) != instance.best_arm
    else:
        assert isinstance(instance, BernoulliInstance)
        assert instance.means.min() >= 0.0
        assert instance.means.max() <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "most", "tolerance"), [(1, 1e6, 0.25), (2, 1e5, 0.25), (3, 5e5, 0.1), (4, 1e5, 0.1)]
)
def test_ratios_are_those_of_an_independent_implementation(number, most, tolerance):
    found = list(ratios([number], 4, most, seed=1))
    compared = [row for row in found if row.reference is not None]
    assert len(compared) == sum(capital <= most for capital in INSTANCES[number].reference)
    for row in compared:
        assert row.ratio == pytest.approx(row.reference, rel=tolerance), row.capital
        assert row.mf_ucb / row.ucb == pytest.approx(row.ratio, rel=0.1)


@pytest.mark.slow
def test_the_advantage_ends_on_instance_3():
    found = {row.capital: row.ratio for row in ratios([3], 3, 1e6)}
    assert found[5e4] < 0.55
    assert found[1e6] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("n_arms", [2, 10])
def test_regret_grows_with_two_thirds_of_the_budget(n_arms):
    [row] = exponents([n_arms], [1e5, 1e6, 1e7, 1e8], 16, 25)
    assert 0.63 < row.exponent < 0.71
    # The worst gap: 4.6 to 5.4 (K = 2) and 6.1 to 6.6 (K = 10) in an independent implementation.
    low, high = {2: (4.2, 5.8), 10: (5.7, 7.0)}[n_arms]
    assert low < min(row.scaled)
    assert max(row.scaled) < high
    # The fixed gap: the same for every decade.
    steps = np.diff(row.fixed)
    assert steps.max() < 1.6 * steps.min()
