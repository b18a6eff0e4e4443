"""The processes between a study and its workers, which start and kill them.

The study's process starts one *warden* per wrapper, the warden one *keeper* per worker that is
needed at a time, and the keeper its *worker*, again and again. Wardens and keepers never run the
objective, so that nothing it does can block them, and have one thread each, so that forking them
is safe. All that is below a keeper belongs to its worker, whatever session it is in. It ends when
the study's process asks for it, when the worker ends, when the memory is used up, and when the
study's process is gone, which closes its end of the keeper's connection.
"""

import gc
import math
import os
import pickle
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait

from mfhpo.censored.memory import memory_below, surely
from mfhpo_optuna.time_limits import processes
from mfhpo_optuna.time_limits.crossing import Channel, close_in_forked_children, pack_error
from mfhpo_optuna.time_limits.worker import Objective, work

# What the study's process asks of a warden, with the keeper's end of a connection,
NEW_KEEPER = b"n"
# and of a keeper: start a worker (with the worker's end of a connection), kill it, watch its memory
# during a trial, or end it if it keeps too much of it after one.
START, KILL, WATCH, REST = b"s", b"k", b"w", b"r"


# What a keeper reports: that the worker may serve the next trial, or how it has ended.
RESTED = "rested"


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
    parent = os.getppid()
    os.setsid()
    gc.freeze()  # collecting garbage would copy the pages that are shared with the workers
    _begin_to_guard(lifeline)
    with lifeline:
        Channel(lifeline).send(None)
        keepers: set[int] = set()
        while os.getppid() == parent:
            ready = wait([lifeline], _LOOK_AT_KEEPERS)
            processes.reap(lambda pid, status: keepers.discard(pid))
            processes.end_strays(keepers)  # of a keeper that was killed from outside
            if ready:
                order, handles, _, _ = socket.recv_fds(lifeline, 1, 1)
                if not order:
                    break
                with socket.socket(fileno=handles[0]) as control:
                    keeper = _Keeper(control, objective, memory_limit)
                    keepers.add(processes.begin_process(keeper.keep))
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


class _Keeper:
    """Keeps one worker at a time."""

    def __init__(
        self, control: socket.socket, objective: Objective, memory_limit: float | None
    ) -> None:
        self._control = control
        self._reports = Channel(control)
        self._objective = objective
        self._memory_limit = memory_limit
        self._warden = os.getpid()
        self._worker: int | None = None
        self._look_at = math.inf  # when the memory is looked at

    def keep(self) -> None:
        """Serve the study's process until it closes the connection, or the warden ends."""
        _begin_to_guard(self._control)
        with self._control, suppress(ConnectionError):
            while os.getppid() == self._warden:
                ready = wait([self._control], _LOOK_AT_WORKER)
                processes.reap(self._note_end)
                if ready:
                    order, handles, _, _ = socket.recv_fds(self._control, 1, 1)
                    if not order:
                        break
                    self._obey(order, handles)
                elif time.monotonic() >= self._look_at:
                    self._look_at_memory()
        self._end_worker()

    def _obey(self, order: bytes, handles: list[int]) -> None:
        if order == START:
            with socket.socket(fileno=handles[0]) as end:
                self._worker = processes.begin_process(lambda: work(end, self._objective))
        elif self._worker is None:
            return  # its end was reported already
        elif order == KILL:
            self._end_worker()
            self._reports.send(Exited(signal.SIGKILL))
        elif order == WATCH:
            self._look_at = time.monotonic()
        elif order == REST:
            self._look_at_memory(_KEPT_MEMORY)
            if self._worker is not None:
                self._look_at = math.inf
                self._reports.send(RESTED)

    def _note_end(self, pid: int, status: int) -> None:
        if pid == self._worker:
            self._end_worker()
            self._reports.send(Exited(status))

    def _look_at_memory(self, part: float = 1.0) -> None:
        if self._worker is None or self._memory_limit is None:
            return
        began = time.monotonic()
        allowed = part * self._memory_limit
        used = surely(memory_below, allowed)
        now = time.monotonic()
        self._look_at = now + _MEMORY_DUTY * (now - began)
        if used > allowed:
            self._end_worker()
            self._reports.send(OutOfMemory(used))

    def _end_worker(self) -> None:
        if self._worker is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._worker, signal.SIGKILL)  # those that fork at this very moment, too
        self._worker, self._look_at = None, math.inf
        processes.end_all(_END_WITHIN)


def _begin_to_guard(end: socket.socket) -> None:
    """Make this process one that outlives what happens around it."""
    close_in_forked_children(end)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    processes.adopt_orphans()
