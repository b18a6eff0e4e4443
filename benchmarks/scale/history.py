"""Finished trials as a sampler leaves them, in any number: a study that was played, and repeats.

To play 100,000 trials of a search takes half an hour. So a part is played, and then repeated later
with other values; a search, which evaluates no configuration for long, has other configurations in
each repeat.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from benchmarks.overhead import objective
from benchmarks.scale.contestants import LONG
from benchmarks.scale.storages import STUDY
from mfhpo_optuna.study.trials.attributes import ARM_KEY, CERTIFICATE_KEY, END_KEY

_FIDELITY = "fidelity"

# By sampler: how many trials are played. TPE is given those of RandomSampler, which are as good.
_PLAYED = {"SearchSampler": 1_000}
_PLAYED_BY_OTHERS = 10_000
_PLAYERS = {"TPESampler": "RandomSampler"}


def played(name: str, most: int, seed: int = 0) -> list[FrozenTrial]:
    """Evaluations of a study that the sampler ran, without the answers that it added."""
    sampler = LONG[_PLAYERS.get(name, name)](seed)
    study = optuna.create_study(study_name=STUDY, sampler=sampler)
    study.optimize(objective, n_trials=min(most, _PLAYED.get(name, _PLAYED_BY_OTHERS)))
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if CERTIFICATE_KEY not in trial.user_attrs]


def repeated(
    trials: Sequence[FrozenTrial], size: int, others: bool, seed: int = 0
) -> Iterator[FrozenTrial]:
    """So many trials: those given, and then later ones like them.

    Parameters
    ----------
    trials
        In the order of their numbers.
    size
        How many are given out.
    others
        Whether the configurations of each repeat are other ones.
    seed
        Of the values and of the other configurations.
    """
    rng = np.random.default_rng([seed, 1])  # not what the objective has drawn
    ends = [trial.datetime_complete for trial in trials if trial.datetime_complete]
    begins = [trial.datetime_start for trial in trials if trial.datetime_start]
    duration = max(ends) - min(begins)
    notes = [trial.user_attrs.get(ARM_KEY, {"arm": 0, "order": 0}) for trial in trials]
    arms, orders = (2 + max(note[name] for note in notes) for name in ("arm", "order"))
    drawn: dict[int, list[float]] = {}
    for number, trial in enumerate(itertools.islice(itertools.cycle(trials), size)):
        repeat = number // len(trials)
        later = copy.copy(trial)
        later.number = number
        later.user_attrs = dict(trial.user_attrs)
        for key in later.user_attrs.keys() & {ARM_KEY, END_KEY}:
            note = later.user_attrs[key]
            order = note["order"] + repeat * orders
            later.user_attrs[key] = {**note, "trial": number, "order": order}
        if repeat:
            later.value = float(rng.random())
            assert trial.datetime_start is not None
            assert trial.datetime_complete is not None
            later.datetime_start = trial.datetime_start + repeat * duration
            later.datetime_complete = trial.datetime_complete + repeat * duration
        if repeat and others:
            note = later.user_attrs[ARM_KEY]
            note["arm"] += repeat * arms
            note.pop("point", None)
            names = [name for name in trial.params if name != _FIDELITY]
            values = drawn.setdefault(note["arm"], rng.random(len(names)).tolist())
            later.params = {**trial.params, **dict(zip(names, values, strict=True))}
        yield later
