"""How many functions one finished trial passes through, by whose they are."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, TPESampler

from mfhpo_optuna import IISESampler, MFSampler, SearchSampler

_BEFORE = 30  # trials of the study that have ended

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "MFSampler": lambda: MFSampler("epochs", arms=8, epsilon=0.0, seed=0, progress=False),
    "IISESampler": lambda: IISESampler("epochs", arms=8, epsilon=0.0, seed=0, progress=False),
    "SearchSampler": lambda: SearchSampler("epochs", budget=2000, seed=0, progress=False),
    "optuna TPESampler": lambda: TPESampler(seed=0),
}
"""Whose trial is followed; the noise is too large for a race to end within 300 trials."""


def functions_of_one_trial(name: str) -> tuple[int, int]:
    """Return how many functions, and in how many files, a trial passes from ask to tell.

    Those of the package that the sampler belongs to count: ours, or Optuna's samplers.

    Parameters
    ----------
    name
        One of `SAMPLERS`.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=SAMPLERS[name]())
    study.optimize(objective, n_trials=_BEFORE)
    root = Path(__file__).parents[1]
    ours = (str(root / "mfhpo"), str(root / "integrations"))
    folders = (str(Path(optuna.__file__).parent / "samplers"),) if "optuna" in name else ours
    seen: set[tuple[str, int, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders):
            seen.add((code.co_filename, code.co_firstlineno, code.co_name))

    sys.setprofile(note)
    try:
        trial = study.ask()
        study.tell(trial, objective(trial))
    finally:
        sys.setprofile(None)
    return len(seen), len({file for file, _, _ in seen})


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    noise = 0.5 * float(np.random.default_rng(trial.number).normal())
    return (x - 0.3) ** 2 + 0.1 / trial.suggest_int("epochs", 1, 27) + noise
