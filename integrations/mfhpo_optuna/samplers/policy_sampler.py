"""The sampler that runs a policy on a study, whatever the policy decides of a trial."""

import abc
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import HyperbandPruner
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_instance, shown
from mfhpo_optuna.samplers.answer import (
    Answer,
    add_answer,
    add_answer_so_far,
    claims_the_same,
    is_news,
    is_said,
    wait_for_others,
)
from mfhpo_optuna.samplers.delegate import ArmsOnlyStudy, arms_only_study
from mfhpo_optuna.samplers.study_sampler import StudySampler, stop
from mfhpo_optuna.study.arms import Arms, ArmsLike
from mfhpo_optuna.study.attributes import ARM_KEY, NO_ANSWER, parameters_before, write_attribute
from mfhpo_optuna.study.levels import contains
from mfhpo_optuna.study.loop.report import ProgressLike
from mfhpo_optuna.study.loop.storage_errors import mark_if_spoilt
from mfhpo_optuna.study.places import drawn
from mfhpo_optuna.study.study_race import End, StudyRace

RaceT = TypeVar("RaceT", bound=StudyRace)

# Seconds between two looks at trials that are waited for: short beside a trial, long beside a read.
_PERIOD = 0.2

# Seconds that a trial waits at most, or as long as was waited before; the next one goes on waiting.
_LONGEST_WAIT = 10.0

_CHOICES = 8  # of a trial that other workers get in the way of

_CUT_SHORT = "cut short"  # among what the user was told

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class PolicySampler(StudySampler[RaceT]):
    """Runs a policy on a study: each trial is one pull, and the state is the study's trials.

    `owned` are the parameters that the sampler itself decides, which no arm may contain.
    For the other arguments see `IISESampler` and `SamplerOptions`.
    """

    _drawn_by = "arm_sampler"  # the option
    # Of a class that runs a policy with options; see `mfhpo.racing.options.runs`.
    _policy_class: Callable[..., Any]
    _options_type: type
    _defaults: dict[str, Any]

    def __init__(
        self,
        *,
        owned: Collection[str],
        arms: ArmsLike,
        arm_sampler: BaseSampler | None,
        lease: float | None,
        progress: ProgressLike,
        seed: int | None,
    ) -> None:
        Arms(arms, owned, 0)  # raises for bad arms before any study exists
        super().__init__(lease, progress, seed)
        if arm_sampler is not None and not isinstance(arm_sampler, BaseSampler):
            raise TypeError(
                f"{self._drawn_by} must be a sampler of Optuna such as TPESampler() or None, got "
                f"{shown(arm_sampler)}."
            )
        if isinstance(arm_sampler, (GridSampler, BruteForceSampler)):
            raise TypeError(
                f"{self._drawn_by}={type(arm_sampler).__name__} enumerates a whole space and "
                f"cannot draw single configurations; give another one such as RandomSampler(), or, "
                f"to a sampler with arms, arms={{name: distribution}}: all of a small space."
            )
        self._owned = tuple(owned)
        self._arms = arms
        self._arm_sampler = arm_sampler

    # What differs from sampler to sampler.

    def _seconds_of(
        self, study: optuna.Study, race: RaceT, trial: FrozenTrial, state: TrialState
    ) -> float | None:
        """Return how long a trial that ends now took, and note it for later readers."""
        return race.under_way.seconds_since_beginning(trial)

    @abc.abstractmethod
    def _answer(self, race: RaceT) -> Answer:
        """Return the race's answer at the moment."""

    @abc.abstractmethod
    def _is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer, as recorded, says all that this one says."""

    def _values_of_arms(self, race: RaceT) -> list[tuple[int, float]]:
        """Return arms and their comparable values, for the sampler that draws arms."""
        return []

    # What Optuna calls.

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that `arm_sampler` draws together; none without it."""
        self._check_study(study)
        with self._lock:
            race = self._of(study)
            pull = race.pull(trial.number)
            if self._arm_sampler is None or pull is None:
                return {}
            if race.arms.declared or race.arms.params(pull.arm):
                return {}  # another trial has decided what the arm is
            space = self._arm_sampler.infer_relative_search_space(self._arms_only(study), trial)
            return {name: d for name, d in space.items() if name not in self._owned}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values of the parameters in the search space."""
        self._check_study(study)
        if not search_space:
            return {}
        if self._arm_sampler is not None:
            view = self._arms_only(study)
            return self._arm_sampler.sample_relative(view, trial, search_space)
        return super().sample_relative(study, trial, search_space)

    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        race = self._of(study)
        pull = race.pull(trial.number)
        if trial.number in race.over:
            raise optuna.TrialPruned("the race is over; see sampler.recommendation(study)")
        if trial.number in race.idle:
            raise optuna.TrialPruned("there was nothing to evaluate; the next trial goes on")
        if pull is None:
            return self._anything(trial, name, distribution)
        known = race.arms.params(pull.arm)
        if self._arm_sampler is not None and name not in known:
            known[name] = self._arm_sampler.sample_independent(
                self._arms_only(study), trial, name, distribution
            )
        value = race.arms.suggest(pull.arm, name, distribution)
        if contains(distribution, value):
            return value
        if race.arms.declared:
            raise ValueError(
                f"arms[{pull.arm}][{name!r}]={value!r} is not a value of the objective's "
                f"{distribution}; change the arm, or what the objective suggests."
            )
        return self._anything(trial, name, distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the pull that the trial evaluates, and note it where other workers see it."""
        if self.objection_to(study):
            return  # the first suggestion raises; raising here would leave the trial running
        self._watch_for_end(study)
        waited = self._wait(study, trial)
        with self._lock:
            race = self._join(study, trial)
            if race is None:
                return
            if self._is_over(race):
                race = self._in_order(study, race)
            if self._is_over(race) and stop(study):
                race.over.add(trial.number)
                self._write(study, trial, race.attributes_outside(trial))
                self._conclude(study, race, trial)
                self._progress.show(race.progress, is_last=True)
                if "fixed_params" in trial.system_attrs:
                    warnings.warn(
                        f"trial {trial.number} was enqueued after the race ended: it is pruned. "
                        f"Enqueue configurations before the race, or begin another study.",
                        stacklevel=4,
                    )
                return
            pull = None if waited else race.inherited(trial) or race.propose(trial)
            if waited or (pull is None and self._must_wait(study, trial, race)):
                # The clock of one that waited would tell what it costs wrongly.
                race.idle.add(trial.number)
                race.over.discard(trial.number)
            if pull is None:
                self._write(study, trial, race.attributes_outside(trial))
                return
            if self._arm_sampler is not None and race.resumed and not race.reseeded:
                # A seeded sampler would repeat the draws that an earlier process made.
                self._arm_sampler.reseed_rng()
                race.reseeded = True
            race.begin(trial, pull)
            self._write(study, trial, race.attributes(pull))
            if race.avoids_repeats:
                self._give_way(study, trial)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Learn from the trial, and add the answer so far; at the race's end stop the study."""
        if self.objection_to(study):
            return
        mark_if_spoilt(study, trial, state)
        with self._lock:
            if self._refusal(study, trial):
                self._mark_as_no_answer(study, trial)
                return
            race = self._read(study, ending=trial.number)
            value = values[0] if values and state == TrialState.COMPLETE else None
            end = End(state, value, self._seconds_of(study, race, trial, state))

            def finish(race: RaceT) -> bool:
                is_single = race.finish(trial, end)
                race.settle()
                return is_single

            if finish(race):
                self._mark_as_no_answer(study, trial)
            self._check(study, race)
            if race.policy is None:
                return
            self._progress.show(race.progress)
            if self._is_over(race):
                self._conclude(study, race, trial, finish)
                race = self._of(study)
                if self._is_over(race):
                    self._progress.show(race.progress, is_last=True)
                    stop(study)
            elif race.answer_is_stale:
                self._conclude(study, race, trial, finish)
            elif is_news(race):
                race = self._read(study)  # other workers may have said it meanwhile
                add_answer_so_far(study, race, self._answer(race))

    # Helpers.

    def objection_to(self, study: optuna.Study) -> str:
        """Return why the sampler cannot run the study, and what to do; "" if it can."""
        name = type(self).__name__
        check_instance("study", study, optuna.Study, "an optuna.Study")
        if len(study.directions) > 1:
            return (
                f"{name} is for one objective, and the study is multi-objective: it has "
                f"{len(study.directions)} directions. If each objective is that of a player, use "
                f"NashSampler; else return one number, such as a weighted sum of the objectives, "
                f"and make the study with direction=."
            )
        if isinstance(study.pruner, HyperbandPruner):
            return (
                f"{name} does not go with HyperbandPruner, which shows a sampler one bracket's "
                f"trials only. The sampler itself decides which trials go up to the target: make "
                f"the study with pruner=optuna.pruners.NopPruner()."
            )
        return ""

    def _check_study(self, study: optuna.Study) -> None:
        objection = self.objection_to(study)
        if objection:
            raise ValueError(objection)

    def _check(self, study: optuna.Study, race: RaceT) -> None:
        """Raise or warn if the race cannot go on as it is."""

    def _say_if_cut_short(self, read: RaceT) -> None:
        if read.policy is None or self._is_over(read) or _CUT_SHORT in read.warned:
            return
        progress = read.progress()
        if not progress.has_end:
            return
        read.warned.add(_CUT_SHORT)
        leader = "there is no leader"
        if progress.leader:
            not_certified = ", not certified" if read.certifies else ""
            leader = f"the leader is {progress.leader}{not_certified}"
        _logger.warning(
            f"optimize() ended before the race did: {progress.left}. So far {leader}. Call "
            f"study.optimize again to go on; print(study.sampler.recommendation(study)) tells what "
            f"is known."
        )

    def _is_over(self, race: RaceT) -> bool:
        return race.policy is not None and race.policy.finished and not race.waits_for

    def _wait(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Wait while nothing is left to do until trials under way end; False if it is not so.

        A trial waits as long as those before it together: ``optimize`` looks at its timeout in
        between, and few trials wait. Nothing waits under ask and tell.
        """
        with self._lock:
            # As it was left: reading it is only worth it if it waits.
            race = self._of(study)
            reason = self._must_wait(study, trial, race)
            now = time.monotonic()
            since = race.waits_since = (race.waits_since or now) if reason else None
        if since is None:
            return False
        _logger.info(f"nothing is evaluated for now: {reason}")
        until = now + max(_LONGEST_WAIT, now - since)
        try:
            while time.monotonic() < until and not study._stop_flag:
                time.sleep(_PERIOD)
                with self._lock:
                    if not self._read(study).waits_for:
                        break
        except KeyboardInterrupt:
            study.tell(trial.number, state=TrialState.FAIL)  # Optuna would leave it running
            raise
        return True

    def _give_way(self, study: optuna.Study, trial: FrozenTrial) -> None:
        for _ in range(_CHOICES):
            race = self._read(study)
            other = race.give_way(trial)
            if other is None:
                return
            self._write(study, trial, race.attributes(other))

    def _mark_as_no_answer(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Keep a single noisy value from being the best trial, which must break no constraint."""
        # Only a running `Trial` has a public method for it.
        study._storage.set_trial_system_attr(trial._trial_id, f"constraints:{NO_ANSWER}", 1.0)

    def _must_wait(self, study: optuna.Study, trial: FrozenTrial, race: RaceT) -> str:
        """Return why a trial can evaluate nothing now; "" if it can, or was enqueued."""
        is_enqueued = parameters_before(trial) is not None
        return race.waits_for if study._thread_local.in_optimize_loop and not is_enqueued else ""

    def _write(
        self, study: optuna.Study, trial: FrozenTrial, attributes: Mapping[str, Any]
    ) -> None:
        """Tell other workers of a trial, and with a pull which process evaluates it."""
        for key, value in attributes.items():
            by = self._signature() if key == ARM_KEY else {}
            write_attribute(study, trial, key, {**value, **by} if by else value)

    def _read(self, study: optuna.Study, ending: int | None = None) -> RaceT:
        self._check_study(study)
        race = self._of(study)
        if not race.read(study, ending):
            anew = self._anew(study)
            if race.is_disordered:
                anew.take_over(race)
            anew.read(study, ending)
            return anew
        return race

    def _new_arms(self, study: optuna.Study) -> Arms:
        return Arms(self._arms, self._owned, self._seed_of(study))

    def _anything(self, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        return drawn(self._seed or 0, trial.number, name, distribution)

    def _arms_only(self, study: optuna.Study) -> ArmsOnlyStudy:
        with self._lock:
            race = self._of(study)
            return arms_only_study(study, race, self._values_of_arms)

    def _in_order(
        self,
        study: optuna.Study,
        race: RaceT,
        trial: FrozenTrial | None = None,
        finish: Callable[[RaceT], bool] | None = None,
    ) -> RaceT:
        """Return the race as later readers of the study know it: in the order of trials' ends.

        `finish` has it learn of the trial that ends at this moment, which the study does not know.
        That trial comes last; by the clock of its machine it may turn out to have ended earlier.
        """
        race = self._read_on(study, race, trial, finish)
        if race.is_out_of_order:
            race.is_disordered = True
            race = self._read_on(study, race, trial, finish)
        return race

    def _read_on(
        self,
        study: optuna.Study,
        race: RaceT,
        trial: FrozenTrial | None,
        finish: Callable[[RaceT], bool] | None,
    ) -> RaceT:
        """Return the race with what has ended meanwhile; one made anew also learns of `trial`."""
        if trial is None or finish is None:
            return self._read(study)
        now = self._read(study, ending=trial.number if race.is_disordered else None)
        if now is not race:
            finish(now)
        return now

    def _conclude(
        self,
        study: optuna.Study,
        race: RaceT,
        trial: FrozenTrial | None = None,
        finish: Callable[[RaceT], bool] | None = None,
    ) -> None:
        """Add the trial that `best_trial` is to show: the recommended arm.

        `trial` has found that the race is over, as others may have at the same moment. For `finish`
        see `_in_order`. The race may turn out to go on.
        """
        race = self._read_on(study, race, trial, finish)
        was_over, answer = self._is_over(race), self._answer(race)
        if trial is not None and answer.arm is not None:
            goes_on = bool(race.chosen_by(trial.number))
            if is_said(race, answer, claims_the_same if goes_on else self._is_repeat):
                return
            try:
                wait_for_others(study, trial)
            except KeyboardInterrupt:
                add_answer(study, race, answer, self._is_repeat)
                if trial.number in race.over:  # Optuna would leave one that has not begun running
                    study.tell(trial.number, state=TrialState.FAIL)
                raise
        race = self._in_order(study, race, trial, finish)
        if self._is_over(race) or not was_over:
            add_answer(study, race, self._answer(race), self._is_repeat)
