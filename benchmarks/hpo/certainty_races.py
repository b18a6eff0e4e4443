"""Races for the best of a pool of random configurations: who pays what, and who is wrong."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from mfhpo import IISE, MFTopTwo, Observation, SuccessiveElimination
from mfhpo.bias import Kind
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.elimination import Elimination
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.simulation.instances import GaussianInstance
from mfhpo.simulation.lucb import run_lucb
from mfhpo.simulation.runner import run_repeats, run_rounds

__all__ = [
    "CONTENDERS",
    "DELTA",
    "MOST_COST",
    "SHORTLIST",
    "Answer",
    "Bounds",
    "Contender",
    "Halved",
    "Outcome",
    "Pool",
    "Race",
    "bounds_elsewhere",
    "draw_pool",
    "halve",
    "hyperband",
    "judged",
    "paid",
    "play",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Source = Literal["known", "declared", "estimated", "none"]

DELTA = 0.05
"""Probability of a wrong certificate that races are asked for."""

MOST_COST = 20_000.0
"""A race that has paid this, in full evaluations, counts as one that does not end."""

SHORTLIST = 8
"""Configurations that are raced where halving chooses them."""

_REDUCTION = 3
# Pulls between two looks at what a race has paid.
_PULLS_AT_ONCE = 500
# Configurations of another task that its bounds are looked up from, and the source of their draw.
_ELSEWHERE, _ELSEWHERE_SEED = 1000, 1_000_003
# Of the configurations of another task, the declared bounds hold for this share.
_SHARE = 0.95


@dataclass(frozen=True)
class Pool:
    """Configurations to choose from, and the truth about them.

    Parameters
    ----------
    task
        Such as "lcbench 3945".
    means
        Noiseless accuracy in percent, shape (M, K), the target level last.
    costs
        Of a training from scratch at each level, in trainings at the target, shape (M,).
    continues
        Whether a training can go on from a cheaper level, so that only the difference is paid.
    """

    task: str
    means: FloatArray
    costs: FloatArray
    continues: bool

    @property
    def n_arms(self) -> int:
        """Number of configurations K."""
        return int(self.means.shape[1])

    @property
    def target(self) -> int:
        """Index of the target level, M - 1."""
        return len(self.costs) - 1

    def regret(self, arm: int) -> float:
        """By how much the best configuration is better, in percent."""
        return float(self.means[-1].max() - self.means[-1, arm])


@dataclass(frozen=True)
class Bounds:
    """Bounds on the bias of every level, shape (M,), in percent: max bounds and order bounds."""

    xi: FloatArray
    gamma: FloatArray

    def hold(self, means: FloatArray) -> tuple[bool, bool]:
        """Whether each kind holds for all configurations of shape (M, K)."""
        biases = means - means[-1]
        return (
            bool((np.abs(biases).max(axis=1) <= self.xi).all()),
            bool((np.ptp(biases, axis=1) <= self.gamma).all()),
        )


def draw_pool(
    task: str,
    levels: Sequence[float] | None,
    n_arms: int,
    seed: int,
    data: Path | str | None = None,
) -> Pool:
    """Draw configurations of a task at random.

    Parameters
    ----------
    task
        "lcbench TASK" or "rbv2_xgboost TASK".
    levels
        Levels of its fidelity, or None for its default.
    n_arms, seed
        Number of configurations, and source of the draw.
    data
        YAHPO's folder; by default ``$MFHPO_DATA/yahpo``.
    """
    problem = problem_named(task, data, levels=levels)
    if not isinstance(problem, NoisyProblem):
        raise ValueError(f"task={task!r} has no known true values; take a surrogate's task.")
    rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
    configurations = [problem.space.draw(rng) for _ in range(n_arms)]
    fidelity = problem.fidelity
    return Pool(
        task,
        np.array([problem.noiseless(configurations, level) for level in fidelity.levels]),
        np.array([problem.cost(level) for level in fidelity.levels]) / problem.full_cost,
        fidelity.continues,
    )


def bounds_elsewhere(
    task: str, levels: tuple[float, ...] | None, data: Path | str | None = None
) -> Bounds:
    """What somebody careful who has seen the other development tasks would declare.

    Each of the other tasks of the same kind shows 1,000 random configurations. Its max bound at a
    level is the 95 % quantile of their absolute biases, its order bound the width of the interval
    between the 2.5 % and the 97.5 % quantile of their biases. What is declared is the largest over
    these tasks.
    """
    kind = task.partition(" ")[0]
    others = [
        other for other in DEVELOPMENT_TASKS if other != task and other.partition(" ")[0] == kind
    ]
    seen = [_seen_of(other, levels, data) for other in others]
    return Bounds(
        np.max([bounds.xi for bounds in seen], axis=0),
        np.max([bounds.gamma for bounds in seen], axis=0),
    )


@cache
def _seen_of(task: str, levels: tuple[float, ...] | None, data: Path | str | None) -> Bounds:
    means = draw_pool(task, levels, _ELSEWHERE, _ELSEWHERE_SEED, data).means
    biases = means - means[-1]
    low, high = np.quantile(biases, [(1.0 - _SHARE) / 2.0, (1.0 + _SHARE) / 2.0], axis=1)
    return Bounds(np.quantile(np.abs(biases), _SHARE, axis=1), high - low)


@dataclass(frozen=True)
class Race:
    """A pool, the noise, and what is asked for.

    Parameters
    ----------
    pool
        What to choose from.
    sigma, epsilon
        Standard deviation of the noise, and tolerance, in percent.
    declared
        Bounds from elsewhere.
    seed
        Source of the noise.
    """

    pool: Pool
    sigma: float
    epsilon: float
    declared: Bounds
    seed: int


@dataclass(frozen=True)
class Answer:
    """What a contender hands over.

    Parameters
    ----------
    arm
        Its choice.
    cost
        What it paid, in full evaluations.
    certified
        Whether it says that the choice is within epsilon of the best of `compared`, wrong with
        probability DELTA.
    compared
        What the certificate is about; None for the whole pool.
    unfinished
        Whether it had paid `MOST_COST` before it was sure.
    widened
        Whether bounds were contradicted and widened on the way.
    from_scratch
        What a policy would have paid if nothing was continued; None for others.
    """

    arm: int
    cost: float
    certified: bool = False
    compared: tuple[int, ...] | None = None
    unfinished: bool = False
    widened: bool = False
    from_scratch: float | None = None


@dataclass(frozen=True)
class Contender:
    """Somebody who answers.

    Parameters
    ----------
    answer
        Plays a race with a source of noise.
    rule
        By which family of rules, such as "IISE".
    source
        Where its bias bounds come from: "known" are the smallest that hold for the pool.
    slow
        Whether a race takes it so long that it only takes part in the first setting.
    """

    answer: Callable[[Race, np.random.Generator], Answer]
    rule: str
    source: Source
    slow: bool = False


@dataclass(frozen=True)
class Outcome:
    """How good an answer is.

    Parameters
    ----------
    contender, task
        Who, and where.
    cost
        In full evaluations.
    regret
        How far the choice is below the best of the pool, in percent.
    certified, unfinished, widened, from_scratch
        See `Answer`.
    wrong
        Whether the certificate is wrong.
    """

    contender: str
    task: str
    cost: float
    regret: float
    certified: bool
    unfinished: bool
    widened: bool
    from_scratch: float | None
    wrong: bool


def judged(name: str, race: Race, answer: Answer) -> Outcome:
    """Hold an answer against the truth."""
    truth = race.pool.means[-1]
    compared = range(race.pool.n_arms) if answer.compared is None else answer.compared
    short = float(truth[list(compared)].max() - truth[answer.arm])
    return Outcome(
        contender=name,
        task=race.pool.task,
        cost=answer.cost,
        regret=race.pool.regret(answer.arm),
        certified=answer.certified,
        unfinished=answer.unfinished,
        widened=answer.widened,
        from_scratch=answer.from_scratch,
        wrong=answer.certified and short > race.epsilon,
    )


def play(name: str, race: Race) -> Outcome:
    """Let a contender answer; it has noise of its own."""
    key = f"{name} {race.pool.task} {race.pool.costs.tolist()} {race.sigma:g} {race.epsilon:g}"
    rng = np.random.default_rng([race.seed, zlib.crc32(key.encode())])
    return judged(name, race, CONTENDERS[name].answer(race, rng))


# Racing to a certificate.


def paid(counts: IntArray, costs: FloatArray, continues: bool) -> float:
    """What some pulls cost.

    Parameters
    ----------
    counts
        Pulls of every arm at every level, shape (K, M).
    costs
        Of a training from scratch, shape (M,).
    continues
        Whether trainings are kept and continued. Then one training gives a value at each level that
        it comes to, and an arm needs only as many trainings up to a level as it has pulls there or
        at some higher one.

    Examples
    --------
    >>> counts = np.array([[2, 1]])
    >>> paid(counts, np.array([0.25, 1.0]), continues=False)
    1.5
    >>> paid(counts, np.array([0.25, 1.0]), continues=True)
    1.25
    """
    if not continues:
        return float((counts @ costs).sum())
    reaching = np.maximum.accumulate(counts[:, ::-1], axis=1)[:, ::-1]
    return float((reaching @ np.diff(costs, prepend=0.0)).sum())


def _raced(
    policy: BestArmPolicy, instance: GaussianInstance, continues: bool, rng: np.random.Generator
) -> Answer:
    """Run a policy until it is sure, or has paid too much."""
    with warnings.catch_warnings():
        # What is told to a user once would be told of thousands of races.
        warnings.simplefilter("ignore", UserWarning)
        while policy.piloting:
            [pull] = policy.ask()
            value = instance.draw(rng, pull.arm, pull.fidelity)
            policy.tell(pull, Observation(value))
        while not policy.finished and policy.cost < MOST_COST:
            most = policy.pulls + _PULLS_AT_ONCE
            if isinstance(policy, MFLUCB):
                run_lucb(policy, instance, rng, max_pulls=most)
            elif isinstance(policy, Elimination) and _in_step(policy):
                run_rounds(policy, instance, rng, max_pulls=policy.pulls + 1)  # one block
            else:
                run_repeats(policy, instance, rng, max_pulls=most)
    found = policy.recommend()
    if found.arm is None:
        raise ValueError(f"{type(policy).__name__} has no answer.")
    arms, levels = range(instance.n_arms), range(instance.n_fidelities)
    counts = np.array([[policy.summary(arm, level)[0] for level in levels] for arm in arms])
    return Answer(
        arm=found.arm,
        cost=paid(counts, instance.costs, continues),
        certified=found.certified,
        unfinished=not policy.finished,
        widened=policy.bias is not None and policy.bias.source == "widened",
        from_scratch=policy.cost,
    )


def _in_step(policy: Elimination) -> bool:
    """Whether all arms have as many pulls: no pilot, and none came back as bounds were widened."""
    return policy.bias is not None and policy.bias.source == "declared"


def _instance(race: Race, source: Source, arms: IntArray | None = None) -> GaussianInstance:
    pool, variance = race.pool, race.sigma**2
    if source == "none":
        means = pool.means[-1:] if arms is None else pool.means[-1:, arms]
        return GaussianInstance(means, pool.costs[-1:], variance=variance)
    if source == "declared":
        xi, gamma = race.declared.xi, race.declared.gamma
        return GaussianInstance(pool.means, pool.costs, xi=xi, gamma=gamma, variance=variance)
    return GaussianInstance(pool.means, pool.costs, variance=variance)


def _policy(
    make: Callable[..., BestArmPolicy], kind: Kind, source: Source
) -> Callable[[Race, np.random.Generator], Answer]:
    """Race with bounds of a kind from a source; with "none" at the target level only."""

    def answer(race: Race, rng: np.random.Generator) -> Answer:
        instance = _instance(race, source)
        problem = instance.problem(None if source == "estimated" else kind)
        # Bounds that are known to hold need no audit.
        audit = source in ("declared", "estimated")
        policy = make(problem, delta=DELTA, epsilon=race.epsilon, audit=audit, seed=race.seed)
        return _raced(policy, instance, race.pool.continues, rng)

    return answer


# Halving, which promises nothing.


@dataclass(frozen=True)
class Halved:
    """How successive halving ended.

    Parameters
    ----------
    order
        Its arms: those that came furthest first, and of these the best first.
    value
        What was seen of the first of them.
    cost
        In full evaluations.
    """

    order: tuple[int, ...]
    value: float
    cost: float


def halve(
    pool: Pool, arms: Sequence[int], first: int, sigma: float, rng: np.random.Generator
) -> Halved:
    """Successive halving: from a first level on, the best third goes to the next level.

    Karnin, Koren and Somekh, "Almost Optimal Exploration in Multi-Armed Bandits" (ICML 2013), as
    in Hyperband (Li et al., JMLR 2018).

    Parameters
    ----------
    pool
        The truth.
    arms
        Who takes part, at least one.
    first
        Index of the first level.
    sigma, rng
        The noise, in percent, and its source.
    """
    inside = np.asarray(arms, dtype=np.int64)
    behind: list[int] = []
    cost, best = 0.0, math.nan
    for level in range(first, pool.target + 1):
        begun = pool.costs[level - 1] if pool.continues and level > first else 0.0
        cost += len(inside) * float(pool.costs[level] - begun)
        values = pool.means[level, inside] + sigma * rng.standard_normal(len(inside))
        ranked = np.argsort(-values)
        inside, best = inside[ranked], float(values[ranked[0]])
        if level < pool.target:
            kept = max(1, len(inside) // _REDUCTION)
            behind = [*inside[kept:].tolist(), *behind]
            inside = inside[:kept]
    return Halved((*inside.tolist(), *behind), best, cost)


def hyperband(pool: Pool, sigma: float, rng: np.random.Generator) -> Answer:
    """Hyperband's brackets on the pool, each on arms of its own, in its usual proportions.

    The bracket with s promotions gets arms in proportion to 3^s / (s + 1), so that all brackets
    cost about the same (Li et al., JMLR 2018, Algorithm 1).
    """
    promotions = np.arange(pool.target, -1, -1)
    weights = float(_REDUCTION) ** promotions / (promotions + 1.0)
    ends = np.round(pool.n_arms * np.cumsum(weights) / weights.sum()).astype(np.int64)
    parts = np.split(rng.permutation(pool.n_arms), ends[:-1])
    brackets = [
        halve(pool, arms.tolist(), first, sigma, rng)
        for first, arms in enumerate(parts)
        if len(arms)
    ]
    best = max(brackets, key=lambda bracket: bracket.value)
    return Answer(best.order[0], sum(bracket.cost for bracket in brackets))


def _halving(race: Race, rng: np.random.Generator) -> Answer:
    found = halve(race.pool, range(race.pool.n_arms), 0, race.sigma, rng)
    return Answer(found.order[0], found.cost)


def _shortlist(race: Race, rng: np.random.Generator) -> Answer:
    """Halving, and then a race of its best at the target level, which needs no bounds."""
    found = halve(race.pool, range(race.pool.n_arms), 0, race.sigma, rng)
    arms = np.array(found.order[:SHORTLIST])
    instance = _instance(race, "none", arms)
    policy = MFTopTwo(instance.problem(), delta=DELTA, epsilon=race.epsilon, audit=False)
    raced = _raced(policy, instance, False, rng)
    return Answer(
        int(arms[raced.arm]),
        found.cost + raced.cost,
        raced.certified,
        tuple(arms.tolist()),
        raced.unfinished,
    )


def _once_each(race: Race, rng: np.random.Generator) -> Answer:
    pool = race.pool
    values = pool.means[-1] + race.sigma * rng.standard_normal(pool.n_arms)
    return Answer(int(np.argmax(values)), float(pool.n_arms))


_BOUNDED: dict[str, tuple[Callable[..., BestArmPolicy], Kind, bool]] = {
    "IISE": (lambda problem, **options: IISE(problem, variant="max", **options), "max", False),
    "IISE-gamma": (
        lambda problem, **options: IISE(problem, variant="order", **options),
        "order",
        False,
    ),
    "MF-LUCB": (MFLUCB, "max", False),
    "MF-GRAD": (lambda problem, **options: MFGrad(problem, variant="max", **options), "max", True),
    "MFTopTwo": (MFTopTwo, "order", False),
}

_SOURCES: tuple[Source, ...] = ("known", "declared", "estimated")

CONTENDERS: dict[str, Contender] = {
    "successive halving": Contender(_halving, "halving", "none"),
    "Hyperband": Contender(
        lambda race, rng: hyperband(race.pool, race.sigma, rng), "halving", "none"
    ),
    f"halving, then MFTopTwo on its best {SHORTLIST}": Contender(_shortlist, "shortlist", "none"),
    "every arm once at the target": Contender(_once_each, "once", "none"),
    "SE, target only": Contender(_policy(SuccessiveElimination, "max", "none"), "SE", "none"),
    "LUCB, target only": Contender(_policy(MFLUCB, "max", "none"), "MF-LUCB", "none"),
    "MFTopTwo, target only": Contender(_policy(MFTopTwo, "max", "none"), "MFTopTwo", "none"),
    **{
        f"{rule}, bounds {source}": Contender(_policy(make, kind, source), rule, source, slow)
        for source in _SOURCES
        for rule, (make, kind, slow) in _BOUNDED.items()
    },
}
"""Whoever answers, by name, in the order of the tables."""
