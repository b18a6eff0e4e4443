"""Studies whose objective suggests its split like any other parameter, which nobody was told."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optuna

from benchmarks.assumptions.outcome import Outcome, outcome_of_answer, outcome_of_finalists
from benchmarks.assumptions.scenarios import Scenario
from benchmarks.assumptions.truth import Tally
from benchmarks.assumptions.worlds import World
from mfhpo import Fidelity
from mfhpo_optuna import IISESampler, certify

_TRIALS = 20  # of the search before `certify`


def forgotten_by_sampler(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Run a race by `mfhpo_optuna.IISESampler`, with a declared sigma."""
    n_arms = len(world.means)
    sampler = IISESampler(
        Fidelity("epochs", levels=[1]),
        [{"x": arm} for arm in range(n_arms)],
        delta=scenario.delta,
        epsilon=scenario.epsilon,
        sigma=getattr(scenario.noise, "sigma", None),
        seed=int(rng.integers(2**31)),
        progress=False,
    )
    tally = Tally(n_arms)

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_int("epochs", 1, 1)
        arm, value = _evaluated(trial, world, rng)
        tally.add(arm, value)
        return value

    def race() -> Outcome:
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(objective, n_trials=scenario.most)
        answer = sampler.recommendation(study)
        return outcome_of_answer(answer, scenario, world, tally, exact=False)

    return _noticing(race)


def forgotten_by_certify(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Certify the best trials of a random search by `mfhpo_optuna.certify`."""
    told: list[tuple[dict[str, Any], float]] = []

    def objective(trial: optuna.Trial) -> float:
        value = _evaluated(trial, world, rng)[1]
        told.append((dict(trial.params), value))
        return value

    def race() -> Outcome:
        seed = int(rng.integers(2**31))
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.RandomSampler(seed=seed)
        )
        study.optimize(objective, n_trials=_TRIALS)
        told.clear()
        answer = certify(
            study,
            objective,
            delta=scenario.delta,
            epsilon=scenario.epsilon,
            budget=scenario.most,
            progress=False,
        )
        candidates = [candidate.params for candidate in answer.candidates]
        tally = Tally(len(candidates))
        for params, value in told:
            tally.add(candidates.index(params), value)
        arms = [params["x"] for params in candidates]
        return outcome_of_finalists(answer, scenario, world, arms, tally, text=str(answer))

    return _noticing(race)


def _evaluated(trial: optuna.Trial, world: World, rng: np.random.Generator) -> tuple[int, float]:
    arm = trial.suggest_int("x", 0, len(world.means) - 1)
    value, _ = world.draw(arm, 0, trial.suggest_int("split", 0, 2**31 - 1), rng)
    assert value is not None
    return arm, value


def _noticing(race: Callable[[], Outcome]) -> Outcome:
    """Run a race; a warning that names ``replicate=`` has noticed it, as no certificate has."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = race()
    warned = any("replicate=" in str(warning.message) for warning in caught)
    return replace(outcome, noticed=outcome.noticed or warned or not outcome.certified)
