"""Processes that Ray gives to one trial after the other: which trainables they suit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray.tune.experiment import Trial
from ray.tune.trainable import Trainable

from mfhpo_ray.experiment.time_limits import unwrapped

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController


def check_reuse(tune_controller: TuneController, trial: Trial) -> None:
    """Raise ValueError for a class that cannot be reset, where Ray uses processes again.

    Ray fails each trial that gets such a process, and tells neither searcher nor scheduler.
    """
    trainable = trial.get_trainable_cls()
    is_reused = getattr(unwrapped(tune_controller), "_reuse_actors", False)
    if not is_reused or trainable is None:
        return
    if trainable.reset_config is Trainable.reset_config:
        raise ValueError(
            f"TuneConfig(reuse_actors=True) gives the process of a trial that has ended to "
            f"another one, but {trainable.__name__} has no reset_config, so that Ray would fail "
            f"the other one. Define reset_config(self, new_config), which returns True, or drop "
            f"reuse_actors=True."
        )
