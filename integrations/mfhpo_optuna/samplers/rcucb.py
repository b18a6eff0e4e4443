"""Samplers that choose which configuration to run next, and how long it may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo.censored import RCUCB, CensoredPolicy, ZoomingRCUCB
from mfhpo.censored.options import RCUCBOptions, ZoomingRCUCBOptions, check_limits
from mfhpo.experiment import Answer, LimitSettings
from mfhpo.racing.evidence import cautious_value
from mfhpo.racing.options import own_and_host, runs
from mfhpo.racing.text import name_in_words
from mfhpo_optuna.samplers.options import SamplerOptions
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import ArmsLike, Params, given_arms
from mfhpo_optuna.study.kind import Kind, Warn
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import (
    CENSORED_KEY,
    ENFORCER_KEY,
    LIMIT_KEY,
    read_attribute,
)
from mfhpo_optuna.study.trials.under_way import End, limit_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _RCUCB(RCUCBOptions, SamplerOptions): ...


class _ZoomingRCUCB(ZoomingRCUCBOptions, SamplerOptions): ...


@runs(RCUCB, _RCUCB, reward_range=None)
class RCUCBSampler(StudySampler):
    """Chooses a configuration and a time limit for every trial: for the gain of the trials.

    When to use it: when the trials themselves count, and their time, such as in a service that
    trains a model for whatever data come next. A trial that runs beyond its limit is stopped and
    has gained nothing. Good configurations with a good limit are played more and more often. To
    find the best configuration only, use `MFSampler`. To keep an ordinary study from hanging, use
    `time_limited` alone.

    The limit has to be enforced, by ``study.optimize(time_limited(objective))``, which stops any
    objective, or by `TimeLimitPruner`, for objectives that report while they run. A trial that is
    stopped ends PRUNED. Without an enforcer, trials that took longer count as stopped.

    The sampler maximises the sum of all gains: RCUCB of Bengs and Hüllermeier (2023). See
    `mfhpo.censored.options.LimitOptions` for what a gain is.

    Parameters
    ----------
    arms
        See `IISESampler`.
    limits
        Time limits in seconds to choose from, positive and increasing; or how many are to be
        derived from the first durations, equidistant over their interquartile range, 50 at most.
        None: 10 derived ones. A single limit of 60 seconds is ``limits=[60]``.
    **options
        See `mfhpo.censored.options.RCUCBOptions` and
        `mfhpo_optuna.samplers.options.SamplerOptions`.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind or out of range, and for a charge that is negative or
        decreases: where limits are derived, at the latest once they are.

    Notes
    -----
    A trial's user attributes are ``mfhpo:limit``, its limit; ``mfhpo:seconds``, what it took; and
    ``mfhpo:censored_at``, if it was stopped. Stopped for its memory, it counts as stopped at its
    limit of time; or as failed, while limits are being derived and `longest` is not given.

    ``study.best_trial`` is the configuration that is surest to gain much. It has the pessimistic
    end of its interval, charges included, for a value, and its limit among its user attributes.
    There is none while limits are derived, or while no `reward_range` is declared and no two
    different values were seen.

    Workers and resuming are as described for `IISESampler`. An arm may be enqueued with
    ``study.enqueue_trial``; it runs with the largest limit, or with one that is given along:
    ``user_attrs={"mfhpo:limit": 60}``.
    """

    def __init__(
        self,
        arms: ArmsLike = 32,
        limits: Sequence[float] | int | None = None,
        **options: Unpack[_RCUCB],
    ) -> None:
        kind, host = _choice(self, arms, check_limits(limits), options)
        super().__init__(kind, {"arms": arms, "limits": check_limits(limits), **options}, **host)

    def best_limit(self, study: optuna.Study) -> float:
        """Return the recommended time limit in seconds; ValueError while there is none yet."""
        return _best_limit(self, study)


@runs(ZoomingRCUCB, _ZoomingRCUCB, reward_range=None)
class ZoomingRCUCBSampler(StudySampler):
    """Chooses a configuration and any time limit up to a longest one for every trial.

    When to use it: as `RCUCBSampler`, when nothing is known about which limits are worth trying,
    and there are many trials: thousands rather than hundreds. It begins with the longest limit,
    and adds shorter ones to those configurations that are played often: z-RCUCB of Bengs and
    Hüllermeier (2023). With fewer trials, `RCUCBSampler` with a few limits, given or derived, gains
    more.

    The gain of a trial, how limits are enforced, what is in the study, how it is resumed and errors
    are as described for `RCUCBSampler`.

    Parameters
    ----------
    arms
        See `IISESampler`.
    longest
        The largest limit, in seconds.
    **options
        See `mfhpo.censored.options.ZoomingRCUCBOptions` and
        `mfhpo_optuna.samplers.options.SamplerOptions`.
    """

    def __init__(self, arms: ArmsLike, longest: float, **options: Unpack[_ZoomingRCUCB]) -> None:
        kind, host = _choice(self, arms, longest, options)
        super().__init__(kind, {"arms": arms, "longest": longest, **options}, **host)

    def best_limit(self, study: optuna.Study) -> float:
        """Return the recommended time limit in seconds; see `RCUCBSampler.best_limit`."""
        return _best_limit(self, study)


def _choice(
    sampler: Any, arms: ArmsLike, limits: Sequence[float] | float, options: Mapping[str, Any]
) -> tuple[LimitKind, dict[str, Any]]:
    """Return the choice of limits of a sampler's arguments, and those that every sampler has."""
    own, host = own_and_host(type(sampler), options, SamplerOptions)
    return LimitKind(arms, limits, own, sampler._policy_class), host


def _best_limit(sampler: StudySampler, study: optuna.Study) -> float:
    answer = sampler.recommendation(study)
    if answer.limit is None:
        raise ValueError(f"there is no best limit yet: {answer.reason}.")
    return answer.limit


class LimitKind(Kind):
    """Chooses an arm and a limit for every trial; wrong options raise at once."""

    chooses = "time limits"
    in_seconds = True

    def __init__(
        self,
        arms: ArmsLike,
        limits: Sequence[float] | float,
        options: Mapping[str, Any],
        make: Callable[..., CensoredPolicy],
    ) -> None:
        self._arms, self._limits, self._make = arms, limits, make
        self.options = dict(options)
        given_arms(arms, (), 0)
        make(2, limits, **options)

    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn."""
        return given_arms(self._arms, (), seed)

    def settings(self, common: Mapping[str, Any]) -> LimitSettings:
        """Return the settings of the choice of limits."""
        return LimitSettings(
            candidates=self.given(common["seed"]),
            limits=self._limits,
            options=self.options,
            make=self._make,
            **common,
        )

    def stopped_at(self, trial: FrozenTrial, end: End, warn: Warn) -> float | None:
        """Return the limit at which a trial was stopped, or should have been; None: it was not."""
        limit = limit_of(trial)
        if end.state != TrialState.PRUNED:
            is_late = end.values and limit is not None and (end.seconds or 0.0) > limit
            return limit if is_late else None
        stopped_at: float | None = read_attribute(trial, CENSORED_KEY)
        if stopped_at is None or limit is None:
            return stopped_at
        if stopped_at < limit:
            warn(
                "other limit",
                f"trial {trial.number} was stopped at {stopped_at:g} seconds, below the limit of "
                f"{limit:g} that the sampler set: it counts as stopped at the latter. Give "
                f"the smaller limit to one of both only.",
            )
        # That it would have gone on is all that larger limits, which are never granted, can tell.
        return limit

    def trusts_seconds(self, trial: FrozenTrial) -> bool:
        """Return whether the seconds that a trial has noted are its own.

        Others may have noted them before it ended; a trial that is tried again inherits them.
        """
        return bool(read_attribute(trial, ENFORCER_KEY) == "time_limited")

    def check(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Say once that a trial that ended had a limit which nobody enforced."""
        limit, enforcer = limit_of(trial), read_attribute(trial, ENFORCER_KEY)
        if state != TrialState.FAIL and limit is not None and enforcer is None:
            known.trials.warn(
                "enforcer",
                f"trial {trial.number} had a limit of {limit:.4g} seconds, but nobody enforces it: "
                f"trials run to their end, and count as stopped if they took longer. Call "
                f"study.optimize(time_limited(objective)), which stops any objective; or, for one "
                f"that reports, make the study with pruner=TimeLimitPruner().",
            )

    def attributes_outside(self, known: StudyExperiment, trial: FrozenTrial) -> dict[str, Any]:
        """Return the largest limit, for a trial that is no pull and has none: it may hang."""
        largest = known.policy.largest_limit
        return {} if largest is None or limit_of(trial) is not None else {LIMIT_KEY: largest}

    def sure_value(self, known: StudyExperiment, bound: float) -> float | None:
        """Return what the leader gains at least; None while the range of the values is unknown."""
        if not known.policy.history.is_known:
            return None  # the bound means nothing
        # A range that was seen so far may be too narrow at first.
        is_declared = self.options["reward_range"] is not None
        return min(bound, math.inf if is_declared else cautious_value(known.at_target))

    def lack(self, known: StudyExperiment, answer: Answer) -> str:
        """Return why there is no answer at the end, and what to do; "" if there is one."""
        if answer.arm is None:
            return f"{answer.reason}. Mend the objective."
        if known.policy.history.is_known:
            return ""
        return (
            "the range of the values is unknown, because no two different ones were seen. Declare "
            "reward_range=(least, largest)."
        )

    def is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer says the same, as do all after the horizon."""
        # Workers that end after the horizon change the bounds a little, but not the answer.
        horizon = self.options["horizon"] or math.inf
        now, earlier = ({**of, "trials": min(of["trials"], horizon)} for of in (now, earlier))
        return super().is_repeat(now, earlier)

    def progress(self, known: StudyExperiment) -> Progress:
        """Return arms in play, limits, share of stopped trials, and the leading pair."""
        policy, leader = known.policy, ""
        arms = f"{len(policy.active)}/{policy.n_arms} arms in play"
        if policy.pulls:
            arms += f", {policy.n_censored / policy.pulls:.0%} stopped"
        if not policy.piloting:
            arm, mean, (low, high) = known.experiment.runner.leader()
            leader = "none, every arm failed"
            if arm is not None:
                name = name_in_words(known.values_of(arm).params, arm)
                leader = f"{name}, {mean:.4g} in [{low:.4g}, {high:.4g}]"
        return Progress(
            phase="finding limits" if policy.piloting else "choosing limits",
            configurations=arms,
            leader=leader,
            spent=policy.pulls,
            total=policy.horizon,
            unit="trials",
            has_end=policy.horizon is not None,
        )
