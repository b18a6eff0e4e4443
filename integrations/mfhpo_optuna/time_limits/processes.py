"""Processes below this one: how they begin, and how to end them all."""

import ctypes
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress

from mfhpo.censored.memory import descendants

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>


def begin_process(run: Callable[[], None]) -> int:
    """Fork a process that runs a function and nothing else; return its number.

    It skips the interpreter's exit, which belongs to the process that it was forked from.
    """
    with warnings.catch_warnings():
        # Newer Pythons warn of threads: `time_limited` documents what they mean for the first fork.
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


def end_all(within: float) -> None:
    """Kill everything below this process, and wait `within` so many seconds for its end."""
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


def reap(noted: dict[int, int] | None = None) -> bool:
    """Take in ended children, `noted` with their wait statuses; return whether others run."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        if noted is not None:
            noted[pid] = status


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
