"""Whether a trial that pauses could go on from where it was, and what its checkpoint holds."""

from collections.abc import Mapping
from typing import Any

from ray.air.constants import TRAINING_ITERATION
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT, TIME_TOTAL_S
from ray.tune.trainable import FunctionTrainable, Trainable
from ray.tune.utils import flatten_dict


def loses_nothing_by_a_pause(trial: Trial, result: Mapping[str, Any]) -> bool:
    """Return whether a trial that pauses after this result goes on from there.

    A class is saved by the pause itself, if it has ``save_checkpoint``. A training function cannot
    go back to a result without a checkpoint.
    """
    if result.get(SHOULD_CHECKPOINT):
        return True
    now = result.get(TRAINING_ITERATION)
    if now is not None and saved_metrics(trial).get(TRAINING_ITERATION) == now:
        return True
    return not _is_function(trial) and can_be_saved(trial)


def saved_metrics(trial: Trial) -> dict[str, Any]:
    """Return the result at a trial's last checkpoint; empty without one."""
    saved = trial.latest_checkpoint_result
    return flatten_dict(saved.metrics) if saved and saved.metrics else {}


def saved_seconds(trial: Trial) -> float:
    """Return the seconds in a trial's checkpoint, which its later results count again."""
    return float(saved_metrics(trial).get(TIME_TOTAL_S, 0.0))


def can_be_saved(trial: Trial) -> bool:
    """Return whether Ray may be asked to save a trial: a class that cannot be saved would fail."""
    return _is_function(trial) or (
        trial.get_trainable_cls().save_checkpoint is not Trainable.save_checkpoint
    )


def _is_function(trial: Trial) -> bool:
    return issubclass(trial.get_trainable_cls(), FunctionTrainable)
