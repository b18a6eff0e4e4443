"""Processes below a process: which there are, and what memory they hold.

Nothing here needs more than Python: hosts send it to other computers.
"""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

HAS_PROC = all(map(os.path.exists, ("/proc/thread-self/children", "/proc/self/smaps_rollup")))
_Table: TypeAlias = dict[int, tuple[int, int]]  # of processes: parent and resident bytes
_LOOKS_TO_BE_SURE = 3  # a fork or an end during a look makes shared memory count twice
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def surely(look: Callable[[float], int], at_most: float) -> int:
    """Return the bytes that `look` measures; more than `at_most` are measured again, to be sure."""
    for _ in range(_LOOKS_TO_BE_SURE):
        used = look(at_most)
        if used <= at_most:
            break
    return used


def descendants(pid: int) -> list[int]:
    """List processes below one, parents first; the snapshot may lack some."""
    return _below(pid, None if HAS_PROC else _process_table())


def memory_below(at_most: float = 0.0) -> int:
    """Return the bytes that the processes below this one hold, without what forks gave them.

    Memory that processes share is divided among them where the system tells it (Linux: the
    proportional set size); elsewhere it counts for each. A cheaper upper bound is returned where it
    does not exceed `at_most`.
    """
    return _held(os.getpid(), at_most, is_giver=True)


def memory_of(pid: int, at_most: float = 0.0) -> int:
    """Return the bytes that a process holds with all below it (see `memory_below`)."""
    return _held(pid, at_most, is_giver=False)


def _held(pid: int, at_most: float, is_giver: bool) -> int:
    """Return what a process holds with all below it, or only they, whom it has given memory."""
    table = None if HAS_PROC else _process_table()
    tree = ([] if is_giver else [pid]) + _below(pid, table)
    if table is not None:
        held = sum(table[each][1] for each in tree if each in table)
        return max(0, held - table[pid][1]) if is_giver else held
    resident = sum(map(_resident, tree))
    if resident <= at_most:
        return resident
    # What a process has from those above it is shared as widely by those below it that were forked
    # and execute the same program still; what they changed of it is their own.
    given, program = (_shared_and_private(pid)[0], _program(pid)) if is_giver else (0, -1)
    total = 0
    for each in tree:
        shared, private = _shared_and_private(each)
        total += private + (max(0, shared - given) if _program(each) == program else shared)
    return total


def _below(pid: int, table: _Table | None) -> list[int]:
    found = children_of(pid, table)
    for member in found:
        found += children_of(member, table)
    return found


def children_of(pid: int, table: _Table | None = None) -> list[int]:
    """List the children of a process; the snapshot may lack some."""
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
