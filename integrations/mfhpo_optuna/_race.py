"""A study's trials as observations of a policy: the state of a sampler, rebuilt from storage."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Labels, Observation, Policy, Pull
from mfhpo.regret.reward import RewardPolicy
from mfhpo_optuna._arms import Arms
from mfhpo_optuna._fidelity import Fidelity, contains

__all__ = ["ARM_KEY", "CERTIFICATE_KEY", "SECONDS_KEY", "Race"]

# User attributes: the pull that a trial is, the certificate of the trial that answers, and the
# seconds that a trial took where they are its cost: all workers must read the same.
ARM_KEY = "mfhpo:pull"
CERTIFICATE_KEY = "mfhpo:certificate"
SECONDS_KEY = "mfhpo:seconds"

MakePolicy = Callable[[int, tuple[Any, ...], float], Policy]
Listener = Callable[[Pull, Observation], None]


@dataclass(frozen=True)
class _Running:
    pull: Pull
    since: datetime | None
    blind: bool = False  # begun before the levels were known


class Race:
    """Translates between the trials of one study and a policy.

    Parameters
    ----------
    study
        The study; only its direction is remembered.
    arms, fidelity
        What is compared, and how cheaply it can be evaluated.
    make_policy
        Makes the policy, given the number of arms, the levels of the fidelity, and the sign of
        the values: -1 where the study minimises.
    lease
        Seconds after which a running trial is no longer waited for, or None for ten times what
        the slowest trial so far would have taken at its level, and at least a minute.

    Attributes
    ----------
    resumed
        Whether trials of the race were run before, or elsewhere.
    over
        Numbers of running trials that began after the race had ended.
    announced
        Whether the sampler has said which policy it chose.
    reseeded
        Whether the sampler that draws the arms was given new randomness after a restart.
    listener
        Called with every pull and observation after the policy learned from it, or None.
    """

    def __init__(
        self,
        study: optuna.Study,
        arms: Arms,
        fidelity: Fidelity,
        make_policy: MakePolicy,
        lease: float | None = None,
    ) -> None:
        self.arms = arms
        self.fidelity = fidelity
        self.sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        self.levels: tuple[Any, ...] = ()
        self.policy: Policy | None = None
        self.certificates: list[FrozenTrial] = []
        self.fidelity_distribution: BaseDistribution | None = None
        self._make_policy = make_policy
        self._lease = lease
        self.listener: Listener | None = None
        self._running: dict[int, _Running] = {}
        self._unread: set[int] = set()
        self._read_up_to = 0
        self._seconds_per_cost = 0.0
        self.over: set[int] = set()
        self.announced = False
        self.reseeded = False
        self._begun = 0
        self.resumed = False
        self._early_failures: list[int] = []
        self._without_fidelity = 0
        self._missing_fidelity = ""
        self._overridden = 0
        self._warned_of_names = False
        self._warned_of_merging = False
        self._warned_of_pruning = False
        self._asked_for_fidelity = False
        if fidelity.levels is not None:
            self._set_levels(tuple(fidelity.levels))

    # Reading the study.

    def read(self, study: optuna.Study) -> bool:
        """Tell the policy of the trials that finished since the last reading.

        Returns
        -------
        bool
            False if the study has lost trials: it was deleted and made again.
        """
        trials = study.get_trials(deepcopy=False)
        if len(trials) < self._read_up_to:
            return False
        new = range(self._read_up_to, len(trials))
        self._read_up_to = len(trials)
        finished: list[FrozenTrial] = []
        for number in sorted(self._unread) + list(new):
            trial = trials[number]
            if trial.state.is_finished():
                self._unread.discard(number)
                finished.append(trial)
                continue
            self._unread.add(number)
            tag = trial.user_attrs.get(ARM_KEY)
            if trial.state == TrialState.RUNNING and tag is not None:
                if number not in self._running:
                    pull = Pull(int(tag["arm"]), int(tag["fidelity"]))
                    self._running[number] = _Running(pull, trial.datetime_start)
                    self._begun += 1
                self.arms.begun(int(tag["arm"]), number, trial.params)
        finished.sort(key=lambda trial: (trial.datetime_complete or datetime.min, trial.number))
        for trial in finished:
            if trial.number not in self._running and ARM_KEY in trial.user_attrs:
                self._begun += 1
                self.resumed = True
            seconds = None
            if trial.datetime_start is not None and trial.datetime_complete is not None:
                seconds = (trial.datetime_complete - trial.datetime_start).total_seconds()
            seconds = trial.user_attrs.get(SECONDS_KEY, seconds)
            self.finish(trial, trial.state, trial.value if trial.values else None, seconds)
        return True

    def finish(
        self, trial: FrozenTrial, state: TrialState, value: float | None, seconds: float | None
    ) -> bool:
        """Take in a finished trial; return whether it was a single pull, and so no answer."""
        self._unread.discard(trial.number)
        self._running.pop(trial.number, None)
        if CERTIFICATE_KEY in trial.user_attrs:
            self.certificates.append(trial)
            return False
        tag = trial.user_attrs.get(ARM_KEY)
        if tag is None:
            return self.policy is not None and self.fidelity.name in trial.params
        if state == TrialState.PRUNED and trial.number not in self.over:
            self._warn_of_pruning(trial)
        succeeded = state == TrialState.COMPLETE and value is not None
        asked = trial.distributions.get(self.fidelity.name)
        if asked is not None:
            self._asked_for_fidelity = True
            self.fidelity_distribution = asked
            self.resolve_levels(asked)
        elif succeeded:
            self._note_missing_fidelity(trial)
            succeeded = False
            if not self._asked_for_fidelity:
                return False
        pull, belongs = self._pull_of(trial, tag, succeeded)
        if seconds is not None:
            rate = float(seconds) / self._cost_of(pull)
            self._seconds_per_cost = max(self._seconds_per_cost, rate)
        if succeeded and belongs:
            owner = self._owner_of(pull, trial)
            pull = Pull(owner, pull.fidelity)
        observed = self.sign * value if succeeded and belongs and value is not None else None
        if self.policy is None:
            self._early_failures.append(pull.arm)
        else:
            cost = seconds if self.fidelity.costs == "measured" else None
            self._tell(pull, Observation(observed, cost))
        return True

    def resolve_levels(self, distribution: BaseDistribution) -> None:
        """Find out the levels, and with them the policy, from how the objective asks."""
        if self.policy is None:
            self._set_levels(self.fidelity.levels_in(distribution))

    def level_of(self, trial_number: int, distribution: BaseDistribution) -> Any:
        """The level for a running trial whose objective asks with this distribution.

        Raises
        ------
        ValueError
            If the distribution does not contain it.
        """
        running = self._running[trial_number]
        self.resolve_levels(distribution)
        if running.blind:
            # The arm was chosen blindly; where to evaluate it is the policy's choice already.
            _, fidelity = self._next(trial_number)
            running = _Running(Pull(running.pull.arm, fidelity), running.since)
            self._running[trial_number] = running
        level = self.levels[running.pull.fidelity]
        if not contains(distribution, level):
            raise ValueError(
                f"the race needs {self.fidelity.name}={level!r}, which the objective's "
                f"{distribution} does not allow; suggest {self.fidelity.name!r} with the same "
                f"range in every trial, one that contains all levels {list(self.levels)}."
            )
        return level

    # Choosing what a trial evaluates.

    def propose(self, trial: FrozenTrial) -> Pull | None:
        """The pull for a trial that begins; None if no arm is left or it cannot be in the race."""
        fixed = dict(trial.system_attrs.get("fixed_params", {}))
        level = fixed.pop(self.fidelity.name, None)
        arm, fidelity = self._next(trial.number)
        if fixed:
            arm = self.arms.matching(fixed)
            if arm is None:
                warnings.warn(
                    f"trial {trial.number} was enqueued with {fixed}, which is none of the "
                    f"{len(self.arms)} arms of the race: it runs, but does not count. Enqueue it "
                    f"before the race, or include it in arms=[...].",
                    stacklevel=4,
                )
        if arm is None:
            return None
        if level is not None and self.levels:
            if level not in self.levels:
                warnings.warn(
                    f"trial {trial.number} was enqueued with {self.fidelity.name}={level!r}, which "
                    f"is none of the levels {list(self.levels)}: it runs, but does not count. "
                    f"Enqueue one of the levels, or leave {self.fidelity.name!r} to the sampler.",
                    stacklevel=4,
                )
                return None
            fidelity = self.levels.index(level)
        return Pull(arm, fidelity)

    def begin(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull."""
        self._begun += 1
        blind = self.policy is None
        self._running[trial.number] = _Running(pull, trial.datetime_start, blind)
        self.arms.begun(pull.arm, trial.number, {})

    def pull(self, trial_number: int) -> Pull | None:
        """The pull that a running trial evaluates."""
        running = self._running.get(trial_number)
        return None if running is None else running.pull

    def _next(self, trial_number: int) -> tuple[int | None, int]:
        if self.policy is None:
            return self._begun % len(self.arms), 0
        now = datetime.now()
        pending = [
            running.pull
            for number, running in self._running.items()
            if number != trial_number and not self._expired(running, now)
        ]
        pulls = self.policy.ask(1, pending)
        return (pulls[0].arm, pulls[0].fidelity) if pulls else (None, 0)

    def _expired(self, running: _Running, now: datetime) -> bool:
        lease = self._lease
        if lease is None:
            lease = max(60.0, 10.0 * self._seconds_per_cost * self._cost_of(running.pull))
        return running.since is not None and (now - running.since).total_seconds() > lease

    def _cost_of(self, pull: Pull) -> float:
        costs = self.fidelity.costs_of(self.levels) if self.levels else None
        return costs[pull.fidelity] if costs else 1.0

    def _set_levels(self, levels: tuple[Any, ...]) -> None:
        self.policy = self._make_policy(len(self.arms), levels, self.sign)
        self.levels = levels
        self.policy.labels = Labels(
            arm=lambda arm: f"arm {arm} {self.arms.params(arm)}",
            fidelity=lambda fidelity: f"{self.fidelity.name}={levels[fidelity]!r}",
        )
        for arm in self._early_failures:
            self._tell(Pull(arm, 0), Observation(None, 0.0))
        self._early_failures.clear()

    def _tell(self, pull: Pull, observation: Observation) -> None:
        assert self.policy is not None
        self.policy.tell(pull, observation)
        if self.listener is not None:
            self.listener(pull, observation)

    def _pull_of(self, trial: FrozenTrial, tag: dict[str, int], whole: bool) -> tuple[Pull, bool]:
        """What a finished trial was to evaluate, and whether it really did."""
        planned = Pull(int(tag["arm"]), int(tag["fidelity"]))
        if not 0 <= planned.arm < len(self.arms):
            raise ValueError(
                f"trial {trial.number} belongs to arm {planned.arm}, but arms has "
                f"{len(self.arms)} entries; resume the study with the arms it was begun with."
            )
        if not self.arms.adopt(planned.arm, trial.params, trial.distributions, whole=whole):
            warnings.warn(
                f"trial {trial.number} evaluated {trial.params} instead of arm {planned.arm}, "
                f"{self.arms.params(planned.arm)}: it does not count. Suggest each parameter with "
                f"the same range in every trial, and do not fix parameters of a race.",
                stacklevel=4,
            )
            return planned, False
        level = trial.params.get(self.fidelity.name)
        if level is None or not self.levels:
            return planned, True
        if level not in self.levels:
            warnings.warn(
                f"trial {trial.number} was evaluated at {self.fidelity.name}={level!r}, which is "
                f"none of the levels {list(self.levels)}: it does not count. Suggest the fidelity "
                f"with a range that contains all levels.",
                stacklevel=4,
            )
            return planned, False
        fidelity = self.levels.index(level)
        self._overridden = 0 if fidelity == planned.fidelity else self._overridden + 1
        return Pull(planned.arm, fidelity), True

    def _owner_of(self, pull: Pull, trial: FrozenTrial) -> int:
        """The arm that a whole trial counts for; equal arms are merged into the first."""
        never_asked = self.arms.never_asked(pull.arm, trial.params)
        at_target = bool(self.levels) and pull.fidelity == len(self.levels) - 1
        if at_target and never_asked and not self._warned_of_names:
            self._warned_of_names = True
            warnings.warn(
                f"arms contain {', '.join(map(repr, never_asked))}, which the objective did not "
                f"ask for in trial {trial.number}; it asked for {sorted(trial.params)}. Rename it "
                f"in the arms, or suggest it in the objective.",
                stacklevel=5,
            )
        owner = self.arms.owner(pull.arm, trial.params) if at_target else pull.arm
        if owner != pull.arm and self.policy is not None:
            if not self._warned_of_merging:
                self._warned_of_merging = True
                warnings.warn(
                    f"arms {owner} and {pull.arm} were drawn equal, {self.arms.params(owner)}: "
                    f"they are merged, and so will be others. The space is small: "
                    f"arms={{name: distribution}} races all of it.",
                    stacklevel=5,
                )
            self.policy.withdraw(pull.arm, duplicate_of=owner)
        return owner

    def _warn_of_pruning(self, trial: FrozenTrial) -> None:
        if not self._warned_of_pruning:
            self._warned_of_pruning = True
            warnings.warn(
                f"trial {trial.number} was pruned: it gave no value at the level it was to be "
                f"evaluated at, and counts as failed. Make the study with "
                f"pruner=optuna.pruners.NopPruner(); the race itself decides what is not worth "
                f"finishing.",
                stacklevel=5,
            )

    @property
    def certifies(self) -> bool:
        """Whether the policy is after a certificate; those that maximise the reward are not."""
        return not isinstance(self.policy, RewardPolicy)

    @property
    def hopeless(self) -> bool:
        """Whether so many trials failed before they asked for the fidelity that none may ever."""
        return self.policy is None and len(self._early_failures) >= 3 * len(self.arms)

    def check_fidelity_is_free(self) -> None:
        """Raise if the sampler's choice of the fidelity is never followed.

        Raises
        ------
        ValueError
            If the objective never asks for the fidelity, or something else always sets it.
        """
        if not self._asked_for_fidelity and self._without_fidelity >= len(self.arms):
            raise ValueError(self._missing_fidelity)
        if self._overridden >= max(10, len(self.arms)):
            raise ValueError(
                f"fidelity={self.fidelity.name!r} was not what the sampler chose in the last "
                f"{self._overridden} trials: something else sets it. Suggest it with a range that "
                f"contains all levels {list(self.levels)}, and do not fix it."
            )

    def _note_missing_fidelity(self, trial: FrozenTrial) -> None:
        self._without_fidelity += 1
        name = self.fidelity.name
        close = difflib.get_close_matches(name, trial.params, n=1)
        hint = f" Did you mean fidelity={close[0]!r}?" if close else ""
        self._missing_fidelity = (
            f"fidelity={name!r}, but the objective did not ask for it in trial {trial.number}; it "
            f"asked for {sorted(trial.params)}. Call trial.suggest_int({name!r}, ...) or the like "
            f"in the objective, and name that parameter.{hint}"
        )
        if self._without_fidelity == 1 or self._asked_for_fidelity:
            warnings.warn(self._missing_fidelity, stacklevel=5)
