"""Whether a race learns of trials in the order in which they end."""

from collections.abc import Mapping
from datetime import datetime

from optuna.trial import FrozenTrial, TrialState


class EndOrder:
    """Compares the order in which a race learns of trials with that of their ends.

    Each worker learns of its own trials before the study knows that they have ended, and so maybe
    before it learns of others that have ended earlier.
    """

    def __init__(self) -> None:
        self.is_out_of_order = False
        self._told_early: dict[int, TrialState] = {}  # in the order of learning
        self._latest = datetime.min, -1  # end and number

    def note_early(self, trial_number: int, state: TrialState) -> None:
        """Note the state in which a trial ends, before the study knows it."""
        self._told_early[trial_number] = state

    def was_told_early(self, trial_number: int | None) -> bool:
        """Return whether the race knows about an end that the study has not told yet."""
        return trial_number in self._told_early

    def is_contradicted(self, ended: Mapping[int, TrialState]) -> bool:
        """Return whether a trial, by number, ended in another state than the race was told."""
        return any(self._told_early.get(number, state) != state for number, state in ended.items())

    def compare(self, trial: FrozenTrial) -> None:
        """Compare when a trial ended with those that were learned of before; `confirm` it then."""
        end = trial.datetime_complete or datetime.min, trial.number
        first = next(iter(self._told_early), trial.number)
        if end < self._latest or first != trial.number:
            self.is_out_of_order = True
        self._latest = max(self._latest, end)

    def confirm(self, trial_number: int) -> bool:
        """Note that the study says that a trial has ended; return whether the race knew it."""
        return self._told_early.pop(trial_number, None) is not None
