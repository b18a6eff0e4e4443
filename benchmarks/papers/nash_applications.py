"""Random access and power allocation (Sections V-D and V-C), whose equilibria are known."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from scipy.stats import qmc

from benchmarks.papers.nash_games import PowerAllocation, RandomAccess
from mfhpo.games import MFUCBPNE, GamePolicy, Query
from mfhpo.knowledge.space import Numeric, Point

_ACCESS_COSTS, _ACCESS_BUDGET = (1.0, 5.0, 10.0, 20.0), 3_000.0
_NEAR = 0.2  # of .05, .1, .15, .2 and .3 that after which powers are nearest to the equilibrium's


class Game(Protocol):
    """A game that can be played."""

    @property
    def players(self) -> Mapping[str, Mapping[str, Numeric]]:
        """The players' parameters."""
        ...

    def utilities(
        self, profile: Point, levels: Sequence[int], rng: np.random.Generator
    ) -> list[float]:
        """One observation of each player's utility."""
        ...


def played(policy: GamePolicy, game: Game, rng: np.random.Generator) -> list[Query]:
    """Run a policy to its end; the queries, in order."""
    queries = []
    while (query := policy.ask()) is not None:
        policy.tell(query, game.utilities(query.profile, query.levels, rng))
        queries.append(query)
    return queries


def access(seed: int) -> dict[str, Any]:
    """Throughputs at the profile that is recommended for random access."""
    game = RandomAccess()
    policy = MFUCBPNE(game.players, _ACCESS_COSTS, _ACCESS_BUDGET, seed=seed)
    started = time.process_time()
    queries = played(policy, game, np.random.default_rng(seed))
    answer = policy.recommend()
    throughput = game.throughput(answer.profile)
    expected = np.array(game.equilibrium_throughput())
    return {
        "seed": seed,
        "budget": _ACCESS_BUDGET,
        "queries": len(queries),
        "evaluations": answer.n_evaluations,
        "throughput": throughput.tolist(),
        "expected": expected.tolist(),
        "largest error": float(np.abs(throughput / expected - 1.0).max()),
        "seconds": time.process_time() - started,
    }


def power(task: tuple[int, int, float, tuple[int, ...]]) -> dict[str, Any]:
    """Powers at the profile that is recommended, by seed, links, budget and levels."""
    seed, n_links, budget, realisations = task
    game = PowerAllocation(n_links=n_links, realisations=realisations)
    policy = _for_power(game, budget, seed)
    started = time.process_time()
    queries = played(policy, game, np.random.default_rng(seed))
    row = {
        "seed": seed,
        "links": n_links,
        "budget": budget,
        "realisations": list(realisations),
        "queries": len(queries),
    }
    return row | _of_power(game, policy) | {"seconds": time.process_time() - started}


def informed_power(task: tuple[int, float]) -> dict[str, Any]:
    """Powers that follow if all of a budget is spent where five links learn most.

    All evaluations are at the target, and their profiles spread evenly to `_NEAR` of the range on
    both sides of the equilibrium, which nobody knows. What is left of the error is due to the
    noise, and to how little is taken for granted of utilities.

    Parameters
    ----------
    task
        Seed and budget.
    """
    seed, budget = task
    game = PowerAllocation()
    policy = _for_power(game, budget, seed)
    rng = np.random.default_rng(seed)
    decibels = 10.0 * math.log10(game.equilibrium_power())
    centre = (decibels - game.lowest) / (game.highest - game.lowest)
    count = int(budget / policy.costs.of_evaluation)
    design = qmc.LatinHypercube(game.n_links, rng=rng).random(count)
    for place in centre + _NEAR * (2.0 * design - 1.0):
        query = policy.target_query(place)
        policy.tell(query, game.utilities(query.profile, query.levels, rng))
    row = {
        "seed": seed,
        "links": game.n_links,
        "budget": budget,
        "realisations": list(game.realisations),
        "queries": count,
    }
    return row | _of_power(game, policy)


def _for_power(game: PowerAllocation, budget: float, seed: int) -> MFUCBPNE:
    costs = [float(count) for count in game.realisations]
    return MFUCBPNE(game.players, costs, budget, averaging=True, seed=seed)


def _of_power(game: PowerAllocation, policy: GamePolicy) -> dict[str, Any]:
    """What a policy recommends, held against the equilibrium."""
    answer = policy.recommend()
    powers, expected = game.powers(answer.profile), game.equilibrium_power()
    return {
        "evaluations": answer.n_evaluations,
        "powers": powers.tolist(),
        "expected": expected,
        "mean error": float(powers.mean() / expected - 1.0),
        "largest error": float(np.abs(powers / expected - 1.0).max()),
        "largest gain": float(game.gains(answer.profile).max()),
    }
