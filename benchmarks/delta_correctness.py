"""How often a certificate is wrong, against the delta that it promises.

    python -m benchmarks.delta_correctness --instances 2000 --workers 2 --output results.json

Every policy races on random instances: 2 to 20 arms, 1 to 4 fidelities, Gaussian or Bernoulli
values, biases within the declared bounds and, on every other instance, at them, against the best
arm. Pulls are told in order, or out of order: several are under way, one in ten is lost, one in ten
is evaluated and told twice. Or they take the longer, the poorer their values are, and are put in
order as samplers and searchers do it (`mfhpo.racing.in_order`). The certificates of shortlists
compare the arms at the target alone, where the biases have no part.

A race is wrong when its certified arm is not within epsilon of the best. With epsilon = 0 it is
also wrong when the best arm was eliminated, certified or not, so that one instance in four can have
a gap too small to certify: there an elimination at a biased fidelity is as likely as it can be.
The last row is a control, whose radius is too small on purpose: its share must exceed delta.
"""

import argparse
import heapq
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.stats import beta

from benchmarks.provenance import provenance
from mfhpo import (
    IISE,
    MFLUCB,
    Bias,
    Bounded,
    EmpiricalBernsteinRadius,
    EstimatedNoise,
    Gaussian,
    HoeffdingRadius,
    MaximumFidelityExploit,
    MFGrad,
    MFTopTwo,
    MixtureRadius,
    Noise,
    Observation,
    Problem,
    Pull,
    Radius,
    SubGaussian,
    SuccessiveElimination,
)
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.confidence import stitched_boundary
from mfhpo.racing.in_order import InOrder

Variant = Literal[
    "SE",
    "IISE max",
    "IISE order",
    "MFE",
    "MFLUCB",
    "MFTopTwo max",
    "MFTopTwo order",
    "MFGrad",
    "certify",
    "group-sequential",
    "blocks",
]
Told = Literal["in order", "out of order", "by duration"]
_AT_RANDOM: tuple[Told, ...] = ("in order", "out of order")
_FOR_ESTIMATES: tuple[Told, ...] = ("out of order", "by duration")
Knowledge = Literal[
    "mixture", "Hoeffding", "stitched", "empirical Bernstein", "tightest", "Student", "estimated"
]
Values = Literal["Gaussian", "Bernoulli"]

VARIANTS: tuple[Variant, ...] = get_args(Variant)
_ELIMINATIONS: tuple[Variant, ...] = ("SE", "IISE max", "IISE order", "MFE")
_OF_SHORTLISTS: tuple[Variant, ...] = ("certify", "group-sequential", "blocks")
# Which values satisfy the assumption of each radius.
VALUES: dict[Knowledge, tuple[Values, ...]] = {
    "mixture": ("Gaussian", "Bernoulli"),
    "Hoeffding": ("Gaussian", "Bernoulli"),
    "stitched": ("Gaussian", "Bernoulli"),
    "empirical Bernstein": ("Bernoulli",),
    "tightest": ("Bernoulli",),
    "Student": ("Gaussian",),
    "estimated": ("Gaussian",),
}
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
_MOST_PULLS = 1500
_MOST_PULLS_WHEN_HARD = 300
_LOST, _REPEATED = 0.1, 0.1


@dataclass(frozen=True)
class Condition:
    """What is raced how.

    `knowledge` is the radius, or what of the noise is declared; `shrink` multiplies the radius.
    """

    variant: Variant
    knowledge: Knowledge = "mixture"
    tolerant: bool = False
    told: Told = "in order"
    shrink: float = 1.0


@dataclass(frozen=True)
class Row:
    """How the races under one condition ended.

    `upper` is the one-sided 95 % Clopper-Pearson bound on the probability of a wrong answer;
    `certified` is the share of certified races, `pulls` the mean number of pulls, `cpu_s` the mean
    CPU seconds of a race.
    """

    condition: Condition
    races: int
    wrong: int
    share: float
    upper: float
    certified: float
    pulls: float
    cpu_s: float


@dataclass(frozen=True)
class StitchedRadius(Radius):
    """The polynomial stitched boundary, tightest of all for very many pulls.

        B(n) = 1.7 sigma sqrt((ln ln(2 n) + 0.72 ln(10.4 / level)) / n)

    up to the rounding of the constants (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 1 with
    eta = 2, s = 1.4, m = sigma^2); the code uses the formula that they come from.
    """

    sigma: float

    assumption = MixtureRadius.assumption

    def _widths(
        self, n: FloatArray, level: float, squares: FloatArray, prediction_errors: FloatArray
    ) -> FloatArray:
        return np.asarray(self.sigma * stitched_boundary(n, 1.0, 0.0, level / 2.0) / n)


@dataclass(frozen=True)
class ShrunkRadius(Radius):
    """Another radius times a factor: no guarantee is left when the factor is below 1."""

    radius: Radius
    factor: float

    theorem = "none"
    assumption = "none: the radius is too small on purpose"
    changes = True  # the other radius may

    def _widths(
        self, n: FloatArray, level: float, squares: FloatArray, prediction_errors: FloatArray
    ) -> FloatArray:
        return self.factor * self.radius(n, level, squares, prediction_errors)


@dataclass(frozen=True)
class _Instance:
    """Means (M, K), standard deviations (M, K) and what a policy is told."""

    means: FloatArray
    deviations: FloatArray
    values: Values
    costs: tuple[float, ...]
    bounds: tuple[float, ...]
    epsilon: float
    most_pulls: int

    def draw(self, rng: np.random.Generator, pull: Pull) -> float:
        mean = float(self.means[pull.fidelity, pull.arm])
        if self.values == "Bernoulli":
            return float(rng.random() < mean)
        return mean + float(self.deviations[pull.fidelity, pull.arm]) * rng.standard_normal()


_POLICY_VARIANTS = tuple(variant for variant in VARIANTS if variant not in _OF_SHORTLISTS)

CONDITIONS: tuple[Condition, ...] = (
    *(
        Condition(variant, tolerant=tolerant, told=told)
        for tolerant in (False, True)
        for variant in _POLICY_VARIANTS
        for told in _AT_RANDOM
    ),
    *(Condition(variant, told="by duration") for variant in _POLICY_VARIANTS),
    *(
        Condition("IISE max", knowledge, told=told)
        for knowledge in VALUES
        if knowledge != "mixture"
        for told in _AT_RANDOM
    ),
    *(
        Condition(variant, "estimated", told=told)
        for variant in _POLICY_VARIANTS
        if variant not in _ELIMINATIONS
        for told in _FOR_ESTIMATES
    ),
    *(
        Condition(variant, "estimated", tolerant)
        for variant in _OF_SHORTLISTS
        for tolerant in (False, True)
    ),
    Condition("IISE max", shrink=0.3),
)


def _instance(rng: np.random.Generator, condition: Condition, values: Values) -> _Instance:
    """Draw an instance; see the module's docstring."""
    # Few arms more often than many: 2 to 20, uniform on a logarithmic scale.
    n_arms = int(math.exp(rng.uniform(math.log(2.0), math.log(21.0))))
    n_fidelities = int(rng.integers(1, 5))
    bernoulli = values == "Bernoulli"
    sigma = 0.5 if bernoulli else 1.0
    hard = not condition.tolerant and rng.random() < 0.25
    epsilon = 0.0
    if condition.tolerant:
        # Most arms are right answers, and one is only just wrong.
        epsilon = sigma * rng.uniform(0.9, 1.2)
        gaps = epsilon * rng.uniform(0.0, 1.3, n_arms)
        gaps[-1] = 1.02 * epsilon
        middle = 0.65 * epsilon
    else:
        largest_gap = 1.3 if bernoulli else 2.0
        gap = sigma * (0.05 if hard else rng.uniform(1.1, largest_gap))
        gaps = gap * rng.uniform(1.0, 1.1, n_arms)
        gaps[-1] = gap
        middle = gap / 2.0
    gaps[0] = 0.0
    targets = (0.5 if bernoulli else rng.normal()) + middle - gaps

    largest = rng.uniform(0.02, 0.1) if bernoulli else rng.uniform(0.02, 0.5)
    bounds = largest * rng.uniform(0.1, 0.7) ** np.arange(n_fidelities)
    bounds[-1] = 0.0
    # Shares of the bound, in [-1, 1]; at worst all of them lead away from the best arm.
    shares = rng.uniform(-1.0, 1.0, (n_fidelities, n_arms))
    if rng.random() < 0.5:
        shares = np.where(np.arange(n_arms) == 0, -1.0, 1.0) * np.ones((n_fidelities, 1))
    if condition.variant.endswith("order"):
        common = bounds * rng.uniform(-0.5, 0.5, n_fidelities)
        biases = common[:, None] + bounds[:, None] * shares / 2.0
    else:
        biases = bounds[:, None] * shares
    means = targets + biases
    deviations = np.full(means.shape, sigma)
    if condition.knowledge == "Student":
        deviations = rng.uniform(0.3, 1.0, means.shape)
    if condition.knowledge == "estimated":
        deviations = deviations * rng.uniform(0.3, 1.0, (n_fidelities, 1))
    ratio = rng.uniform(1.3, 4.0)
    costs = tuple((ratio ** np.arange(n_fidelities)).tolist())
    order = rng.permutation(n_arms)
    return _Instance(
        means[:, order],
        deviations[:, order],
        values,
        costs,
        tuple(bounds.tolist()),
        epsilon,
        _MOST_PULLS_WHEN_HARD if hard else _MOST_PULLS,
    )


def _policy(instance: _Instance, condition: Condition, delta: float) -> BestArmPolicy:
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
        return SuccessiveElimination(problem, **options)
    # Where the radius is too small, the audit would find the bounds contradicted; where all
    # intervals hold it finds nothing. So it is left on, but for the control.
    options["audit"] = condition.shrink == 1.0
    if condition.variant == "MFE":
        return MaximumFidelityExploit(problem, **options, fraction=1.0)
    policy: BestArmPolicy = _POLICIES[condition.variant.split()[0]](problem, **options)
    return policy


def _race(policy: BestArmPolicy, instance: _Instance, rng: np.random.Generator, told: Told) -> None:
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


def _race_by_duration(policy: BestArmPolicy, instance: _Instance, rng: np.random.Generator) -> None:
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


def _is_wrong(policy: BestArmPolicy, instance: _Instance) -> bool:
    targets = instance.means[-1]
    recommendation = policy.recommend()
    if recommendation.certified and targets[recommendation.arm] < targets.max() - instance.epsilon:
        return True
    return instance.epsilon == 0.0 and int(np.argmax(targets)) not in recommendation.survivors


def _compared(
    variant: Variant, instance: _Instance, delta: float, rng: np.random.Generator
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


def _run(
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
        instance = _instance(rng, condition, values[number % len(values)])
        if condition.variant in _OF_SHORTLISTS:
            one = _compared(condition.variant, instance, delta, rng)
            wrong, certified, pulls = wrong + one[0], certified + one[1], pulls + one[2]
            continue
        policy = _policy(instance, condition, delta)
        _race(policy, instance, rng, condition.told)
        wrong += _is_wrong(policy, instance)
        certified += policy.recommend().certified
        pulls += policy.pulls
    return wrong, certified, pulls, time.process_time() - started


def _row(condition: Condition, parts: Sequence[tuple[int, int, int, float]], races: int) -> Row:
    wrong = sum(part[0] for part in parts)
    upper = 1.0 if wrong == races else float(beta.ppf(0.95, wrong + 1, races - wrong))
    return Row(
        condition=condition,
        races=races,
        wrong=wrong,
        share=wrong / races,
        upper=upper,
        certified=sum(part[1] for part in parts) / races,
        pulls=sum(part[2] for part in parts) / races,
        cpu_s=sum(part[3] for part in parts) / races,
    )


def check(
    conditions: Sequence[Condition] = CONDITIONS,
    *,
    instances: int,
    delta: float = 0.1,
    seed: int = 0,
    workers: int = 1,
) -> Iterator[Row]:
    """Race on random instances; yield the row of each condition as it is complete."""
    size = max(1, min(100, math.ceil(instances / (4 * workers))))
    starts = range(0, instances, size)
    tasks = [
        (condition, start, min(start + size, instances), delta, seed)
        for condition in conditions
        for start in starts
    ]
    if workers == 1:
        results: Iterator[tuple[int, int, int, float]] = map(_run, tasks)
        for condition in conditions:
            yield _row(condition, list(islice(results, len(starts))), instances)
        return
    with ProcessPoolExecutor(workers) as pool:
        results = pool.map(_run, tasks)
        for condition in conditions:
            yield _row(condition, list(islice(results, len(starts))), instances)


def _line(row: Row) -> str:
    condition = row.condition
    name = condition.knowledge if condition.shrink == 1.0 else f"{condition.shrink:g} x mixture"
    return (
        f"{condition.variant:<16} {name:<20} {'epsilon' if condition.tolerant else 'best':<8} "
        f"{condition.told:<13} {row.wrong:>5} of "
        f"{row.races:<6} {100 * row.share:>6.2f} % {100 * row.upper:>8.2f} % "
        f"{100 * row.certified:>8.1f} % {row.pulls:>7.0f} {1000 * row.cpu_s:>7.1f}"
    )


_HEADER = (
    f"{'policy':<16} {'radius':<20} {'answer':<8} {'told':<13} {'wrong':>5}    {'':<6} "
    f"{'share':>8} {'95% upper':>10} {'certified':>10} {'pulls':>7} {'CPU ms':>7}"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check from the command line; the exit status says whether delta was kept."""
    started = time.perf_counter()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.delta_correctness", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--instances", type=int, default=2000, help="per row (default: 2000)")
    parser.add_argument("--delta", type=float, default=0.1, help="default: 0.1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, help="also write the JSON to this file")
    options = parser.parse_args(arguments)
    if options.instances < 1 or options.workers < 1:
        parser.error("--instances and --workers must be at least 1.")

    rows = []
    numbers = count(1)
    if not options.json:
        print(_HEADER, flush=True)
    for row in check(
        instances=options.instances,
        delta=options.delta,
        seed=options.seed,
        workers=options.workers,
    ):
        rows.append(row)
        seconds = time.perf_counter() - started
        print(f"{next(numbers)} of {len(CONDITIONS)} rows, {seconds:.0f} s", file=sys.stderr)
        if not options.json:
            print(_line(row), flush=True)
    kept = all(row.upper <= options.delta for row in rows if row.condition.shrink == 1.0)
    powerful = all(row.share > options.delta for row in rows if row.condition.shrink < 1.0)
    command = [f"--{name}={getattr(options, name)}" for name in ("instances", "delta", "seed")]
    content = json.dumps(
        provenance("benchmarks.delta_correctness", command)
        | {
            "delta": options.delta,
            "seed": options.seed,
            "seconds": round(time.perf_counter() - started, 1),
            "delta_kept": kept,
            "control_exceeds_delta": powerful,
            "rows": [asdict(row) for row in rows],
        },
        indent=1,
        allow_nan=False,
    )
    if options.json:
        print(content)
    else:
        print(
            f"delta = {options.delta:g}: every bound but the control's is "
            f"{'at most' if kept else 'NOT at most'} delta; the control "
            f"{'exceeds it' if powerful else 'does NOT exceed it'}."
        )
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(content + "\n", encoding="utf-8")
    return 0 if kept and powerful else 1


if __name__ == "__main__":
    sys.exit(main())
