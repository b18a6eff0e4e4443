"""Races by a policy, told as the adapters tell it: in the order in which pulls were begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.assumptions.clock import VirtualClock
from benchmarks.assumptions.outcome import Outcome, judged
from benchmarks.assumptions.scenarios import DELTA, Scenario, World
from mfhpo import Observation, Problem, Pull
from mfhpo.identification import BestArmPolicy
from mfhpo.in_order import InOrder
from mfhpo.user_recommendation import UserRecommendation

__all__ = ["race_policy"]

# What has ended waits for all that were begun before: nothing is handed on out of order.
_WITHOUT_END = 10**9


def race_policy(
    make: Callable[..., BestArmPolicy],
    scenario: Scenario,
    world: World,
    rng: np.random.Generator,
    **options: Any,
) -> Outcome:
    """Run a race to its end, or to its largest number of evaluations."""
    problem = Problem(
        len(world.means), costs=scenario.costs, bias=scenario.bias, noise=scenario.noise
    )
    seed = int(rng.integers(2**31))
    policy = make(problem, delta=DELTA, epsilon=scenario.epsilon, seed=seed, **options)
    orders: dict[Pull, InOrder[Observation]] = {}
    clock: VirtualClock[tuple[Pull, int, Observation]] = VirtualClock()
    begun = 0
    # A pull that hangs holds back others, which are paid for as well.
    while not policy.finished and policy.pulls < scenario.most and begun < 3 * scenario.most:
        while len(clock) < scenario.workers:
            waiting = [pull for pull, order in orders.items() for _ in order.held]
            asked = policy.ask(1, [*(pull for pull, _, _ in clock.items), *waiting])
            if not asked:
                break
            [pull] = asked
            value, seconds = world.draw(pull.arm, pull.fidelity, rng)
            ticket = orders.setdefault(pull, InOrder(_WITHOUT_END)).begin()
            clock.begin((pull, ticket, Observation(value)), seconds)
            begun += 1
        if not len(clock):
            break
        pull, ticket, ended = clock.next_end()
        for observation in orders[pull].end(ticket, ended):
            policy.tell(pull, observation)
    answer = UserRecommendation.of(policy.recommend(), 1.0, {}, 0)
    return judged(
        str(answer),
        answer.arm,
        world.means,
        epsilon=scenario.epsilon,
        # "arm 3: failed 9 of 12 pulls"
        not_compared=[int(words.split(":")[0].split()[1]) for words in answer.not_compared],
        cost=answer.cost / scenario.costs[-1],
        finished=answer.finished,
    )
