"""`RCUCBScheduler`: which trial to start, and how long it may run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from mfhpo import RCUCB, Labels, Observation, Pull
from mfhpo.censored.options import RCUCBOptions, check_limits, mirrored
from mfhpo.racing.options import runs, with_defaults
from mfhpo_ray.experiment.losses import is_tried_again
from mfhpo_ray.experiment.recommendation import TuneLimitRecommendation
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Entry
from mfhpo_ray.schedulers.runs import Run

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
        self._options = {**own, "limits": check_limits(limits)}
        RCUCB(2, **self._options)  # raises before any trial runs
        self._policy: RCUCB  # from `_open` on
        self._granted: dict[str, tuple[Run, float | None]] = {}
        self._n_observed = 0
        self._owed = 0.0  # seconds of attempts that failed, and that Ray tried again

    def recommendation(self) -> TuneLimitRecommendation:
        """Return the best arm, limit and gain so far; ValueError before any trial."""
        self._check_open()
        nothing_is_left = self._complete and self._runs.all_over
        answer = self._without_more(self._policy.recommend(), nothing_is_left)
        answer = replace(answer, cost=answer.cost + self._owed)
        config = self._runs.config(answer.arm)
        return TuneLimitRecommendation.of(answer, self._sign, config)

    # What `ArmScheduler` asks.

    def _open(self, n_arms: int, search: Any) -> None:
        self._policy = RCUCB(n_arms, **mirrored(self._options, self._sign))
        self._policy.labels = Labels(
            arm=self._runs.label,
            value=lambda value: self._sign * value + 0.0,  # the sum makes 0 of -0
        )

    def _recover(self, entries: Sequence[Entry]) -> None:
        for record, _, run in entries:
            owed = float(record["owed"])
            self._owed += owed
            if run is not None:
                run.observed, run.owed = record["observed"], owed
        told = [
            (number, arm, rest)
            for record, arm, _ in entries
            for number, *rest in record["observed"]
        ]
        for number, arm, (limit, value, seconds, censored_at) in sorted(told, key=lambda t: t[0]):
            self._n_observed = max(self._n_observed, number)
            self._policy.tell(Pull(arm, 0, limit), Observation(value, seconds, censored_at))

    @property
    def _over(self) -> bool:
        return self._is_open and self._policy.finished

    def _finish(self, tune_controller: TuneController) -> None:
        """Start nothing more, and end the experiment once the trials that run have ended."""
        tune_controller.search_alg.set_finished()
        for run in self._runs:
            if not run.trial.is_finished() and not self._may_end(run):
                self._doom(run)
        self._stop_doomed(tune_controller)
        if not self._busy:
            self._close(tune_controller)

    def _may_end(self, run: Run) -> bool:
        """Return whether a trial runs with a limit; one without might never end."""
        _, limit = self._granted.get(run.trial.trial_id, (run, None))
        return limit is not None and run.trial.status == Trial.RUNNING

    def _is_out(self, arm: int) -> bool:
        return self._is_open and arm not in self._policy.active

    def _grant_first(self, run: Run) -> None:
        limits = self._policy.limits if self._is_open else self._options["limits"]
        if limits is None or isinstance(limits, Integral):
            self._grant(run, self._options["longest"])
        else:
            self._grant(run, float(limits[-1]))

    def _next(self) -> Run | None:
        policy = self._policy
        under_way = [Pull(run.arm, 0, limit) for run, limit in self._granted.values()]
        busy = {run.arm for run in self._busy.values()}
        without = {arm for arm in busy if self._waiting(arm) is None}
        without.update(arm for arm in range(policy.n_arms) if not self._runs.of(arm))
        pulls = policy.ask(1, under_way, without=without)
        if not pulls:
            return None
        run = self._waiting(pulls[0].arm)
        if run is not None:
            self._grant(run, pulls[0].limit)
        return run

    def _waiting(self, arm: int) -> Run | None:
        return next((run for run in self._runs.of(arm) if run.waits), None)

    def _grant(self, run: Run, limit: float | None) -> None:
        run.granted = 0
        self._granted[run.trial.trial_id] = run, limit
        self._time_limits.set(run.trial, limit)

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        return str(TrialScheduler.CONTINUE)

    def _on_timeout(self, run: Run, limit: float) -> None:
        seconds = self._time_limits.seconds(run.trial)
        # What the checkpoint holds was paid for too, but it is no part of what the limit is for.
        self._owe(run, self._time_limits.seconds_of_all_runs(run.trial) - seconds)
        self._tell(run, Observation(None, seconds, limit))

    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        self._tell(run, Observation(self._value(result), self._time_limits.seconds(run.trial)))

    def _on_retry(self, run: Run) -> None:
        granted = self._granted.pop(run.trial.trial_id, None)
        if granted is not None and is_tried_again(run.trial):
            self._owe(run, self._time_limits.seconds_of_failed_attempt(run.trial))
            self._note(run, is_over=False)

    def _owe(self, run: Run, seconds: float) -> None:
        self._owed += seconds
        run.owed += seconds

    def _on_failure(self, run: Run) -> None:
        self._tell(run, Observation(None, self._time_limits.seconds_of_all_runs(run.trial)))

    def _leave(self, run: Run) -> None:
        self._granted.pop(run.trial.trial_id, None)
        super()._leave(run)

    def _tell(self, run: Run, observation: Observation) -> None:
        granted = self._granted.pop(run.trial.trial_id, None)
        if granted is None or not self._is_open:
            return
        _, limit = granted
        self._policy.tell(Pull(run.arm, 0, limit), observation)
        self._n_observed += 1
        told = (observation.value, observation.cost, observation.censored_at)
        run.observed = [[self._n_observed, limit, *told]]
        self._note(run, is_over=not observation.failed)
        if self._is_out(run.arm):
            self._doom_arm(run.arm)
        if self._policy.finished:
            self._note_answer()

    def _note(self, run: Run, *, is_over: bool) -> None:
        self._write(run, {"observed": run.observed, "over": is_over, "owed": run.owed})
