"""Processes below a process: which there are, what memory they hold, and how to end them all."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress

__all__ = [
    "adopt_orphans",
    "descendants",
    "die_with_parent",
    "end_all",
    "end_strays",
    "fork",
    "memory_below",
    "reap",
    "reap_one",
]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>
_HAS_PROC = all(map(os.path.exists, ("/proc/thread-self/children", "/proc/self/smaps_rollup")))
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def fork() -> int:
    """Fork, without the warning of newer Pythons about threads.

    Only the first fork is made by a process that may have threads, and `time_limited` documents
    what that means.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs, so that none escapes.

    Linux only; elsewhere it does nothing, and orphans go to the first process of the system.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have this process killed when its parent ends, which must have one thread only.

    Linux only; elsewhere it does nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """Processes below one, parents before their children; it is a snapshot and may lack some."""
    if not _HAS_PROC:
        return _below(pid, _process_table())
    found = _children(pid)
    for member in found:
        found += _children(member)
    return found


def end_strays(known: Collection[int]) -> None:
    """Kill the children of this process but those `known` to it, and what is below them."""
    for child in _children(os.getpid()) if _HAS_PROC else ():
        if child not in known:
            for pid in (child, *descendants(child)):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def memory_below(at_most: float = 0.0) -> int:
    """Bytes of memory that the processes below this one hold, what they got by forks left out.

    Memory that processes share is divided among them where the system tells it (Linux: the
    proportional set size), and then what is shared with this process does not count. Elsewhere
    shared memory counts for each of them, less what this process holds. A cheaper upper bound is
    returned where it does not exceed `at_most`.
    """
    own = os.getpid()
    if not _HAS_PROC:
        table = _process_table()
        held = sum(table[pid][1] for pid in _below(own, table))
        return max(0, held - table[own][1])
    tree = descendants(own)
    resident = sum(map(_resident, tree))
    if resident <= at_most:
        return resident
    # What this process has from those above it is shared as widely by those below it that were
    # forked and execute the same program still; what they changed of it is their own.
    inherited, _ = _shared_and_private(own)
    program = _program(own)
    total = 0
    for pid in tree:
        shared, private = _shared_and_private(pid)
        if _program(pid) == program:
            shared = max(0, shared - inherited)
        total += shared + private
    return total


def end_all(within: float) -> bool:
    """Kill everything below this process, and wait for its end; return whether all are gone.

    A process in an uninterruptible wait of the kernel dies only after it: `within` so many seconds
    we give up.
    """
    give_up_at = time.monotonic() + within
    pause = 0.0005
    while reap(lambda pid, status: None):
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > give_up_at:
            return False
        time.sleep(pause)
        pause = min(2.0 * pause, 0.02)
    return True


def reap(noted: Callable[[int, int], None]) -> bool:
    """Take in the children that have ended; return whether there are others.

    `noted` is called with the process and the wait status of each.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        noted(pid, status)


def reap_one(pid: int, within: float) -> bool:
    """Wait for a child to end, `within` so many seconds; return whether it has."""
    # Whoever else waits for all children may have taken it in already.
    give_up_at = time.monotonic() + within
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up_at:
                return False
            time.sleep(0.001)
    return True


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    return children


def _resident(pid: int) -> int:
    with suppress(OSError, IndexError), open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def _shared_and_private(pid: int) -> tuple[int, int]:
    """A process's proportional part of the memory that it shares, and what it has for itself."""
    kilobytes = {"Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            name, _, size = line.partition(":")
            if name in kilobytes:
                kilobytes[name] = int(size.split()[0])
    private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return 1024 * (kilobytes["Pss"] - private), 1024 * private


def _program(pid: int) -> int:
    """Where its stack begins: the same after a fork, another one when a program is executed."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[25])
    return 0


def _process_table() -> dict[int, tuple[int, int]]:
    """Parent and resident bytes of every process, from the one tool that every POSIX has."""
    command = ["ps", "-A", "-o", "pid=,ppid=,rss="]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = (tuple(map(int, line.split())) for line in listed.splitlines())
    return {pid: (parent, 1024 * kilobytes) for pid, parent, kilobytes in rows}


def _below(pid: int, table: dict[int, tuple[int, int]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for child, (parent, _) in table.items():
        children.setdefault(parent, []).append(child)
    found = list(children.get(pid, []))
    for member in found:
        found += children.get(member, [])
    return found
