"""One trial in a worker: answers what its objective asks, and ends it at its limit."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import wait

from optuna.trial import BaseTrial

from mfhpo_optuna.time_limits.channel import Channel
from mfhpo_optuna.time_limits.crew import KeptWorker
from mfhpo_optuna.time_limits.limits import serving
from mfhpo_optuna.time_limits.remote_trial import Answers
from mfhpo_optuna.time_limits.warden import EXITED, OUT_OF_MEMORY
from mfhpo_optuna.time_limits.worker import Done

__all__ = ["Died", "End", "OutOfMemory", "OutOfTime", "supervise"]

_SLOW = 5.0  # seconds after which a message that stopped half way is not waited for, for once
_DAY = 86400.0  # seconds; longer waits do not fit into what the system counts in
_LOOK_FOR_PROGRAM = 1.0  # seconds after which to see whether the program still waits for us
_LAST_WORDS = 2.0  # seconds that a worker's keeper needs at most to tell how it ended


@dataclass(frozen=True)
class OutOfTime:
    """It exceeded its limit of time."""

    seconds: float


@dataclass(frozen=True)
class OutOfMemory:
    """It exceeded its limit of memory."""

    used: int
    seconds: float


@dataclass(frozen=True)
class Died:
    """Its process ended, with this wait status; None if it only closed its connection."""

    status: int | None
    seconds: float


End = Done | OutOfTime | OutOfMemory | Died


def supervise(worker: KeptWorker, channel: Channel, trial: BaseTrial, limit: float) -> End:
    """Serve a worker that has begun, until the trial has ended: `Done` only if it is in time.

    The worker's own clock says whether a trial is in time; the clock of this process only says when
    to kill. Both stop while a sampler computes, and run while the trial answers anything else.
    Raises KeyboardInterrupt if the program was interrupted and only waits for its threads.
    """
    clock = _Clock(limit)
    with serving(clock.seconds):
        return _supervise(worker, channel, Answers(trial), clock, limit)


def _supervise(
    worker: KeptWorker, channel: Channel, answers: Answers, clock: _Clock, limit: float
) -> End:
    while True:
        if _is_interrupted():
            raise KeyboardInterrupt("the program was interrupted while trials ran")
        left = clock.left()
        if left <= 0.0:
            worker.kill()
            return OutOfTime(clock.seconds())
        ready = wait([channel.end, worker.control], min(left, _LOOK_FOR_PROGRAM))
        if not ready:
            continue
        if channel.end not in ready:
            return _how_it_ended(worker, clock.seconds())
        try:
            message = channel.receive(_SLOW)
            if message.seconds > limit:
                clock.set(message.seconds)
                if not isinstance(message, Done):
                    worker.kill()
                return OutOfTime(clock.seconds())
            if isinstance(message, Done):
                return message
            clock.set(message.seconds)
            answered = answers.to(message)
            clock.spare(answered.sampling)
            left = clock.left()
            if left > 0.0:
                channel.send(answered, min(left, _DAY))
        except TimeoutError:
            continue
        except (EOFError, ConnectionError):
            return _how_it_ended(worker, clock.seconds())


class _Clock:
    """How long an objective has run, by what its worker last said."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.set(0.0)

    def set(self, seconds: float) -> None:
        self._seconds, self._since = seconds, time.monotonic()

    def spare(self, seconds: float) -> None:
        self._seconds -= seconds

    def seconds(self) -> float:
        return self._seconds + time.monotonic() - self._since

    def left(self) -> float:
        return self._limit - self.seconds()


def _is_interrupted() -> bool:
    """Whether Ctrl-C has ended the program, and the interpreter only joins its threads."""
    # The main thread counts as alive while the interpreter joins those of executors.
    ends = getattr(threading, "_SHUTTING_DOWN", False) or not threading.main_thread().is_alive()
    # One that ended without an error may have left its work to threads on purpose.
    return ends and isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)


def _how_it_ended(worker: KeptWorker, seconds: float) -> OutOfMemory | Died:
    end = worker.end(_LAST_WORDS)
    if end is None:
        worker.kill()
        return Died(None, seconds)
    if end.kind == OUT_OF_MEMORY:
        return OutOfMemory(end.number, seconds)
    return Died(end.number if end.kind == EXITED else None, seconds)
