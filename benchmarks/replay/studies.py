"""Small studies by each public sampler and pruner of mfhpo_optuna."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import RandomSampler
from optuna.study import StudyDirection

import mfhpo_optuna
from benchmarks.replay.races import EPOCHS, RACES, TRIALS, loss, loss_on_grid, seconds
from mfhpo_optuna.study.trials.attributes import SO_FAR_KEY


def _evaluation(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    return loss(x, trial.suggest_int("epochs", 1, 9), _seed(trial))


def _on_grid(trial: optuna.Trial) -> float:
    """A model's choices among few values do not hang on its last digits."""
    x, kind = trial.suggest_int("x", 0, 20), trial.suggest_categorical("kind", "abc")
    return loss_on_grid(x, kind, trial.suggest_int("epochs", 1, 9), _seed(trial))


def _seed(trial: optuna.Trial) -> int:
    """The trial's number, answers so far not counted: when they are given changes no choice."""
    earlier = trial.study.get_trials(deepcopy=False)[: trial.number]
    return trial.number - sum(SO_FAR_KEY in other.user_attrs for other in earlier)


def _timed(trial: optuna.Trial) -> float:
    """One that ends at its time limit, by an invented clock."""
    x = trial.suggest_float("x", -1.0, 1.0)
    seed = _seed(trial)
    taken, limit = seconds(x, 9, seed), trial.user_attrs.get("mfhpo:limit", math.inf)
    trial.set_user_attr("mfhpo:enforced_by", "time_limited")  # else the wall clock would count
    trial.set_user_attr("mfhpo:seconds", min(taken, limit))
    if taken > limit:
        trial.set_user_attr("mfhpo:censored_at", limit)
        raise optuna.TrialPruned
    return loss(x, 9, seed)


def _game(trial: optuna.Trial) -> tuple[float, float]:
    """Each of two players follows the other."""
    x, y = (trial.suggest_float(name, 0.0, 1.0, step=0.0625) for name in "xy")
    bias = 0.02 / trial.suggest_int("epochs", 1, 9)
    return (x - 0.6 * y) ** 2 + bias, (y - 0.5 - 0.2 * x) ** 2 - bias


def _curve(trial: optuna.Trial) -> float:
    """A loss that falls over 27 epochs."""
    final = loss(trial.suggest_float("x", -1.0, 1.0), 9, _seed(trial))
    for epoch, falls in enumerate(np.exp(-np.arange(1, 28) / 2.0).tolist(), 1):
        trial.report(final + falls, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return final


def _study(objective: Callable[[optuna.Trial], Any], objectives: int, **parts: Any) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    directions = [StudyDirection.MINIMIZE] * objectives
    study = optuna.create_study(study_name="replay", directions=directions, **parts)
    study.optimize(objective, n_trials=TRIALS)
    return study


def _with_workers(race: str, workers: int, data: Path) -> dict[str, Any]:
    """A study whose trials end in another order than they begin; one in 17 is told to have failed.

    One process tells what several workers would: as many trials are open as there are workers, and
    a draw says which of them ends next.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = _sampler(race)
    study = optuna.create_study(study_name="replay", sampler=sampler)
    draws = np.random.default_rng(workers)
    under_way: list[optuna.Trial] = []
    for _ in range(TRIALS):
        while len(under_way) < workers:
            under_way.append(study.ask())
        trial = under_way.pop(int(draws.integers(len(under_way))))
        value = _objective(race)(trial)
        if trial.number % 17 == 11 or not math.isfinite(value):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)
    return _record(study, sampler.recommendation(study))


def _record(study: optuna.Study, answer: object = "") -> dict[str, Any]:
    trials = [
        {
            "params": trial.params,
            "limit": trial.user_attrs.get("mfhpo:limit"),
            "reported": list(trial.intermediate_values.values()),
            "state": trial.state.name,
            "values": trial.values,
        }
        for trial in study.get_trials(deepcopy=False)
        if SO_FAR_KEY not in trial.user_attrs
    ]
    return {"trials": trials, "answer": str(answer).splitlines()}


def _sampler(race: str) -> Any:
    kind = getattr(mfhpo_optuna, f"{race.partition(',')[0]}Sampler")
    return kind(**RACES[race], progress=False, seed=0)


def _objective(race: str) -> Callable[[optuna.Trial], float]:
    return _timed if "RCUCB" in race else _on_grid if "on a grid" in race else _evaluation


def _raced(race: str, data: Path) -> dict[str, Any]:
    sampler = _sampler(race)
    study = _study(_objective(race), 1, sampler=sampler)
    return _record(study, sampler.recommendation(study))


def _played(data: Path) -> dict[str, Any]:
    players = {"row": ["x"], "column": ["y"]}
    sampler = mfhpo_optuna.NashSampler(players, EPOCHS, budget=40, progress=False, seed=0)
    study = _study(_game, 2, sampler=sampler)
    return _record(study, sampler.equilibrium(study))


def _pruned(name: str, data: Path) -> dict[str, Any]:
    pruner = getattr(mfhpo_optuna, name.partition(",")[0])(**_PRUNERS[name])
    return _record(_study(_curve, 1, sampler=RandomSampler(0), pruner=pruner))


def _certified(data: Path) -> dict[str, Any]:
    study = _study(_evaluation, 1, sampler=RandomSampler(0))
    return _record(study, mfhpo_optuna.certify(study, _evaluation, budget=100, progress=False))


_PRUNERS: dict[str, dict[str, Any]] = {
    "IISEPruner": {},
    "MFEliminationPruner": {},
    "MFEliminationPruner, declared": {"bias": {1: (-0.7, 0.0), 3: (-0.3, 0.0), 9: (-0.1, 0.0)}},
    "TimeLimitPruner": {"limit": 3600.0, "pruner": mfhpo_optuna.IISEPruner(coverage=0.7)},
}
STUDIES: dict[str, Callable[[Path], Any]] = {
    **{f"optuna {race}": partial(_raced, race) for race in RACES},
    **{f"optuna {name}": partial(_pruned, name) for name in _PRUNERS},
    "optuna Nash": _played,
    "optuna certify": _certified,
}
"""By name, what plays a study; no data are needed."""

STUDIES_OF_WORKERS: dict[str, Callable[[Path], Any]] = {
    f"optuna {race}, 4 workers": partial(_with_workers, race, 4)
    for race in ("IISE", "MFTopTwo, declared", "MFLUCB, declared", "MFUCB", "Search, on a grid")
}
"""The same with several workers, whose trials may end late, fail or be lost."""
