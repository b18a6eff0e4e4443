"""Reads each trial of a study while it is under way, and once when it has ended."""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.attributes import SECONDS_KEY


class TrialNews:
    """Knows which trials of a study may have changed since the last reading."""

    def __init__(self) -> None:
        self._n_read = 0
        self._open: set[int] = set()
        # When trials were first seen running, by a clock that nobody sets; None at the first
        # reading, as they had begun before. The dictionary is None until then.
        self._seen: dict[int, float | None] | None = None

    def read(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial] | None:
        """The new trials, and those that had not ended; None if the study has lost trials.

        It was deleted and made again then, and has not as many yet.
        """
        if len(trials) < self._n_read:
            return None
        news = [trials[number] for number in sorted(self._open)] + list(trials[self._n_read :])
        self._n_read = len(trials)
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
        """How long a trial has been running; `since` is what the study says, 0 without it.

        That counts only for those that ran when the study was first read: it may have been written
        by the clock of another machine.
        """
        seen = None if self._seen is None else self._seen.get(number)
        if seen is not None:
            return time.monotonic() - seen
        return 0.0 if since is None else (datetime.now() - since).total_seconds()

    def close(self, number: int) -> None:
        """Read a trial no more: it ends at this moment."""
        self._open.discard(number)


def by_their_ends(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Those that have ended, in the order in which they did."""
    ended = [trial for trial in trials if trial.state.is_finished()]
    return sorted(ended, key=lambda trial: (trial.datetime_complete or datetime.min, trial.number))


def seconds_of(trial: FrozenTrial) -> float | None:
    """How long a finished trial took; None if nobody knows.

    A trial whose worker died is failed by the storage when somebody notices, maybe days later.
    """
    seconds: float | None = trial.user_attrs.get(SECONDS_KEY)
    begun, ended = trial.datetime_start, trial.datetime_complete
    if seconds is None and trial.state != TrialState.FAIL and begun and ended:
        seconds = (ended - begun).total_seconds()
    return None if seconds is None else max(0.0, seconds)  # the clock may have been set back
