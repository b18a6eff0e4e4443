"""What Ray looks for at the end of an experiment, for trials that never ran."""

from __future__ import annotations

from pathlib import Path

import ray
from ray.air.constants import EXPR_RESULT_FILE
from ray.tune.experiment import Trial

__all__ = ["give_folder"]


def give_folder(trial: Trial) -> None:
    """Give a trial that may never report the folder, and the file of results, that Ray expects."""
    if trial.storage is not None and ray.is_initialized():
        trial.init_local_path()
        if trial.local_path is not None:
            Path(trial.local_path, EXPR_RESULT_FILE).touch()
