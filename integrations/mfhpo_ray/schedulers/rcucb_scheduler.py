"""`RCUCBScheduler`: which trial to start, and how long it may run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ray.tune.experiment import Trial

from mfhpo import RCUCB
from mfhpo.censored.options import RCUCBOptions, check_limits
from mfhpo.experiment import Assignment
from mfhpo.experiment.settings import LimitSettings
from mfhpo.racing.options import runs, with_defaults
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.losses import is_tried_again
from mfhpo_ray.experiment.recommendation import TuneLimitRecommendation, in_terms_of_tune
from mfhpo_ray.experiment.time_limits import TimeLimits
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler
from mfhpo_ray.schedulers.claims import Claims, Course, ValueOf
from mfhpo_ray.schedulers.runs import Run, Runs

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from typing_extensions import Unpack


@runs(RCUCB, RCUCBOptions, reward_range=None)
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
        trials were run, the last ones of poor arms. So end it, or give replicates enough. Trials
        that run when the `horizon` is reached may end, or run into their limits, and count as well.
        Without these slow ones, arms would look too quick. Those without a limit are stopped.

    Examples
    --------
    ::

        scheduler = RCUCBScheduler([10, 30, 90], cost=Linear(0.001), reward_range=(0, 1))
        space = {"model": tune.grid_search(models), "seed": tune.grid_search(list(range(100)))}
        tune_config = tune.TuneConfig(metric="accuracy", mode="max", scheduler=scheduler)
    """

    def __init__(
        self,
        limits: Sequence[float] | int | None = None,
        *,
        replicate: str | Collection[str] = "seed",
        arms: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        memory_limit: float | None = None,
        **options: Unpack[RCUCBOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(
            metric=metric, mode=mode, replicate=replicate, arms=arms, memory_limit=memory_limit
        )
        self._options, self._limits = own, check_limits(limits)
        RCUCB(2, self._limits, **own)  # raises before any trial runs
        self._limit = _largest(self._limits, own["longest"])

    def recommendation(self) -> TuneLimitRecommendation:
        """Return the best arm, limit and gain so far; ValueError before any trial."""
        self._check_open()
        answer = in_terms_of_tune(self._experiment.answer(), dict)
        assert isinstance(answer, TuneLimitRecommendation)
        return answer

    # What `ArmScheduler` asks.

    _n_levels = 1

    def _settings(
        self, candidates: Sequence[Mapping[str, Any]], n_arms: int, search: Any
    ) -> LimitSettings:
        return LimitSettings(
            candidates=candidates,
            limits=self._limits,
            options=self._options,
            make=RCUCB,
            n_arms=n_arms,
            sign=self._sign,
            describe=described,
        )

    def _make_course(self) -> LimitCourse:
        return LimitCourse(
            self._claims,
            self._runs,
            self._value_in,
            time_limits=self._time_limits,
            longest=self._options["longest"],
        )

    def _finish(self, tune_controller: TuneController) -> None:
        """Start nothing more, and end the experiment once the trials that run have ended."""
        tune_controller.search_alg.set_finished()
        for run in self._runs:
            if not run.trial.is_finished() and not self._may_end(run):
                self._doom(run)
        self._stop_doomed(tune_controller)
        if not self._slots.busy:
            self._close(tune_controller)

    def _may_end(self, run: Run) -> bool:
        """Return whether a trial runs with a limit; one without might never end."""
        has_limit = run.begun is not None and run.begun.limit is not None
        return has_limit and run.trial.status == Trial.RUNNING


class LimitCourse(Course):
    """Runs that are sent to their end, within the limits that an experiment assigns.

    Parameters
    ----------
    claims, runs, value_of
        See `Course`.
    time_limits
        Knows how long they took.
    longest
        The limit while limits are derived.
    """

    def __init__(
        self,
        claims: Claims,
        runs: Runs,
        value_of: ValueOf,
        *,
        time_limits: TimeLimits,
        longest: float | None,
    ) -> None:
        super().__init__(claims, runs, value_of)
        self._time_limits = time_limits
        self._longest = longest

    def is_out(self, arm: int) -> bool:
        """Return whether an arm has left the race."""
        return arm not in self._policy.active

    def to_stop(self) -> list[Run]:
        """Return the runs of arms that have left."""
        left = set(range(self._runs.n_arms)).difference(self._policy.active.tolist())
        return [run for arm in sorted(left) for run in self._runs.of(arm)]

    def next(self) -> Run | None:
        """Send a run of the configuration that is assigned; None if none can be started."""
        experiment = self._claims.experiment
        work = experiment.next(available=lambda config, _: self._waiting(config) is not None)
        run = self._waiting(work.configuration) if isinstance(work, Assignment) else None
        if run is not None and isinstance(work, Assignment):
            self._claims.send(run, work=work)
        return run

    def send_first(self, run: Run) -> None:
        """Send a run that a search algorithm has suggested, with the largest limit."""
        self._claims.send(run, limit=_largest(self._policy.limits, self._longest))

    def take_last(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in the last result of a trial that ended by itself."""
        seconds = self._time_limits.seconds(run.trial)
        self._claims.end(run, self._value_of(result), cost=seconds)

    def time_out(self, run: Run, limit: float) -> None:
        """Take in that a run was stopped at its time limit."""
        self._claims.end(run, None, stopped_at=limit)

    def cost_of(self, run: Run) -> float:
        """Return the seconds of a run that has failed, and that no later result counts."""
        if is_tried_again(run.trial):
            return self._time_limits.seconds_of_failed_attempt(run.trial)
        return self._time_limits.seconds_of_all_runs(run.trial)

    @property
    def _policy(self) -> Any:
        runner: Any = self._claims.experiment.runner
        return runner.policy

    def _waiting(self, config: Mapping[str, Any]) -> Run | None:
        waiting = (run for run in self._runs.of(self._runs.arm(config)) if run.waits)
        return next((run for run in waiting if run.begun is None), None)


def _largest(limits: Any, longest: float | None) -> float | None:
    """Return the largest of limits; `longest` if they are not known yet."""
    return longest if limits is None or isinstance(limits, Integral) else float(limits[-1])
