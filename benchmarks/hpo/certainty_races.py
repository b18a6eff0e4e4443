"""Races of policies to a certificate, and what their pulls cost."""

import warnings
from typing import Literal

import numpy as np

import mfhpo
from benchmarks.hpo.certainty_answers import Answer, Race
from benchmarks.simulation.blocks import run_lucb, run_repeats, run_rounds
from benchmarks.simulation.instances import GaussianInstance
from mfhpo import Observation
from mfhpo.identification.elimination import LevelByLevel
from mfhpo.identification.lucb import MFLUCB
from mfhpo.knowledge.arrays import FloatArray, IntArray

Source = Literal["known", "declared", "estimated", "none"]

DELTA = 0.05
"""Probability of a wrong certificate that races are asked for."""

MOST_COST = 20_000.0
"""A race that has paid this, in full evaluations, counts as one that does not end."""

# Pulls between two looks at what a race has paid.
_PULLS_AT_ONCE = 500


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


def run_until_sure(
    policy: mfhpo.Race, instance: GaussianInstance, continues: bool, rng: np.random.Generator
) -> Answer:
    """Run a policy until it is sure, or has paid too much.

    Parameters
    ----------
    policy
        Who plays; it is changed.
    instance
        What it plays.
    continues
        Whether trainings are kept and continued, see `paid`.
    rng
        Source of the noise.
    """
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
            elif isinstance(policy.rule, LevelByLevel) and _in_step(policy):
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


def _in_step(policy: mfhpo.Race) -> bool:
    """Whether all arms have as many pulls: no pilot, and none came back as bounds were widened."""
    return policy.bias is not None and policy.bias.source == "declared"


def instance_of(race: Race, source: Source, arms: IntArray | None = None) -> GaussianInstance:
    """What a policy plays: the pool with its noise, and bounds on its bias.

    Parameters
    ----------
    race
        Whose pool and noise.
    source
        Where the bounds come from; with "none" there is the target level only.
    arms
        Who takes part at the target level; None for all. With bounds, all do.
    """
    pool, variance = race.pool, race.sigma**2
    if source == "none":
        means = pool.means[-1:] if arms is None else pool.means[-1:, arms]
        return GaussianInstance(means, pool.costs[-1:], variance=variance)
    if source == "declared":
        xi, gamma = race.declared.xi, race.declared.gamma
        return GaussianInstance(pool.means, pool.costs, xi=xi, gamma=gamma, variance=variance)
    return GaussianInstance(pool.means, pool.costs, variance=variance)
