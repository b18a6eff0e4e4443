"""Reads each trial of a study while it is under way, and once when it has ended."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from typing import TypeGuard, TypeVar

import optuna
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages._cached_storage import _CachedStorage
from optuna.trial import FrozenTrial, TrialState

StorageT = TypeVar("StorageT", bound=BaseStorage)


class TrialNews:
    """Knows which trials of a study may have changed since the last reading."""

    def __init__(self) -> None:
        self._n_read = 0
        self._open: set[int] = set()
        # When trials were first seen running, by a clock that nobody sets; None at the first
        # reading, as they had begun before. The dictionary is None until then.
        self._seen: dict[int, float | None] | None = None

    def read(self, study: optuna.Study) -> list[FrozenTrial] | None:
        """Return the new trials and those that had not ended; None if the study lost trials.

        It was deleted and made again then, and has not as many yet.
        """
        try:
            with _trials_in_place(study) as trial_at:
                news = self._chosen(trial_at)
        except AttributeError:  # a version of Optuna whose storages are made otherwise
            news = self._chosen(_in_list(study.get_trials(deepcopy=False)))
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

    def _chosen(self, trial_at: "TrialAt") -> list[FrozenTrial] | None:
        """Return the trials to be read, as they were at one moment; no other one is looked at."""
        if self._n_read > 0 and trial_at(self._n_read - 1) is None:
            return None
        before = [trial for trial in map(trial_at, sorted(self._open)) if trial is not None]
        numbers = count(self._n_read)
        return [*before, *iter(lambda: trial_at(next(numbers)), None)]

    def take_over(self, earlier: "TrialNews") -> None:
        """Know since when trials run, as an earlier reader did."""
        self._seen = earlier._seen

    def seconds_under_way(self, trial: FrozenTrial) -> float:
        """Return how long a trial has been running.

        The time that the study says counts only for trials that ran when it was first read, because
        another machine's clock may have written it.
        """
        seen, since = (self._seen or {}).get(trial.number), trial.datetime_start
        if seen is not None:
            return time.monotonic() - seen
        return 0.0 if since is None else (datetime.now() - since).total_seconds()


TrialAt = Callable[[int], FrozenTrial | None]  # the trial of a number, if there is any


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
