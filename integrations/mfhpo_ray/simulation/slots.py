"""The slots of a simulated cluster, and the processes (Ray's actors) that trials run in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Actor", "Slots"]


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
        """Whether a trial can have a slot."""
        return self._vacant + self._idle > 0

    @property
    def have_idle(self) -> bool:
        """Whether a process waits for its next trial."""
        return self._idle > 0

    def take(self, now: float, busy_for: float, on_kill: Callable[[Actor], None]) -> Actor:
        """Take a slot, with an idle process if there is one."""
        if self._idle:
            self._idle -= 1
        else:
            self._vacant -= 1
        actor = Actor(now, busy_until=now + busy_for, on_kill=on_kill)
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
