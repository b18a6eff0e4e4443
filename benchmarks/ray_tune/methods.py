"""Who answers: Tune's schedulers, our policies and our scheduler, on the same configurations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler, HyperBandScheduler
from ray.tune.schedulers import TrialScheduler as Scheduler

import mfhpo
from benchmarks.ray_tune.tables import EPOCHS
from benchmarks.simulation.instances import GaussianInstance
from benchmarks.simulation.runner import run
from benchmarks.tune_clock import ReplayedCurves, SimulatedRun, simulate
from mfhpo import IISE, MFTopTwo, Problem
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.noise import EstimatedNoise
from mfhpo_ray import IISEScheduler, MFEliminationScheduler

SLOTS = 8
LEVELS = (2, 6, 17, 52)
DELTA = 0.05
# Pulls of the winner at the last level, so that what is claimed of it is no by-product.
MEASURE = 10
# Enough for any race: one that runs out of replicates would say so.
_REPLICATES = 60
_MOST_PULLS = 20_000
_SHORTLIST = 8
_METRIC = "accuracy"


@dataclass(frozen=True)
class Answer:
    """What a method hands over.

    Parameters
    ----------
    configuration
        Its row in the table.
    claim
        The accuracy, in percent, that it is said to have.
    certified
        Whether it is said to be within epsilon of the best, wrong with probability DELTA.
    cost
        What was paid, in trainings of all epochs.
    makespan
        How long it took on 8 slots, in the time of one such training.
    compared
        Rows that a certificate is about; None for all arms of the race.
    """

    configuration: int
    claim: float
    certified: bool
    cost: float
    makespan: float
    compared: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Race:
    """Configurations to choose from, and the noise of one training.

    Parameters
    ----------
    values
        Accuracy of configurations after each epoch, shape (configurations, epochs).
    arms
        The choice is among the first so many; the others are for who has money left.
    sigma
        Standard deviation of the accuracy between seeds, in percent.
    epsilon
        Tolerance, in percent.
    seed
        Source of the noise.
    """

    values: FloatArray
    arms: int
    sigma: float
    epsilon: float
    seed: int

    @property
    def means(self) -> FloatArray:
        """Accuracy of all configurations after the last epoch."""
        return self.values[:, -1]

    def instance(self, arms: npt.NDArray[np.int64] | None = None) -> GaussianInstance:
        """The choice as a bandit with a pull for each level from scratch."""
        rows = np.arange(self.arms) if arms is None else arms
        levels = np.array(LEVELS)
        return GaussianInstance(
            self.values[rows][:, levels - 1].T, levels / EPOCHS, variance=self.sigma**2
        )

    @cached_property
    def certified_makespan(self) -> float:
        """How long the race of the default policy takes."""
        return METHODS["MFTopTwo, max bias declared"](self).makespan


def _simulated(
    race: Race, scheduler: Scheduler, *, configurations: int, replicates: int, **options: Any
) -> SimulatedRun:
    curves = ReplayedCurves(
        race.values, seconds=1.0 / EPOCHS, sigma=race.sigma, seed=race.seed, arm_key="configuration"
    )
    trials = [
        {"configuration": row, "seed": seed}
        for row in range(configurations)
        for seed in range(replicates)
    ]
    return simulate(
        scheduler,
        trials,
        curves,
        slots=SLOTS,
        max_t=EPOCHS,
        metric=_METRIC,
        checkpoints=True,
        **options,
    )


def _reported(outcome: SimulatedRun, scope: Any = "last") -> Answer:
    trial, claim = outcome.best(scope=scope)
    return Answer(
        trial.config["configuration"], claim, False, outcome.slot_seconds, outcome.makespan
    )


def _asha() -> Scheduler:
    return AsyncHyperBandScheduler(max_t=EPOCHS)


def _of_tune(make: Callable[[], Scheduler], scope: str = "last") -> Callable[[Race], Answer]:
    def answer(race: Race) -> Answer:
        outcome = _simulated(race, make(), configurations=race.arms, replicates=1)
        return _reported(outcome, scope)

    return answer


def _asha_at_our_cost(race: Race) -> Answer:
    outcome = _simulated(
        race,
        _asha(),
        configurations=len(race.values),
        replicates=1,
        time_budget=race.certified_makespan,
    )
    return _reported(outcome)


def _of_policy(make: Callable[[Race, GaussianInstance], mfhpo.Race]) -> Callable[[Race], Answer]:
    def answer(race: Race) -> Answer:
        return _raced(race, race.instance(), make)

    return answer


def _raced(
    race: Race,
    instance: GaussianInstance,
    make: Callable[[Race, GaussianInstance], mfhpo.Race],
) -> Answer:
    policy = make(race, instance)
    rng = np.random.default_rng([race.seed, 1])
    result = run(policy, instance, rng, workers=SLOTS, max_pulls=_MOST_PULLS)
    recommendation = policy.recommend()
    assert result.arm is not None
    return Answer(result.arm, recommendation.mean, result.certified, result.cost, result.elapsed)


def _options(race: Race) -> dict[str, Any]:
    return {"delta": DELTA, "epsilon": race.epsilon, "measure": MEASURE, "seed": race.seed}


def _elimination(
    policy: type[mfhpo.Race], kind: Any = "max", **options: Any
) -> Callable[[Race], Answer]:
    return _of_policy(
        lambda race, instance: policy(instance.problem(kind), **options, **_options(race))
    )


def _top_two(kind: Any) -> Callable[[Race], Answer]:
    return _of_policy(
        lambda race, instance: MFTopTwo(
            instance.problem(kind), estimated_bias="eliminate", **_options(race)
        )
    )


def _nothing_declared(race: Race, instance: GaussianInstance) -> mfhpo.Race:
    problem = Problem(instance.n_arms, instance.costs.tolist(), noise=EstimatedNoise())
    return MFTopTwo(problem, **_options(race))


def _shortlisted(race: Race) -> Answer:
    """ASHA, and then a race of those of its trials that came furthest, the best first."""
    outcome = _simulated(race, _asha(), configurations=race.arms, replicates=1)
    order = sorted(
        outcome.trials,
        key=lambda trial: (trial.last_result["training_iteration"], trial.last_result[_METRIC]),
        reverse=True,
    )
    rows = np.array([trial.config["configuration"] for trial in order[:_SHORTLIST]])
    found = _raced(
        race,
        race.instance(rows),
        lambda race, instance: MFTopTwo(instance.problem(), **_options(race)),
    )
    return Answer(
        int(rows[found.configuration]),
        found.claim,
        found.certified,
        outcome.slot_seconds + found.cost,
        outcome.makespan + found.makespan,
        tuple(rows.tolist()),
    )


def _scheduled(*, declared: bool) -> Callable[[Race], Answer]:
    def answer(race: Race) -> Answer:
        scheduler = IISEScheduler(
            levels=LEVELS,
            sigma=race.sigma if declared else None,
            bias=race.instance().xi.tolist() if declared else None,
            **_options(race),
        )
        return _recommended(
            scheduler,
            _simulated(race, scheduler, configurations=race.arms, replicates=_REPLICATES),
        )

    return answer


def _eliminated(race: Race) -> Answer:
    values = race.values[: race.arms]
    distances = abs(values - values[:, -1:]).max(axis=0)
    # A bound is about all epochs from a level on.
    bias = {level: float(distances[level - 1 :].max()) for level in LEVELS[:-1]}
    # Of normal noise, one value in 16,000 is farther from the mean than four deviations.
    scheduler = MFEliminationScheduler(bias=bias, noise=4.0 * race.sigma, max_t=EPOCHS)
    return _recommended(
        scheduler, _simulated(race, scheduler, configurations=race.arms, replicates=1)
    )


def _recommended(scheduler: Any, outcome: SimulatedRun) -> Answer:
    found = scheduler.recommendation()
    return Answer(
        found.params["configuration"],
        found.mean,
        found.certified,
        outcome.slot_seconds,
        outcome.makespan,
    )


METHODS: dict[str, Callable[[Race], Answer]] = {
    "random search": _of_tune(FIFOScheduler),
    "ASHA": _of_tune(_asha),
    "ASHA, best of all reports": _of_tune(_asha, scope="all"),
    "ASHA, as long as MFTopTwo": _asha_at_our_cost,
    "HyperBand": _of_tune(lambda: HyperBandScheduler(max_t=EPOCHS)),
    "MFEliminationScheduler, declared": _eliminated,
    "ASHA, then MFTopTwo on its best 8": _shortlisted,
    "SE, last level only": _elimination(IISE, variant="se"),
    "IISE, max bias declared": _elimination(IISE),
    "IISE, order bias declared": _elimination(IISE, "order"),
    "MFTopTwo, max bias declared": _top_two("max"),
    "MFTopTwo, order bias declared": _top_two("order"),
    "MFTopTwo, bias estimated": _top_two(None),
    "MFTopTwo, nothing declared": _of_policy(_nothing_declared),
    "IISEScheduler, max bias declared": _scheduled(declared=True),
    "IISEScheduler, nothing declared": _scheduled(declared=False),
}
"""Whoever answers, by name, in the order of the tables."""
