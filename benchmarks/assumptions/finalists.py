"""Races in which cheap levels choose the finalists, by a model or by halving."""

import heapq
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.assumptions.outcome import Outcome, outcome_of_answer, outcome_of_finalists
from benchmarks.assumptions.scenarios import Scenario
from benchmarks.assumptions.truth import Tally
from benchmarks.assumptions.worlds import World
from benchmarks.simulation.in_order import InOrder
from mfhpo import IISE, Fidelity, Observation, Pull
from mfhpo.experiment import Answer
from mfhpo.search import DeclaredSearch, Replicate

_BUDGET = 1.8  # full evaluations for each configuration: two would pay for comparing all


def race_of_finalists(
    scenario: Scenario, world: World, rng: np.random.Generator, by: str
) -> Outcome:
    """Run a race whose finalists are chosen "by model" or "by halving" of names."""
    n, costs = len(world.means), scenario.costs
    named = "halving" in by
    declared = DeclaredSearch.of(
        Fidelity("level", levels=list(range(1, len(costs) + 1)), costs=list(costs)),
        budget=_BUDGET * n * costs[-1],
        delta=scenario.delta,
        epsilon=scenario.epsilon,
        replicate="split" if "blocks" in by else None,
        candidates=[{"name": f"{k}"} if named else {"x": k} for k in range(n)],
    )
    certifier = IISE if "IISE" in by else None
    race = declared.race(
        list(range(1, len(costs) + 1)), seed=int(rng.integers(2**31)), sign=1.0, certifier=certifier
    )
    under_way: list[tuple[float, int, Pull, int, float | None]] = []
    orders: dict[tuple[int, int], InOrder[tuple[Pull, float | None]]] = {}
    now, begun = 0.0, 0
    told: list[tuple[Pull, float | None]] = []
    while not race.finished:
        while len(under_way) < scenario.workers:
            held = [item[0] for order in orders.values() for _, item in sorted(order.held.items())]
            asked = race.ask(1, [*(entry[2] for entry in under_way), *held])
            if not asked:
                break
            pull = asked[0]
            split = begun if pull.block is None else pull.block
            value, seconds = world.draw(pull.arm, pull.fidelity, split, rng)
            ticket = orders.setdefault((pull.arm, pull.fidelity), InOrder()).begin()
            heapq.heappush(under_way, (now + seconds, begun, pull, ticket, value))
            begun += 1
        if not under_way:
            break
        now, _, pull, ticket, value = heapq.heappop(under_way)
        for of, seen in orders[pull.arm, pull.fidelity].end(ticket, (pull, value)):
            race.tell(of, Observation(seen))
            told.append((of, seen))
    answer = _answer(race)
    if answer.certificate is None:
        tally = Tally(n)
        for pull, value in told:
            tally.add(pull.arm, value, pull.fidelity == race.fidelity)
        return outcome_of_answer(answer, scenario, world, tally, exact=False)
    arms = list(race.shortlist)
    tally = Tally(len(arms))
    tally.tried = len({pull.arm for pull, _ in told})
    reached: dict[int, int] = {}
    for pull, value in told:
        if isinstance(pull, Replicate):
            tally.add(arms.index(pull.arm), value, split=pull.block)
        elif value is not None:
            reached[pull.arm] = max(reached.get(pull.arm, -1), pull.fidelity)
    for level in reached.values():
        tally.left_at[f"fidelity {level}"] += 1
    tally.left_at["not tried"] = n - tally.tried
    return outcome_of_finalists(
        answer.certificate, scenario, world, arms, tally, str(answer), exact=scenario.workers == 1
    )


def _answer(race: Any) -> Answer:
    found = Answer.of(race.recommend(), 1.0, {}, 0)
    return replace(found, searched=True, **race.standing.findings())
