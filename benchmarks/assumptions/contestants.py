"""Ways to a certificate, and what became of one race by each."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.assumptions.scenarios import SCENARIOS, Scenario, World
from benchmarks.assumptions.truth import false_sentences
from mfhpo import IISE, MFLUCB, MFGrad, MFTopTwo, Observation, Problem, Pull
from mfhpo.certification import Candidate, Certificate, Certification
from mfhpo.group_sequential_certification import GroupSequentialCertification
from mfhpo.identification import BestArmPolicy
from mfhpo.in_order import InOrder
from mfhpo.noise import EstimatedNoise
from mfhpo.paired_certification import PairedCertification
from mfhpo.user_recommendation import UserRecommendation

__all__ = ["CONTESTANTS", "Outcome", "run"]


@dataclass(frozen=True)
class Outcome:
    """One race.

    Parameters
    ----------
    certified
        Whether it ended with a certificate.
    wrong
        Whether that is for an arm that is not within epsilon of the best of all arms.
    is_false
        Whether a printed sentence is false: about the arms that it says were compared.
    missed
        Whether the interval misses the mean of a certified arm.
    evaluations
        Their number.
    noticed
        Whether the text has a notice, or says that something was not compared.
    """

    certified: bool
    wrong: bool
    is_false: bool
    missed: bool
    evaluations: int
    noticed: bool


def _race(
    make: Callable[..., BestArmPolicy], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    problem = Problem(
        len(world.means), costs=scenario.costs, bias=scenario.bias, noise=scenario.noise
    )
    policy = make(problem, delta=0.05, epsilon=scenario.epsilon, seed=int(rng.integers(2**31)))
    orders: dict[Pull, InOrder[tuple[Pull, Observation]]] = {}
    under_way: list[tuple[float, int, Pull, int, Observation]] = []
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
            ticket = orders.setdefault(pull, InOrder(10**9)).begin()
            heapq.heappush(under_way, (now + seconds, begun, pull, ticket, Observation(value)))
            begun += 1
        if not under_way:
            break
        now, _, pull, ticket, observation = heapq.heappop(under_way)
        for of, item in orders[pull].end(ticket, (pull, observation)):
            policy.tell(of, item)
            told += 1
    answer = UserRecommendation.of(policy.recommend(), 1.0, {}, 0)
    wrong = False
    missed = False
    if answer.certified and answer.arm is not None:
        wrong = bool(world.means[answer.arm] < world.means.max() - scenario.epsilon - 1e-9)
        low, high = answer.interval
        missed = not low <= world.means[answer.arm] <= high
    withdrawn = {int(words.split(":")[0].split()[1]) for words in answer.not_compared}
    return Outcome(
        answer.certified,
        wrong,
        false_sentences(str(answer), answer.arm, world.means, withdrawn),
        missed,
        told,
        bool(answer.notices or answer.not_compared),
    )


def _candidates(n: int) -> list[Candidate]:
    return [Candidate(f"trial {arm}", {"x": arm}, claim=1.0) for arm in range(n)]


def _outcome(certificate: Certificate, scenario: Scenario, world: World) -> Outcome:
    wrong = missed = False
    if certificate.certified and certificate.winner is not None:
        mean = world.means[certificate.winner]
        wrong = bool(mean < world.means.max() - certificate.epsilon - 1e-9)
        low, high = certificate.interval
        missed = not low <= mean <= high
    failed = {
        arm for arm, result in enumerate(certificate.candidates) if result.standing == "failed"
    }
    worse = [arm for arm, result in enumerate(certificate.candidates) if result.standing == "worse"]
    others = [mean for arm, mean in enumerate(world.means) if arm not in failed]
    best_is_worse = (
        any(world.means[arm] >= max(others) for arm in worse)
        and len([mean for mean in others if mean == max(others)]) == 1
    )
    text = str(certificate)
    return Outcome(
        certificate.certified,
        wrong,
        false_sentences(text, certificate.winner, world.means, failed) or best_is_worse,
        missed,
        certificate.evaluations,
        bool(certificate.notices or failed),
    )


def _shortlist(
    make: Callable[..., Any], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    """By `ask` and `tell`, one evaluation after the other: order has no part in it."""
    options = {} if isinstance(scenario.noise, EstimatedNoise) else {"sigma": _sigma(scenario)}
    race = make(
        _candidates(len(world.means)),
        luckiest=0,
        maximise=True,
        delta=0.05,
        epsilon=scenario.epsilon,
        **options,
    )
    told = 0
    while not race.finished and told < scenario.most:
        arm = race.ask()
        if arm is None:
            break
        race.tell(arm, world.draw(arm, 0, rng)[0])
        told += 1
    n = len(world.means)
    return _outcome(
        race.certificate(f"the {n} best of 100 trials", "by their values"), scenario, world
    )


def _sigma(scenario: Scenario) -> Any:
    return getattr(scenario.noise, "sigma", scenario.noise)


def _paired(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    n = len(world.means)
    race = PairedCertification(
        _candidates(n), luckiest=0, maximise=True, delta=0.05, epsilon=scenario.epsilon
    )
    told = 0
    while not race.finished and told < scenario.most:
        values = {arm: world.draw(arm, 0, rng)[0] for arm in race.ask()}
        race.tell(values)
        told += len(values)
    return _outcome(
        race.certificate(f"the {n} best of 100 rows", "by their values"), scenario, world
    )


CONTESTANTS: dict[str, Callable[[Scenario, World, np.random.Generator], Outcome]] = {
    "MFTopTwo": lambda *race: _race(MFTopTwo, *race),
    "IISE": lambda *race: _race(IISE, *race),
    "MFLUCB": lambda *race: _race(MFLUCB, *race),
    "MFGrad": lambda *race: _race(MFGrad, *race),
    "certify": lambda *race: _shortlist(Certification, *race),
    "group-sequential": lambda *race: _shortlist(GroupSequentialCertification, *race),
    "paired": _paired,
}
"""Policies, and the certificates of shortlists."""

_OF_SHORTLISTS = ("certify", "group-sequential", "paired")


def takes_part(contestant: str, scenario: Scenario) -> bool:
    """Whether a contestant can run a scenario."""
    if contestant not in _OF_SHORTLISTS:
        return True
    if not scenario.with_certificates or scenario.workers > 1:
        return False
    return contestant != "paired" or isinstance(scenario.noise, EstimatedNoise)


def run(task: tuple[str, str, int]) -> Outcome:
    """Run one race, given the names of its scenario and contestant, and a seed."""
    name, contestant, seed = task
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CONTESTANTS[contestant](scenario, scenario.world(rng), rng)
