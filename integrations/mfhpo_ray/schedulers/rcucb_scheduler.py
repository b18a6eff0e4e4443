"""`RCUCBScheduler`: which trial to start, and how long it may run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ray.tune.experiment import Trial

from mfhpo import RCUCB
from mfhpo.censored.options import RCUCBOptions, check_limits
from mfhpo.experiment import LimitSettings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import runs, with_defaults
from mfhpo_ray.experiment.checkpoints import is_tried_again
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.limits import Limits
from mfhpo_ray.experiment.metric import value_in
from mfhpo_ray.experiment.options import SchedulerOptions
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Config
from mfhpo_ray.schedulers.level_race import LevelRace, Meter
from mfhpo_ray.schedulers.runs import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _RCUCB(RCUCBOptions, SchedulerOptions): ...


@runs(RCUCB, _RCUCB, reward_range=None, replicate="seed")
class RCUCBScheduler(ArmScheduler):
    """Chooses which trial to start next, and the time limit that it runs with.

    For when the trials themselves count, and their time: see `RCUCBSearch`. A trial is one
    replicate of an arm: the arm is the configuration without the replicate's key. A trial beyond
    its limit is stopped, also if it hangs: see `PullScheduler`. With a search algorithm, each trial
    starts at once, with the largest limit: use `RCUCBSearch` instead.

    Parameters
    ----------
    limits
        See `RCUCBSearch`.
    **options
        See `mfhpo.censored.options.RCUCBOptions`. Without `horizon`, the experiment ends when all
        trials were run. Trials that run when the `horizon` is reached may end, or run into their
        limits, and count: without these slow ones, arms would look too quick.
    """

    def __init__(
        self,
        limits: Sequence[float] | int | None = None,
        **options: Unpack[_RCUCB],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(own)
        self._options, self._limits = own, check_limits(limits)
        RCUCB(2, self._limits, **own)  # raises before any trial runs
        self._slots.limit = _largest(self._limits, own["longest"])

    # What `ArmScheduler` asks.

    _meter = Meter(Fidelity("end", (1,)))

    def _settings(self, candidates: Sequence[Config], n_arms: int) -> LimitSettings:
        return LimitSettings(
            candidates=candidates,
            limits=self._limits,
            options=self._options,
            make=RCUCB,
            n_arms=n_arms,
            sign=self._sign,
            describe=described,
        )

    def _make_course(self, *parts: Any) -> _LimitRace:
        longest = self._options["longest"]
        return _LimitRace(*parts, time_limits=self._slots.limits, longest=longest)

    def _close(self, tune_controller: Any) -> None:
        """Start nothing more, and end the experiment once the trials that run have ended."""
        tune_controller.search_alg.set_finished()
        for run in self._runs:
            has_limit = run.begun is not None and run.begun.limit is not None
            may_end = has_limit and run.trial.status == Trial.RUNNING
            if not (run.trial.is_finished() or may_end):
                self._doom(run)
        self._slots.stop_doomed(tune_controller, self._leave)
        if not self._slots.busy:
            super()._close(tune_controller)


class _LimitRace(LevelRace):
    """Runs that are sent to their end, within the limits that an experiment assigns."""

    keeps_those_out = False

    def __init__(self, *args: Any, time_limits: Limits, longest: float | None) -> None:
        super().__init__(*args)
        self._time_limits, self._longest = time_limits, longest

    def send_first(self, run: Run) -> None:
        runner: Any = self.experiment.runner
        self._send(run, limit=_largest(runner.policy.limits, self._longest))

    def take(self, run: Run, result: Mapping[str, Any]) -> bool:
        return False  # the last result counts alone

    def take_last(self, run: Run, result: Mapping[str, Any]) -> None:
        seconds = self._time_limits.seconds(run.trial)
        self.end(run, value_in(result, self._metric), cost=seconds)

    def take_cut(self, run: Run, result: Mapping[str, Any], who: str) -> None:
        self.take_last(run, result)  # without levels, a stop may be any trial's end

    def cost_of(self, run: Run) -> float:
        if is_tried_again(run.trial):
            return self._time_limits.seconds_of_failed_attempt(run.trial)
        return self._time_limits.seconds(run.trial)


def _largest(limits: Any, longest: float | None) -> float | None:
    """Return the largest of limits; `longest` if they are not known yet."""
    return longest if limits is None or isinstance(limits, Integral) else float(limits[-1])
