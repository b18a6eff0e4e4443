"""Processes that run trials: their names, and whether they still run."""

import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

# In /proc/<number>/stat, behind the name: the states of a process that has ended, and the place of
# the clock tick at which it began.
_DEAD, _BEGINNING = ("Z", "X"), 19


def worker_name() -> str:
    """Name this process so that others on the same machine can tell whether it still runs."""
    return _name_of(os.getpid())


@lru_cache(maxsize=1)
def _name_of(number: int) -> str:
    _, began = _state_and_beginning(number)
    return f"{_machine_of(number)} {number}@{began}"


def described(name: Any) -> str:
    """Return a process in words, by the name that it has given itself."""
    machine, _, process = (name if isinstance(name, str) else "").rpartition(" ")
    number, _, _ = process.partition("@")
    return f"process {number} on {machine.partition(' ')[0]}" if machine else "a process"


def is_surely_dead(name: Any) -> bool:
    """Return whether a process of this machine runs no longer; False if nobody can tell."""
    return name != worker_name() and _runs(name) is False


def is_surely_alive(name: Any) -> bool:
    """Return whether a process runs on this machine; False if nobody can tell."""
    return _runs(name) is True


def _runs(name: Any) -> bool | None:
    """Return whether a process runs; None if it is on another machine, or nobody's."""
    machine, _, process = (name if isinstance(name, str) else "").rpartition(" ")
    number, _, began = process.partition("@")
    if machine != _machine_of(os.getpid()) or os.name != "posix" or not number.isdecimal():
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
    """Return the state of a process and when it began, as Linux says; "" where unknown."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = text.rpartition(")")[2].split()  # its name, in parentheses, may have any character
    return fields[0], fields[_BEGINNING]


@lru_cache(maxsize=1)
def _machine_of(number: int) -> str:
    """Return what no other machine or container has, which may have its name, since its start."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = namespace = ""
    return f"{platform.node()} {boot} {namespace}"
