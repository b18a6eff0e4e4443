"""The experiments of the studies that a sampler has read, and which workers may run them."""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from mfhpo._validation import check_instance
from mfhpo_optuna.arguments import Settings, objection_to_version
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import (
    SAMPLER_KEY,
    WORKER,
    parameters_before,
    read_attribute,
    write_note,
)
from mfhpo_optuna.study.trials.processes import described, worker_name

# Seconds within which a worker that runs a study begins its next trial, and between two looks.
_BETWEEN_TRIALS, _PERIOD = 1.0, 0.2


class Studies:
    """Keeps what is known about each study, which is a function of its trials.

    `make` returns what is known before any trial is read. Trials of a worker whose settings are not
    those of the others are refused. Whoever reads a study or changes what is known holds the
    `lock`, and never waits with it. Further `notes` are told to a study, by attribute.
    """

    def __init__(
        self,
        make: Callable[[optuna.Study], StudyExperiment],
        settings: Settings,
        notes: Mapping[str, Any],
    ) -> None:
        self.lock = threading.RLock()
        self._make, self._settings, self._notes = make, settings, notes
        # Storages are kept along, so that no other one can take their identities.
        self._known: dict[tuple[int, int], tuple[object, StudyExperiment]] = {}
        # Of trials that must not be run: why, by study and number.
        self._refused: dict[tuple[int, int, int], str] = {}
        self._noted: dict[tuple[int, int], object] = {}  # studies that this worker runs

    def of(self, study: optuna.Study) -> StudyExperiment:
        """Return what is known about a study, as last read."""
        check_instance("study", study, optuna.Study, "an optuna.Study")
        key = _key_of(study)
        if key not in self._known:
            if objection := objection_to_version(read_attribute(study, SAMPLER_KEY)):
                raise ValueError(f"study {study.study_name!r} {objection}")
            self._known[key] = study._storage, self._make(study)
        return self._known[key][1]

    def has(self, study: optuna.Study) -> bool:
        """Return whether anything is known about a study."""
        return _key_of(study) in self._known

    def read(self, study: optuna.Study) -> StudyExperiment:
        """Return what is known about a study, with its news."""
        known = self.of(study)
        with self.whole(study):
            is_read = known.read(study)
        if is_read:
            return known
        anew = self._make(study)
        anew.take_over(known)
        anew.read(study)
        self._known[_key_of(study)] = study._storage, anew
        return anew

    @contextmanager
    def whole(self, study: optuna.Study) -> Iterator[None]:
        """Forget what is known about a study if it is taken in by halves: it is read anew then.

        That is so after Ctrl-C, an error of the storage, or trials that must not be read.
        """
        try:
            yield
        except BaseException:
            self._known.pop(_key_of(study), None)
            raise

    def refusal(self, study: optuna.Study, trial: FrozenTrial) -> str:
        """Return why a trial must not be run, or nothing."""
        return self._refused.get((*_key_of(study), trial.number), "")

    def refuse(self, study: optuna.Study, trial: FrozenTrial, refusal: str) -> None:
        """Have the first suggestion of a trial raise ValueError."""
        self._refused[(*_key_of(study), trial.number)] = refusal
        stop(study)
        if parameters_before(trial) is not None:
            warnings.warn(
                f"{refusal} Trial {trial.number} is evaluated all the same, as Optuna asks no "
                f"sampler for its parameters.",
                stacklevel=5,
            )

    def leave(self, study: optuna.Study) -> None:
        """Let others run a study with other arguments from now on."""
        self._noted.pop(_key_of(study), None)

    def objection_to_others(
        self, study: optuna.Study, trial_number: int, sleep: Callable[[float], None]
    ) -> str:
        """Return why this worker must not run a study beside others, or "": then it is noted."""
        others, key = self._others(study, trial_number), _key_of(study)
        if key in self._noted and not others:
            return ""
        noted, digest = read_attribute(study, SAMPLER_KEY) or {}, self._settings.digest
        is_changed = noted.get("digest", digest) != digest and noted.get(WORKER) != worker_name()
        for _ in range(round(_BETWEEN_TRIALS / _PERIOD) if is_changed else 0):
            if others:
                break
            sleep(_PERIOD)  # those that were there may just be between two trials
            others = self._others(study, trial_number)
        objection = objection_to_version(noted) or self._settings.objection_to(noted, others)
        if objection:
            return f"study {study.study_name!r} {objection}"
        notes = {SAMPLER_KEY: {**self._settings.note, WORKER: worker_name()}, **self._notes}
        for name, note in notes.items():
            if read_attribute(study, name) != note:
                write_note(study, name, note)
        self._noted[key] = study._storage
        return ""

    def _others(self, study: optuna.Study, trial_number: int) -> list[str]:
        """Return in words the trials that other processes have begun with other arguments.

        Those of this process may have been asked for and given up before another sampler was made.
        """
        with self.lock:
            claims = self.read(study).under_way.waited_for()
        return [
            f"trial {number}, which {described(claim.worker)} has begun"
            for number, claim in claims.items()
            if claim.arguments not in (None, self._settings.digest)
            and claim.worker != worker_name()
            and number != trial_number
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {"make": self._make, "settings": self._settings, "notes": self._notes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Studies.__init__(self, **state)


def stop(study: optuna.Study) -> bool:
    """Stop the study's loop; False under ask and tell, where there is none."""
    try:
        study.stop()
    except RuntimeError:
        return False
    return True


def _key_of(study: optuna.Study) -> tuple[int, int]:
    """Return what tells a study of this process from others."""
    return study._study_id, id(study._storage)
