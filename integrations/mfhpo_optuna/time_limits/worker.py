"""The process that runs objectives: one trial after the other, until it is killed."""

import os
import random
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mfhpo_optuna.time_limits.crossing import (
    Channel,
    Outcome,
    close_in_forked_children,
    pack_error,
    pack_value,
)
from mfhpo_optuna.time_limits.processes import die_with_parent, flush_output
from mfhpo_optuna.time_limits.remote_trial import RemoteTrial, Requests

Objective = Callable[[Any], Any]

# Exit status of a worker whose objective has closed its connection, as `os.closerange` does.
CLOSED_CONNECTION = 97


@dataclass(frozen=True)
class Order:
    """A trial to run, with seeds for the global generators of `random` and `numpy.random`."""

    number: int
    trial_id: int | None
    seeds: tuple[int, int]


@dataclass(frozen=True)
class Done:
    """The objective has returned or raised; `seconds` leave out what its sampler took."""

    outcome: Outcome
    seconds: float


def draw_seeds() -> tuple[int, int]:
    """Draw seeds for an `Order` from the same generators in this process.

    So they differ from call to call, and whoever seeds the generators here gets the same again.
    """
    # No algorithm of ours draws from NumPy's: it is meant as the state that objectives may use.
    return random.getrandbits(32), int(np.random.randint(0, 2**32, dtype=np.uint32))  # noqa: NPY002


def work(end: socket.socket, objective: Objective) -> None:
    """Run trials until the process of the study closes its end of the connection."""
    die_with_parent()
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _empty_standard_input()
    close_in_forked_children(end)
    channel = Channel(end)
    try:
        while True:
            channel.send(_run(channel, objective, channel.receive()))
    except (EOFError, OSError):
        try:
            os.fstat(end.fileno())
        except OSError:
            os._exit(CLOSED_CONNECTION)


def _run(channel: Channel, objective: Objective, order: Order) -> Done:
    seed, numpy_seed = order.seeds
    random.seed(seed)
    np.random.seed(numpy_seed)  # noqa: NPY002
    channel.send(order)  # it begins
    requests = Requests(channel, order.number)
    trial = RemoteTrial(requests, order.number, order.trial_id)
    process = os.getpid()
    try:
        outcome: Outcome = pack_value(objective(trial))
        if os.getpid() != process:
            sys.exit()  # a child that the objective forked has come to its end
    except BaseException as error:
        if os.getpid() != process:
            _exit_with(error)
        outcome = pack_error(error)
    flush_output()
    return Done(outcome, requests.close())


def _exit_with(error: BaseException) -> NoReturn:
    """End a child that left the objective which forked it, as a program of its own would end."""
    code = error.code if isinstance(error, SystemExit) else "an error"
    if not isinstance(code, int | None):
        traceback.print_exception(error)
        code = 1
    flush_output()
    os._exit((code or 0) & 0xFF)


def _empty_standard_input() -> None:
    # In a session of its own, a process that reads from the terminal would get an error.
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
