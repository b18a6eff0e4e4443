"""Which process runs a trial, and whether it is surely dead."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["is_surely_dead", "worker_name"]


def worker_name() -> str:
    """Name this process so that others on the same machine can tell whether it still runs."""
    return f"{_machine()} {os.getpid()}"


def is_surely_dead(name: str | None) -> bool:
    """Whether a process ran on this machine and runs no longer; False if that cannot be told."""
    machine, _, pid = (name or "").rpartition(" ")
    if machine != _machine() or os.name != "posix":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _machine() -> str:
    # Containers may share a machine's name, but not their numbers of processes.
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{platform.node()} {namespace}"
