import numpy as np
import pytest

from benchmarks.papers import rcucb_seconds
from benchmarks.papers.rcucb_instances import ReplayedCensoredInstance
from benchmarks.papers.rcucb_seconds import HALVING, METHODS, best_rate, play, tables


def made_up():
    """The first of three arms is best and quick, but for one training in ten."""
    seconds = np.array([[0.1] * 9 + [20.0], [1.0] * 10, [1.0] * 10])
    return ReplayedCensoredInstance([[0.9] * 10, [0.5] * 10, [0.1] * 10], seconds)


def test_the_best_rate_is_by_hand():
    # Stopped at the first quartile or later: .81 are earned in .09 + .1 tau, at tau = 1.
    limits = rcucb_seconds.ten_limits(made_up())
    assert best_rate(made_up()) == pytest.approx(0.81 / (0.09 + 0.1 * limits[0]))


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS, HALVING])
def test_all_spend_the_same_seconds(method):
    played = play(method, made_up(), 0, 60.0)
    arms, rewards, seconds, stopped = played.T
    assert seconds.sum() >= 60.0
    assert set(np.round(rewards[stopped == 1.0], 9)) <= {0.0}
    assert stopped.any() == (method not in ("UCB, no limit", HALVING))
    assert set(arms) == {0.0, 1.0, 2.0}


def test_halving_gives_each_rung_its_seconds():
    one = ReplayedCensoredInstance([[0.2], [0.9], [0.5], [0.1]], np.ones((4, 1)))
    arms = play(HALVING, one, 0, 24.0)[:, 0].astype(int)
    assert np.bincount(arms).tolist() == [2, 2 + 4 + 8, 2 + 4, 2]


def test_tables_hold_the_recorded_seconds():
    one = tables()
    assert one.n_arms == 3
    assert np.quantile(one.consumptions, 0.75) == pytest.approx(1.0)
    assert 0.0 < one.rewards.min() < one.rewards.max() <= 1.0
