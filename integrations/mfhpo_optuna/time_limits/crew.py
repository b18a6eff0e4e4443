"""Starts workers for a study, and has their keepers (`warden.py`) kill them."""

import atexit
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from mfhpo_optuna.time_limits import warden
from mfhpo_optuna.time_limits.crossing import Channel, PackedError, private_pair
from mfhpo_optuna.time_limits.processes import begin_process, flush_output, reap_one
from mfhpo_optuna.time_limits.warden import Exited, OutOfMemory
from mfhpo_optuna.time_limits.worker import Objective, Order

_FREE_WITHIN = 0.15  # seconds that a killed worker is waited for; its keeper goes on without us
_END_WITHIN = 5.0  # seconds that the warden is waited for
_WARM_START = 2.0  # seconds after which a worker that does not begin is held up by something
_COLD_START = 60.0  # seconds


class WorkerHandle:
    """A connection to a keeper, and one to the worker that it keeps at the moment."""

    def __init__(self, control: socket.socket, memory_limited: bool) -> None:
        self.control = control
        self.busy = True  # whether a trial uses it
        self.lost = False  # whether the keeper has ended, or does not get its worker to end
        self._reports = Channel(control)
        self._calls: Channel | None = None
        self._memory_limited = memory_limited

    def begin_trial(self, order: Order) -> Channel | None:
        """Have a worker begin with a trial; return what leads to it, or None if it is lost."""
        if self._calls is not None and wait([self.control], 0.0):
            self.how_worker_ended(_FREE_WITHIN)  # it did, while it had nothing to do
        if self._calls is not None:
            if self._begins(self._calls, order, _WARM_START):
                return self._calls
            self.kill_worker()
        self._calls, theirs = map(Channel, private_pair())
        try:
            socket.send_fds(self.control, [warden.START], [theirs.end.fileno()])
        except OSError:
            self.close()
            return None
        finally:
            theirs.close()
        if self._begins(self._calls, order, _COLD_START):
            return self._calls
        self.close()
        return None

    def end_trial(self) -> None:
        """Let the worker wait for the next trial, unless it keeps too much memory."""
        if self._memory_limited and self._calls is not None and self._ask(warden.REST):
            report = self._report(_COLD_START)
            if report is None:
                self.close()
            elif report != warden.RESTED:
                self._forget_worker()

    def kill_worker(self) -> None:
        """End the worker and all below it; its keeper goes on trying where that takes long."""
        asked = self._calls is not None and self._ask(warden.KILL)
        if asked and self.how_worker_ended(_FREE_WITHIN) is None:
            self.close()

    def how_worker_ended(self, timeout: float) -> Exited | OutOfMemory | None:
        """Return what its keeper says; None if that says nothing for `timeout` seconds."""
        end: Exited | OutOfMemory | None = self._report(timeout)
        if end is not None:
            self._forget_worker()
        return end

    def hang_up(self) -> None:
        """Let go of the keeper, from another thread than the one that runs the trial."""
        calls = self._calls
        for end in [self.control] if calls is None else [self.control, calls.end]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the keeper, which ends with all that is below it."""
        self.lost = True
        self.control.close()
        self._forget_worker()

    def _begins(self, calls: Channel, order: Order, timeout: float) -> bool:
        """Return whether the worker repeats the order; an earlier trial's threads may delay it."""
        if self._memory_limited and not self._ask(warden.WATCH):
            return False
        try:
            calls.send(order, timeout)
            return bool(calls.receive(timeout) == order)
        except (EOFError, OSError):
            return False

    def _ask(self, order: bytes) -> bool:
        try:
            self.control.sendall(order)
        except OSError:
            self.close()
        return not self.lost

    def _report(self, timeout: float) -> Any:
        try:
            return self._reports.receive(timeout)
        except TimeoutError:
            return None
        except EOFError:
            self.close()
            return None

    def _forget_worker(self) -> None:
        if self._calls is not None:
            self._calls.close()
            self._calls = None


class Crew:
    """The workers of one wrapper; they start when they are first needed."""

    def __init__(self, start_method: str, memory_limit: float | None) -> None:
        self._start_method = start_method
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._lifeline: socket.socket | None = None
        self._warden: int | BaseProcess | None = None
        self._workers: list[WorkerHandle] = []

    @contextmanager
    def worker(self, objective: Objective) -> Iterator[WorkerHandle]:
        """Yield a worker for one trial; all run the objective of the first call."""
        worker = self._hire(objective)
        try:
            yield worker
        except BaseException:
            worker.close()  # what it said last may be half read
            raise
        finally:
            with self._lock:
                worker.busy = False
                if worker.lost and worker in self._workers:
                    self._workers.remove(worker)

    def _hire(self, objective: Objective) -> WorkerHandle:
        if self._process != os.getpid():
            self._lock = threading.Lock()
            for worker in self._workers:
                worker.close()  # it belongs to the process that this one was forked from
            self._let_go()
            self._process = os.getpid()
        with self._lock:
            for worker in self._workers:
                if not worker.busy:
                    worker.busy = True
                    return worker
            if self._lifeline is None:
                self._lifeline = self._start_warden(objective)
                atexit.register(self.close)
            ours, theirs = private_pair()
            worker = WorkerHandle(ours, self._memory_limit is not None)
            with theirs:
                try:
                    socket.send_fds(self._lifeline, [warden.NEW_KEEPER], [theirs.fileno()])
                except ConnectionError:
                    self._end()
                    worker.close()
                    return worker
            self._workers.append(worker)
            return worker

    def close(self) -> None:
        """End all processes; those of another process that this one was forked from are left."""
        if self._process == os.getpid():
            with self._lock:
                self._end()

    def _end(self) -> None:
        ended = self._warden
        self._let_go()
        if isinstance(ended, int):
            reap_one(ended, _END_WITHIN)
        elif ended is not None:
            ended.join(_END_WITHIN)
            with suppress(ValueError):  # it has not ended
                ended.close()
        atexit.unregister(self.close)

    def _let_go(self) -> None:
        for worker in self._workers:
            if worker.busy:
                worker.hang_up()
            else:
                worker.close()
        self._workers = []
        if self._lifeline is not None:
            self._lifeline.close()
        self._lifeline, self._warden = None, None

    def _start_warden(self, objective: Objective) -> socket.socket:
        ours, theirs = private_pair()
        with theirs:
            if self._start_method == "fork":
                flush_output()
                self._warden = begin_process(
                    lambda: warden.guard(theirs, objective, self._memory_limit)
                )
            else:
                context: Any = get_context(self._start_method)
                arguments = (theirs, pickle.dumps(objective), self._memory_limit)
                self._warden = process = context.Process(
                    target=warden.guard_unpickled, args=arguments, daemon=False
                )
                process.start()
        try:
            problem = Channel(ours).receive()
        except EOFError:
            problem = EOFError
        if problem is None:
            return ours
        ours.close()
        self._end()
        if isinstance(problem, PackedError):
            raise TypeError(
                f"objective {objective!r} cannot be loaded in a new process "
                f'(start_method="{self._start_method}"): {problem.message}. Define it at the top '
                f'level of a module, or use start_method="fork".'
            ) from problem.error()
        raise RuntimeError(
            "the process that starts workers ended before it was ready; its own message is on "
            'the standard error. With start_method="spawn" or "forkserver" the main module is '
            'imported once more: begin the study below `if __name__ == "__main__":`.'
        )
