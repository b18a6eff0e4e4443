"""Ways to a certificate, and what became of one race by each."""

import heapq
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.assumptions.adapters import (
    race_by_sampler,
    race_by_searcher,
    search_by_sampler,
    search_by_searcher,
)
from benchmarks.assumptions.finalists import race_of_finalists
from benchmarks.assumptions.forgotten import forgotten_by_certify, forgotten_by_sampler
from benchmarks.assumptions.outcome import Outcome, outcome_of_answer, outcome_of_certificate
from benchmarks.assumptions.scenarios import (
    BESIDE_BASELINE,
    FINALISTS,
    FINALISTS_IN_BLOCKS,
    SCENARIOS,
    Scenario,
)
from benchmarks.assumptions.truth import Tally
from benchmarks.assumptions.worlds import World
from benchmarks.simulation.in_order import InOrder
from mfhpo import IISE, MFLUCB, MFGrad, MFTopTwo, Observation, Problem, Pull
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.experiment import Answer
from mfhpo.identification.round_elimination import RoundElimination
from mfhpo.knowledge.noise import Bounded, EstimatedNoise
from mfhpo.racing.race import Race


def _race(
    make: Callable[..., Race], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    problem = Problem(
        len(world.means), costs=scenario.costs, bias=scenario.bias, noise=scenario.noise
    )
    policy = make(
        problem, delta=scenario.delta, epsilon=scenario.epsilon, seed=int(rng.integers(2**31))
    )
    orders: dict[Pull, InOrder[tuple[Pull, Observation]]] = {}
    under_way: list[tuple[float, int, Pull, int, Observation]] = []
    tally, target = Tally(len(world.means)), problem.target
    now, begun, told = 0.0, 0, 0
    while not policy.finished and told < scenario.most and begun < 3 * scenario.most:
        while len(under_way) < scenario.workers:
            held = [item[0] for order in orders.values() for _, item in sorted(order.held.items())]
            pending = [*(entry[2] for entry in under_way), *held]
            asked = policy.ask(1, pending)
            if not asked:
                break
            [pull] = asked
            value, seconds = world.draw(pull.arm, pull.fidelity, begun, rng)
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
    answer = Answer.of(policy.recommend(), 1.0, {}, 0)
    return outcome_of_answer(answer, scenario, world, tally)


def _candidates(n: int) -> list[Candidate]:
    return [Candidate(f"trial {arm}", {"x": arm}, claim=1.0) for arm in range(n)]


def _shortlist(
    scenario: Scenario,
    world: World,
    rng: np.random.Generator,
    *,
    blocks: bool = False,
    first_look: int | None = None,
    baseline: int | None = None,
) -> Outcome:
    """By `ask` and `tell`: in blocks by all workers, in the order of their ends, else by one.

    With a baseline, what is said about it is wrong, too, if the winner is not better by so much.
    """
    n, noise = len(world.means), scenario.noise
    options: dict[str, Any] = {}
    if not isinstance(noise, EstimatedNoise) and (not blocks or isinstance(noise, Bounded)):
        options["sigma"] = getattr(noise, "sigma", noise)
    race = Certification(
        _candidates(n),
        luckiest=0,
        maximise=True,
        delta=scenario.delta,
        epsilon=scenario.epsilon,
        seed=int(rng.integers(2**31)),
        blocks=blocks,
        replicates=scenario.splits if blocks else None,
        first_look=first_look,
        baseline=baseline,
        **options,
    )
    under_way: list[tuple[float, int, Pull, float | None]] = []
    tally, now, begun = Tally(n), 0.0, 0
    while not race.finished and race.evaluations < scenario.most:
        while len(under_way) < scenario.workers:
            pull = race.ask([entry[2] for entry in under_way])
            if pull is None:
                break
            split = begun if pull.block is None else pull.block
            value, seconds = world.draw(pull.arm, 0, split, rng)
            heapq.heappush(under_way, (now + seconds, begun, pull, value))
            begun += 1
        if not under_way:
            break
        now, _, pull, value = heapq.heappop(under_way)
        race.tell(pull, value)
        tally.add(pull.arm, value, split=pull.block)
    certificate = race.certificate(f"the {n} best of 100 trials", "by their values")
    outcome = outcome_of_certificate(certificate, scenario, world, tally)
    said, winner = certificate.baseline, certificate.winner
    if baseline is None or said is None or winner is None:
        return outcome
    is_false = said.at_least > world.means[winner] - world.means[baseline] + 1e-9
    return replace(outcome, wrong=outcome.wrong or bool(is_false))


def _certify(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """By its policy where several workers' values count in the order of their beginnings."""
    return (_shortlist if scenario.workers == 1 else partial(_race, RoundElimination))(
        scenario, world, rng
    )


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
    "MFSampler in blocks": partial(race_by_sampler, replicate="split"),
    "MFSearch in blocks": partial(race_by_searcher, replicate="split"),
    "SearchSampler in blocks": search_by_sampler,
    "SpaceSearch in blocks": search_by_searcher,
    "IISESampler": forgotten_by_sampler,
    "certify of a study": forgotten_by_certify,
    "certify": _certify,
    "group-sequential": partial(_shortlist, first_look=5),
    "blocks": partial(_shortlist, blocks=True),
    "looks in blocks": partial(_shortlist, blocks=True, first_look=5),
    "certify + baseline": partial(_shortlist, baseline=0),
    "group-sequential + baseline": partial(_shortlist, first_look=5, baseline=0),
    "blocks + baseline": partial(_shortlist, blocks=True, baseline=0),
    "looks in blocks + baseline": partial(_shortlist, blocks=True, first_look=5, baseline=0),
    **{name: partial(race_of_finalists, by=name) for name in (*FINALISTS, *FINALISTS_IN_BLOCKS)},
}
"""Policies, samplers of Optuna's and searchers of Ray's, and the certificates of shortlists."""

MOST_RACES = {"MFSampler": 100}
"""How many races those run that take long; `MFTopTwo`, its policy, runs all of them."""

_WITH_SEVERAL_WORKERS = ("MFSampler", "MFSearch")
_OF_SHORTLISTS = ("certify", "group-sequential", "blocks")
_WHERE_NAMED = (
    "MFSampler in blocks",
    "MFSearch in blocks",
    "SearchSampler in blocks",
    "SpaceSearch in blocks",
    "IISESampler",
    "certify of a study",
    "looks in blocks",
    *FINALISTS_IN_BLOCKS,
    *BESIDE_BASELINE,
)


def takes_part(contestant: str, scenario: Scenario) -> bool:
    """Whether a contestant runs a scenario, which may name those that do.

    Elsewhere, samplers and searchers run those in which they have a part: with several workers.
    Certificates of shortlists know one level only, and looks run one evaluation at a time here.
    Bounds on the bias are estimated where there are several levels and none are declared.
    """
    if scenario.by is not None or contestant in _WHERE_NAMED:
        return contestant in (scenario.by or ())
    if contestant.endswith("eliminating") or contestant in FINALISTS:
        return len(scenario.costs) > 1 and scenario.bias is None
    if contestant in _WITH_SEVERAL_WORKERS:
        return scenario.workers > 1
    if contestant not in _OF_SHORTLISTS:
        return True
    if contestant == "blocks" or (contestant == "certify" and scenario.workers > 1):
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
