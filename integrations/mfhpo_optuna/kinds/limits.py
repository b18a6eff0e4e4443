"""A choice of a configuration and a time limit for every trial, as a sampler declares it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo.censored import CensoredPolicy
from mfhpo.experiment import Answer, LimitSettings
from mfhpo.racing.evidence import cautious_value
from mfhpo.racing.text import name_in_words
from mfhpo_optuna.study.arms import ArmsLike, Params, given_arms
from mfhpo_optuna.study.kind import Kind, Warn, common_settings
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.trials.attributes import (
    CENSORED_KEY,
    ENFORCER_KEY,
    LIMIT_KEY,
    read_attribute,
)
from mfhpo_optuna.study.trials.under_way import End, limit_of

if TYPE_CHECKING:
    from mfhpo_optuna.study.study_experiment import StudyExperiment


class LimitKind(Kind):
    """Chooses an arm and a limit for every trial.

    Values are maximised inside: those of a study that minimises are mirrored, with the range that
    was declared. Charges worsen the gain of a trial in either direction. All options are given; see
    `mfhpo.experiment.LimitSettings`. They are tried at once, so that wrong ones raise here and not
    in the first trial.
    """

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

    def settings(self, study: optuna.Study, seed: int, lease: float | None) -> LimitSettings:
        """Return the settings of the choice of limits."""
        return LimitSettings(
            candidates=self.given(seed),
            limits=self._limits,
            options=self.options,
            make=self._make,
            **common_settings(study, seed, lease),
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
        if not known.policy.rewards.is_known:
            return None  # the bound means nothing
        # A range that was seen so far may be too narrow at first.
        is_declared = self.options["reward_range"] is not None
        return min(bound, math.inf if is_declared else cautious_value(known.at_target))

    def promise(self, known: StudyExperiment, answer: Answer) -> float:
        """Return the pessimistic end of the gain's interval."""
        return answer.interval[0 if known.sign > 0.0 else 1]

    def lack(self, known: StudyExperiment, answer: Answer) -> str:
        """Return why there is no answer at the end, and what to do; "" if there is one."""
        if answer.arm is None:
            return f"{answer.reason}. Mend the objective."
        if known.policy.rewards.is_known:
            return ""
        return (
            "the range of the values is unknown, because no two different ones were seen. Declare "
            "reward_range=(least, largest)."
        )

    def is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer, as recorded, says all that this one says."""
        if (earlier["arm"], earlier["limit"]) != (now["arm"], now["limit"]):
            return False
        # Workers that end after the horizon change the bounds a little, but not the answer.
        horizon = self.options["horizon"]
        over = horizon is not None and earlier["trials"] >= horizon
        return over or bool(earlier["trials"] == now["trials"])

    def values_of_draws(self, known: StudyExperiment) -> list[tuple[int, float]]:
        """Return the arms with their largest gains, or last values while limits are derived."""
        policy, sign = known.policy, known.sign
        if policy.piloting:
            told = [each for each in known.experiment.history() if each.observation.has_value]
            return sorted({each.pull.arm: sign * each.observation.value for each in told}.items())
        gains = {arm: policy.estimate(arm) for arm in policy.active.tolist()}
        return [
            (arm, sign * float(np.nanmax(gain)))
            for arm, gain in gains.items()
            if not np.isnan(gain).all()
        ]

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
