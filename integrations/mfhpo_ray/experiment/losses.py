"""Trials that ended because their process or their node was gone: whose fault that is."""

from pathlib import Path

from ray import cloudpickle
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial


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
    """Return whether Ray queues the failed trial again.

    It gives up one that failed before it was running, whatever its number of failures.
    """
    return trial.status == Trial.ERROR and bool(trial.should_recover())
