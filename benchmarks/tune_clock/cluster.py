"""A cluster that is simulated: its slots, processes (Ray's actors) and trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ray.train._internal.session import _TrainingResult
from ray.tune import Trainable
from ray.tune.experiment import Trial


@dataclass(eq=False)
class Actor:
    """A trial's stay in a slot, in a process that `kill` ends."""

    # When the slot was taken, and until when its process is busy.
    taken: float
    busy_until: float
    on_kill: Callable[[Actor], None]
    is_killed: bool = False
    # Training iterations of the trial so far and their seconds, and the same when it came here.
    iteration: int = 0
    seconds: float = 0.0
    restored_iteration: int = 0
    restored_seconds: float = 0.0

    def kill(self) -> None:
        """End the process, whatever it does: what ``ray.kill`` does to a real one."""
        if not self.is_killed:
            self.is_killed = True
            self.on_kill(self)


class Slots:
    """Counts free slots, with an idle process or without one, and for how long others are held."""

    def __init__(self, count: int) -> None:
        self._vacant = count
        self._idle = 0
        self._held: set[Actor] = set()
        self._seconds = 0.0

    @property
    def are_free(self) -> bool:
        """Return whether a trial can have a slot."""
        return self._vacant + self._idle > 0

    @property
    def have_idle(self) -> bool:
        """Return whether a process waits for its next trial."""
        return self._idle > 0

    def take(self, now: float, on_kill: Callable[[Actor], None]) -> Actor:
        """Take a slot, with an idle process if there is one."""
        if self._idle:
            self._idle -= 1
        else:
            self._vacant -= 1
        actor = Actor(now, busy_until=now, on_kill=on_kill)
        self._held.add(actor)
        return actor

    def free(self, actor: Actor, now: float, *, keep: bool) -> None:
        """Give a slot back, unless it was; its process may be kept for the next trial."""
        if actor not in self._held:
            return
        self._held.remove(actor)
        self._seconds += now - actor.taken
        if keep:
            self._idle += 1
        else:
            self._vacant += 1

    def seconds(self, now: float) -> float:
        """For how long slots were held up to now, summed over the slots."""
        return self._seconds + sum(now - actor.taken for actor in self._held)


class SavedByAPause(Trainable):
    """The checkpoint that Ray saves whenever it pauses it."""

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Save nothing: the simulation has no state of a training."""


class SimulatedTrial(Trial):
    """A trial without a folder on this machine, and in a storage only if it is given one."""

    def __init__(self, *arguments: Any, is_saved: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_saved = is_saved
        if self.storage is not None:
            self.storage.trial_dir_name = self.trial_id

    def reset(self) -> Trial:
        """Return a new trial of the same configuration."""
        return SimulatedTrial(
            self.trainable_name,
            is_saved=self._is_saved,
            config=self.config,
            storage=self.storage,
            evaluated_params=self.evaluated_params,
            experiment_tag=self.experiment_tag,
            placement_group_factory=self.placement_group_factory,
            stopping_criterion=self.stopping_criterion,
            max_failures=self.max_failures,
            stub=True,
        )

    def get_trainable_cls(self) -> type[Trainable]:
        """Return the name of what is trained."""
        return SavedByAPause if self._is_saved else Trainable

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
