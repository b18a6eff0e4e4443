"""Reads each trial of a study while it is under way, and once when it has ended."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.attributes import SECONDS_KEY


class TrialNews:
    """Knows which trials of a study may have changed since the last reading."""

    def __init__(self) -> None:
        self._n_read = 0
        self._open: set[int] = set()

    def read(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial] | None:
        """The new trials, and those that had not ended; None if the study has lost trials.

        It was deleted and made again then, and has not as many yet.
        """
        if len(trials) < self._n_read:
            return None
        news = [trials[number] for number in sorted(self._open)] + list(trials[self._n_read :])
        self._n_read = len(trials)
        self._open = {trial.number for trial in news if not trial.state.is_finished()}
        return news

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
