"""The process that runs objectives, and the trial that they see, whose study is elsewhere."""

import os
import pickle
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from optuna.study import Study
from optuna.trial import BaseTrial, Trial, TrialState

from mfhpo_optuna.study.loop.ends import is_of_storage
from mfhpo_optuna.time_limits.crossing import (
    Channel,
    Outcome,
    PackedError,
    close_in_forked_children,
    pack_error,
    pack_value,
    unpack,
)
from mfhpo_optuna.time_limits.processes import die_with_parent, flush_output

Objective = Callable[[Any], Any]


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
    """Draw seeds for an `Order` from the same generators in this process."""
    # No algorithm of ours draws from NumPy's: it is meant as the state that objectives may use.
    return random.getrandbits(32), int(np.random.randint(0, 2**32, dtype=np.uint32))  # noqa: NPY002


def work(end: socket.socket, objective: Objective) -> None:
    """Run trials until the process of the study closes its end of the connection."""
    die_with_parent()
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # In a session of its own, a process that reads from the terminal would get an error.
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    close_in_forked_children(end)
    channel = Channel(end)
    with suppress(EOFError, OSError):
        while True:
            order = channel.receive()
            if isinstance(order, Order):  # not the answer to an interrupted call
                channel.send(_run(channel, objective, order))


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


@dataclass(frozen=True)
class Call:
    """A method or attribute of the trial that the objective asks for."""

    number: int  # keeps the answer to an interrupted call from being taken for another's
    name: str  # dotted, from the trial on: "suggest_float", "study.direction"
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    seconds: float  # how long the objective had run, without its sampler


@dataclass(frozen=True)
class Answer:
    """The value or the error of the real trial."""

    number: int
    outcome: Outcome
    sampling: float  # seconds that are not the objective's


class Answers:
    """Does on the real trial what the objective asks for."""

    def __init__(self, trial: BaseTrial) -> None:
        self._trial = trial
        self._spared: set[object] = set()  # for what time was spared already

    def to(self, call: Call) -> Answer:
        """Answer one call; the first suggestion of a parameter and the first failure take time."""
        took: object = None
        if call.name == "relative_params" or call.name.startswith("suggest_"):
            took = call.name, *map(str, call.arguments[:1]), str(call.options.get("name"))
        began, outcome = time.monotonic(), self._done(call)
        if isinstance(outcome, PackedError):
            took = "storage" if outcome.of_storage else took
        if took is None or took in self._spared:
            return Answer(call.number, outcome, 0.0)
        self._spared.add(took)
        return Answer(call.number, outcome, time.monotonic() - began)

    def _done(self, call: Call) -> Outcome:
        trial = self._trial
        try:
            found: Any = trial
            for name in call.name.split("."):
                found = getattr(found, name)
            if callable(found):
                found = found(*call.arguments, **call.options)
            return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            of_storage = isinstance(trial, Trial) and is_of_storage(error, trial.storage)
            return pack_error(error, of_storage)


class Requests:
    """Asks the process of the study, for the trial with this number; any thread may."""

    def __init__(self, channel: Channel, number: int) -> None:
        self._channel = channel
        self._number = number
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._calls = 0
        self._open = True
        self._sampling = 0.0
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Return how long the objective has run, without its sampler's time."""
        return time.monotonic() - self._began - self._sampling

    def ask(self, name: str, /, *arguments: Any, **options: Any) -> Any:
        """Return what the real trial returns, or raise what it raises."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"trial {self._number} can be used in process {self._process} only, which runs the "
                f"objective, got a call of {name!r} from its child {os.getpid()}; return what the "
                f"child finds out to the objective, and use the trial there."
            )
        with self._lock:
            if not self._open:
                raise RuntimeError(
                    f"trial {self._number} has ended; join the threads that use the trial before "
                    f"the objective returns."
                )
            self._calls += 1
            call = Call(self._calls, name, arguments, options, self.seconds())
            asked, sampling, answered = time.monotonic(), 0.0, None
            try:
                self._channel.send(call)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise TypeError(
                    f"{name} needs arguments that can be pickled, because the study lives in "
                    f"another process, got {arguments} {options}: {error}. Suggest names, and look "
                    f"up what they mean in the objective."
                ) from error
            while answered is None or answered.number != call.number:
                answered = self._channel.receive()
                sampling += answered.sampling
            # Less was waited for the answer to an interrupted call.
            self._sampling += min(sampling, time.monotonic() - asked)
        return unpack(answered.outcome)

    def close(self) -> float:
        """Refuse further calls; return how long the objective ran."""
        with self._lock:
            self._open = False
            return self.seconds()


@BaseTrial.register
class RemoteTrial:
    """A trial that forwards everything to the real one; see `optuna.trial.Trial`."""

    def __init__(self, requests: Requests, number: int, trial_id: int | None) -> None:
        self._ask = requests.ask
        self.number = number
        self._trial_id = trial_id
        self.study = _RemoteStudy(requests.ask)
        # What Optuna's own `report_cross_validation_scores` asks for.
        names = ("set_trial_system_attr", "get_trial_system_attrs")
        self.storage = SimpleNamespace(**{n: partial(self._ask, f"storage.{n}") for n in names})

    def __repr__(self) -> str:
        return f"<trial {self.number} of a study in another process>"

    def __getattr__(self, name: str) -> Any:
        found = getattr(Trial, name)
        return wraps(found)(partial(self._ask, name)) if callable(found) else self._ask(name)

    def report(self, value: float, step: int) -> None:
        """Report a value, as plain numbers: no tensor crosses."""
        self._ask("report", _as_number(value, float), _as_number(step, int))

    def set_constraint(self, key: str, value: float) -> None:
        """Set a constraint, as a plain number."""
        self._ask("set_constraint", key, _as_number(value, float))


class _RemoteStudy:
    """The part of a trial's study that callbacks of other libraries read."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self.stop = partial(ask, "study.stop")

    def get_trials(
        self, deepcopy: bool = True, states: tuple[TrialState, ...] | None = None
    ) -> Any:
        return self._ask("study.get_trials", deepcopy=False, states=states)

    def _is_multi_objective(self) -> bool:
        return len(self.directions) > 1

    def __getattr__(self, name: str) -> Any:
        if name == "trials":
            return self.get_trials()
        if name == "study_name" or isinstance(getattr(Study, name, None), property):
            return self._ask(f"study.{name}")
        raise AttributeError(
            f"trial.study.{name} cannot be reached below time_limited: the study lives in another "
            f"process. Read its properties, such as best_trial, call get_trials() or stop(), or do "
            f"it in a callback of study.optimize."
        )


def _as_number(value: Any, convert: Callable[[Any], float]) -> Any:
    with suppress(TypeError, ValueError):
        return convert(value)
    return value  # for Optuna's error
