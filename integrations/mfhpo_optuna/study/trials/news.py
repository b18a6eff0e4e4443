"""Reads each trial of a study while it is under way, and once when it has ended."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count, takewhile
from typing import TypeGuard, TypeVar

import optuna
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages._cached_storage import _CachedStorage
from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.trials.attributes import SECONDS_KEY, read_attribute

StorageT = TypeVar("StorageT", bound=BaseStorage)


class TrialNews:
    """Knows which trials of a study may have changed since the last reading."""

    def __init__(self) -> None:
        self._n_read = 0
        self._open: set[int] = set()
        # When trials were first seen running, by a clock that nobody sets; None at the first
        # reading, as they had begun before. The dictionary is None until then.
        self._seen: dict[int, float | None] | None = None

    @property
    def is_new(self) -> bool:
        """True before the first reading."""
        return self._seen is None

    def read(self, study: optuna.Study) -> list[FrozenTrial] | None:
        """Return the new trials and those that had not ended; None if the study lost trials.

        It was deleted and made again then, and has not as many yet.
        """
        news = _read(study, self._n_read, sorted(self._open))
        if news is None:
            return None
        self._n_read += len(news) - len(self._open)
        self._open = {trial.number for trial in news if not trial.state.is_finished()}
        running = [trial.number for trial in news if trial.state == TrialState.RUNNING]
        if self._seen is None:
            self._seen = dict.fromkeys(running)
        else:
            now = time.monotonic()
            self._seen = {number: self._seen.get(number, now) for number in running}
        return news

    def take_over(self, earlier: "TrialNews") -> None:
        """Know since when trials run, as an earlier reader did."""
        self._seen = earlier._seen

    def seconds_under_way(self, number: int, since: datetime | None) -> float:
        """Return how long a trial has been running; `since` is what the study says.

        That counts only for trials that ran when the study was first read, because another
        machine's clock may have written it.
        """
        seen = None if self._seen is None else self._seen.get(number)
        if seen is not None:
            return time.monotonic() - seen
        return 0.0 if since is None else (datetime.now() - since).total_seconds()


TrialAt = Callable[[int], FrozenTrial | None]  # the trial of a number, if there is any


def _read(study: optuna.Study, first: int, before: Iterable[int]) -> list[FrozenTrial] | None:
    """Return some trials before the first new one, and all from it on; None if some are missing.

    All are as they were at one moment. With Optuna's storages, no other trial is looked at.
    """
    try:
        with _trials_in_place(study) as trial_at:
            return _chosen(trial_at, first, before)
    except AttributeError:  # a version of Optuna whose storages are made otherwise
        return _chosen(_in_list(study.get_trials(deepcopy=False)), first, before)


def _chosen(trial_at: TrialAt, first: int, before: Iterable[int]) -> list[FrozenTrial] | None:
    if first > 0 and trial_at(first - 1) is None:
        return None
    known = [trial_at(number) for number in before]
    new = takewhile(lambda trial: trial is not None, map(trial_at, count(first)))
    return [trial for trial in (*known, *new) if trial is not None]


@contextmanager
def _trials_in_place(study: optuna.Study) -> Iterator[TrialAt]:
    """Yield access to a study's trials where its storage keeps them, brought up to date.

    Optuna's own methods copy, sort or filter all trials, which is slow in a long study. They are
    used with a storage that is not Optuna's, or reads trials in its own way.
    """
    storage, study_id = study._storage, study._study_id
    if _reads_as(storage, InMemoryStorage):
        with storage._lock:
            yield _in_list(storage._studies[study_id].trials)
    elif _reads_as(storage, _CachedStorage):
        storage._read_trials_from_remote_storage(study_id)
        with storage._lock:
            yield storage._studies[study_id].trials.get
    elif _reads_as(storage, JournalStorage):
        with storage._thread_lock:
            storage._sync_with_backend()
            replay = storage._replay_result
            if study_id not in replay._studies:
                raise KeyError(study_id)
            trials, ids = replay._trials, replay._study_id_to_trial_ids[study_id]
            yield lambda number: trials[ids[number]] if number < len(ids) else None
    else:
        yield _in_list(study.get_trials(deepcopy=False))


def _reads_as(storage: BaseStorage, kind: type[StorageT]) -> TypeGuard[StorageT]:
    return isinstance(storage, kind) and type(storage).get_all_trials is kind.get_all_trials


def _in_list(trials: Sequence[FrozenTrial]) -> TrialAt:
    return lambda number: trials[number] if number < len(trials) else None


def seconds_of(trial: FrozenTrial) -> float | None:
    """Return how long a finished trial took; None if nobody knows.

    A trial whose worker died is failed by the storage when somebody notices, maybe days later.
    """
    seconds: float | None = read_attribute(trial, SECONDS_KEY)
    begun, ended = trial.datetime_start, trial.datetime_complete
    if seconds is None and trial.state != TrialState.FAIL and begun and ended:
        seconds = (ended - begun).total_seconds()
    return None if seconds is None else max(0.0, seconds)  # the clock may have been set back
