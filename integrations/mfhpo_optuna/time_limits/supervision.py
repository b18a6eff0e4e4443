"""One trial in a worker: answers what its objective asks, and ends it at its limit."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import wait

from optuna.trial import BaseTrial

from mfhpo_optuna.study.trials.under_way import objective_clock
from mfhpo_optuna.time_limits.crew import WorkerHandle
from mfhpo_optuna.time_limits.crossing import Channel, Outcome
from mfhpo_optuna.time_limits.remote_trial import Answers
from mfhpo_optuna.time_limits.warden import Exited, OutOfMemory
from mfhpo_optuna.time_limits.worker import Done

_SLOW = 5.0  # seconds after which a message that stopped half way is not waited for, for once
_DAY = 86400.0  # seconds; longer waits do not fit into what the system counts in
_LOOK_FOR_PROGRAM = 1.0  # seconds after which to see whether the program still waits for us
_LAST_WORDS = 2.0  # seconds that a worker's keeper needs at most to tell how it ended


@dataclass(frozen=True)
class End:
    """How a trial ended: in time with an outcome, by the end of its process, or at its limit."""

    how: Outcome | Exited | OutOfMemory | None  # None: at its limit of time
    seconds: float


def supervise(worker: WorkerHandle, channel: Channel, trial: BaseTrial, limit: float) -> End:
    """Serve a worker that has begun, until the trial has ended.

    The worker's own clock says whether a trial is in time; the clock of this process only says when
    to kill. Both stop while a sampler computes or the storage first fails. Raises KeyboardInterrupt
    if the program was interrupted and only waits for its threads.
    """
    clock, answers = _Clock(limit), Answers(trial)
    before = objective_clock.set(clock.seconds)
    try:
        while True:
            if _is_interrupted():
                raise KeyboardInterrupt("the program was interrupted while trials ran")
            left = clock.left()
            if left <= 0.0:
                worker.kill_worker()
                return End(None, clock.seconds())
            ready = wait([channel.end, worker.control], min(left, _LOOK_FOR_PROGRAM))
            if ready and channel.end not in ready:
                return _end_of_process(worker, clock.seconds())
            try:
                end = _served(worker, channel, answers, clock) if ready else None
            except TimeoutError:
                continue
            except (EOFError, ConnectionError):
                return _end_of_process(worker, clock.seconds())
            if end is not None:
                return end
    finally:
        objective_clock.reset(before)


def _served(worker: WorkerHandle, channel: Channel, answers: Answers, clock: _Clock) -> End | None:
    """Answer a message; return how the trial has ended, or None while it goes on."""
    message = channel.receive(_SLOW)
    is_done = isinstance(message, Done)
    if is_done and message.seconds <= clock.limit:
        return End(message.outcome, message.seconds)
    clock.set(message.seconds)
    if message.seconds > clock.limit:
        if not is_done:
            worker.kill_worker()
        return End(None, clock.seconds())
    answered = answers.to(message)
    clock.set(clock.seconds() - answered.sampling)
    left = clock.left()
    if left > 0.0:
        channel.send(answered, min(left, _DAY))
    return None


def _end_of_process(worker: WorkerHandle, seconds: float) -> End:
    end = worker.how_worker_ended(_LAST_WORDS)
    if end is None:
        worker.kill_worker()
    return End(end or Exited(None), seconds)


class _Clock:
    """How long an objective has run, by what its worker last said."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.set(0.0)

    def set(self, seconds: float) -> None:
        self._seconds, self._since = seconds, time.monotonic()

    def seconds(self) -> float:
        return self._seconds + time.monotonic() - self._since

    def left(self) -> float:
        return self.limit - self.seconds()


def _is_interrupted() -> bool:
    # The main thread counts as alive while the interpreter joins those of executors.
    ends = getattr(threading, "_SHUTTING_DOWN", False) or not threading.main_thread().is_alive()
    # One that ended without an error may have left its work to threads on purpose.
    return ends and isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
