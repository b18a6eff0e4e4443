"""Races through Optuna's samplers and Ray's searchers, with several workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optuna

from benchmarks.assumptions.clock import VirtualClock
from benchmarks.assumptions.outcome import Outcome, judged
from benchmarks.assumptions.scenarios import DELTA, Scenario, World
from mfhpo import Fidelity

__all__ = ["race_sampler", "race_searcher"]

# An answer takes about as long as a trial, so not each one is looked at.
_TRIALS_BETWEEN_LOOKS = 4


def _options(scenario: Scenario, world: World, rng: np.random.Generator) -> dict[str, Any]:
    """What samplers and searchers are told: one level, the arms, what is declared."""
    return {
        "fidelity": Fidelity("epochs", levels=[1]),
        "arms": [{"x": float(arm)} for arm in range(len(world.means))],
        "delta": DELTA,
        "epsilon": scenario.epsilon,
        "seed": int(rng.integers(2**31)),
    }


def race_sampler(
    make: Callable[..., Any], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    """Run a race by a study's ask and tell."""
    sampler = make(**_options(scenario, world, rng))
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    clock: VirtualClock[tuple[optuna.Trial, float | None]] = VirtualClock()
    for told in range(1, scenario.most + 1):
        while len(clock) < scenario.workers:
            trial = study.ask()
            arm = round(trial.suggest_float("x", 0.0, float(len(world.means) - 1)))
            trial.suggest_int("epochs", 1, 1)
            value, seconds = world.draw(arm, 0, rng)
            clock.begin((trial, value), seconds)
        trial, value = clock.next_end()
        state = optuna.trial.TrialState.FAIL if value is None else None
        study.tell(trial, value, state=state)
        if told % _TRIALS_BETWEEN_LOOKS == 0 and sampler.recommendation(study).certified:
            break
    optuna.logging.set_verbosity(verbosity)
    answer = sampler.recommendation(study)
    return _judged(answer, answer.params, scenario, world)


def race_searcher(
    make: Callable[..., Any], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    """Run a race by a searcher's calls, as Ray's controller makes them."""
    search = make(metric="value", mode="max", **_options(scenario, world, rng))
    search.set_max_concurrency(scenario.workers)
    clock: VirtualClock[tuple[str, float | None]] = VirtualClock()
    begun = told = 0
    while not search.finished and told < scenario.most:
        while isinstance(config := search.suggest(str(begun)), dict):
            value, seconds = world.draw(round(config["x"]), 0, rng)
            clock.begin((str(begun), value), seconds)
            begun += 1
        if not len(clock):
            break
        name, value = clock.next_end()
        search.on_trial_complete(name, None if value is None else {"value": value}, value is None)
        told += 1
    for name, _ in clock.items:
        search.discard(name)
    answer = search.recommendation()
    return _judged(answer, answer.config, scenario, world)


def _judged(answer: Any, params: dict[str, Any], scenario: Scenario, world: World) -> Outcome:
    return judged(
        str(answer),
        round(params["x"]) if params else None,
        world.means,
        epsilon=scenario.epsilon,
        not_compared=[],  # only raced where no evaluation fails
        cost=float(answer.cost),
        finished=answer.finished,
    )
