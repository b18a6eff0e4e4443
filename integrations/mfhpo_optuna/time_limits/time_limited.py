"""Limits of time and memory for any Optuna objective, enforced from outside."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import BaseTrial

from mfhpo._validation import check_choice, check_instance, check_limit
from mfhpo.censored.memory import HAS_PROC
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.under_way import limit_of, objective_clock
from mfhpo_optuna.time_limits.crew import Crew, WorkerHandle
from mfhpo_optuna.time_limits.crossing import Outcome, PackedError, unpack
from mfhpo_optuna.time_limits.warden import Exited, OutOfMemory
from mfhpo_optuna.time_limits.worker import Answers, Done, Objective, Order, draw_seeds

_START_METHODS = ("fork", "forkserver", "spawn")
_SLOW = 5.0  # seconds after which a message that stopped half way is not waited for, for once
_DAY = 86400.0  # seconds; longer waits do not fit into what the system counts in
_LOOK_FOR_PROGRAM = 1.0  # seconds after which to see whether the program still waits for us
_LAST_WORDS = 2.0  # seconds that a worker's keeper needs at most to tell how it ended
_ATTEMPTS = 3  # a warden or keeper may have been ended from outside since the last trial


class TimeLimited:
    """An objective whose trials end at a limit of time, whatever they are doing.

    The objective runs in a process of its own. At the limit that process is killed with all that it
    has started: a sleep, a loop in C that never returns to Python, child processes, processes in
    other sessions, and those that ignore signals. The trial ends PRUNED, with the parameters, user
    attributes and reported values that it had until then, and the next trial begins.

    It is given to ``study.optimize``, with any ``n_jobs``. Its processes start with the first
    trial, and end when it is closed (``with time_limited(...) as limited:``), is no longer used, or
    the program ends, even by ``kill -9``. It can be pickled and copied if the objective can.

    Parameters
    ----------
    objective
        A function of a trial, as for `optuna.study.Study.optimize`. With "spawn" and "forkserver"
        it must be picklable: defined at the top level of a module, under the name it still has.
    limit
        Seconds that a trial may take. None leaves it to the sampler, which tells it in the
        trial's user attribute ``"mfhpo:limit"``; where both do, the smaller one counts. The
        clock stands still while a parameter is suggested for the first time, and while the storage
        fails for the first time.
    memory_limit
        Bytes that a trial may take, with all processes that it has started; none by default.
    start_method
        How the first process starts: "fork" (the default on Linux), "forkserver" or "spawn" (the
        default on macOS); see the Notes.

    Raises
    ------
    NotImplementedError
        On Windows: processes and their groups as here exist on POSIX systems only.

    Notes
    -----
    **What is recorded**, as user attributes of a trial: ``mfhpo:seconds``, what it took;
    ``mfhpo:censored_at``, the limit in seconds, if it was stopped, be it for its time or its
    memory; ``mfhpo:memory_limit``, the limit in bytes, if it was stopped for its memory.

    **What the objective sees.** What it does to globals and to a study in memory changes a copy:
    use ``trial.set_user_attr(...)``. Threads of the objective may use its trial, its child
    processes may not. `trial.study` can be read and stopped. When the process ends by itself, as by
    a segmentation fault or `sys.exit`, RuntimeError is raised and the trial FAILs.

    **Memory.** On Linux what several processes share is divided among them, and what a trial shares
    with this process does not count; elsewhere it is the resident set size.

    **Start methods.** "fork" takes milliseconds and copies this process at the first trial. CUDA
    breaks if it was used here before, and so does libgomp (LightGBM, XGBoost, scikit-learn) if it
    has run threads here: trials then hang until their limits. The others import the main module
    again, which must begin its study below ``if __name__ == "__main__":``.

    **Randomness.** Before each trial `random` and `numpy.random` are seeded there with numbers
    that are drawn from them here, so seeding them here makes a study without parallel trials
    repeatable. Seed generators of other libraries in the objective.

    **What escapes**: work that another service does on request, such as a container or a queued
    job; and on macOS, processes whose parent has ended.
    """

    def __init__(
        self,
        objective: Objective,
        limit: float | None = None,
        *,
        memory_limit: float | None = None,
        start_method: str | None = None,
    ) -> None:
        if os.name != "posix":
            raise NotImplementedError(
                "time_limited needs a POSIX system (Linux, macOS, or WSL on Windows), because it "
                "forks processes; TimeLimitPruner works everywhere, for objectives that report."
            )
        check_instance("objective", objective, Callable, "a function of a trial")
        self._objective = objective
        self._limit = check_limit("limit", limit)
        self._memory_limit = check_limit("memory_limit", memory_limit, " of bytes")
        if start_method is None:
            start_method = "spawn" if sys.platform == "darwin" else "fork"
        self._start_method = check_choice("start_method", start_method, _START_METHODS, " or None")
        self._warned = False
        self._suspects_fork = start_method == "fork" and HAS_PROC
        self._hire()

    def __call__(self, trial: BaseTrial) -> float | Sequence[float]:
        """Run the objective on a trial.

        Raises TrialPruned if it was stopped at a limit, RuntimeError if its process ended itself.
        """
        limit = self._limit_for(trial)
        if attributes.read_attribute(trial, attributes.LIMIT_KEY) is not None:
            attributes.write_note(trial, attributes.ENFORCER_KEY, "time_limited")
        end = self._supervise(trial, limit)
        attributes.write_note(trial, attributes.SECONDS_KEY, end.seconds)
        if isinstance(end.how, bytes | PackedError):
            self._suspects_fork = False
            value: float | Sequence[float] = unpack(end.how)
            return value
        if isinstance(end.how, Exited):
            raise RuntimeError(
                f"trial {trial.number}: after {end.seconds:.3g} s the objective's process "
                f"{_how_it_ended(end.how.status)}, instead of returning a value."
            )
        if math.isfinite(limit):
            attributes.write_note(trial, attributes.CENSORED_KEY, limit)
        if isinstance(end.how, OutOfMemory):
            attributes.write_note(trial, attributes.MEMORY_KEY, self._memory_limit)
            raise optuna.TrialPruned(
                f"stopped after {end.seconds:.3g} s at its memory limit of "
                f"{self._memory_limit:.4g} bytes; it held {end.how.used:.4g}"
            )
        if self._suspects_fork and b"/libgomp" in Path("/proc/self/maps").read_bytes():
            self._suspects_fork = False
            warnings.warn(
                f"trial {trial.number}, the first one, was stopped at its limit. If it hung: "
                f"LightGBM, XGBoost and scikit-learn cannot go on in a forked process once they "
                f'have trained in this one; use start_method="forkserver".',
                stacklevel=2,
            )
        raise optuna.TrialPruned(f"stopped at its time limit of {limit:g} s")

    def close(self) -> None:
        """End the processes, and with them the trials that run; a further trial starts new ones."""
        self._finalize()
        self._hire()

    def __enter__(self) -> TimeLimited:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"time_limited({self._objective!r}, limit={self._limit!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_crew", "_finalize")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hire()

    def _hire(self) -> None:
        limited = self._memory_limit is not None and math.isfinite(self._memory_limit)
        self._crew = Crew(self._start_method, self._memory_limit if limited else None)
        self._finalize = weakref.finalize(self, self._crew.close)
        self._finalize.atexit = False  # the crew itself sees to it, in the right order

    def _supervise(self, trial: BaseTrial, limit: float) -> End:
        order = Order(trial.number, getattr(trial, "_trial_id", None), draw_seeds())
        for _ in range(_ATTEMPTS):
            with self._crew.worker(self._objective) as worker:
                if worker.begins(order):
                    return supervise(worker, trial, limit)
        raise RuntimeError(
            f"trial {trial.number}: the processes of time_limited end before the objective begins; "
            f"something kills them, or the system starts no more (see `ulimit -u` and the memory)."
        )

    def _limit_for(self, trial: BaseTrial) -> float:
        limit = limit_of(trial, self._limit)
        if limit is not None:
            return limit
        if self._memory_limit is None and not self._warned:
            self._warned = True
            warnings.warn(
                f"trial {trial.number} has no limit, neither from its sampler nor from you: "
                f"time_limited(objective, limit=60) gives each trial 60 seconds.",
                stacklevel=3,
            )
        return math.inf


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return "closed its connection, or was ended from outside"
    if not os.WIFSIGNALED(status):
        return f"exited with status {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    names = {each.value: each.name for each in signal.Signals}
    name = names.get(number, f"signal {number}")  # most real-time signals have none
    reason = ", perhaps because the system is out of memory (see memory_limit)"
    return f"was killed by {name}{reason if number == signal.SIGKILL else ''}"


@dataclass(frozen=True)
class End:
    """The end of a trial: in time with an outcome, by the end of its process, or at its limit."""

    how: Outcome | Exited | OutOfMemory | None  # None: at its limit of time
    seconds: float


def supervise(worker: WorkerHandle, trial: BaseTrial, limit: float) -> End:
    """Serve a worker that has begun, until the trial has ended.

    The worker's own clock says whether a trial is in time; that of this process only when to kill.
    Raises KeyboardInterrupt if the program was interrupted and only waits for its threads.
    """
    clock, answers, calls = _Clock(limit), Answers(trial), worker.calls.end
    before = objective_clock.set(clock.seconds)
    try:
        while True:
            # The main thread counts as alive while the interpreter joins those of executors.
            ends = getattr(threading, "_SHUTTING_DOWN", False)
            ends = ends or not threading.main_thread().is_alive()
            # One that ended without an error may have left its work to threads on purpose.
            if ends and isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
                raise KeyboardInterrupt("the program was interrupted while trials ran")
            left = clock.left()
            if left <= 0.0:
                worker.kill()
                return End(None, clock.seconds())
            ready = wait([calls, worker.control], min(left, _LOOK_FOR_PROGRAM))
            try:
                if ready and calls not in ready:
                    raise EOFError("its keeper knows how the worker has ended.")
                end = _served(worker, answers, clock) if ready else None
            except TimeoutError:
                continue
            except (EOFError, ConnectionError):
                seconds, how = clock.seconds(), worker.how_it_ended(_LAST_WORDS)
                worker.kill()
                return End(how or Exited(None), seconds)
            if end is not None:
                return end
    finally:
        objective_clock.reset(before)


def _served(worker: WorkerHandle, answers: Answers, clock: _Clock) -> End | None:
    """Answer a message; return how the trial has ended, or None while it goes on."""
    message = worker.calls.receive(_SLOW)
    is_done = isinstance(message, Done)
    if is_done and message.seconds <= clock.limit:
        return End(message.outcome, message.seconds)
    clock.set(message.seconds)
    if message.seconds > clock.limit:
        if not is_done:
            worker.kill()
        return End(None, clock.seconds())
    answered = answers.to(message)
    clock.set(clock.seconds() - answered.sampling)
    left = clock.left()
    if left > 0.0:
        worker.calls.send(answered, min(left, _DAY))
    return None


class _Clock:
    """The seconds that an objective has run, by what its worker last said."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.set(0.0)

    def set(self, seconds: float) -> None:
        self._seconds, self._since = seconds, time.monotonic()

    def seconds(self) -> float:
        return self._seconds + time.monotonic() - self._since

    def left(self) -> float:
        return self.limit - self.seconds()


time_limited = TimeLimited  # called like a function: what it makes is one
