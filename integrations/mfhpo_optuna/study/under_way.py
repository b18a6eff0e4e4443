"""Trials under way, and those that have ended and wait for earlier ones to end."""

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial

from mfhpo import Observation, Pull
from mfhpo.racing.in_order import in_turn, most_held

# Seconds that a running trial is waited for at least, and how many times the slowest one so far.
_LEAST_LEASE = 60.0
_LEASE_FACTOR = 10.0

# In /proc/<number>/stat, behind the name: the states of a process that has ended, and the place of
# the clock tick at which it began.
_DEAD, _BEGINNING = ("Z", "X"), 19


@dataclass(frozen=True)
class Running:
    """A trial that is under way: what it evaluates, and since when."""

    pull: Pull
    since: datetime | None
    blind: bool = False  # begun before the policy could choose
    worker: str | None = None  # see `worker_name`; None: this process
    arguments: str | None = None  # the digest of its sampler's, if it tells; None: this one's
    level_is_open: bool = False  # it may still be evaluated at another level than the pull's


@dataclass(frozen=True)
class Ended:
    """A trial that has ended and is not told yet."""

    number: int
    since: datetime | None
    pull: Pull
    observation: Observation | None  # None: it has its turn, but nothing to tell


class Turns:
    """Whose turn it is to be told: of each arm and level in the order of beginnings.

    Unlike `mfhpo.racing.in_order.InOrder`, it gives out no tickets. Trials began when their storage
    says so, whoever reads of them in which order, and the arm and the level of one under way may
    turn out to be others than it was tagged with.
    """

    def __init__(
        self, running: dict[int, Running], may_be_equal: Callable[[int, Pull], bool]
    ) -> None:
        self._running = running  # by number; kept up to date by the caller
        self._may_be_equal = may_be_equal
        self.waiting: dict[int, Ended] = {}  # in the order of their ends
        self.given_up: set[int] = set()  # under way, but not waited for any longer

    def end(self, trial: FrozenTrial, pull: Pull, observation: Observation | None) -> None:
        """Take what came of a trial, which waits until it is released."""
        self.waiting[trial.number] = Ended(trial.number, trial.datetime_start, pull, observation)

    def release(self) -> Iterator[Ended]:
        """Take out what nothing holds back any longer, in the order in which it is to be told."""
        awaited = [item for item in self._running.items() if item[0] not in self.given_up]
        ended_as = {number: position for position, number in enumerate(self.waiting)}
        ready = in_turn(
            [
                ended
                for ended in self.waiting.values()
                if not any(self._holds_back(number, running, ended) for number, running in awaited)
            ],
            kind=lambda ended: (ended.pull.arm, ended.pull.fidelity),
            beginning=lambda ended: _beginning(ended.since, ended.number),
            end=lambda ended: ended_as[ended.number],
        )
        for ended in ready:
            yield self.waiting.pop(ended.number)
        self.waiting = dict(self.waiting)  # going through one that was large would stay slow

    def give_up(self, ending: int | None, is_expired: Callable[[int, Running], bool]) -> None:
        """Wait no longer for trials that hold back many others, or some though they are expired.

        The one that ends at this moment is waited for.
        """
        for number, running in self._running.items():
            if number == ending or number in self.given_up:
                continue
            held = sum(
                each.observation is not None and self._holds_back(number, running, each)
                for each in self.waiting.values()
            )
            if held >= most_held(len(self._running)) or (held and is_expired(number, running)):
                self.given_up.add(number)

    def _holds_back(self, number: int, running: Running, ended: Ended) -> bool:
        """Whether a trial under way began before one that has ended, of the same arm and level.

        What is not known yet about the one under way counts as the same. Pulls of the search hold
        back no replicates of its certificate.
        """
        if type(running.pull) is not type(ended.pull):
            return False
        if _beginning(running.since, number) > _beginning(ended.since, ended.number):
            return False
        if not running.level_is_open and running.pull.fidelity != ended.pull.fidelity:
            return False
        arm = running.pull.arm
        return arm == ended.pull.arm or self._may_be_equal(arm, ended.pull)


def _beginning(since: datetime | None, number: int) -> tuple[datetime, int]:
    """When a trial began; by its number among those that began at the same moment."""
    return since or datetime.min, number


def default_lease(slowest_seconds: float) -> float:
    """How long to wait for a trial that took so long at the worst."""
    return max(_LEAST_LEASE, _LEASE_FACTOR * slowest_seconds)


def worker_name() -> str:
    """Name this process so that others on the same machine can tell whether it still runs."""
    _, began = _state_and_beginning(os.getpid())
    return f"{_machine()} {os.getpid()}@{began}"


def described(name: Any) -> str:
    """A process in words, by the name that it has given itself."""
    machine, _, process = (name if isinstance(name, str) else "").rpartition(" ")
    number, _, _ = process.partition("@")
    return f"process {number} on {machine.partition(' ')[0]}" if machine else "a process"


def is_surely_dead(name: Any) -> bool:
    """Whether a process ran on this machine and runs no longer; False if that cannot be told."""
    return _runs(name) is False


def is_surely_alive(name: Any) -> bool:
    """Whether a process runs on this machine; False if that cannot be told."""
    return _runs(name) is True


def _runs(name: Any) -> bool | None:
    """Whether the process of this name runs; None if it is on another machine, or nobody's."""
    machine, _, process = (name if isinstance(name, str) else "").rpartition(" ")
    number, _, began = process.partition("@")
    if machine != _machine() or os.name != "posix" or not number.isdecimal():
        return None
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is there, and another user's
    state, began_now = _state_and_beginning(int(number))
    # A process that was killed keeps its number until its parent has asked how it ended, which the
    # first process of a container may never do; later another process may have that number.
    is_another = bool(began and began_now and began != began_now)
    return state not in _DEAD and not is_another


def _state_and_beginning(number: int) -> tuple[str, str]:
    """The state of a process and when it began, as Linux says; "" where that is not known."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = text.rpartition(")")[2].split()  # its name, in parentheses, may have any character
    return fields[0], fields[_BEGINNING]


def _machine() -> str:
    """What no other machine has since it was started, with where processes have their numbers.

    Machines may share their names, and containers that of the machine, but not the numbers.
    """
    return _machine_of(os.getpid())


@lru_cache(maxsize=1)
def _machine_of(number: int) -> str:
    """The machine of this process, which keeps it; one that was forked may not have the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = namespace = ""
    return f"{platform.node()} {boot} {namespace}"
