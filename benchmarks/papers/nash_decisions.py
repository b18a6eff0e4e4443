"""How long a decision takes, in CPU time, after many queries with fitted models."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mfhpo.games import MFUCBPNE, UCBPNE, GamePolicy, Query
from mfhpo.knowledge.space import Numeric

_RUNS = 5
_BUDGET = 1e9  # so that both a query below the target and one at it may be asked for


def decisions() -> list[dict[str, Any]]:
    """Two players with one parameter each, and five with two each."""
    return [_decision(2, 1, (1.0, 8.0), 300, 0.05), _decision(5, 2, (1.0, 4.0, 8.0), 500, 3.0)]


def _decision(
    n_players: int, n_own: int, costs: tuple[float, ...], n_told: int, most: float
) -> dict[str, Any]:
    """Median over several games, in seconds.

    Parameters
    ----------
    n_players, n_own
        Players, and parameters of each.
    costs
        Of the levels.
    n_told
        Queries that were told.
    most
        That a decision is to take.
    """
    explored, evaluated, answered = [], [], []
    for seed in range(_RUNS):
        exploring = _told(MFUCBPNE, n_players, n_own, costs, n_told, seed)
        explored.append(_seconds(exploring.ask))
        evaluating = _told(UCBPNE, n_players, n_own, costs, n_told, seed)
        evaluated.append(_seconds(evaluating.ask))
        answered.append(_seconds(evaluating.recommend))
    return {
        "players": n_players,
        "parameters": n_players * n_own,
        "told": n_told,
        "asked": most,
        "MF-UCB-PNE's next query": statistics.median(explored),
        "the next evaluation": statistics.median(evaluated),
        "the answer": statistics.median(answered),
    }


def _told(
    kind: Callable[..., GamePolicy],
    n_players: int,
    n_own: int,
    costs: tuple[float, ...],
    n_told: int,
    seed: int,
) -> GamePolicy:
    """A policy that was told of random profiles of a smooth game, a third of them at the target."""
    rng = np.random.default_rng(seed)
    players = {
        f"player {player}": {f"x{player}_{own}": Numeric() for own in range(n_own)}
        for player in range(n_players)
    }
    names = [name for own in players.values() for name in own]
    policy = kind(players, costs, _BUDGET, seed=seed)
    waves = 4.0 * rng.standard_normal((n_players, len(names))) / np.sqrt(n_own)
    top = len(costs) - 1
    for _ in range(n_told):
        places = rng.random(len(names))
        levels = np.where(rng.random() < 1.0 / 3.0, top, rng.integers(top + 1, size=n_players))
        utilities = np.sin(waves @ places) + 0.1 * rng.standard_normal(n_players)
        profile = dict(zip(names, places.tolist(), strict=True))
        policy.tell(Query(profile, tuple(levels.tolist())), utilities.tolist())
    return policy


def _seconds(function: Any) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started
