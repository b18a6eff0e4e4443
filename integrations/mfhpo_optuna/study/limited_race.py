"""A race over time limits: trials become observations, censored or not."""

import math
from collections.abc import Callable
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Labels, Observation, Pull
from mfhpo.censored import CensoredPolicy
from mfhpo.racing.answer import cautious_value
from mfhpo_optuna.study.arms import Arms
from mfhpo_optuna.study.attributes import (
    ARM_KEY,
    CENSORED_KEY,
    ENFORCER_KEY,
    LIMIT_KEY,
    MEMORY_KEY,
    parameters_before,
    read_attribute,
)
from mfhpo_optuna.study.loop.state import Progress
from mfhpo_optuna.study.study_race import End, StudyRace

MakePolicy = Callable[[int, float], CensoredPolicy]


class LimitedRace(StudyRace):
    """Translates between the trials of one study and a policy that sets time limits.

    A trial's lease is a minute and twice its limit if none is given. Trials that limits are derived
    from have the limit `longest`, or none.
    """

    policy: CensoredPolicy
    certifies = False  # what a trial gains is to be high while the race goes on

    def __init__(
        self,
        study: optuna.Study,
        arms: Arms,
        make_policy: MakePolicy,
        lease: float | None,
        reward_range: tuple[float, float] | None,
        longest: float | None = None,
    ) -> None:
        super().__init__(study, arms, lease)
        self.policy = make_policy(len(arms), self.sign)
        self.policy.labels = Labels(
            arm=lambda arm: f"arm {arm} {self.arms.params(arm)}",
            value=lambda value: self.sign * value + 0.0,  # the sum makes 0 of -0
        )
        self.values: dict[int, float] = {}  # the last one that each arm's trials returned
        self._reward_range = reward_range
        self._longest = longest

    # Reading the study.

    def sure_value(self, bound: float) -> float | None:
        """Return what the leader gains at least; see `StudyRace.sure_value`."""
        if not self.policy.range_is_known:
            return None  # the bound means nothing
        # A range that was seen so far may be too narrow at first.
        cautious = math.inf if self._reward_range else cautious_value(self.at_target)
        return min(bound, cautious)

    def _has_turns(self, pull: Pull) -> bool:
        return False  # nothing is certified

    def _take_in(self, trial: FrozenTrial, pull: Pull, end: End) -> bool:
        observation = self._observed(trial, pull, end)
        value, seconds = end.value, end.seconds
        whole = value is not None
        if not whole:
            # A trial that was stopped tells what its arm is, as far as it came.
            self.arms.begun(pull.arm, trial.number, trial.params)
        if not self._is_of_arm(trial, pull.arm, whole):
            observation = Observation(None, seconds)
        elif whole:
            pull = Pull(self._owner_of(pull.arm, trial), 0, pull.limit)
        else:
            # The first trial may not have come so far.
            self.arms.remember(pull.arm, trial.params)
            if observation.censored_at is not None:
                for name, distribution in trial.distributions.items():
                    self.arms.distributions(pull.arm).setdefault(name, distribution)
        if observation.has_value and value is not None:
            self.values[pull.arm] = value
        if not observation.failed:
            self._note_duration(pull, seconds)
        self._tell(trial, pull, observation)
        return True

    def _observed(self, trial: FrozenTrial, pull: Pull, end: End) -> Observation:
        value, seconds = end.value, end.seconds
        if end.state == TrialState.PRUNED:
            limit = self._stopped_at(trial, pull)
            failed_for_memory = read_attribute(trial, MEMORY_KEY) is not None
            if limit is None and not failed_for_memory and trial.number not in self.over:
                self._warn_of_pruning(trial, "in time, nor was it stopped at its limit")
            return Observation(None, seconds, censored_at=limit)
        if value is None or seconds is None:
            return Observation(None, seconds)
        if pull.limit is not None and seconds > pull.limit:
            return Observation(None, seconds, censored_at=pull.limit)
        return Observation(self.sign * value, seconds)

    def _stopped_at(self, trial: FrozenTrial, pull: Pull) -> float | None:
        stopped_at: float | None = read_attribute(trial, CENSORED_KEY)
        if stopped_at is None:
            return None
        if pull.limit is None:
            return stopped_at
        if stopped_at < pull.limit:
            self._warn_once(
                "other limit",
                f"trial {trial.number} was stopped at {stopped_at:g} seconds, below the limit of "
                f"{pull.limit:g} that the sampler set: it counts as stopped at the latter. Give "
                f"the smaller limit to one of both only.",
            )
        # That it would have gone on is all that larger limits, which are never granted, can tell.
        return pull.limit

    def warn_of_enforcer(self, trial: FrozenTrial, state: TrialState) -> None:
        """Say once that a trial that ended had a limit which nobody enforced."""
        if trial.number in self.over:
            return  # it may have been pruned in its first suggestion, before an enforcer saw it
        if state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        limit = read_attribute(trial, LIMIT_KEY)
        if limit is not None and read_attribute(trial, ENFORCER_KEY) is None:
            self._warn_once(
                "enforcer",
                f"trial {trial.number} had a limit of {limit:.4g} seconds, but nobody enforces it: "
                f"trials run to their end, and count as stopped if they took longer. Call "
                f"study.optimize(time_limited(objective)), which stops any objective; or, for one "
                f"that reports, make the study with pruner=TimeLimitPruner().",
            )

    # Choosing what a trial evaluates.

    def propose(self, trial: FrozenTrial) -> Pull | None:
        """Return the pull for a trial that begins; None if no arm is left or it cannot count."""
        chosen = self._ask(trial.number)
        arm, limit = (None, None) if chosen is None else (int(chosen.arm), chosen.limit)
        fixed = parameters_before(trial)
        if fixed:
            arm = self._enqueued_arm(trial, fixed)
            limit = self._largest_limit()
        if arm is None:
            return None
        # What was enqueued may bring its own limit, which enforcers obey if there is no other.
        own = _limit_of(trial)
        return Pull(arm, 0, own if own is not None and (fixed or limit is None) else limit)

    def attributes(self, pull: Pull) -> dict[str, Any]:
        """Return the user attributes that tell other workers about a pull."""
        limit = {} if pull.limit is None else {LIMIT_KEY: pull.limit}
        # Whoever sees the arm is to see the limit, too.
        return {**limit, ARM_KEY: {"arm": pull.arm}}

    def attributes_outside(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the limit of a trial that is no pull: its own or the largest, as it may hang."""
        own = _limit_of(trial)
        limit = self._largest_limit() if own is None else own
        return {} if limit is None else {LIMIT_KEY: limit}

    def _largest_limit(self) -> float | None:
        limits = self.policy.limits
        return self._longest if limits is None else float(limits[-1])

    def _noted(self, trial: FrozenTrial) -> Pull:
        note = self._note_of(trial)
        assert note is not None
        if note.fidelity is not None:
            raise ValueError(
                f"trial {trial.number} was run by a sampler that chooses levels of a fidelity, not "
                f"time limits; resume the study with that one, or begin another."
            )
        return Pull(note.arm, 0, _limit_of(trial))

    def _default_lease(self, pull: Pull) -> float:
        if pull.limit is not None:
            return 60.0 + 2.0 * pull.limit
        return super()._default_lease(pull)

    # What the sampler asks.

    def progress(self) -> Progress:
        """Return arms in play, limits, share of stopped trials, and the leading pair."""
        policy = self.policy
        arms = f"{len(policy.active)}/{len(self.arms)} arms in play"
        if policy.pulls:
            arms += f", {policy.n_censored / policy.pulls:.0%} stopped"
        horizon = policy.horizon
        return Progress(
            phase="finding limits" if policy.piloting else "choosing limits",
            configurations=arms,
            leader="" if policy.piloting else self._leader_in_words(),
            spent=policy.pulls,
            total=horizon,
            unit="trials",
            has_end=horizon is not None,
        )

    def _leader_in_words(self) -> str:
        arm, mean, interval, _ = self.policy.leader()
        if arm is None:
            return "none, every arm failed"
        low, high = sorted(self.sign * bound for bound in interval)
        return f"arm {arm}, {self.sign * mean:.4g} in [{low:.4g}, {high:.4g}]"


def _limit_of(trial: FrozenTrial) -> float | None:
    limit: float | None = read_attribute(trial, LIMIT_KEY)
    return None if limit == math.inf else limit
