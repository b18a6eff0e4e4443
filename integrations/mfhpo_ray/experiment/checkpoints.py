"""Whether a trial that pauses could go on from where it was, and what its checkpoint holds."""

from collections.abc import Mapping
from typing import Any

from ray.air.constants import TRAINING_ITERATION
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT, TIME_TOTAL_S
from ray.tune.trainable import FunctionTrainable, Trainable
from ray.tune.utils import flatten_dict


class Checkpoints:
    """Which pauses lose nothing, found out as trials show it.

    A training function cannot go back to a result without a checkpoint. A class is saved by the
    pause itself, if it has ``save_checkpoint``. Where the trainable is not known here, one trial is
    paused to see.
    """

    def __init__(self) -> None:
        self._saved_by_a_pause: dict[str, bool | None] = {}
        self._probe: Trial | None = None

    def allow_pause(self, trial: Trial, result: Mapping[str, Any]) -> bool:
        """Whether a trial is to be paused after its result, as far as checkpoints go."""
        if result.get(SHOULD_CHECKPOINT):
            return True
        saved = trial.latest_checkpoint_result
        if saved is not None and saved.metrics is not None:
            now = result.get(TRAINING_ITERATION)
            if now is not None and saved.metrics.get(TRAINING_ITERATION) == now:
                return True
        name = trial.trainable_name
        if name not in self._saved_by_a_pause:
            self._saved_by_a_pause[name] = _saved_by_a_pause(trial)
        known = self._saved_by_a_pause[name]
        if known is None and self._probe is None:
            self._probe = trial
            return True
        return bool(known)

    def note_pause(self, trial: Trial) -> None:
        """Learn from a trial that is paused now."""
        if trial is self._probe:
            self._saved_by_a_pause[trial.trainable_name] = trial.has_checkpoint()


def saved_metrics(trial: Trial) -> dict[str, Any]:
    """The result that a trial had reported when it was last saved; empty without a checkpoint."""
    saved = trial.latest_checkpoint_result
    return flatten_dict(saved.metrics) if saved and saved.metrics else {}


def saved_seconds(trial: Trial) -> float:
    """Seconds of training that a trial's checkpoint holds, which its later results count again."""
    return float(saved_metrics(trial).get(TIME_TOTAL_S, 0.0))


def can_be_saved(trial: Trial) -> bool:
    """Whether Ray may be asked to save a trial: a class that cannot be saved would fail."""
    return _saved_by_a_pause(trial) is not False or _is_function(trial)


def _is_function(trial: Trial) -> bool:
    trainable = trial.get_trainable_cls()
    return trainable is not None and issubclass(trainable, FunctionTrainable)


def _saved_by_a_pause(trial: Trial) -> bool | None:
    """Whether Ray saves a trial when it pauses it; None if that is not known."""
    trainable = trial.get_trainable_cls()
    if trainable is None:
        return None
    if _is_function(trial):
        return False
    return bool(trainable.save_checkpoint is not Trainable.save_checkpoint)
