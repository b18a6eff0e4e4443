"""Ways to a certificate, and what became of one race by each."""

import heapq
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.assumptions.adapters import race_by_sampler, race_by_searcher
from benchmarks.assumptions.outcome import Outcome, outcome_of_answer, outcome_of_certificate
from benchmarks.assumptions.scenarios import SCENARIOS, Scenario, World
from benchmarks.assumptions.truth import Tally
from mfhpo import IISE, MFLUCB, MFGrad, MFTopTwo, Observation, Problem, Pull
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.knowledge.noise import EstimatedNoise
from mfhpo.racing.in_order import InOrder
from mfhpo.racing.recommendation import UserRecommendation


def _race(
    make: Callable[..., BestArmPolicy], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    problem = Problem(
        len(world.means), costs=scenario.costs, bias=scenario.bias, noise=scenario.noise
    )
    policy = make(problem, delta=0.05, epsilon=scenario.epsilon, seed=int(rng.integers(2**31)))
    orders: dict[Pull, InOrder[tuple[Pull, Observation]]] = {}
    under_way: list[tuple[float, int, Pull, int, Observation]] = []
    tally, target = Tally(len(world.means)), problem.target
    now, begun, told = 0.0, 0, 0
    while not policy.finished and told < scenario.most and begun < 3 * scenario.most:
        while len(under_way) < scenario.workers:
            held = [item[0] for order in orders.values() for _, item in order.held]
            pending = [*(entry[2] for entry in under_way), *held]
            asked = policy.ask(1, pending)
            if not asked:
                break
            [pull] = asked
            value, seconds = world.draw(pull.arm, pull.fidelity, rng)
            ticket = orders.setdefault(pull, InOrder()).begin()
            heapq.heappush(under_way, (now + seconds, begun, pull, ticket, Observation(value)))
            begun += 1
        if not under_way:
            break
        now, _, pull, ticket, observation = heapq.heappop(under_way)
        for of, item in orders[pull].end(ticket, (pull, observation)):
            policy.tell(of, item)
            tally.add(of.arm, item.value, of.fidelity == target)
            told += 1
    answer = UserRecommendation.of(policy.recommend(), 1.0, {}, 0)
    return outcome_of_answer(answer, scenario, world, tally)


def _candidates(n: int) -> list[Candidate]:
    return [Candidate(f"trial {arm}", {"x": arm}, claim=1.0) for arm in range(n)]


def _shortlist(
    make: Callable[..., Any], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    """By `ask` and `tell`, one evaluation after the other: order has no part in it."""
    options = {} if isinstance(scenario.noise, EstimatedNoise) else {"sigma": _sigma(scenario)}
    n = len(world.means)
    race = make(
        _candidates(n),
        luckiest=0,
        maximise=True,
        delta=0.05,
        epsilon=scenario.epsilon,
        **options,
    )
    tally = Tally(n)
    for _ in range(scenario.most):
        pull = None if race.finished else race.ask()
        if pull is None:
            break
        value, _ = world.draw(pull.arm, 0, rng)
        race.tell(pull, value)
        tally.add(pull.arm, value)
    certificate = race.certificate(f"the {n} best of 100 trials", "by their values")
    return outcome_of_certificate(certificate, scenario, world, tally)


def _sigma(scenario: Scenario) -> Any:
    return getattr(scenario.noise, "sigma", scenario.noise)


def _in_blocks(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """By all workers, told in the order of their ends: blocks are complete when all have ended."""
    n = len(world.means)
    race = Certification(
        _candidates(n), luckiest=0, maximise=True, delta=0.05, epsilon=scenario.epsilon, blocks=True
    )
    under_way: list[tuple[float, int, Pull, float | None]] = []
    tally, now, begun = Tally(n), 0.0, 0
    while not race.finished and race.evaluations < scenario.most:
        while len(under_way) < scenario.workers:
            pull = race.ask([entry[2] for entry in under_way])
            if pull is None:
                break
            value, seconds = world.draw(pull.arm, 0, rng)
            heapq.heappush(under_way, (now + seconds, begun, pull, value))
            begun += 1
        if not under_way:
            break
        now, _, pull, value = heapq.heappop(under_way)
        race.tell(pull, value)
        tally.add(pull.arm, value)
    certificate = race.certificate(f"the {n} best of 100 rows", "by their values")
    return outcome_of_certificate(certificate, scenario, world, tally)


CONTESTANTS: dict[str, Callable[[Scenario, World, np.random.Generator], Outcome]] = {
    "MFTopTwo": lambda *race: _race(MFTopTwo, *race),
    "IISE": lambda *race: _race(IISE, *race),
    "MFLUCB": lambda *race: _race(MFLUCB, *race),
    "MFGrad": lambda *race: _race(MFGrad, *race),
    "MFTopTwo eliminating": lambda *race: _race(
        partial(MFTopTwo, estimated_bias="eliminate"), *race
    ),
    "IISE eliminating": lambda *race: _race(partial(IISE, estimated_bias="eliminate"), *race),
    "MFSampler": race_by_sampler,
    "MFSearch": race_by_searcher,
    "certify": lambda *race: _shortlist(Certification, *race),
    "group-sequential": lambda *race: _shortlist(partial(Certification, first_look=5), *race),
    "blocks": _in_blocks,
}
"""Policies, a sampler of Optuna's and a searcher of Ray's, and the certificates of shortlists."""

_ADAPTERS = ("MFSampler", "MFSearch")
_OF_SHORTLISTS = ("certify", "group-sequential", "blocks")


def takes_part(contestant: str, scenario: Scenario) -> bool:
    """Whether a contestant runs a scenario.

    Samplers and searchers run those in which they have a part: with several workers. Certificates
    of shortlists know one level only and, but for blocks, run one evaluation at a time here. Bounds
    on the bias are estimated where there are several levels and none are declared.
    """
    if contestant.endswith("eliminating"):
        return len(scenario.costs) > 1 and scenario.bias is None
    if contestant in _ADAPTERS:
        return scenario.workers > 1
    if contestant not in _OF_SHORTLISTS:
        return True
    if contestant == "blocks":
        return scenario.with_certificates and isinstance(scenario.noise, EstimatedNoise)
    return scenario.with_certificates and scenario.workers == 1


def run(task: tuple[str, str, int]) -> Outcome:
    """Run one race, given the names of its scenario and contestant, and a seed."""
    name, contestant, seed = task
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CONTESTANTS[contestant](scenario, scenario.world(rng), rng)
