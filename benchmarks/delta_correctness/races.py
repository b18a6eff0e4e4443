"""Races under one condition, and whether their answers are wrong."""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.delta_correctness.conditions import (
    OF_SHORTLISTS,
    VALUES,
    Condition,
    Instance,
    Told,
    Variant,
    draw_instance,
)
from benchmarks.simulation.in_order import InOrder
from mfhpo import (
    IISE,
    MFLUCB,
    Bias,
    Bounded,
    EmpiricalBernsteinRadius,
    EstimatedNoise,
    Gaussian,
    HoeffdingRadius,
    MFGrad,
    MFTopTwo,
    MixtureRadius,
    Noise,
    Observation,
    Problem,
    Pull,
    Radius,
    SubGaussian,
)
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.identification.elimination import LevelByLevel
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.confidence import stitched_boundary
from mfhpo.racing.race import Race

_Make: TypeAlias = Callable[..., Any]
_POLICIES: dict[str, _Make] = {
    "IISE": IISE,
    "MFLUCB": MFLUCB,
    "MFTopTwo": MFTopTwo,
    "MFGrad": MFGrad,
}
_CERTIFICATES: dict[str, _Make] = {
    "certify": Certification,
    "group-sequential": partial(Certification, first_look=5),
    "blocks": partial(Certification, blocks=True),
}
_LOST, _REPEATED = 0.1, 0.1


@dataclass(frozen=True)
class StitchedRadius(Radius):
    """The polynomial stitched boundary, tightest of all for very many pulls.

        B(n) = 1.7 sigma sqrt((ln ln(2 n) + 0.72 ln(10.4 / level)) / n)

    up to the rounding of the constants (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 1 with
    eta = 2, s = 1.4, m = sigma^2); the code uses the formula that they come from.
    """

    sigma: float

    assumption = MixtureRadius.assumption

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        return np.asarray(self.sigma * stitched_boundary(n, 1.0, 0.0, level / 2.0) / n)


@dataclass(frozen=True)
class ShrunkRadius(Radius):
    """Another radius times a factor: no guarantee is left when the factor is below 1."""

    radius: Radius
    factor: float

    theorem = "none"
    assumption = "none: the radius is too small on purpose"
    changes = True  # the other radius may

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        return self.factor * self.radius(n, level, *spreads)


def _policy(instance: Instance, condition: Condition, delta: float) -> Race:
    sigma = 0.5 if instance.values == "Bernoulli" else 1.0
    noise: Noise = SubGaussian(sigma)
    radius: Radius | None = None
    if condition.knowledge in ("empirical Bernstein", "tightest"):
        noise = Bounded(0.0, 1.0)
        if condition.knowledge == "empirical Bernstein":
            radius = EmpiricalBernsteinRadius(0.0, 1.0)
    elif condition.knowledge == "Student":
        noise = Gaussian()
    elif condition.knowledge == "estimated":
        noise = EstimatedNoise()
    elif condition.knowledge == "Hoeffding":
        radius = HoeffdingRadius(sigma)
    elif condition.knowledge == "stitched":
        radius = StitchedRadius(sigma)
    if condition.shrink != 1.0:
        radius = ShrunkRadius(MixtureRadius(sigma), condition.shrink)
    kind: Literal["max", "order"] = "order" if condition.variant.endswith("order") else "max"
    problem = Problem(instance.means.shape[1], instance.costs, Bias(kind, instance.bounds), noise)
    options: dict[str, Any] = {"delta": delta, "epsilon": instance.epsilon}
    if radius is not None:
        options["radius"] = radius
    if condition.variant == "SE":
        return IISE(problem, variant="se", **options)
    # Where the radius is too small, the audit would find the bounds contradicted; where all
    # intervals hold it finds nothing. So it is left on, but for the control.
    options["audit"] = condition.shrink == 1.0
    if condition.variant == "MFE":
        return Race(problem, LevelByLevel(problem, fraction=1.0), **options)
    policy: Race = _POLICIES[condition.variant.split()[0]](problem, **options)
    return policy


def _race(policy: Race, instance: Instance, rng: np.random.Generator, told: Told) -> None:
    """Run the race to its end, or to the largest number of pulls."""
    if told == "by duration":
        _race_by_duration(policy, instance, rng)
        return
    in_order = told == "in order"
    workers = 1 if in_order else int(rng.integers(2, 9))
    under_way: list[Pull] = []
    while not policy.finished and policy.pulls < instance.most_pulls:
        under_way += policy.ask(workers - len(under_way), under_way)
        pull = under_way.pop(int(rng.integers(len(under_way))))
        fate = 1.0 if in_order else rng.random()
        if fate < _LOST:
            continue
        policy.tell(pull, Observation(instance.draw(rng, pull)))
        if fate < _LOST + _REPEATED:
            policy.tell(pull, Observation(instance.draw(rng, pull)))


def _race_by_duration(policy: Race, instance: Instance, rng: np.random.Generator) -> None:
    """Several pulls are under way; poor values come late, and are waited for."""
    workers, now = int(rng.integers(2, 9)), 0.0
    orders: dict[Pull, InOrder[Observation]] = {}
    under_way: list[tuple[float, int, Pull, int, Observation]] = []
    numbers = count()
    while not policy.finished and policy.pulls < instance.most_pulls:
        held = [pull for pull, order in orders.items() for _ in order.held]
        pending = [*(entry[2] for entry in under_way), *held]
        for pull in policy.ask(workers - len(under_way), pending):
            value = instance.draw(rng, pull)
            seconds = 30.0 if value < instance.means[pull.fidelity, pull.arm] else 1.0
            ticket = orders.setdefault(pull, InOrder()).begin()
            ends = now + seconds * rng.uniform(0.9, 1.1)
            heapq.heappush(under_way, (ends, next(numbers), pull, ticket, Observation(value)))
        now, _, pull, ticket, observation = heapq.heappop(under_way)
        for observed in orders[pull].end(ticket, observation):
            policy.tell(pull, observed)


def _is_wrong(policy: Race, instance: Instance) -> bool:
    targets = instance.means[-1]
    recommendation = policy.recommend()
    if recommendation.certified and targets[recommendation.arm] < targets.max() - instance.epsilon:
        return True
    return instance.epsilon == 0.0 and int(np.argmax(targets)) not in recommendation.survivors


def _compared(
    variant: Variant, instance: Instance, delta: float, rng: np.random.Generator
) -> tuple[bool, bool, int]:
    """Whether a certificate of a shortlist is wrong, whether it is one, and its evaluations."""
    targets = instance.means[-1]
    candidates = [Candidate(f"trial {arm}", {"x": arm}, 0.0) for arm in range(len(targets))]
    options: dict[str, Any] = {
        "luckiest": 0,
        "maximise": True,
        "delta": delta,
        "epsilon": instance.epsilon,
    }
    target = len(instance.means) - 1
    race: Any = _CERTIFICATES[variant](candidates, **options)
    evaluations = 0
    while not race.finished and evaluations < instance.most_pulls:
        pull = race.ask()
        race.tell(pull, instance.draw(rng, Pull(pull.arm, target)))
        evaluations += 1
    answer = race.certificate("all", "by hand")
    behind = targets.max() - targets[answer.winner]
    wrong = answer.certified and behind > instance.epsilon
    best = answer.candidates[int(np.argmax(targets))]
    return bool(wrong or best.standing == "worse"), answer.certified, evaluations


def run(
    task: tuple[Condition, int, int, float, int],
) -> tuple[int, int, int, float]:
    """Wrong races, certified races, pulls and CPU seconds of a range of instances."""
    condition, start, stop, delta, seed = task
    started = time.process_time()
    wrong = certified = pulls = 0
    values = VALUES[condition.knowledge]
    for number in range(start, stop):
        # Both ways of telling, and all policies, see the same instances.
        rng = np.random.default_rng([seed, number])
        instance = draw_instance(rng, condition, values[number % len(values)])
        if condition.variant in OF_SHORTLISTS:
            one = _compared(condition.variant, instance, delta, rng)
            wrong, certified, pulls = wrong + one[0], certified + one[1], pulls + one[2]
            continue
        policy = _policy(instance, condition, delta)
        _race(policy, instance, rng, condition.told)
        wrong += _is_wrong(policy, instance)
        certified += policy.recommend().certified
        pulls += policy.pulls
    return wrong, certified, pulls, time.process_time() - started
