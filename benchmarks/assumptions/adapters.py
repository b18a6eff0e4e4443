"""Races through Optuna's samplers and Ray's searchers, on a clock that is invented."""

import heapq
from typing import Any

import numpy as np
import optuna

from benchmarks.assumptions.outcome import Outcome, outcome_of_answer
from benchmarks.assumptions.scenarios import Scenario, World
from benchmarks.assumptions.truth import Tally
from mfhpo import Fidelity
from mfhpo_optuna import MFSampler
from mfhpo_ray import MFSearch

# An answer takes about as long as a trial, so not each one is looked at.
_TRIALS_BETWEEN_LOOKS = 5


def race_by_sampler(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Run a race by `mfhpo_optuna.MFSampler` and a study's ask and tell."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = MFSampler(**_options(scenario, world, rng), progress=False)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    under_way: list[tuple[float, int, optuna.Trial, int, float | None]] = []
    tally, now = Tally(len(world.means)), 0.0
    for told in range(1, scenario.most + 1):
        while len(under_way) < scenario.workers:
            trial = study.ask()
            arm = round(trial.suggest_float("x", 0.0, len(world.means) - 1.0))
            trial.suggest_int("epochs", 1, 1)
            value, seconds = world.draw(arm, 0, rng)
            heapq.heappush(under_way, (now + seconds, trial.number, trial, arm, value))
        now, _, trial, arm, value = heapq.heappop(under_way)
        state = optuna.trial.TrialState.FAIL if value is None else None
        study.tell(trial, value, state=state)
        tally.add(arm, value)
        if told % _TRIALS_BETWEEN_LOOKS == 0 and sampler.recommendation(study).certified:
            break
    return outcome_of_answer(sampler.recommendation(study), scenario, world, tally, exact=False)


def race_by_searcher(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Run a race by the calls that Ray Tune makes of `mfhpo_ray.MFSearch`."""
    search = MFSearch(metric="value", mode="max", **_options(scenario, world, rng))
    under_way: list[tuple[float, int, int, float | None]] = []
    tally, now, begun = Tally(len(world.means)), 0.0, 0
    while not search.finished and begun < scenario.most + scenario.workers:
        while len(under_way) < scenario.workers:
            config = search.suggest(str(begun))
            if not isinstance(config, dict):
                break
            arm = round(config["x"])
            value, seconds = world.draw(arm, 0, rng)
            heapq.heappush(under_way, (now + seconds, begun, arm, value))
            begun += 1
        if not under_way:
            break
        now, number, arm, value = heapq.heappop(under_way)
        result = None if value is None else {"value": value}
        search.on_trial_complete(str(number), result, error=value is None)
        tally.add(arm, value)
    return outcome_of_answer(search.recommendation(), scenario, world, tally, exact=False)


def _options(scenario: Scenario, world: World, rng: np.random.Generator) -> dict[str, Any]:
    """What samplers and searchers are told: one level, the arms, what is declared."""
    return {
        "fidelity": Fidelity("epochs", levels=[1]),
        "arms": [{"x": float(arm)} for arm in range(len(world.means))],
        "delta": 0.05,
        "epsilon": scenario.epsilon,
        "measure": 0,
        "seed": int(rng.integers(2**31)),
    }
