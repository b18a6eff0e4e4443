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
    """A connection to a worker, `calls`, and one to its keeper, `control`."""

    def __init__(self, control: socket.socket, calls: socket.socket) -> None:
        self.control, self.calls = control, Channel(calls)
        self.busy = True  # whether a trial uses it
        self.lost = False  # whether it has ended, or is being killed
        self._reports = Channel(control)
        self._start_within = _COLD_START

    def begins(self, order: Order) -> bool:
        """Tell whether the worker begins with a trial; an earlier one's threads may delay it."""
        timeout, self._start_within = self._start_within, _WARM_START
        with suppress(EOFError, OSError):
            self.calls.send(order, timeout)
            if self.calls.receive(timeout) == order:
                return True
        self.kill()
        return False

    def rest(self) -> None:
        """Let the worker wait for the next trial, unless it keeps too much memory."""
        with suppress(EOFError, OSError):
            self.control.sendall(warden.REST)
            if self._reports.receive(_COLD_START) == warden.RESTED:
                return
        self.kill()

    def how_it_ended(self, timeout: float) -> Exited | OutOfMemory | None:
        """Return what its keeper says; None if that says nothing for `timeout` seconds."""
        with suppress(EOFError, TimeoutError):
            end: Exited | OutOfMemory = self._reports.receive(timeout)
            return end
        return None

    def kill(self) -> None:
        """End the worker and all below it; its keeper goes on trying where that takes long."""
        self.lost = True
        with suppress(EOFError, OSError):
            self.control.shutdown(socket.SHUT_WR)
            while True:
                self._reports.receive(_FREE_WITHIN)
        self.close()

    def hang_up(self) -> None:
        """Let go of the keeper, from another thread than the one that runs the trial."""
        for end in (self.control, self.calls.end):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the keeper, which ends with all that is below it."""
        self.lost = True
        self.control.close()
        self.calls.close()


class Crew:
    """The workers of one wrapper; they start when they are first needed."""

    def __init__(self, start_method: str, memory_limit: float | None) -> None:
        self._start_method = start_method
        self._memory_limit = memory_limit
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._lifeline: socket.socket | None = None
        self._warden: int | BaseProcess | None = None
        self._workers: list[WorkerHandle] = []

    @contextmanager
    def worker(self, objective: Objective) -> Iterator[WorkerHandle]:
        """Yield a worker for one trial; all run the objective of the first call."""
        if self._process != os.getpid():
            self._begin()  # forked from the process to which the workers belong
        worker = self._hire(objective)
        try:
            yield worker
            if self._memory_limit is not None and not worker.lost:
                worker.rest()
        except BaseException:
            worker.close()  # what it said last may be half read
            raise
        finally:
            with self._lock:
                worker.busy = False
                if worker.lost and worker in self._workers:
                    self._workers.remove(worker)

    def _hire(self, objective: Objective) -> WorkerHandle:
        with self._lock:
            for worker in [each for each in self._workers if not each.busy]:
                if not wait([worker.control], 0.0):
                    worker.busy = True
                    return worker
                worker.close()  # it has ended while it had nothing to do
                self._workers.remove(worker)
            if self._lifeline is None:
                self._lifeline = self._start_warden(objective)
                atexit.register(self.close)
            (control, keepers), (calls, workers) = private_pair(), private_pair()
            worker = WorkerHandle(control, calls)
            self._workers.append(worker)
            with keepers, workers:
                ends = [keepers.fileno(), workers.fileno()]
                try:
                    socket.send_fds(self._lifeline, [warden.NEW_WORKER], ends)
                except ConnectionError:
                    self._end()
            return worker

    def close(self) -> None:
        """End all processes; those of another process that this one was forked from are left."""
        if self._process == os.getpid():
            with self._lock:
                self._end()

    def _end(self) -> None:
        for worker in self._workers:
            let_go = worker.hang_up if worker.busy else worker.close
            let_go()
        self._workers = []
        if self._lifeline is not None:
            self._lifeline.close()
        if isinstance(self._warden, int):
            reap_one(self._warden, _END_WITHIN)
        elif self._warden is not None:
            self._warden.join(_END_WITHIN)
            with suppress(ValueError):  # it has not ended
                self._warden.close()
        self._lifeline, self._warden = None, None
        atexit.unregister(self.close)

    def _start_warden(self, objective: Objective) -> socket.socket:
        ours, theirs = private_pair()
        with theirs:
            self._warden = self._begin_warden(theirs, objective)
        problem: Any
        try:
            problem = Channel(ours).receive()
        except EOFError:
            problem = RuntimeError(
                "the process that starts workers ended before it was ready (see the standard "
                'error). Begin the study below `if __name__ == "__main__":`, or use '
                'start_method="fork".'
            )
        if problem is None:
            return ours
        ours.close()
        self._end()
        if isinstance(problem, PackedError):
            raise _no_use(objective, problem.message) from problem.error()
        raise problem

    def _begin_warden(self, end: socket.socket, objective: Objective) -> int | BaseProcess:
        if self._start_method == "fork":
            flush_output()
            return begin_process(lambda: warden.guard(end, objective, self._memory_limit))
        try:
            arguments = (end, pickle.dumps(objective), self._memory_limit)
        except Exception as error:
            raise _no_use(objective, str(error)) from error
        context: Any = get_context(self._start_method)
        process: BaseProcess = context.Process(
            target=warden.guard_unpickled, args=arguments, daemon=False
        )
        process.start()
        return process


def _no_use(objective: Objective, why: str) -> TypeError:
    return TypeError(
        f"objective {objective!r} cannot be sent to a new process: {why}. Define it at the top "
        f"level of a module (no lambda, not replaced there by what time_limited returns), or use "
        f'start_method="fork".'
    )
