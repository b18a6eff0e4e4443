"""The processes between a study and its workers, which start and kill them.

The study's process starts one *warden* per wrapper, the warden one *keeper* per worker, and the
keeper its *worker*. Wardens and keepers never run the objective, so that nothing it does can block
them, and have one thread each, so that forking them is safe. All that is below a keeper belongs to
its worker, whatever session it is in, and ends with it.
"""

import gc
import os
import pickle
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait

from mfhpo.censored.memory import children_of, memory_below, surely
from mfhpo_optuna.time_limits import processes
from mfhpo_optuna.time_limits.crossing import Channel, close_in_forked_children, pack_error
from mfhpo_optuna.time_limits.worker import Objective, work

# What the study's process asks of a warden, with the keeper's and the worker's end of a connection,
NEW_WORKER = b"n"
# and of a keeper after a trial: end the worker if it keeps too much memory. What it answers if not.
REST, RESTED = b"r", "rested"


@dataclass(frozen=True)
class Exited:
    """The worker has ended, with this wait status; None if it only closed its connection."""

    status: int | None


@dataclass(frozen=True)
class OutOfMemory:
    """The worker was killed for its memory."""

    used: int  # bytes


_LOOK_AT_KEEPERS = 0.5  # seconds, and
_LOOK_AT_WORKER = 0.05  # seconds between two looks: at its end, its memory, and the warden
_MEMORY_DUTY = 10.0  # looking at the memory takes at most this part of the time
_KEPT_MEMORY = 0.1  # part of its limit that a worker may keep from one trial to the next
_LET_KEEPERS_END = 0.5  # seconds
_END_WITHIN = 60.0  # seconds, for processes that wait for a device


def guard(lifeline: socket.socket, objective: Objective, memory_limit: float | None) -> None:
    """Be a warden until the study's process closes its end of the lifeline, or ends."""
    parent, own = os.getppid(), os.getpid()
    os.setsid()
    gc.freeze()  # collecting garbage would copy the pages that are shared with the workers
    _begin_to_guard(lifeline)
    with lifeline:
        Channel(lifeline).send(None)
        while os.getppid() == parent:
            ready = wait([lifeline], _LOOK_AT_KEEPERS)
            processes.reap()
            for child in children_of(own):
                with suppress(ProcessLookupError, PermissionError):
                    if os.getsid(child) != own:  # no keeper: its own was killed from outside
                        os.kill(child, signal.SIGKILL)
            if ready:
                order, handles, _, _ = socket.recv_fds(lifeline, 1, 2)
                if not order:
                    break
                control, calls = (socket.socket(fileno=handle) for handle in handles)
                with control, calls:
                    keep = partial(_keep, control, calls, objective, memory_limit, own)
                    processes.begin_process(keep)
    give_up_at = time.monotonic() + _LET_KEEPERS_END
    while processes.reap() and time.monotonic() < give_up_at:
        time.sleep(0.001)
    processes.end_all(_END_WITHIN)


def guard_unpickled(lifeline: socket.socket, pickled: bytes, memory_limit: float | None) -> None:
    """Be a warden in a new interpreter, to which the objective was sent."""
    status = 1
    try:
        guard(lifeline, pickle.loads(pickled), memory_limit)
        status = 0
    except BaseException as error:
        with suppress(OSError):
            Channel(lifeline).send(pack_error(error))
    finally:
        os._exit(status)


def _keep(
    control: socket.socket,
    calls: socket.socket,
    objective: Objective,
    memory_limit: float | None,
    warden: int,
) -> None:
    """Be a keeper until its worker ends, or holds too much, or the study lets go of it."""
    _begin_to_guard(control)
    worker = processes.begin_process(partial(work, calls, objective))
    calls.close()
    reports, look_at = Channel(control), 0.0
    end: Exited | OutOfMemory | None = None
    with control:
        with suppress(ConnectionError):
            while end is None and os.getppid() == warden:
                asked = bool(wait([control], _LOOK_AT_WORKER))
                ended: dict[int, int] = {}
                processes.reap(ended)
                if worker in ended:
                    end = Exited(ended[worker])
                elif asked and not control.recv(1):
                    break
                elif memory_limit is not None and (asked or time.monotonic() >= look_at):
                    began = time.monotonic()
                    allowed = memory_limit * (_KEPT_MEMORY if asked else 1.0)
                    used = surely(memory_below, allowed)
                    look_at = time.monotonic() + _MEMORY_DUTY * (time.monotonic() - began)
                    if used > allowed:
                        end = OutOfMemory(used)
                    elif asked:
                        reports.send(RESTED)
            if end is not None:
                reports.send(end)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker, signal.SIGKILL)  # those that fork at this very moment, too
        processes.end_all(_END_WITHIN)


def _begin_to_guard(end: socket.socket) -> None:
    """Make this process one that outlives what happens around it."""
    close_in_forked_children(end)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    processes.adopt_orphans()
