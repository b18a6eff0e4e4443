"""A study's trials as observations of a policy: what all samplers rebuild from storage."""

from __future__ import annotations

import abc
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Observation, Policy, Pull
from mfhpo.claims import joined
from mfhpo.in_order import InOrder
from mfhpo_optuna._arms import Arms
from mfhpo_optuna._limit_attributes import SECONDS_KEY
from mfhpo_optuna._worker_name import is_surely_dead

__all__ = [
    "ARM_KEY",
    "CERTIFICATE_KEY",
    "FIDELITY_KEY",
    "NO_ANSWER",
    "WORKER",
    "Listener",
    "Running",
    "StudyRace",
]

# User attributes: the pull that a trial is, and the certificate of the trial that answers.
ARM_KEY = "mfhpo:pull"
CERTIFICATE_KEY = "mfhpo:certificate"

# Attribute of a study whose sampler chooses the levels: the name of the parameter that sets them.
FIDELITY_KEY = "mfhpo:fidelity"

# In the tag of a pull: the process that evaluates it.
WORKER = "worker"

# The constraint that single pulls break, so that none of them is the best trial.
NO_ANSWER = "mfhpo"

Listener = Callable[[int, Pull, Observation], None]

# A trial under way that has been overtaken by so many others of its arm and level is not waited for
# any longer: at least, and for each trial under way.
_LEAST_PATIENCE = 10
_OVERTAKEN_PER_WORKER = 3

_Told: TypeAlias = tuple[int, Pull, Observation]


@dataclass(frozen=True)
class Running:
    """A trial that is under way: what it evaluates, and since when."""

    pull: Pull
    since: datetime | None
    blind: bool = False  # begun before the policy could choose
    worker: str | None = None  # see `worker_name`; None: this process


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
    is_disordered
        Whether the policy has learned values in another order than that of their trials'
        beginnings; then the race must be made anew from the study.
    announced
        Whether the sampler has said what it found out or chose.
    reseeded
        Whether the sampler that draws the arms was given new randomness after a restart.
    listener
        Called with the number of the trial, its pull and its observation, after the policy learned
        from it; or None.
    """

    # Whether the values of an arm at a level are told in the order in which their trials began.
    _in_order = True

    def __init__(self, study: optuna.Study, arms: Arms, lease: float | None) -> None:
        self.arms = arms
        self.is_disordered = False
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
        self._orders: dict[tuple[int, int], InOrder[_Told]] = {}
        # By number of the trial: its place in line until it is told, what has ended and waits, and
        # the arms of those under way that are not waited for any longer.
        self._tickets: dict[int, tuple[tuple[int, int], int]] = {}
        self._waiting: dict[int, tuple[Pull, Observation]] = {}
        self._given_up: dict[int, int] = {}
        self._ending: int | None = None
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

    def _place_of(self, trial: FrozenTrial) -> Pull:
        """The pull with which a trial waits in line, which may have become another one."""
        return self._noted(trial)

    @abc.abstractmethod
    def finish(
        self, trial: FrozenTrial, state: TrialState, value: float | None, seconds: float | None
    ) -> bool:
        """Take in a finished trial; return whether it was a single pull, and so no answer."""

    @abc.abstractmethod
    def _default_lease(self, pull: Pull) -> float:
        """Seconds after which a running pull is no longer waited for, if the user gave none."""

    # Reading the study.

    def read(self, study: optuna.Study, ending: int | None = None) -> bool:
        """Tell the policy of the trials that finished since the last reading.

        Parameters
        ----------
        study
            The study.
        ending
            Number of the trial that ends at this moment, which the study still has as running.

        Returns
        -------
        bool
            False if the race must be made anew: the study has lost trials (it was deleted and made
            again), or a trial has ended that was not waited for (`is_disordered`).
        """
        trials = study.get_trials(deepcopy=False)
        if len(trials) < self._read_up_to:
            return False
        if any(number == ending or trials[number].state.is_finished() for number in self._given_up):
            self.is_disordered = True
            return False
        self._ending = ending
        new = range(self._read_up_to, len(trials))
        self._read_up_to = len(trials)
        finished: list[FrozenTrial] = []
        begun: list[FrozenTrial] = []
        for number in sorted(self._unread) + list(new):
            trial = trials[number]
            if trial.state.is_finished():
                self._unread.discard(number)
                finished.append(trial)
                if number not in self._running and ARM_KEY in trial.user_attrs:
                    begun.append(trial)
                continue
            self._unread.add(number)
            if trial.state == TrialState.RUNNING and ARM_KEY in trial.user_attrs:
                pull = self._noted(trial)
                if number not in self._running:
                    worker = trial.user_attrs[ARM_KEY].get(WORKER)
                    self._running[number] = Running(pull, trial.datetime_start, worker=worker)
                    begun.append(trial)
                self.arms.begun(pull.arm, number, trial.params)
        begun.sort(key=lambda trial: (trial.datetime_start or datetime.min, trial.number))
        for trial in begun:
            self._line_up(trial.number, self._place_of(trial))
        finished.sort(key=lambda trial: (trial.datetime_complete or datetime.min, trial.number))
        for trial in finished:
            if trial.number not in self._running and ARM_KEY in trial.user_attrs:
                self.resumed = True
            self.finish(
                trial, trial.state, trial.value if trial.values else None, _seconds_of(trial)
            )
            self.leave(trial.number)
        self._give_up()
        return True

    def begin(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull."""
        self._line_up(trial.number, pull)
        blind = self.policy is None
        self._running[trial.number] = Running(pull, trial.datetime_start, blind)
        self.arms.begun(pull.arm, trial.number, {})

    def pull(self, trial_number: int) -> Pull | None:
        """The pull that a running trial evaluates."""
        running = self._running.get(trial_number)
        return None if running is None else running.pull

    def take_over(self, disordered: StudyRace) -> None:
        """Go on in the place of a race that learned in the wrong order."""
        for name in ("over", "announced", "reseeded", "resumed", "listener"):
            setattr(self, name, getattr(disordered, name))

    def settle(self, trial_number: int) -> None:
        """Draw the consequences of a trial's end for those that wait for it."""
        self.leave(trial_number)
        self._give_up()

    def leave(self, trial_number: int) -> None:
        """Let those pass that wait for a trial which has ended and was not told."""
        if trial_number in self._tickets and trial_number not in self._waiting:
            pair, ticket = self._tickets.pop(trial_number)
            self._release(self._orders[pair].drop(ticket))

    # What the races share.

    def _line_up(self, trial_number: int, pull: Pull) -> None:
        """Note in which place of its arm and level a trial has begun."""
        self._begun += 1
        if self._in_order:
            pair = (int(pull.arm), int(pull.fidelity))
            order = self._orders.setdefault(pair, InOrder(patience=sys.maxsize))
            self._tickets[trial_number] = pair, order.begin()

    def _give_up(self) -> None:
        """Wait no longer for trials that hold back many others, or whose lease is over.

        Nothing is certified until they end.
        """
        if self._waiting:
            now = datetime.now()
            patience = max(_LEAST_PATIENCE, _OVERTAKEN_PER_WORKER * len(self._running))
            for number, (pair, ticket) in list(self._tickets.items()):
                running = self._running.get(number)
                if running is None or number == self._ending:
                    continue
                overtaken_by = sum(later > ticket for later, _ in self._orders[pair].held)
                if overtaken_by >= patience or (overtaken_by and self._expired(running, now)):
                    self._given_up[number] = running.pull.arm
                    self.leave(number)
        self._withhold()

    def _withhold(self) -> None:
        """Say what the answer must wait for, or what it supposes, and what was paid meanwhile."""
        if self.policy is None:
            return
        self.policy.held_cost = sum(
            self._cost_of(pull) if observation.cost is None else observation.cost
            for pull, observation in self._waiting.values()
        )
        self.policy.withheld, self.policy.provisos = "", ()
        given_up = [
            number
            for number in sorted(self._given_up)
            if not is_surely_dead(self._running[number].worker)
        ]
        if given_up and self._lease is not None:
            self.policy.provisos = (
                f"trials that run for more than lease={self._lease:g} seconds have no worker",
            )
        elif given_up:
            trials = joined([f"trial {number}" for number in given_up])
            self.policy.withheld = (
                f"{trials} began earlier than others of the same configuration and is still under "
                f"way; what takes long may be poor, so nothing is certified until it ends. If its "
                f"worker is dead, say so: study.tell({given_up[0]}, "
                f"state=optuna.trial.TrialState.FAIL)"
            )

    def _release(self, turns: Iterable[_Told]) -> None:
        for number, pull, observation in turns:
            self._waiting.pop(number, None)
            self._tickets.pop(number, None)
            self._tell_now(number, pull, observation)

    def _pending(self, trial_number: int) -> list[Pull]:
        """Pulls that the policy does not know of yet.

        Those under way, but for the given trial's and those whose lease is over, and those that
        have ended and wait for earlier ones.
        """
        now = datetime.now()
        under_way = [
            running.pull
            for number, running in self._running.items()
            if number != trial_number and not self._expired(running, now)
        ]
        return [*under_way, *(pull for pull, _ in self._waiting.values())]

    def _cost_of(self, pull: Pull) -> float:
        """What a pull costs, if it was not measured."""
        return 1.0

    def _expired(self, running: Running, now: datetime) -> bool:
        """Whether a trial is not waited for any longer: its worker is dead, or its lease over."""
        if is_surely_dead(running.worker):
            return True
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
        """Tell the policy of a pull as soon as it is its turn."""
        if trial_number not in self._tickets:
            self._tell_now(trial_number, pull, observation)
            return
        pair, ticket = self._tickets[trial_number]
        self._waiting[trial_number] = pull, observation
        self._release(self._orders[pair].end(ticket, (trial_number, pull, observation)))

    def _tell_now(self, trial_number: int, pull: Pull, observation: Observation) -> None:
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
