"""Tune's own trial, without a cluster."""

from __future__ import annotations

from typing import Any

from ray.train._internal.session import _TrainingResult
from ray.tune.experiment import Trial

__all__ = ["SimulatedTrial"]


class SimulatedTrial(Trial):
    """A trial without a folder on this machine, and in a storage only if it is given one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.storage is not None:
            self.storage.trial_dir_name = self.trial_id

    @property
    def local_path(self) -> str | None:
        """None: a cluster would have a folder for it."""
        return None

    @property
    def path(self) -> str | None:
        """Folder for the trial's files in the storage, if there is one."""
        return None if self.storage is None else super().path

    def init_local_path(self) -> None:
        """Do nothing: there is no folder to make."""

    def on_checkpoint(self, checkpoint_result: _TrainingResult) -> None:
        """Keep a checkpoint."""
        if self.storage is not None:
            super().on_checkpoint(checkpoint_result)
            return
        manager = self.run_metadata.checkpoint_manager
        if manager is not None:
            manager.register_checkpoint(checkpoint_result)
