"""Whoever answers which configuration of a pool is the best: policies, halving, and both."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import mfhpo
from benchmarks.hpo.certainty_answers import Answer, Outcome, Race, judged
from benchmarks.hpo.certainty_halving import halve, hyperband
from benchmarks.hpo.certainty_races import DELTA, Source, instance_of, run_until_sure
from mfhpo import IISE, MFTopTwo
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.knowledge.bias import Kind

SHORTLIST = 8
"""Configurations that are raced where halving chooses them."""


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


def play(name: str, race: Race) -> Outcome:
    """Let a contender answer; it has noise of its own."""
    key = f"{name} {race.pool.task} {race.pool.costs.tolist()} {race.sigma:g} {race.epsilon:g}"
    rng = np.random.default_rng([race.seed, zlib.crc32(key.encode())])
    return judged(name, race, CONTENDERS[name].answer(race, rng))


def _policy(
    make: Callable[..., mfhpo.Race], kind: Kind, source: Source
) -> Callable[[Race, np.random.Generator], Answer]:
    """Race with bounds of a kind from a source; with "none" at the target level only."""

    def answer(race: Race, rng: np.random.Generator) -> Answer:
        instance = instance_of(race, source)
        problem = instance.problem(None if source == "estimated" else kind)
        # Bounds that are known to hold need no audit, nor does sigma.
        audit = "bias" if source in ("declared", "estimated") else False
        policy = make(
            problem,
            delta=DELTA,
            epsilon=race.epsilon,
            audit=audit,
            estimated_bias="eliminate",
            seed=race.seed,
        )
        return run_until_sure(policy, instance, race.pool.continues, rng)

    return answer


def _halving(race: Race, rng: np.random.Generator) -> Answer:
    found = halve(race.pool, range(race.pool.n_arms), 0, race.sigma, rng)
    return Answer(found.order[0], found.cost)


def _shortlist(race: Race, rng: np.random.Generator) -> Answer:
    """Halving, and then a race of its best at the target level, which needs no bounds."""
    found = halve(race.pool, range(race.pool.n_arms), 0, race.sigma, rng)
    arms = np.array(found.order[:SHORTLIST])
    instance = instance_of(race, "none", arms)
    policy = MFTopTwo(instance.problem(), delta=DELTA, epsilon=race.epsilon, audit=False)
    raced = run_until_sure(policy, instance, False, rng)
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


_BOUNDED: dict[str, tuple[Callable[..., mfhpo.Race], Kind, bool]] = {
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
    "SE, target only": Contender(
        _policy(lambda problem, **options: IISE(problem, variant="se", **options), "max", "none"),
        "SE",
        "none",
    ),
    "LUCB, target only": Contender(_policy(MFLUCB, "max", "none"), "MF-LUCB", "none"),
    "MFTopTwo, target only": Contender(_policy(MFTopTwo, "max", "none"), "MFTopTwo", "none"),
    **{
        f"{rule}, bounds {source}": Contender(_policy(make, kind, source), rule, source, slow)
        for source in _SOURCES
        for rule, (make, kind, slow) in _BOUNDED.items()
    },
}
"""Whoever answers, by name, in the order of the tables."""
