"""A trial whose study lives in another process: what an objective sees below `time_limited`."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload

from optuna.distributions import BaseDistribution, CategoricalChoiceType
from optuna.study import StudyDirection
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from mfhpo_optuna.time_limits.channel import Channel
from mfhpo_optuna.time_limits.crossing import PackedError, PackedValue, pack_error

__all__ = ["Answer", "Answers", "Call", "RemoteTrial", "Requests"]


@dataclass(frozen=True)
class Call:
    """A method or attribute of the trial that the objective asks for.

    Attributes
    ----------
    number
        Counts the calls, so that an answer whose call was interrupted is not taken for another's.
    name
        Dotted, from the trial on: "suggest_float", "study.direction".
    seconds
        How long the objective had run, what its sampler took left out.
    """

    number: int
    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Answer:
    """What the real trial returned or raised.

    Attributes
    ----------
    sampling
        Seconds that this took and that are not the objective's, but its sampler's.
    """

    number: int
    outcome: PackedValue | PackedError
    sampling: float


class Answers:
    """Does on the real trial what the objective asks for.

    A sampler computes when a parameter is asked for that is not known yet, and only that is not
    the objective's own time: otherwise one that asks without end would never reach its limit.

    Parameters
    ----------
    trial
        The real trial.
    """

    def __init__(self, trial: BaseTrial) -> None:
        self._trial = trial
        self._sampled: set[Any] = set()

    def to(self, call: Call) -> Answer:
        """Answer one call.

        Parameters
        ----------
        call
            What was asked for.
        """
        samples = self._samples(call)
        began = time.monotonic()
        outcome = _done(self._trial, call)
        return Answer(call.number, outcome, time.monotonic() - began if samples else 0.0)

    def _samples(self, call: Call) -> bool:
        if call.name.startswith("suggest_"):
            wanted = call.arguments[0]
        elif call.name == "relative_params":
            wanted = None  # no parameter's name
        else:
            return False
        if not isinstance(wanted, str | None) or wanted in self._sampled:
            return False
        self._sampled.add(wanted)
        return True


def _done(trial: BaseTrial, call: Call) -> PackedValue | PackedError:
    try:
        found: Any = trial
        for name in call.name.split("."):
            found = getattr(found, name)
        if callable(found):
            found = found(*call.arguments, **call.options)
        return PackedValue(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        return pack_error(error)


class Requests:
    """Asks the process of the study, for one trial; any thread may.

    Parameters
    ----------
    channel
        Leads to the process of the study.
    number
        The trial's number.
    """

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
        """How long the objective has run, what its sampler took left out."""
        return time.monotonic() - self._began - self._sampling

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
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
            asked = time.monotonic()
            sampling = 0.0
            self._send(call)
            while True:
                answered: Answer = self._channel.receive()
                sampling += answered.sampling
                if answered.number == call.number:
                    break
            # Less was waited for an answer to a call that was interrupted.
            self._sampling += min(sampling, time.monotonic() - asked)
        return answered.outcome.unpack()

    def close(self) -> float:
        """Refuse further calls; return how long the objective ran."""
        with self._lock:
            self._open = False
            return self.seconds()

    def _send(self, call: Call) -> None:
        try:
            self._channel.send(call)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"{call.name} needs arguments that can be pickled, because the study lives in "
                f"another process, got {call.arguments} {call.options}: {error}. Suggest names, "
                f"and look up what they mean in the objective."
            ) from error


class RemoteTrial(BaseTrial):
    """A trial that forwards everything to the real one.

    Parameters
    ----------
    requests
        Leads to the real trial.
    number, trial_id
        Those of the real trial.
    """

    def __init__(self, requests: Requests, number: int, trial_id: int | None) -> None:
        self._ask = requests.ask
        self._number = number
        self._trial_id = trial_id
        self.study = RemoteStudy(requests)
        self.storage = _RemoteStorage(requests)

    def __repr__(self) -> str:
        return f"<trial {self._number} of a study in another process>"

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Suggest a number; see `optuna.trial.Trial.suggest_float`."""
        value: float = self._ask("suggest_float", name, low, high, step=step, log=log)
        return value

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """Suggest a number; deprecated in Optuna."""
        value: float = self._ask("suggest_uniform", name, low, high)
        return value

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """Suggest a number on a logarithmic scale; deprecated in Optuna."""
        value: float = self._ask("suggest_loguniform", name, low, high)
        return value

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """Suggest a number on a grid; deprecated in Optuna."""
        value: float = self._ask("suggest_discrete_uniform", name, low, high, q)
        return value

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Suggest an integer; see `optuna.trial.Trial.suggest_int`."""
        value: int = self._ask("suggest_int", name, low, high, step=step, log=log)
        return value

    @overload
    def suggest_categorical(self, name: str, choices: Sequence[None]) -> None: ...
    @overload
    def suggest_categorical(self, name: str, choices: Sequence[bool]) -> bool: ...
    @overload
    def suggest_categorical(self, name: str, choices: Sequence[int]) -> int: ...
    @overload
    def suggest_categorical(self, name: str, choices: Sequence[float]) -> float: ...
    @overload
    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str: ...
    @overload
    def suggest_categorical(
        self, name: str, choices: Sequence[CategoricalChoiceType]
    ) -> CategoricalChoiceType: ...
    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """Suggest one of the choices; see `optuna.trial.Trial.suggest_categorical`."""
        return self._ask("suggest_categorical", name, choices)

    def report(self, value: float, step: int) -> None:
        """Report a value; see `optuna.trial.Trial.report`."""
        self._ask("report", _as_number(value, float), _as_number(step, int))

    def should_prune(self) -> bool:
        """Whether the pruner of the study stops the trial."""
        return bool(self._ask("should_prune"))

    def set_user_attr(self, key: str, value: Any) -> None:
        """Set a user attribute; see `optuna.trial.Trial.set_user_attr`."""
        self._ask("set_user_attr", key, value)

    def set_constraint(self, key: str, value: float) -> None:
        """Set a constraint; see `optuna.trial.Trial.set_constraint`."""
        self._ask("set_constraint", key, _as_number(value, float))

    @property
    def params(self) -> dict[str, Any]:
        """What was suggested so far."""
        params: dict[str, Any] = self._ask("params")
        return params

    @property
    def relative_params(self) -> dict[str, Any]:
        """What the sampler drew together."""
        params: dict[str, Any] = self._ask("relative_params")
        return params

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """From which ranges it was suggested."""
        distributions: dict[str, BaseDistribution] = self._ask("distributions")
        return distributions

    @property
    def user_attrs(self) -> dict[str, Any]:
        """The user attributes."""
        attributes: dict[str, Any] = self._ask("user_attrs")
        return attributes

    @property
    def constraints(self) -> dict[str, float]:
        """The constraints' values."""
        constraints: dict[str, float] = self._ask("constraints")
        return constraints

    @property
    def datetime_start(self) -> datetime | None:
        """When the trial began."""
        began: datetime | None = self._ask("datetime_start")
        return began

    @property
    def number(self) -> int:
        """The trial's number in its study."""
        return self._number


class RemoteStudy:
    """What callbacks of other libraries read of a trial's study.

    Parameters
    ----------
    requests
        Leads to the real trial.
    """

    def __init__(self, requests: Requests) -> None:
        self._ask = requests.ask

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"trial.study.{name} cannot be reached below time_limited: the study lives in another "
            f"process. Read direction, directions, study_name, user_attrs, metric_names, trials, "
            f"best_trial, best_value, best_params or best_trials, call get_trials() or stop(), or "
            f"do it in a callback of study.optimize."
        )

    @property
    def direction(self) -> StudyDirection:
        """Whether the study maximises."""
        direction: StudyDirection = self._ask("study.direction")
        return direction

    @property
    def directions(self) -> list[StudyDirection]:
        """The directions of all objectives."""
        directions: list[StudyDirection] = self._ask("study.directions")
        return directions

    @property
    def study_name(self) -> str:
        """The study's name."""
        return str(self._ask("study.study_name"))

    @property
    def user_attrs(self) -> dict[str, Any]:
        """The study's user attributes."""
        attributes: dict[str, Any] = self._ask("study.user_attrs")
        return attributes

    @property
    def metric_names(self) -> list[str] | None:
        """The names of the objectives."""
        names: list[str] | None = self._ask("study.metric_names")
        return names

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials."""
        return self.get_trials()

    @property
    def best_trial(self) -> FrozenTrial:
        """The best trial so far."""
        trial: FrozenTrial = self._ask("study.best_trial")
        return trial

    @property
    def best_value(self) -> float:
        """The best value so far."""
        return float(self._ask("study.best_value"))

    @property
    def best_params(self) -> dict[str, Any]:
        """The best trial's parameters."""
        params: dict[str, Any] = self._ask("study.best_params")
        return params

    @property
    def best_trials(self) -> list[FrozenTrial]:
        """The trials of the Pareto front."""
        trials: list[FrozenTrial] = self._ask("study.best_trials")
        return trials

    def get_trials(
        self, deepcopy: bool = True, states: tuple[TrialState, ...] | None = None
    ) -> list[FrozenTrial]:
        """All trials in the given states; always copies, whatever `deepcopy` is."""
        del deepcopy
        trials: list[FrozenTrial] = self._ask("study.get_trials", deepcopy=False, states=states)
        return trials

    def stop(self) -> None:
        """Stop the study after the trials that are running."""
        self._ask("study.stop")

    def _is_multi_objective(self) -> bool:
        return len(self.directions) > 1


class _RemoteStorage:
    """What Optuna's own helpers do to a trial's storage: `report_cross_validation_scores`."""

    def __init__(self, requests: Requests) -> None:
        self._ask = requests.ask

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Set a system attribute."""
        self._ask("storage.set_trial_system_attr", trial_id, key, value)

    def get_trial_system_attrs(self, trial_id: int) -> dict[str, Any]:
        """The system attributes."""
        attributes: dict[str, Any] = self._ask("storage.get_trial_system_attrs", trial_id)
        return attributes


def _as_number(value: Any, convert: Callable[[Any], float]) -> Any:
    """A plain number, so that no tensor or the like crosses; else the value, for Optuna's error."""
    try:
        return convert(value)
    except (TypeError, ValueError):
        return value
