"""Which workers may run a study together: those with the same arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import optuna
from optuna.trial import FrozenTrial

from mfhpo_optuna.arguments import Settings, objection_to_version
from mfhpo_optuna.samplers.studies import key_of
from mfhpo_optuna.study.trials.attributes import (
    ARGUMENTS,
    SAMPLER_KEY,
    WORKER,
    parameters_before,
    read_attribute,
    write_note,
)
from mfhpo_optuna.study.trials.processes import described, worker_name

# Seconds within which a worker that runs a study begins its next trial, and between two looks.
_BETWEEN_TRIALS, _PERIOD = 1.0, 0.2

ChosenBy: TypeAlias = Callable[[optuna.Study, int], Sequence[tuple[int, str | None, str | None]]]


class Joining:
    """Refuses trials of a worker whose arguments are not those of the others.

    Parameters
    ----------
    settings
        Of the sampler.
    notes
        Further notes that a study is told, by attribute.
    chosen_by
        Returns the other trials that are waited for, with workers and digests of arguments.
    """

    def __init__(self, settings: Settings, notes: Mapping[str, Any], chosen_by: ChosenBy) -> None:
        self.settings = settings
        self._notes, self._chosen_by = notes, chosen_by
        # Of trials that must not be run: why, by study and number.
        self._refused: dict[tuple[int, int, int], str] = {}
        self._noted: dict[tuple[int, int], object] = {}

    @property
    def signature(self) -> dict[str, str]:
        """The worker and the arguments that have chosen an evaluation, to be noted with it."""
        return {WORKER: worker_name(), ARGUMENTS: self.settings.digest}

    def refusal(self, study: optuna.Study, trial: FrozenTrial) -> str:
        """Return why a trial must not be run, or nothing."""
        return self._refused.get((*key_of(study), trial.number), "")

    def refuse(self, study: optuna.Study, trial: FrozenTrial, refusal: str) -> None:
        """Have the first suggestion of a trial raise ValueError."""
        self._refused[(*key_of(study), trial.number)] = refusal
        stop(study)
        if parameters_before(trial) is not None:
            warnings.warn(
                f"{refusal} Trial {trial.number} is evaluated all the same, as Optuna asks no "
                f"sampler for its parameters.",
                stacklevel=5,
            )

    def leave(self, study: optuna.Study) -> None:
        """Let others run a study with other arguments from now on."""
        self._noted.pop(key_of(study), None)

    def objection_to_others(
        self, study: optuna.Study, trial_number: int, sleep: Callable[[float], None]
    ) -> str:
        """Return why this worker must not run a study beside others, or "".

        If it may, the study is told how it is run, for others and for whoever reads it later: a
        mere reader writes nothing.
        """
        others, key = self._others(study, trial_number), key_of(study)
        if key in self._noted and not others:
            return ""
        noted = read_attribute(study, SAMPLER_KEY)
        if self.settings.changes(noted) and dict(noted or {}).get(WORKER) != worker_name():
            # Those that were there may just be between two trials.
            for _ in range(round(_BETWEEN_TRIALS / _PERIOD)):
                if others:
                    break
                sleep(_PERIOD)
                others = self._others(study, trial_number)
        objection = objection_to_version(noted) or self.settings.objection_to(noted, others)
        if objection:
            return f"study {study.study_name!r} {objection}"
        notes = {SAMPLER_KEY: {**self.settings.note, WORKER: worker_name()}, **self._notes}
        for name, note in notes.items():
            if read_attribute(study, name) != note:
                write_note(study, name, note)
        self._noted[key] = study._storage
        return ""

    def _others(self, study: optuna.Study, trial_number: int) -> list[str]:
        """Return in words the trials that other processes have begun with other arguments.

        Those of this process may have been asked for and given up before another sampler was made.
        """
        return [
            f"trial {number}, which {described(worker)} has begun"
            for number, worker, digest in self._chosen_by(study, trial_number)
            if digest not in (None, self.settings.digest) and worker != worker_name()
        ]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_noted": {}, "_refused": {}}  # functions of the studies


def stop(study: optuna.Study) -> bool:
    """Stop the study's loop; False under ask and tell, where there is none."""
    try:
        study.stop()
    except RuntimeError:
        return False
    return True
