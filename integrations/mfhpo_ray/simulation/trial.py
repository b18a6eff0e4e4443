"""Tune's own trial, stored nowhere."""

from __future__ import annotations

from ray.train._internal.session import _TrainingResult
from ray.tune.experiment import Trial

__all__ = ["SimulatedTrial"]


class SimulatedTrial(Trial):
    """A trial whose paths are None unless it is given a storage."""

    @property
    def local_path(self) -> str | None:
        """Folder for the trial's files on this machine."""
        return None if self.storage is None else super().local_path

    @property
    def path(self) -> str | None:
        """Folder for the trial's files in the storage."""
        return None if self.storage is None else super().path

    def on_checkpoint(self, checkpoint_result: _TrainingResult) -> None:
        """Keep a checkpoint."""
        if self.storage is not None:
            super().on_checkpoint(checkpoint_result)
            return
        manager = self.run_metadata.checkpoint_manager
        if manager is not None:
            manager.register_checkpoint(checkpoint_result)
