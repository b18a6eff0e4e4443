"""Checkpoints and processes of trials: saved, resumed, lost, or used by another trial."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.air.constants import TRAINING_ITERATION
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT, TIME_TOTAL_S
from ray.tune.trainable import FunctionTrainable, Trainable
from ray.tune.utils import flatten_dict


def loses_nothing_by_a_pause(trial: Trial, result: Mapping[str, Any]) -> bool:
    """Return whether a trial that pauses after this result goes on from there.

    A class is saved by the pause itself; a function cannot go back to what has no checkpoint.
    """
    now = result.get(TRAINING_ITERATION)
    is_saved = now is not None and saved_metrics(trial).get(TRAINING_ITERATION) == now
    by_pause = not _is_function(trial) and can_be_saved(trial)
    return bool(result.get(SHOULD_CHECKPOINT)) or is_saved or by_pause


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


def check_reuse(tune_controller: Any, trial: Trial) -> None:
    """Raise ValueError for a class that cannot be reset: Ray fails trials, and tells nobody."""
    trainable = trial.get_trainable_cls()
    controller = getattr(tune_controller, "_tune_controller", tune_controller)
    cannot = trainable is not None and trainable.reset_config is Trainable.reset_config
    if cannot and getattr(controller, "_reuse_actors", False):
        raise ValueError(
            f"TuneConfig(reuse_actors=True) gives the process of a trial that has ended to "
            f"another one, but {trainable.__name__} has no reset_config, so that Ray would fail "
            f"the other one. Define reset_config(self, new_config), which returns True, or drop "
            f"reuse_actors=True."
        )


def was_lost(trial: Trial) -> bool:
    """Return whether a trial failed because its process or node was gone, or it crashed."""
    if trial.run_metadata.pickled_error_filename is None or trial.local_path is None:
        return False
    try:
        error = cloudpickle.loads(Path(str(trial.pickled_error_file)).read_bytes())
    except Exception:  # an error that cannot be read back was raised by the trial
        return False
    return isinstance(error, RayActorError)


def is_tried_again(trial: Trial) -> bool:
    """Return whether Ray queues the failed trial again: not if it failed before it was running."""
    return trial.status == Trial.ERROR and bool(trial.should_recover())


def _is_function(trial: Trial) -> bool:
    return issubclass(trial.get_trainable_cls(), FunctionTrainable)
