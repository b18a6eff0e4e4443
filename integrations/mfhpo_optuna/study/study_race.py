"""The base of all races: what a sampler rebuilds from the trials of its study."""

from __future__ import annotations

import abc
import math
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo import BlockElimination, Observation, Policy, Pull
from mfhpo.knowledge.noise import CONTRADICTED, NoiseContradictedWarning
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.racing.answer import cautious_value
from mfhpo.racing.claims import joined
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_optuna.study.arms import Arms
from mfhpo_optuna.study.attributes import (
    ARM_KEY,
    SO_FAR_KEY,
    WITHHELD_KEY,
    PullNote,
    certificate_of,
    parameters_before,
    pull_note,
    read_attribute,
    warn_of_attribute,
)
from mfhpo_optuna.study.forgotten import ForgottenReplicate, ForgottenReplicateWarning
from mfhpo_optuna.study.levels import Replicates
from mfhpo_optuna.study.loop.state import Progress
from mfhpo_optuna.study.loop.storage_errors import is_spoilt
from mfhpo_optuna.study.trials.news import TrialNews, by_their_ends, seconds_of
from mfhpo_optuna.study.trials.order import EndOrder
from mfhpo_optuna.study.trials.processes import is_surely_dead
from mfhpo_optuna.study.trials.turns import Turns
from mfhpo_optuna.study.trials.under_way import Running, UnderWay, default_lease

# Trials of an arm, without a value between them, that its storage may spoil, and no more.
_MOST_SPOILT = 10

# Arms and blocks are numbered as they are begun, a few at once by each worker. Larger numbers than
# these, at the study's beginning and for each trial since, are none that a sampler has chosen.
_AT_FIRST, _FOR_EACH_TRIAL = 10_000, 100

FORGOTTEN = "forgotten replicate"  # among what the user was warned about

_OTHERS_DECIDE = "what is to be evaluated next depends on trials under way"

Listener = Callable[[int, Pull, Observation], None]


@dataclass(frozen=True)
class End:
    """The end of a trial: with a value only if it is COMPLETE."""

    state: TrialState
    value: float | None
    seconds: float | None


class StudyRace(abc.ABC):
    """Translates between the trials of one study and a policy."""

    arms_option = "arms"  # what the sampler calls its configurations
    has_open_arms = False  # whether there is always another one

    def __init__(
        self,
        study: optuna.Study,
        arms: Arms,
        lease: float | None,
        replicates: Replicates | None = None,
    ) -> None:
        self.arms = arms
        self.sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        self.policy: Policy | None = None  # None until it can be made
        self.certificates: list[FrozenTrial] = []  # the trials that the sampler added as answers
        self.at_target = PullStatistics(1, 1)  # of all values there, maximised
        # How many observations the policy was told, and had been told when a trial last began here
        # or it was last looked whether they are news for the best trial.
        self.n_told = self.n_told_before = 0
        # After the policy has learned from a trial: its number, its pull and its observation.
        self.listener: Listener | None = None
        self.begun_by: dict[int, FrozenTrial] = {}  # the first trial of each arm that ended
        # After so many observations, the trials that the sampler of the arms sees.
        self.shown: tuple[int, list[FrozenTrial]] | None = None
        self.over: set[int] = set()  # running trials that began after the race had ended
        self.idle: set[int] = set()  # trials that only waited for others, and evaluate nothing
        self.waits_since: float | None = None  # by a clock that nobody sets
        self.announced = False  # whether the sampler has said what it found out or chose
        self.reseeded = False  # whether the sampler of the arms has new randomness after a restart
        self.resumed = False  # whether trials of the race were run before, or elsewhere
        # Whether the policy has learned values in another order than that of their beginnings.
        self.is_disordered = False
        # What the user was warned about, also by an earlier race in whose place this one goes on.
        self.warned: set[str] = set()
        self._replicates = replicates
        self._forgotten = ForgottenReplicate(arms.owned)
        self._n_replicates: int | None = None  # until an objective has asked for one
        self._has_value: set[tuple[int, int]] = set()  # which arms in which blocks
        self._news = TrialNews()
        self._order = EndOrder()
        self.under_way = UnderWay(self._news, lease, self._default_lease)
        self._turns = Turns(self.under_way.running, self._equal_arms)
        self._ending: int | None = None
        self._seconds_per_cost = 0.0  # of the slowest trial
        self._spoilt: Counter[int] = Counter()  # trials of each arm since its last value
        self._n_repeated = 0  # of the observations told, those that an earlier race was told, too

    # What differs from race to race.

    @abc.abstractmethod
    def progress(self) -> Progress:
        """Return where the race stands."""

    @property
    def certifies(self) -> bool:
        """Whether the race is after a certificate at all."""
        return True

    @abc.abstractmethod
    def propose(self, trial: FrozenTrial) -> Pull | None:
        """Return the pull for a trial that begins; None if no arm is left or it cannot count."""

    @abc.abstractmethod
    def attributes(self, pull: Pull) -> dict[str, Any]:
        """Return the user attributes that tell other workers about a pull, `ARM_KEY` last."""

    def attributes_outside(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the user attributes of a trial that begins, but is no pull."""
        return {}

    def _note_of(self, trial: FrozenTrial) -> PullNote | None:
        """Return what a trial says about its pull; None if it is no pull that there can be."""
        note = pull_note(trial)
        if note is None:
            return None
        numbers = [note.block or 0, *(note.shortlist or ())]
        if self.has_open_arms:
            numbers.append(note.arm)
        if max(numbers) <= _AT_FIRST + _FOR_EACH_TRIAL * trial.number:
            return note
        warn_of_attribute(trial, ARM_KEY)
        return None

    @abc.abstractmethod
    def _noted(self, trial: FrozenTrial) -> Pull:
        """Return the pull that a trial's user attributes tell about."""

    def _as_seen(self, running: Running, trial: FrozenTrial) -> Running:
        """Return what a trial under way evaluates, now that the study says more about it."""
        return running

    def _equal_arms(self, pull: Pull, arms: Collection[int]) -> Iterable[int]:
        """Return those of some arms whose trials may turn out to count for this pull's arm."""
        return ()

    def _is_at_target(self, pull: Pull) -> bool:
        """Return whether the answer is about values of such pulls."""
        return True

    def _has_turns(self, pull: Pull) -> bool:
        """Return whether such pulls are told in the order in which their trials began."""
        # The values of a block count once it is complete, whenever they come.
        return pull.block is None

    def _is_single(self, trial: FrozenTrial) -> bool:
        """Return whether a trial that is no pull is a single evaluation all the same."""
        return True

    @abc.abstractmethod
    def _take_in(self, trial: FrozenTrial, pull: Pull, end: End) -> bool:
        """Learn from a finished pull; see `finish`."""

    def _default_lease(self, pull: Pull) -> float:
        """Return the seconds that a running pull is waited for without a given lease."""
        return default_lease(self._seconds_per_cost * self._cost_of(pull))

    # Reading the study.

    def read(self, study: optuna.Study, ending: int | None = None) -> bool:
        """Tell the policy of the trials that finished since the last reading.

        The study still has the trial that ends at this moment (`ending`) as running. False if the
        race must be made anew: the study was deleted and made again, or a trial has ended that was
        not waited for, or otherwise than it was told (`is_disordered`).
        """
        news = None if self.is_disordered else self._news.read(study)
        if news is None:
            return False
        ended = {trial.number: trial.state for trial in news if trial.state.is_finished()}
        told_otherwise = self._order.was_told_early(ending) or self._order.is_contradicted(ended)
        if told_otherwise or not self._turns.given_up.isdisjoint({*ended, ending}):
            self.is_disordered = True
            return False
        self._ending = ending
        under_way = [
            trial
            for trial in news
            if trial.state == TrialState.RUNNING
            and self._note_of(trial) is not None
            and not self._order.was_told_early(trial.number)
        ]
        has_policy = self.policy is not None
        changed = self.under_way.changed(under_way, has_policy)
        for trial in changed:
            self._see(trial)
        self.under_way.keep_looks(changed, has_policy)
        for trial in by_their_ends(news):
            is_pull = self._note_of(trial) is not None
            if is_pull:
                self._order.compare(trial)
            if self._order.confirm(trial.number):
                continue
            if trial.number not in self.under_way.running and is_pull:
                self.under_way.n_begun += 1
                self.resumed = True
            value = trial.value if trial.state == TrialState.COMPLETE else None
            self.finish(trial, End(trial.state, value, seconds_of(trial)))
        self.settle()
        return True

    def _see(self, trial: FrozenTrial) -> None:
        self._note_replicates(trial.distributions)
        pull, number = self._noted(trial), trial.number
        self._check_arm(trial, pull.arm)
        self.under_way.see(trial, pull)
        running = self.under_way.running
        running[number] = self._as_seen(running[number], trial)
        self.arms.begun(pull.arm, number, trial.params)

    def finish(self, trial: FrozenTrial, end: End) -> bool:
        """Take in a finished trial; return whether it was a single evaluation, and so no answer."""
        if not trial.state.is_finished():
            self._order.note_early(trial.number, end.state)
        self.under_way.end(trial)
        if is_spoilt(trial, end.state) and self._passes_over(trial):
            return False
        if certificate_of(trial) is not None:
            self.certificates.append(trial)
            return False
        if self._note_of(trial) is None:
            return self._is_single(trial)
        self._note_replicates(trial.distributions)
        self._look_for_replicate(trial, end.value)
        pull = self._noted(trial)
        self.begun_by.setdefault(pull.arm, trial)
        if end.value is not None:
            self._spoilt.pop(pull.arm, None)
        return self._take_in(trial, pull, end)

    def _look_for_replicate(self, trial: FrozenTrial, value: float | None) -> None:
        if self._replicates is None:
            self._forgotten.learn(trial.params, trial.distributions, value)
            if self._forgotten.notice:
                self._warn_once(FORGOTTEN, self._forgotten.notice, ForgottenReplicateWarning)

    @property
    def notices(self) -> tuple[str, ...]:
        """The words of the study's trials against the answer, beside the policy's."""
        return (self._forgotten.notice,) if self._forgotten.notice else ()

    def _passes_over(self, trial: FrozenTrial) -> bool:
        """Let a trial that its storage has spoilt say nothing but what its arm is.

        False if that happens to the arm again and again: its data may be the reason.
        """
        if self._note_of(trial) is None:
            return True
        pull = self._as_seen(Running(self._noted(trial), trial.datetime_start), trial).pull
        self._spoilt[pull.arm] += 1
        if self._spoilt[pull.arm] > _MOST_SPOILT:
            return False
        self._remember(pull, trial)
        if self._has_turns(pull):
            self._turns.end(trial, pull, None)
        return True

    def _remember(self, pull: Pull, trial: FrozenTrial) -> None:
        """Keep what a trial that counts for nothing was to evaluate."""
        self.arms.remember(pull.arm, {**(parameters_before(trial) or {}), **trial.params})

    def inherited(self, trial: FrozenTrial) -> Pull | None:
        """Return the pull of a trial that Optuna made to repeat a lost one; None for others.

        It has that trial's parameters, so that it can evaluate nothing else.
        """
        if not trial.params or self._note_of(trial) is None:
            return None
        return self._as_seen(Running(self._noted(trial), trial.datetime_start), trial).pull

    def begin(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull."""
        self._turns.given_up.discard(trial.number)
        self.n_told_before = self.n_told
        self.under_way.begin(trial, pull, blind=self.policy is None)
        self.arms.begun(pull.arm, trial.number, {})

    @property
    def is_out_of_order(self) -> bool:
        """Whether trials were learned from in another order than that of their ends."""
        return self._order.is_out_of_order

    @property
    def avoids_repeats(self) -> bool:
        """Whether two trials must not evaluate the same at the same time."""
        return self._replicates is not None

    def give_way(self, trial: FrozenTrial) -> Pull | None:
        """Have a trial evaluate something else, which is returned, if another has chosen the same.

        Workers that choose at the same moment choose the same. Ask this once the trial's attributes
        are written and the study was read again, so that one of the two knows; then write them.
        """
        pull = self.pull(trial.number)
        if self.policy is None or pull is None or parameters_before(trial) is not None:
            return None
        # Who has chosen the same may have chosen another limit.
        same = replace(pull, limit=None)
        rivals = [
            number
            for number, other in self.under_way.waited_for(trial.number)
            if replace(other, limit=None) == same
        ]
        # The others choose again, too, if they have seen this trial: each takes another place.
        place = 1 + sum(number < trial.number for number in rivals)
        # Another worker may have evaluated it before this one could say that it does.
        is_done = (pull.arm, pull.block) in self._has_value
        other = self._ask(trial.number, place) if rivals or is_done else None
        if other is None or other == pull:
            return None
        self.begin(trial, other)
        return other

    def pull(self, trial_number: int) -> Pull | None:
        """Return the pull that a running trial evaluates."""
        running = self.under_way.running.get(trial_number)
        return None if running is None else running.pull

    def replicate_of(self, trial_number: int, distribution: BaseDistribution) -> Any:
        """Return the replicate for a running trial whose objective asks with a distribution."""
        assert self._replicates is not None
        block = self.under_way.running[trial_number].pull.block
        assert block is not None
        self._note_replicates({self._replicates.name: distribution})
        return self._replicates.of(block, distribution)

    def _note_replicates(self, distributions: Mapping[str, BaseDistribution]) -> None:
        """Tell the policy how many replicates there are, if an objective has asked for one."""
        if self._replicates is not None and self._replicates.name in distributions:
            self._n_replicates = self._replicates.count(distributions[self._replicates.name])
        if self.policy is not None:
            self.policy.most_blocks = self._n_replicates

    def take_over(self, disordered: StudyRace) -> None:
        """Go on in the place of a race that learned in the wrong order."""
        told = ("over", "idle", "announced", "reseeded", "resumed", "listener", "warned")
        for name in (*told, "waits_since"):
            setattr(self, name, getattr(disordered, name))
        self.under_way.begun_here = disordered.under_way.begun_here
        self._news.take_over(disordered._news)
        self._n_repeated = max(disordered.n_told, disordered._n_repeated)
        if disordered.policy is not None:
            answer = disordered.policy.recommend()
            self.warned.update(answer.not_compared)
            self.warned.update(answer.notices)

    def settle(self) -> None:
        """Release trials that waited; give up those that hold back many or are overdue.

        Nothing is certified until the latter end.
        """
        self._release()
        if self._turns.waiting:
            self._turns.give_up(self._ending, self.under_way.is_expired)
            self._release()
        self._withhold()

    def _release(self) -> None:
        for ended in self._turns.release():
            if ended.observation is not None:
                self._tell_now(ended.number, ended.pull, ended.observation)

    @property
    def waits_for(self) -> str:
        """The reason why nothing is left to do until trials under way end; "" if there is none."""
        policy = self.policy
        if policy is None:
            return ""
        if self._others_decide:
            return _OTHERS_DECIDE
        if not policy.withheld or not policy.finished:
            return ""
        if all(map(self.under_way.is_expired, self._turns.given_up)):
            return ""
        return policy.withheld if policy.recommend().reason == policy.withheld else ""

    @property
    def _others_decide(self) -> bool:
        """Whether trials under way are waited for, although the race is not over."""
        policy = self.policy
        if not isinstance(policy, BlockElimination) or policy.finished:
            return False
        return policy.is_ahead(self._pending(-1))

    @property
    def answer_is_stale(self) -> bool:
        """Whether the last answer waited for trials that have ended since it was added."""
        if self.policy is None or self.policy.withheld:
            return False
        final = [t for t in self.certificates if read_attribute(t, SO_FAR_KEY) is None]
        return bool(final) and read_attribute(final[-1], WITHHELD_KEY) is True

    @property
    def may_promise(self) -> bool:
        """Whether the leader's worth may be known, so that it pays to look for it."""
        return True

    def sure_value(self, bound: float) -> float | None:
        """Return the leader's least worth, maximised, if its interval begins at `bound`.

        None if it is not to be shown as the answer so far: a value at the target is needed, or
        other evidence about it.
        """
        if math.isinf(bound) or (self.policy is not None and self.policy.withheld):
            return cautious_value(self.at_target) if self.at_target.counts[0, 0] else None
        return bound

    # What the races share.

    def _withhold(self) -> None:
        """Say what the answer must wait for, or what it supposes, and what was paid meanwhile."""
        if self.policy is None:
            return
        self.policy.held_cost = sum(
            self._cost_of(ended.pull) if ended.observation.cost is None else ended.observation.cost
            for ended in self._turns.waiting.values()
            if ended.observation is not None
        )
        self.policy.withheld, self.policy.provisos = "", ()
        alive = [
            number
            for number in sorted(self._turns.given_up)
            if not is_surely_dead(self.under_way.running[number].worker)
        ]
        given_up = alive
        lease = self.under_way.lease
        if lease is not None:
            given_up = [number for number in alive if not self.under_way.is_expired(number)]
        if len(given_up) < len(alive):
            self.policy.provisos = (
                f"trials that run for more than lease={lease:g} seconds have no worker",
            )
        if given_up:
            trials = joined([f"trial {number}" for number in given_up])
            self.policy.withheld = (
                f"{trials} began earlier than others of the same configuration and is still under "
                f"way; what takes long may be poor, so nothing is certified until it ends. If its "
                f"worker is dead, say so: study.tell({given_up[0]}, "
                f"state=optuna.trial.TrialState.FAIL)"
            )

    def _pending(self, trial_number: int) -> list[Pull]:
        """Return pulls that the policy does not know: under way, or waiting for earlier ones."""
        waiting = [ended.pull for ended in self._turns.waiting.values()]
        return [*(pull for _, pull in self.under_way.waited_for(trial_number)), *waiting]

    def _ask(self, trial_number: int, n: int = 1) -> Pull | None:
        """Return what the policy wants of a trial, or of the last of `n` that choose at once."""
        assert self.policy is not None
        pulls = self.policy.ask(n, self._pending(trial_number))
        return pulls[-1] if pulls else None

    def chosen_by(self, trial_number: int) -> list[tuple[int, Any, str | None]]:
        """Return the other trials that are waited for, with workers and digests of arguments."""
        return self.under_way.chosen_by(trial_number)

    def _cost_of(self, pull: Pull) -> float:
        """Return what a pull costs, if it was not measured."""
        return 1.0

    def _note_duration(self, pull: Pull, seconds: float | None) -> None:
        if seconds is not None:
            rate = float(seconds) / self._cost_of(pull)
            self._seconds_per_cost = max(self._seconds_per_cost, rate)

    def _enqueued_arm(self, trial: FrozenTrial, fixed: Mapping[str, Any]) -> int | None:
        """Return the arm that a trial was enqueued for; None, with a warning, if it is none."""
        arm = self.arms.matching(fixed)
        if arm is None:
            remedy = (
                f"Include it in {self.arms_option}=[...]."
                if self.arms.declared
                else "Enqueue it before the race has drawn all its arms, or raise their number."
            )
            warnings.warn(
                f"trial {trial.number} was enqueued with {dict(fixed)}, which is none of the "
                f"{len(self.arms)} arms of the race: it runs, but does not count. {remedy}",
                stacklevel=5,
            )
        return arm

    def _tell(self, trial: FrozenTrial, pull: Pull, observation: Observation) -> None:
        if pull.block is not None and observation.has_value and self._is_at_target(pull):
            self._has_value.add((pull.arm, pull.block))
        if self._has_turns(pull):
            self._turns.end(trial, pull, observation)
        else:
            self._tell_now(trial.number, pull, observation)

    def _tell_now(self, trial_number: int, pull: Pull, observation: Observation) -> None:
        assert self.policy is not None
        self.n_told += 1
        if observation.has_value and observation.value is not None and self._is_at_target(pull):
            self.at_target.add(0, 0, float(observation.value))
        if self.n_told > self._n_repeated:
            self.policy.tell(pull, observation)
        else:
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                self.policy.tell(pull, observation)
            for warning in given:
                if self._is_news(warning.category, str(warning.message)):
                    warnings.warn(str(warning.message), warning.category, stacklevel=6)
        if self.listener is not None:
            self.listener(trial_number, pull, observation)

    def _is_news(self, category: type[Warning], message: str) -> bool:
        """Return whether a warning says what the earlier policy's warnings did not."""
        if issubclass(category, ArmWithdrawnWarning):
            who = message.split(" leaves the race")[0]
            return not any(left.startswith(f"{who}: ") for left in self.warned)
        return issubclass(category, NoiseContradictedWarning) and CONTRADICTED not in self.warned

    def _warn_once(self, about: str, message: str, category: type[Warning] = UserWarning) -> None:
        if about not in self.warned:
            self.warned.add(about)
            warnings.warn(message, category, stacklevel=6)

    def _is_of_arm(self, trial: FrozenTrial, arm: int, whole: bool) -> bool:
        """Return whether a finished trial evaluated its arm; arms learn from it."""
        self._check_arm(trial, arm)
        if self.arms.adopt(arm, trial.params, trial.distributions, whole=whole):
            return True
        self._warn_once(
            f"arm of trial {trial.number}",
            f"trial {trial.number} evaluated {trial.params} instead of arm {arm}, "
            f"{self.arms.params(arm)}: it does not count. Suggest each parameter with the same "
            f"range in every trial, and do not fix parameters of a race.",
        )
        return False

    def _check_arm(self, trial: FrozenTrial, arm: int) -> None:
        if not 0 <= arm < len(self.arms):
            raise ValueError(
                f"trial {trial.number} belongs to arm {arm}, but arms has {len(self.arms)} "
                f"entries; resume the study with the arms it was begun with."
            )

    def _is_of_block(self, pull: Pull, trial: FrozenTrial) -> bool:
        if self._replicates is None:
            return True
        if pull.block is None:
            self._warn_once(
                "replicate",
                f"trial {trial.number} was begun without replicate={self._replicates.name!r}: it "
                f"does not count, nor does any other such trial.",
            )
            return False
        if self._replicates.is_of(pull.block, trial):
            return True
        self._warn_once(
            f"replicate of trial {trial.number}",
            f"trial {trial.number} was evaluated with "
            f"{self._replicates.name}={trial.params[self._replicates.name]!r}, which is not what "
            f"the sampler chose: it does not count. Do not fix the replicate.",
        )
        return False

    def _owner_of(self, arm: int, trial: FrozenTrial) -> int:
        """Return the arm that a whole trial counts for; equal arms are merged into the first."""
        never_asked = self.arms.never_asked(arm, trial.params)
        if never_asked:
            self._warn_once(
                "names",
                f"arms contain {', '.join(map(repr, never_asked))}, which the objective did not "
                f"ask for in trial {trial.number}; it asked for {sorted(trial.params)}. Rename it "
                f"in the arms, or suggest it in the objective.",
            )
        owner = self.arms.owner(arm, trial.params)
        if owner != arm and self.policy is not None:
            self._warn_once(
                "merging",
                f"arms {owner} and {arm} were drawn equal, {self.arms.params(owner)}: they are "
                f"merged, and so will be others. The space is small: arms={{name: distribution}} "
                f"races all of it.",
            )
            self.policy.withdraw(arm, duplicate_of=owner)
        return owner

    def _warn_of_pruning(self, trial: FrozenTrial, instead_of: str) -> None:
        """Say once that a pruned trial, without a value `instead_of`, counts as failed."""
        self._warn_once(
            "pruning",
            f"trial {trial.number} was pruned: it gave no value {instead_of}, and counts as "
            f"failed. Make the study with pruner=optuna.pruners.NopPruner(); the race itself "
            f"decides what is not worth finishing.",
        )
