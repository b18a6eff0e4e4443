"""`RCUCBSearch` and others: which configuration to run next, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ray.tune.experiment import Trial

from mfhpo._validation import shown
from mfhpo.censored import RCUCB, CensoredPolicy, ZoomingRCUCB
from mfhpo.censored.options import RCUCBOptions, ZoomingRCUCBOptions, check_limits
from mfhpo.experiment import Assignment, Begun, LimitSettings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import own_and_host, runs, with_defaults
from mfhpo_ray.experiment.configurations import Config, assign, described
from mfhpo_ray.experiment.options import SchedulerOptions, SearcherOptions
from mfhpo_ray.experiment.processes import CENSORED_KEY, MEMORY_KEY, Limits, is_tried_again
from mfhpo_ray.experiment.results import as_number, value_in
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler
from mfhpo_ray.schedulers.level_race import LevelRace, Meter
from mfhpo_ray.schedulers.pull_scheduler import LIMIT_KEY, PullScheduler
from mfhpo_ray.schedulers.runs import Run
from mfhpo_ray.searchers.candidates import ArmsLike
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _RCUCB(RCUCBOptions, SearcherOptions): ...


class _ZoomingRCUCB(ZoomingRCUCBOptions, SearcherOptions): ...


class _OnTrials(RCUCBOptions, SchedulerOptions): ...


class _LimitTrials(Trials):
    """Each trial runs a configuration within a time limit."""

    hangs = "trials run to their end, and count as stopped if they took longer"
    # The trials that still run at the horizon are the slow ones: without them, arms look quicker.
    stops_surplus = False

    def __init__(self, search: Any, options: Mapping[str, Any], **explicit: Any) -> None:
        own, host = own_and_host(type(search), options, SearcherOptions)
        own |= explicit
        super().__init__(Fidelity(LIMIT_KEY, levels=(None,), costs="measured"), host)
        self.has_levels = False
        self._options = own
        self._policy_class = search._policy_class
        self._make(2, (), **own)  # wrong options raise here, and not in the first trial

    def settings(self, source: Source, **common: Any) -> LimitSettings:
        assert isinstance(source, list)
        return LimitSettings(candidates=source, options=self._options, make=self._make, **common)

    def scheduler(self, limit: float | None, memory_limit: float | None) -> PullScheduler:
        if limit is not None:
            raise ValueError(
                f"limit={shown(limit)} has no part: each trial has the limit that the search sets; "
                f"leave it out, and declare limits=... or longest=... of the search."
            )
        return PullScheduler(memory_limit=memory_limit)

    def outcome(
        self, begun: Begun, value: float | None, cost: float | None, result: Mapping[str, Any]
    ) -> dict[str, Any]:
        stopped_at, limit = as_number(result.get(CENSORED_KEY)), begun.limit
        value = None if MEMORY_KEY in result else value
        is_late = value is not None and limit is not None and (cost or 0.0) > limit
        if limit is not None and (is_late or stopped_at is not None):
            # That it would have gone on is all that larger limits, which are never granted, tell.
            stopped_at = limit
        value = value if stopped_at is None else None
        return {"value": value, "cost": cost, "stopped_at": stopped_at}

    def _set_level(self, config: Config, wanted: Assignment) -> None:
        assign(config, self.keys[0], wanted.limit)

    def _make(self, n_arms: int, _: Any, **options: Any) -> CensoredPolicy:
        policy: CensoredPolicy = self._policy_class(n_arms, **options)
        return policy


@runs(RCUCB, _RCUCB, reward_range=None, seed_key="seed")
class RCUCBSearch(ExperimentSearch):
    """Chooses a configuration and a time limit for every trial: for the gain of the trials.

    When to use it: when the trials themselves count, and their time, as in a service that trains
    models for new data. A trial that runs beyond its limit is stopped and has gained nothing. Good
    configurations with a good limit are played more and more often. To find the best configuration
    only, use `MFSearch`. To keep an ordinary experiment from hanging, use `PullScheduler` alone.

    It is given to a Tuner as `IISESearch` is. The limit is in ``config["time_limit_s"]``, and
    kept by the search's scheduler; with any other one, trials that took longer count as stopped. It
    maximises the sum of all gains: RCUCB (Bengs and Hüllermeier, Multi-Armed Bandits with Censored
    Consumption of Resources, 2023). See `mfhpo.censored.options.LimitOptions` for what a gain is.

    Parameters
    ----------
    limits
        Time limits in seconds to choose from, positive and increasing. Or how many to derive from
        the first durations, equidistant over their interquartile range, 50 at most. None: 10
        derived ones. A single limit of 60 seconds is ``limits=[60]``.
    **options
        See `mfhpo.censored.options.RCUCBOptions`. Trials that run when the `horizon` is reached may
        end, or run into their limits, and count as well.
    """

    def __init__(
        self,
        arms: ArmsLike = 32,
        limits: Sequence[float] | int | None = None,
        **options: Unpack[_RCUCB],
    ) -> None:
        super().__init__(_LimitTrials(self, options, limits=check_limits(limits)), arms)


@runs(ZoomingRCUCB, _ZoomingRCUCB, reward_range=None, seed_key="seed")
class ZoomingRCUCBSearch(ExperimentSearch):
    """Chooses a configuration and any time limit up to a longest one for every trial.

    When to use it: as `RCUCBSearch`, when nothing is known about which limits are worth trying,
    and there are thousands of trials. It begins with the longest limit, and adds shorter ones to
    those configurations that are played often: z-RCUCB of the same paper.

    Parameters
    ----------
    longest
        The largest limit, in seconds.
    """

    def __init__(self, arms: ArmsLike, longest: float, **options: Unpack[_ZoomingRCUCB]) -> None:
        super().__init__(_LimitTrials(self, options, longest=longest), arms)


# On given trials.


@runs(RCUCB, _OnTrials, reward_range=None, replicate="seed")
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
        **options: Unpack[_OnTrials],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(own)
        self._options, self._limits = own, check_limits(limits)
        RCUCB(2, self._limits, **own)  # raises before any trial runs
        self._slots.limit = _largest(self._limits, own["longest"])

    # What `ArmScheduler` asks.

    _meter = Meter(Fidelity("end", (1,)))

    def _settings(self, candidates: Sequence[Mapping[str, Any]], n_arms: int) -> LimitSettings:
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
