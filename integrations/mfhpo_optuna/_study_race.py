"""A study's trials as observations of a policy: what all samplers rebuild from storage."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Observation, Policy, Pull
from mfhpo_optuna._arms import Arms
from mfhpo_optuna._limit_attributes import SECONDS_KEY

__all__ = [
    "ARM_KEY",
    "CERTIFICATE_KEY",
    "FIDELITY_KEY",
    "NO_ANSWER",
    "Listener",
    "Running",
    "StudyRace",
]

# User attributes: the pull that a trial is, and the certificate of the trial that answers.
ARM_KEY = "mfhpo:pull"
CERTIFICATE_KEY = "mfhpo:certificate"

# Attribute of a study whose sampler chooses the levels: the name of the parameter that sets them.
FIDELITY_KEY = "mfhpo:fidelity"

# The constraint that single pulls break, so that none of them is the best trial.
NO_ANSWER = "mfhpo"

Listener = Callable[[int, Pull, Observation], None]


@dataclass(frozen=True)
class Running:
    """A trial that is under way: what it evaluates, and since when."""

    pull: Pull
    since: datetime | None
    blind: bool = False  # begun before the policy could choose


class StudyRace(abc.ABC):
    """Translates between the trials of one study and a policy.

    Parameters
    ----------
    study
        The study; only its direction is remembered.
    arms
        What is compared.
    lease
        Seconds after which a running trial is no longer waited for; None lets the kind of race
        decide.

    Attributes
    ----------
    sign
        -1 where the study minimises: values are mirrored. Else 1.
    policy
        What chooses the pulls, or None until it can be made.
    certificates
        The trials that the sampler added as answers.
    begun_by
        The first trial of each arm that came to its end.
    resumed
        Whether trials of the race were run before, or elsewhere.
    over
        Numbers of running trials that began after the race had ended.
    announced
        Whether the sampler has said what it found out or chose.
    reseeded
        Whether the sampler that draws the arms was given new randomness after a restart.
    listener
        Called with the number of the trial, its pull and its observation, after the policy learned
        from it; or None.
    """

    def __init__(self, study: optuna.Study, arms: Arms, lease: float | None) -> None:
        self.arms = arms
        self.sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        self.policy: Policy | None = None
        self.certificates: list[FrozenTrial] = []
        self.listener: Listener | None = None
        self.begun_by: dict[int, FrozenTrial] = {}
        self.over: set[int] = set()
        self.announced = False
        self.reseeded = False
        self.resumed = False
        self._lease = lease
        self._running: dict[int, Running] = {}
        self._unread: set[int] = set()
        self._read_up_to = 0
        self._begun = 0
        self._warned_of_names = False
        self._warned_of_merging = False
        self._warned_of_pruning = False

    # What differs from race to race.

    @abc.abstractmethod
    def progress_text(self) -> str:
        """One line that says where the race stands."""

    @abc.abstractmethod
    def propose(self, trial: FrozenTrial) -> Pull | None:
        """The pull for a trial that begins; None if no arm is left or it cannot be in the race."""

    @abc.abstractmethod
    def attributes(self, pull: Pull) -> dict[str, Any]:
        """The user attributes that tell other workers of a pull, `ARM_KEY` last."""

    def attributes_outside(self, trial: FrozenTrial) -> dict[str, Any]:
        """The user attributes of a trial that begins, but is no pull: enqueued, or too late."""
        return {}

    @abc.abstractmethod
    def _noted(self, trial: FrozenTrial) -> Pull:
        """The pull that a trial's user attributes tell of."""

    @abc.abstractmethod
    def finish(
        self, trial: FrozenTrial, state: TrialState, value: float | None, seconds: float | None
    ) -> bool:
        """Take in a finished trial; return whether it was a single pull, and so no answer."""

    @abc.abstractmethod
    def _default_lease(self, pull: Pull) -> float:
        """Seconds after which a running pull is no longer waited for, if the user gave none."""

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
            if trial.state == TrialState.RUNNING and ARM_KEY in trial.user_attrs:
                pull = self._noted(trial)
                if number not in self._running:
                    self._running[number] = Running(pull, trial.datetime_start)
                    self._begun += 1
                self.arms.begun(pull.arm, number, trial.params)
        finished.sort(key=lambda trial: (trial.datetime_complete or datetime.min, trial.number))
        for trial in finished:
            if trial.number not in self._running and ARM_KEY in trial.user_attrs:
                self._begun += 1
                self.resumed = True
            self.finish(
                trial, trial.state, trial.value if trial.values else None, _seconds_of(trial)
            )
        return True

    def begin(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull."""
        self._begun += 1
        blind = self.policy is None
        self._running[trial.number] = Running(pull, trial.datetime_start, blind)
        self.arms.begun(pull.arm, trial.number, {})

    def pull(self, trial_number: int) -> Pull | None:
        """The pull that a running trial evaluates."""
        running = self._running.get(trial_number)
        return None if running is None else running.pull

    # What the races share.

    def _pending(self, trial_number: int) -> list[Pull]:
        """Pulls under way, but for the given trial's and those whose lease is over."""
        now = datetime.now()
        return [
            running.pull
            for number, running in self._running.items()
            if number != trial_number and not self._expired(running, now)
        ]

    def _expired(self, running: Running, now: datetime) -> bool:
        lease = self._default_lease(running.pull) if self._lease is None else self._lease
        return running.since is not None and (now - running.since).total_seconds() > lease

    def _enqueued_arm(self, trial: FrozenTrial, fixed: Mapping[str, Any]) -> int | None:
        """The arm that a trial was enqueued for, or None, with a warning, if it is none."""
        arm = self.arms.matching(fixed)
        if arm is None:
            remedy = (
                "Include it in arms=[...]."
                if self.arms.declared
                else "Enqueue it before the race has drawn all its arms, or raise their number."
            )
            warnings.warn(
                f"trial {trial.number} was enqueued with {dict(fixed)}, which is none of the "
                f"{len(self.arms)} arms of the race: it runs, but does not count. {remedy}",
                stacklevel=5,
            )
        return arm

    def _tell(self, trial_number: int, pull: Pull, observation: Observation) -> None:
        assert self.policy is not None
        self.policy.tell(pull, observation)
        if self.listener is not None:
            self.listener(trial_number, pull, observation)

    def _is_of_arm(self, trial: FrozenTrial, arm: int, whole: bool) -> bool:
        """Whether a finished trial really evaluated the arm that it was to; arms learn from it."""
        if not 0 <= arm < len(self.arms):
            raise ValueError(
                f"trial {trial.number} belongs to arm {arm}, but arms has {len(self.arms)} "
                f"entries; resume the study with the arms it was begun with."
            )
        if self.arms.adopt(arm, trial.params, trial.distributions, whole=whole):
            return True
        warnings.warn(
            f"trial {trial.number} evaluated {trial.params} instead of arm {arm}, "
            f"{self.arms.params(arm)}: it does not count. Suggest each parameter with the same "
            f"range in every trial, and do not fix parameters of a race.",
            stacklevel=5,
        )
        return False

    def _owner_of(self, arm: int, trial: FrozenTrial) -> int:
        """The arm that a whole trial counts for; equal arms are merged into the first."""
        never_asked = self.arms.never_asked(arm, trial.params)
        if never_asked and not self._warned_of_names:
            self._warned_of_names = True
            warnings.warn(
                f"arms contain {', '.join(map(repr, never_asked))}, which the objective did not "
                f"ask for in trial {trial.number}; it asked for {sorted(trial.params)}. Rename it "
                f"in the arms, or suggest it in the objective.",
                stacklevel=5,
            )
        owner = self.arms.owner(arm, trial.params)
        if owner != arm and self.policy is not None:
            if not self._warned_of_merging:
                self._warned_of_merging = True
                warnings.warn(
                    f"arms {owner} and {arm} were drawn equal, {self.arms.params(owner)}: "
                    f"they are merged, and so will be others. The space is small: "
                    f"arms={{name: distribution}} races all of it.",
                    stacklevel=5,
                )
            self.policy.withdraw(arm, duplicate_of=owner)
        return owner

    def _warn_of_pruning(self, trial: FrozenTrial, instead_of: str) -> None:
        """Say once that a pruned trial, without a value `instead_of`, counts as failed."""
        if not self._warned_of_pruning:
            self._warned_of_pruning = True
            warnings.warn(
                f"trial {trial.number} was pruned: it gave no value {instead_of}, and counts as "
                f"failed. Make the study with pruner=optuna.pruners.NopPruner(); the race itself "
                f"decides what is not worth finishing.",
                stacklevel=5,
            )


def _seconds_of(trial: FrozenTrial) -> float | None:
    """How long a finished trial took; None if nobody knows.

    A trial whose worker died is failed by the storage when somebody notices, maybe days later.
    """
    noted: float | None = trial.user_attrs.get(SECONDS_KEY)
    begun, ended = trial.datetime_start, trial.datetime_complete
    if noted is not None or trial.state == TrialState.FAIL or begun is None or ended is None:
        return noted
    return (ended - begun).total_seconds()
