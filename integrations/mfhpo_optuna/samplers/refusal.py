"""Why a worker must not join those that run a study: it was given other arguments."""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.trial import TrialState

from mfhpo_optuna.study.attributes import ARM_KEY, SAMPLER_KEY, WORKER
from mfhpo_optuna.study.under_way import is_surely_alive, worker_name

_FREE = ("lease", "progress")  # arguments in which the workers of a study may differ


def refusal(study: optuna.Study, note: Mapping[str, Any] | None) -> str:
    """Why a sampler with this note (`SAMPLER_KEY`) must not run a study; "" if it may.

    Whoever comes later may go on with other arguments, as with a larger budget. But two that run at
    the same time would each learn from a race that the other does not play.
    """
    other = study.user_attrs.get(SAMPLER_KEY)
    if note is None or other is None or _race(note) == _race(other):
        return ""
    rival = _other_worker(study)
    if rival is None:
        return ""
    mine, theirs = _race(note), _race(other)
    differing = [name for name in {**theirs, **mine} if mine.get(name) != theirs.get(name)]
    return (
        f"study {study.study_name!r} is run by another worker with other arguments: process "
        f"{rival} has {_shown(theirs, differing)}, and this one {_shown(mine, differing)}. Give "
        f"all workers the same, or wait until it has ended."
    )


def _race(note: Mapping[str, Any]) -> dict[str, Any]:
    """The sampler and the arguments that its race depends on."""
    arguments = {key: value for key, value in note["arguments"].items() if key not in _FREE}
    return {"sampler": note["sampler"], **arguments}


def _other_worker(study: optuna.Study) -> str | None:
    """The number of a process that surely runs a trial of the study, but this one."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker = trial.user_attrs.get(ARM_KEY, {}).get(WORKER)
        if worker != worker_name() and is_surely_alive(worker):
            return str(worker).rpartition(" ")[2].partition("@")[0]
    return None


def _shown(race: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name}={race.get(name)!r}" for name in names)
