"""Races among the candidates of a shortlist, one evaluation or one round after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.assumptions.outcome import Outcome, judged
from benchmarks.assumptions.scenarios import DELTA, Scenario, World
from mfhpo import EstimatedNoise
from mfhpo.certification import Candidate, Certificate
from mfhpo.paired_certification import PairedCertification

__all__ = ["race_paired", "race_shortlist"]


def race_shortlist(
    make: Callable[..., Any], scenario: Scenario, world: World, rng: np.random.Generator
) -> Outcome:
    """Run a race that asks for one candidate at a time."""
    race = make(
        _candidates(len(world.means)),
        luckiest=0,
        maximise=True,
        delta=DELTA,
        epsilon=scenario.epsilon,
        sigma=None if isinstance(scenario.noise, EstimatedNoise) else scenario.noise,
    )
    for _ in range(scenario.most):
        arm = None if race.finished else race.ask()
        if arm is None:
            break
        race.tell(arm, world.draw(arm, 0, rng)[0])
    return _judged(race, scenario, world)


def race_paired(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Run a race that asks for a round of all that are left."""
    race = PairedCertification(
        _candidates(len(world.means)),
        luckiest=0,
        maximise=True,
        delta=DELTA,
        epsilon=scenario.epsilon,
        budget=scenario.most,
    )
    while not race.finished:
        race.tell({arm: world.draw(arm, 0, rng)[0] for arm in race.ask()})
    return _judged(race, scenario, world)


def _candidates(n: int) -> list[Candidate]:
    return [Candidate(f"trial {arm}", {"x": arm}, claim=1.0) for arm in range(n)]


def _judged(race: Any, scenario: Scenario, world: World) -> Outcome:
    n = len(world.means)
    answer: Certificate = race.certificate(f"the {n} best of 100 trials", "by their values")
    failed = [arm for arm, result in enumerate(answer.candidates) if result.standing == "failed"]
    return judged(
        str(answer),
        answer.winner,
        world.means,
        epsilon=scenario.epsilon,
        not_compared=failed,
        cost=float(answer.evaluations),
        # The budget of a paired race ends it, too.
        finished=answer.finished and answer.evaluations + n <= scenario.most,
    )
