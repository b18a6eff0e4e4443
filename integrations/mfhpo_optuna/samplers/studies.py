"""The experiments of the studies that a sampler has read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import optuna

from mfhpo._validation import check_instance
from mfhpo_optuna.study.study_experiment import StudyExperiment


class Studies:
    """Keeps what is known about each study, which is a function of its trials.

    Parameters
    ----------
    make
        Returns what is known about a study before any trial is read.

    Attributes
    ----------
    lock
        Held by whoever reads a study or changes what is known; never while it waits.
    """

    def __init__(self, make: Callable[[optuna.Study], StudyExperiment]) -> None:
        self.lock = threading.RLock()
        self._make = make
        # Storages are kept along, so that no other one can take their identities.
        self._known: dict[tuple[int, int], tuple[object, StudyExperiment]] = {}

    def of(self, study: optuna.Study) -> StudyExperiment:
        """Return what is known about a study, as last read."""
        check_instance("study", study, optuna.Study, "an optuna.Study")
        if not self.has(study):
            self._keep(study, self._make(study))
        return self._known[key_of(study)][1]

    def has(self, study: optuna.Study) -> bool:
        """Return whether anything is known about a study."""
        return key_of(study) in self._known

    def _keep(self, study: optuna.Study, known: StudyExperiment) -> None:
        self._known[key_of(study)] = (study._storage, known)

    def read(self, study: optuna.Study) -> StudyExperiment:
        """Return what is known about a study, with its news."""
        known = self.of(study)
        try:
            is_read = known.read(study)
        except ValueError:
            del self._known[key_of(study)]  # whoever reads it again hears the same
            raise
        if is_read:
            return known
        anew = self._make(study)
        anew.take_over(known)
        anew.read(study)
        self._keep(study, anew)
        return anew

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Studies.__init__(self, state["_make"])


def key_of(study: optuna.Study) -> tuple[int, int]:
    """Return what tells a study of this process from others."""
    return study._study_id, id(study._storage)
