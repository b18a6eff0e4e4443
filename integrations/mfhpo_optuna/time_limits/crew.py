"""Starts workers for a study, and has their keepers (`warden.py`) kill them."""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from mfhpo_optuna.time_limits import warden
from mfhpo_optuna.time_limits.channel import Channel, close_in_forked_children, receive_exactly
from mfhpo_optuna.time_limits.crossing import PackedError
from mfhpo_optuna.time_limits.processes import reap_one
from mfhpo_optuna.time_limits.warden import REPORT
from mfhpo_optuna.time_limits.worker import Begun, Objective, Order

__all__ = ["Crew", "KeptWorker", "Report"]

_FREE_WITHIN = 0.15  # seconds that a killed worker is waited for; its keeper goes on without us
_END_WITHIN = 5.0  # seconds that the warden is waited for
_WARM_START = 2.0  # seconds after which a worker that does not begin is held up by something
_COLD_START = 60.0  # seconds


@dataclass(frozen=True)
class Report:
    """What a keeper tells about its worker."""

    kind: bytes  # what has happened, by the names in `warden`
    number: int  # what belongs to it: a process, a wait status, or bytes


class KeptWorker:
    """A keeper, and the worker that it keeps at the moment, whose memory may be watched."""

    def __init__(self, control: socket.socket, watched: bool) -> None:
        self.control = control
        self.lost = False  # whether the keeper has ended, or does not get its worker to end
        self._channel: Channel | None = None
        self._watched = watched

    def begin(self, order: Order) -> Channel | None:
        """Have a worker begin with a trial; return what leads to it, or None if it is lost."""
        if self._channel is not None and wait([self.control], 0.0):
            self.end(0.0)  # it did, while it had nothing to do
        if self._channel is not None:
            if self._begins(self._channel, order, _WARM_START):
                return self._channel
            self.kill()
        try:
            self._channel = self._start()
        except (EOFError, OSError):
            self.close()
            return None
        if self._begins(self._channel, order, _COLD_START):
            return self._channel
        self.close()
        return None

    def rest(self) -> None:
        """Note that the trial has ended; the worker waits for the next one."""
        if self._watched and self._channel is not None and self._ask(warden.REST):
            end = self.end(_COLD_START, otherwise=warden.RESTED)
            if end is None:
                self.close()

    def kill(self) -> None:
        """End the worker and all that is below it.

        If it does not end soon, it is lost, and its keeper goes on trying.
        """
        if self._channel is not None and self._ask(warden.KILL) and not self.end(_FREE_WITHIN):
            self.close()

    def end(self, timeout: float, otherwise: bytes = b"") -> Report | None:
        """How the worker ended, or None if nothing was heard for `timeout` seconds.

        A report of the kind `otherwise` is returned, too, and is not about its end.
        """
        try:
            report = self._report(timeout)
        except TimeoutError:
            return None
        except EOFError:
            self.close()
            return None
        if report.kind != otherwise:
            self._forget()
        return report

    def hang_up(self) -> None:
        """Let go of the keeper, from another thread than the one that runs the trial."""
        channel = self._channel
        for end in [self.control] if channel is None else [self.control, channel.end]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the keeper, which ends with all that is below it."""
        self.lost = True
        self.control.close()
        self._forget()

    def _begins(self, channel: Channel, order: Order, timeout: float) -> bool:
        """Whether the worker says so; it may be held up by threads of an earlier trial."""
        if self._watched and not self._ask(warden.WATCH):
            return False
        try:
            channel.send(order, timeout)
            return isinstance(channel.receive(timeout), Begun)
        except (EOFError, OSError):
            return False

    def _start(self) -> Channel:
        ours, theirs = socket.socketpair()
        close_in_forked_children(ours)
        try:
            with theirs:
                socket.send_fds(self.control, [warden.START], [theirs.fileno()])
            self._report(_COLD_START)
        except BaseException:
            ours.close()
            raise
        return Channel(ours)

    def _ask(self, order: bytes) -> bool:
        try:
            self.control.sendall(order)
        except OSError:
            self.close()
        return not self.lost

    def _report(self, timeout: float) -> Report:
        return Report(*REPORT.unpack(receive_exactly(self.control, REPORT.size, timeout)))

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class Crew:
    """The workers of one wrapper; they start when they are first needed."""

    def __init__(self, start_method: str, memory_limit: int | None) -> None:
        self._start_method = start_method
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._lifeline: socket.socket | None = None
        self.warden: int | BaseProcess | None = None
        self._all: list[KeptWorker] = []
        self._idle: list[KeptWorker] = []

    @contextmanager
    def worker(self, objective: Objective) -> Iterator[KeptWorker]:
        """A worker that no other trial uses meanwhile; an exception lets go of it.

        All workers run the objective of the first call.
        """
        worker = self._hire(objective)
        try:
            yield worker
        except BaseException:
            worker.close()  # what it said last may be half read
            raise
        finally:
            with self._lock:
                if worker.lost and worker in self._all:
                    self._all.remove(worker)
                elif worker in self._all:
                    self._idle.append(worker)

    def _hire(self, objective: Objective) -> KeptWorker:
        if self._process != os.getpid():
            self._lock = threading.Lock()
            for worker in self._all:
                worker.close()  # it belongs to the process that this one was forked from
            self._let_go()
            self._process = os.getpid()
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._lifeline is None:
                self._lifeline = self._start_warden(objective)
                atexit.register(self.close)
            ours, theirs = socket.socketpair()
            close_in_forked_children(ours)
            worker = KeptWorker(ours, self._memory_limit is not None)
            with theirs:
                try:
                    socket.send_fds(self._lifeline, [warden.NEW_KEEPER], [theirs.fileno()])
                except ConnectionError:
                    self._end()
                    worker.close()
                    return worker
            self._all.append(worker)
            return worker

    def close(self) -> None:
        """End all processes; those of another process that this one was forked from are left."""
        if self._process == os.getpid():
            with self._lock:
                self._end()

    def _end(self) -> None:
        warden = self.warden
        self._let_go()
        if isinstance(warden, int):
            reap_one(warden, _END_WITHIN)
        elif warden is not None:
            warden.join(_END_WITHIN)
            with suppress(ValueError):  # it has not ended
                warden.close()
        atexit.unregister(self.close)

    def _let_go(self) -> None:
        for worker in self._all:
            if worker in self._idle:
                worker.close()
            else:
                worker.hang_up()
        self._all, self._idle = [], []
        if self._lifeline is not None:
            self._lifeline.close()
        self._lifeline, self.warden = None, None

    def _start_warden(self, objective: Objective) -> socket.socket:
        ours, theirs = socket.socketpair()
        close_in_forked_children(ours)
        with theirs:
            if self._start_method == "fork":
                for stream in (sys.stdout, sys.stderr):
                    with suppress(Exception):
                        stream.flush()  # or what waits in it would be written twice
                self.warden = warden.begin_process(
                    lambda: warden.guard(theirs, objective, self._memory_limit)
                )
            else:
                spawns = self._start_method == "spawn"
                make = get_context("spawn").Process if spawns else get_context("forkserver").Process
                arguments = (theirs, pickle.dumps(objective), self._memory_limit)
                process = make(target=warden.guard_unpickled, args=arguments, daemon=False)
                process.start()
                self.warden = process
        try:
            problem = Channel(ours).receive()
        except EOFError:
            ours.close()
            self._end()
            raise RuntimeError(
                "the process that starts workers ended before it was ready; its own message is on "
                'the standard error. With start_method="spawn" or "forkserver" the main module is '
                'imported once more: begin the study below `if __name__ == "__main__":`.'
            ) from None
        if isinstance(problem, PackedError):
            ours.close()
            self._end()
            raise TypeError(
                f"objective {objective!r} cannot be loaded in a new process "
                f'(start_method="{self._start_method}"): {problem.message}. Define it at the top '
                f'level of a module, or use start_method="fork".'
            ) from problem.error()
        return ours
