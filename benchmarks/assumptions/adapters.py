"""Races through Optuna's samplers and Ray's searchers, on a clock that is invented."""

import heapq
import logging
from typing import Any, NamedTuple

import numpy as np
import optuna
from ray import tune

from benchmarks.assumptions.outcome import Outcome, outcome_of_answer, outcome_of_finalists
from benchmarks.assumptions.scenarios import Scenario
from benchmarks.assumptions.truth import Tally
from benchmarks.assumptions.worlds import World
from mfhpo import Fidelity
from mfhpo_optuna import MFSampler, SearchSampler
from mfhpo_optuna.study.trials.attributes import ARM_KEY
from mfhpo_ray import MFSearch, SpaceSearch

# An answer takes about as long as a trial, so not each one is looked at.
_TRIALS_BETWEEN_LOOKS = 5
_MANY_SPLITS = 2**31


class Evaluated(NamedTuple):
    """One evaluation that was told."""

    arm: int
    split: int
    value: float | None


def race_by_sampler(
    scenario: Scenario, world: World, rng: np.random.Generator, replicate: str | None = None
) -> Outcome:
    """Run a race by `mfhpo_optuna.MFSampler` and a study's ask and tell."""
    sampler = MFSampler(**_options(scenario, world, rng), replicate=replicate, progress=False)
    study, evaluated = _by_trials(sampler, scenario, world, rng, replicate)
    tally = _tally(evaluated, len(world.means), replicate)
    return outcome_of_answer(sampler.recommendation(study), scenario, world, tally, exact=False)


def race_by_searcher(
    scenario: Scenario, world: World, rng: np.random.Generator, replicate: str | None = None
) -> Outcome:
    """Run a race by the calls that Ray Tune makes of `mfhpo_ray.MFSearch`."""
    options = _options(scenario, world, rng)
    search = MFSearch(metric="value", mode="max", replicate=replicate, **options)
    evaluated = _by_searcher(search, scenario, world, rng, replicate)
    tally = _tally(evaluated, len(world.means), replicate)
    return outcome_of_answer(search.recommendation(), scenario, world, tally, exact=False)


def search_by_sampler(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Run a search by `mfhpo_optuna.SearchSampler`, whose shortlist is raced on shared splits."""
    sampler = SearchSampler(**_search_options(scenario, rng), progress=False)
    study, evaluated = _by_trials(sampler, scenario, world, rng, "split")
    return _outcome_of_search(sampler.recommendation(study), scenario, world, evaluated)


def search_by_searcher(scenario: Scenario, world: World, rng: np.random.Generator) -> Outcome:
    """Run a search by the calls that Ray Tune makes of `mfhpo_ray.SpaceSearch`."""
    space = {
        "x": tune.choice(list(range(len(world.means)))),
        "split": tune.randint(0, _MANY_SPLITS),
    }
    options = _search_options(scenario, rng)
    search = SpaceSearch(metric="value", mode="max", space=space, **options)
    evaluated = _by_searcher(search, scenario, world, rng, "split")
    return _outcome_of_search(search.recommendation(), scenario, world, evaluated)


def _options(scenario: Scenario, world: World, rng: np.random.Generator) -> dict[str, Any]:
    """What samplers and searchers are told: one level, the arms, what is declared."""
    return {
        "fidelity": Fidelity("epochs", levels=[1]),
        "arms": [{"x": arm} for arm in range(len(world.means))],
        "delta": scenario.delta,
        "epsilon": scenario.epsilon,
        "measure": 0,
        "seed": int(rng.integers(2**31)),
    }


def _search_options(scenario: Scenario, rng: np.random.Generator) -> dict[str, Any]:
    """What searches are told.

    The certificate gets a tenth of the scenario's evaluations, as by default. The search, which
    takes long and is not judged, gets fewer than the rest.
    """
    return {
        "trials": scenario.most // 4,
        "certify_share": 0.4,
        "delta": scenario.delta,
        "epsilon": scenario.epsilon,
        "replicate": "split",
        "seed": int(rng.integers(2**31)),
    }


def _by_trials(
    sampler: Any,
    scenario: Scenario,
    world: World,
    rng: np.random.Generator,
    replicate: str | None,
) -> tuple[optuna.Study, list[Evaluated]]:
    """Run a study; what it was told of trials that the sampler has chosen."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    under_way: list[tuple[float, int, optuna.Trial, Evaluated]] = []
    evaluated, now = [], 0.0
    for told in range(1, scenario.most + 1):
        while len(under_way) < scenario.workers:
            trial = study.ask()
            arm = trial.suggest_int("x", 0, len(world.means) - 1)
            if isinstance(sampler, MFSampler):
                trial.suggest_int("epochs", 1, 1)
            split = trial.number
            if replicate is not None:
                split = trial.suggest_int(replicate, 0, (scenario.splits or _MANY_SPLITS) - 1)
            value, seconds = world.draw(arm, 0, split, rng)
            begun = Evaluated(arm, split, value)
            heapq.heappush(under_way, (now + seconds, trial.number, trial, begun))
        now, _, trial, ended = heapq.heappop(under_way)
        state = optuna.trial.TrialState.FAIL if ended.value is None else None
        study.tell(trial, ended.value, state=state)
        if ARM_KEY in trial.user_attrs:
            evaluated.append(ended)
        if told % _TRIALS_BETWEEN_LOOKS == 0:
            answer = sampler.recommendation(study)
            if answer.certified or answer.finished:
                break
    return study, evaluated


def _by_searcher(
    search: Any, scenario: Scenario, world: World, rng: np.random.Generator, replicate: str | None
) -> list[Evaluated]:
    """Run an experiment; what the searcher was told."""
    logging.getLogger("mfhpo_ray").setLevel(logging.ERROR)
    under_way: list[tuple[float, int, Evaluated]] = []
    evaluated, now, begun = [], 0.0, 0
    while not search.finished and begun < scenario.most + scenario.workers:
        while len(under_way) < scenario.workers:
            config = search.suggest(str(begun))
            if not isinstance(config, dict):
                break
            arm, split = config["x"], begun if replicate is None else config[replicate]
            value, seconds = world.draw(arm, 0, split, rng)
            heapq.heappush(under_way, (now + seconds, begun, Evaluated(arm, split, value)))
            begun += 1
        if not under_way:
            break
        now, number, ended = heapq.heappop(under_way)
        result = None if ended.value is None else {"value": ended.value}
        search.on_trial_complete(str(number), result, error=ended.value is None)
        evaluated.append(ended)
    return evaluated


def _tally(evaluated: list[Evaluated], n_arms: int, replicate: str | None) -> Tally:
    tally = Tally(n_arms)
    for arm, split, value in evaluated:
        tally.add(arm, value, split=None if replicate is None else split)
    return tally


def _outcome_of_search(
    answer: Any, scenario: Scenario, world: World, evaluated: list[Evaluated]
) -> Outcome:
    """Judge the certificate of a search, which makes its own evaluations on a single split."""
    if answer.certificate is None:
        tally = _tally(evaluated, len(world.means), "split")
        return outcome_of_answer(answer, scenario, world, tally, exact=False)
    arms = [candidate.params["x"] for candidate in answer.certificate.candidates]
    of_search = evaluated[0].split
    tally = Tally(len(arms))
    tally.tried = len({each.arm for each in evaluated})
    for arm, split, value in evaluated:
        if split != of_search and arm in arms:
            tally.add(arms.index(arm), value, split=split)
    return outcome_of_finalists(
        answer.certificate, scenario, world, arms, tally, str(answer), exact=scenario.workers == 1
    )
