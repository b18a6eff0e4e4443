"""Processes below a process: which there are, what memory they hold, and how to end them all."""

import ctypes
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TypeAlias

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>
_HAS_PROC = all(map(os.path.exists, ("/proc/thread-self/children", "/proc/self/smaps_rollup")))
_Table: TypeAlias = dict[int, tuple[int, int]]  # of processes: parent and resident bytes
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def begin_process(run: Callable[[], None]) -> int:
    """Fork a process that runs a function and nothing else; return its number.

    It skips the interpreter's exit, which belongs to the process that it was forked from.
    """
    with warnings.catch_warnings():
        # Newer Pythons warn of threads. Only the first fork is made by a process that may have
        # them, and `time_limited` documents what that means.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs, so that none escapes; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have this process killed when its parent ends, which has one thread only; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """List processes below one, parents first; the snapshot may lack some."""
    return _below(pid, None if _HAS_PROC else _process_table())


def _below(pid: int, table: _Table | None) -> list[int]:
    found = _children(pid, table)
    for member in found:
        found += _children(member, table)
    return found


def end_strays(known: Collection[int]) -> None:
    """Kill the children of this process but those `known` to it, and what is below them."""
    for child in _children(os.getpid()) if _HAS_PROC else ():
        if child not in known:
            for pid in (child, *descendants(child)):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def memory_below(at_most: float = 0.0) -> int:
    """Return the bytes that the processes below this one hold, without what forks gave them.

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


def end_all(within: float) -> None:
    """Kill everything below this process, and wait for its end, `within` so many seconds.

    A process in an uninterruptible wait of the kernel dies only after it.
    """
    give_up_at = time.monotonic() + within
    pause = 0.0005
    while reap():
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > give_up_at:
            return
        time.sleep(pause)
        pause = min(2.0 * pause, 0.02)


def reap(noted: Callable[[int, int], None] = lambda pid, status: None) -> bool:
    """Take in ended children, `noted` with their wait statuses; return whether others run."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        noted(pid, status)


def reap_one(pid: int, within: float) -> None:
    """Wait for a child to end, `within` so many seconds."""
    # Whoever else waits for all children may have taken it in already.
    give_up_at = time.monotonic() + within
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up_at:
                return
            time.sleep(0.001)


def flush_output() -> None:
    """Write what waits to be, or a fork would write it twice, and an exit would lose it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _children(pid: int, table: _Table | None = None) -> list[int]:
    if table is not None:
        return [child for child, (parent, _) in table.items() if parent == pid]
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
    kilobytes = {"Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            name, _, size = line.partition(":")
            if name in kilobytes:
                kilobytes[name] = int(size.split()[0])
    private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return 1024 * (kilobytes["Pss"] - private), 1024 * private


def _program(pid: int) -> int:
    """Return where its stack begins: the same after a fork, another in another program."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[25])
    return 0


def _process_table() -> _Table:
    """List all processes, by the one tool that every POSIX has."""
    command = ["ps", "-A", "-o", "pid=,ppid=,rss="]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = (tuple(map(int, line.split())) for line in listed.splitlines())
    return {pid: (parent, 1024 * kilobytes) for pid, parent, kilobytes in rows}
