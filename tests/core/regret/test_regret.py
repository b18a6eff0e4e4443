from __future__ import annotations

import pytest

from mfhpo.simulation.plays import regret_per_cost, regret_per_play

MEANS = [0.2, 0.9, 0.5]
COSTS = [1.0, 4.0]
COUNTS = [[3, 1], [2, 5], [0, 0]]


def test_by_hand() -> None:
    # Paid: 3 + 4 = 7 for arm 0, 2 + 20 = 22 for arm 1; of 29.5 a half earns nothing.
    earned = 7 * 0.2 + 22 * 0.9
    assert regret_per_cost(MEANS, COSTS, COUNTS, 29.5) == pytest.approx(29.5 * 0.9 - earned)
    # 29 plays at the cheapest fidelity and half a one, against 4 plays of arm 0 and 7 of arm 1.
    earned = 4 * 0.2 + 7 * 0.9
    assert regret_per_play(MEANS, COSTS, COUNTS, 29.5) == pytest.approx(29.5 * 0.9 - earned)


@pytest.mark.parametrize("regret", [regret_per_cost, regret_per_play])
def test_errors(regret) -> None:
    with pytest.raises(ValueError, match=r"counts must have shape \(3, 2\).*got \(2, 2\)"):
        regret(MEANS, COSTS, COUNTS[:2], 100.0)
    with pytest.raises(ValueError, match="capital=20 is less than the 29 that the plays"):
        regret(MEANS, COSTS, COUNTS, 20.0)
