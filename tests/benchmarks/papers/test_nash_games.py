import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers.nash_games import PowerAllocation, RandomAccess, RandomGame


def quiet(game):
    return replace(game, sigma=0.0)


def test_random_access_by_hand():
    """Two terminals: one active half of the time that seldom sends, one that always tries."""
    game = RandomAccess(most_energy=(60.0, 60.0), active=50.0, sending=70.0, sigma=0.0)
    # Sending at 1/7 takes 60, so that a terminal may always be active.
    profile = {"activity0": 0.5, "sending0": 1 / 7, "activity1": 1.0, "sending1": 1.0}
    first, second = 0.5 / 7, 0.5
    assert game.sending_probabilities(profile) == pytest.approx([first, second])
    received = [first * (1 - second), second * (1 - first)]
    assert game.throughput(profile) == pytest.approx(received)
    for level, omega in enumerate(game.omega):
        expected = [received[0] - omega * 30.0, received[1] - omega * 60.0]
        rng = np.random.default_rng(0)
        assert game.utilities(profile, (level, level), rng) == pytest.approx(expected)


def test_no_terminal_gains_by_leaving_the_equilibrium():
    game = quiet(RandomAccess())
    rng = np.random.default_rng(0)
    names = [name for own in game.players.values() for name in own]
    equilibrium = dict.fromkeys(names, 1.0)
    assert game.throughput(equilibrium) == pytest.approx(game.equilibrium_throughput())
    there = game.utilities(equilibrium, (3,) * 5, rng)
    for terminal, own in enumerate(game.players.values()):
        for places in np.random.default_rng(1).random((200, 2)):
            moved = equilibrium | dict(zip(own, places.tolist(), strict=True))
            assert game.utilities(moved, (3,) * 5, rng)[terminal] <= there[terminal]


def test_drawn_games_have_the_covariance_of_the_model():
    """Eq. 20 at distances of 0, 1 and the diagonal, and rho between the levels."""
    rng = np.random.default_rng(0)
    drawn = np.stack([RandomGame.draw(rng, n_actions=3).values[0] for _ in range(4_000)])
    low, target = drawn[:, 0], drawn[:, 1]

    def together(left, right):
        return float((left * right).mean())

    corner, side, middle = target[:, 0, 0], target[:, 0, 1], target[:, 1, 1]
    assert together(corner, corner) == pytest.approx(1.0, abs=0.08)
    assert together(corner, side) == pytest.approx(math.exp(-0.89), abs=0.06)
    assert together(corner, middle) == pytest.approx(math.exp(-2 * 0.89), abs=0.06)
    assert together(low[:, 0, 0], corner) == pytest.approx(0.768, abs=0.08)
    assert together(low[:, 0, 0], low[:, 0, 0]) == pytest.approx(1.0, abs=0.08)


def test_regret_of_a_drawn_game_by_brute_force():
    game = RandomGame.draw(np.random.default_rng(1), n_actions=5)
    first, second = game.values[:, 1]
    worst = {
        (i, j): max(first[:, j].max() - first[i, j], second[i].max() - second[i, j])
        for i in range(5)
        for j in range(5)
    }
    for (i, j), gain in worst.items():
        regret = game.regret({"x0": i / 4, "x1": j / 4})
        assert regret == pytest.approx(gain - min(worst.values()))


def test_no_link_gains_at_the_equilibrium():
    game = PowerAllocation(n_links=5)
    decibels = 10.0 * math.log10(game.equilibrium_power())
    place = (decibels - game.lowest) / (game.highest - game.lowest)
    at = {f"power{index}": place for index in range(5)}
    assert game.gains(at, n_draws=1_000) == pytest.approx(np.zeros(5), abs=1e-4)
    gains = game.gains(at | {"power2": place + 0.1}, n_draws=1_000)
    # ln of the power is .829 too large: by the slope's slope, about .5 * 1.3 * .829**2.
    assert gains[2] == pytest.approx(0.5, abs=0.15)
    assert gains[[0, 1, 3, 4]].max() < 0.02


@pytest.mark.slow
def test_a_links_gain_by_simulation():
    game = PowerAllocation(n_links=3, realisations=(400_000,))
    low = {"power0": 0.3, "power1": 0.6, "power2": 0.7}
    gain = game.gains(low)[0]
    rng = np.random.default_rng(0)
    here = game.utilities(low, (0, 0, 0), rng)[0]
    there = max(
        game.utilities(low | {"power0": place}, (0, 0, 0), rng)[0]
        for place in np.linspace(0.5, 0.8, 7)
    )
    assert gain == pytest.approx(there - here, abs=0.05)
