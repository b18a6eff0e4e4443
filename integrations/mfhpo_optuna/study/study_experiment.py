"""A study as an experiment: its trials are the events, and it says what a trial does next."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Observation
from mfhpo.experiment import (
    Answer,
    Assignment,
    Concluded,
    Done,
    Event,
    Experiment,
    Lost,
    Refused,
    Wait,
)
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.search import BudgetedSearch
from mfhpo_optuna.study.arms import Known, is_baseline
from mfhpo_optuna.study.distributions import described, index_of
from mfhpo_optuna.study.events import Translation
from mfhpo_optuna.study.forgotten import ForgottenReplicateWarning
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.trials.attributes import (
    ARM_KEY,
    CONCLUDED_KEY,
    END_KEY,
    LIMIT_KEY,
    LOST_KEY,
    SECONDS_KEY,
    EndNote,
    PullNote,
    certificate_of,
    parameters_before,
    read_attribute,
    write_attribute,
)
from mfhpo_optuna.study.trials.processes import worker_name
from mfhpo_optuna.study.trials.under_way import End, TrialNews, UnderWay, end_of, limit_of, lost_of

Reply: TypeAlias = Assignment | Wait | Done | Refused

_CHOICES = 8  # of a trial that other workers get in the way of


class StudyExperiment:
    """Reads a study's trials into an experiment, and writes claims and ends to them."""

    translation: type[Translation] = Translation  # makes events of its trials

    def __init__(
        self, study: optuna.Study, kind: Kind, seed: int, lease: float | None, arguments: str
    ) -> None:
        self.kind = kind
        self.trials = self.translation(study, kind, seed, arguments)
        self.sign = self.trials.sign  # -1 where the study minimises, whose values are mirrored
        common = {"seed": seed, "sign": self.sign, "lease_seconds": lease, "describe": described}
        self.experiment = Experiment(kind.settings(common))
        self.certificates: list[FrozenTrial] = []  # the trials that the sampler added as answers
        self.at_target = PullStatistics(1, 1)  # of all values there, maximised
        self.n_told_before = 0  # results, when it was last looked whether they are news
        self.over: set[int] = set()  # running trials that began after the end
        self.idle: set[int] = set()  # trials that only waited for others, and evaluate nothing
        self.waits_since: float | None = None
        self.announced = False  # whether the log has said how the study is run
        self.is_resumed = False  # whether trials were run before, or elsewhere
        self.shown: tuple[int, list[FrozenTrial]] | None = None  # to the sampler of the arms
        self.n_outside = 0  # trials with a value that are none of this experiment's
        self.forgotten = kind.forgotten()
        self.levels_of: dict[int, int] = {}  # of claims made before levels were known
        self._looks: dict[int, object] = {}
        self._ended: dict[int, End] = {}  # told here before the study says so
        self._lost: dict[int, tuple[FrozenTrial, PullNote, End]] = {}  # whom others may repeat
        self._is_stale, self._is_new = False, True
        self._n_counted = 0  # results that `at_target` has
        self._news = TrialNews()
        self.under_way = UnderWay(
            self._news, lease, lambda note: kind.cost_of(note.fidelity, self.trials.levels)
        )

    def read(self, study: optuna.Study) -> bool:
        """Take in what is new; False if all must be read anew.

        The study was deleted and made again then, or a trial has ended otherwise than was told.
        """
        news = None if self._is_stale else self._news.read(study)
        is_right = news is not None and self._take_in(news)
        self._is_stale |= not is_right
        return is_right

    def _take_in(self, news: list[FrozenTrial]) -> bool:
        """Take in trials; False if one has ended otherwise than was told."""
        events: list[Event] = []
        for trial in () if self.trials.knows_all else news:  # all claims are read by these
            note = self.trials.note_of(trial) if trial.distributions else None
            events += [] if note is None else self.trials.found(trial, note)
        for trial in news:
            noted = trial.system_attrs
            if "failed_trial" in noted:  # it takes the place of losses that were read before
                retried = {noted["failed_trial"], *(noted.get("retry_history") or ())}
                self.trials.retried |= retried
                again = sorted(retried & self._lost.keys())
                events += [self.trials.outcome(*self._lost.pop(number)) for number in again]
        for trial in news:
            if trial.state.is_finished() and trial.number in self._ended:
                told, says = self._ended.pop(trial.number), end_of(trial)
                if (told.state, told.values) != (says.state, says.values):
                    return False
                continue
            events += self._events_of(trial)
        if self._is_new and len(events) > 1:
            self.experiment = Experiment.replay(self.experiment.settings, events)
            self.is_resumed = any(trial.state.is_finished() for trial in news)
        else:
            for event in events:
                self.experiment.apply(event)
        self._is_new = False
        return True

    def take_over(self, earlier: StudyExperiment) -> None:
        """Go on in the place of an experiment that has to be read anew."""
        for name in ("over", "idle", "announced", "waits_since"):
            setattr(self, name, getattr(earlier, name))
        self.trials.warned = earlier.trials.warned
        self.under_way.begun_here = earlier.under_way.begun_here
        self._news.seen = earlier._news.seen  # since when trials run

    def _events_of(self, trial: FrozenTrial) -> list[Event]:
        if trial.state == TrialState.RUNNING:
            noted = map(trial.user_attrs.get, (ARM_KEY, LIMIT_KEY, LOST_KEY))
            look = len(trial.params), repr(list(noted))
            if self._looks.get(trial.number) == look:
                return []
            self._looks[trial.number] = look
        elif not trial.state.is_finished():
            return []
        elif certificate_of(trial) is not None:
            self.certificates.append(trial)
            ended = read_attribute(trial, CONCLUDED_KEY)
            if ended is None or ended["study"] != self.trials.name:
                return []
            open = tuple(map(str, ended["open"]))
            return [Concluded(id=str(trial.number), order=ended["order"], open=open)]
        note = self.trials.note_of(trial)
        begun = None if note is None else self.trials.begun(trial, note)
        if note is None or begun is None:
            self.n_outside += trial.state == TrialState.COMPLETE
            return []
        lost = lost_of(trial)
        events: list[Event] = [begun] if lost is None else [begun, lost]
        if trial.state.is_finished():
            return [*events, *self._end(trial, note, end_of(trial))]
        if trial.number not in self._ended:  # which the study may not say yet
            self.under_way.see(trial, note)
        self.trials.values.see(self.trials.arm_of(note), trial, trial.params)
        return [*events, *self.trials.found(trial, note)]

    def _end(self, trial: FrozenTrial, note: PullNote, end: End) -> list[Event]:
        self._looks.pop(trial.number, None)
        self.under_way.end(trial, note, end.seconds)
        known = self.trials.values[self.trials.arm_of(note)]
        known.first = known.first or trial
        if self.kind.replicate is None and self.kind.has_one_objective:
            before, value = self.forgotten.notice, end.values[0] if end.values else None
            self.forgotten.learn(trial.params, trial.distributions, value)
            if self.forgotten.notice != before:
                self.trials.warn(
                    "forgotten replicate", self.forgotten.notice, ForgottenReplicateWarning
                )
        found = self.trials.found(trial, note)
        outcome = self.trials.outcome(trial, note, end)
        if isinstance(outcome, Lost) and not outcome.will_retry:
            self._lost[trial.number] = trial, note, end
        self._is_stale |= self.trials.values.is_overturned
        return [*found, outcome]

    def reply_to(self, trial: FrozenTrial) -> Reply:
        """Return what a trial that begins is to do; one that repeats a lost trial does the same."""
        is_retry = "failed_trial" in trial.system_attrs
        note, begun = self.trials.read_note(trial) if is_retry else None, None
        if note is not None and note.study == self.trials.name:
            begun = self.trials.begun(trial, note)
        if begun is None:
            return self._next(trial)
        names = "configuration", "draw", "point", "block", "limit", "purpose", "shortlist"
        level = -1 if begun.levels is None else begun.levels[0]
        same = {name: getattr(begun, name) for name in names}
        return Assignment(level=level, replicate=0, origin="retry", **same)

    def _next(self, trial: FrozenTrial, moving: str | None = None) -> Reply:
        fixed = parameters_before(trial)
        if not fixed:
            return self.experiment.next(moving=moving)
        fidelity, level = self.kind.fidelity, None
        if fidelity is not None and fidelity.name in fixed and self.trials.levels:
            level = index_of(fixed[fidelity.name], self.trials.levels)
            if level is None:
                return Refused(
                    f"{fidelity.name}={fixed[fidelity.name]!r} is none of the levels "
                    f"{list(self.trials.levels)}; enqueue one of the levels, or leave "
                    f"{fidelity.name!r} to the sampler"
                )
        elif self.trials.levels and is_baseline(trial):
            level = len(self.trials.levels) - 1
        part = self.trials.values.configuration(fixed), level
        reply = self.experiment.next(fixed=part, moving=moving)
        if (own := limit_of(trial)) is None or not isinstance(reply, Assignment):
            return reply
        return replace(reply, limit=own)  # enqueued with it

    def claim(self, study: optuna.Study, trial: FrozenTrial, assignment: Assignment) -> bool:
        """Write down what a trial evaluates, and move it while another claim is equal.

        Others may have chosen the same meanwhile: what they wrote before is earlier, and what they
        wrote without knowing this one may not move any more. False if nothing else is to be done.
        """
        self.under_way.begun_here[trial.number] = self.under_way.clock()
        for _ in range(_CHOICES):
            is_enqueued_draw = assignment.origin == "enqueued" and assignment.draw is not None
            in_block_or_chosen = assignment.block is not None or assignment.purpose != "given"
            if assignment.origin != "retry" and (is_enqueued_draw or in_block_or_chosen):
                self.read(study)  # others may claim the same at this moment
            self._write_claim(study, trial, assignment)
            self.read(study)
            id = str(trial.number)
            if id not in self.experiment.open:
                return True
            claim = self.experiment.settle(id)
            if claim is not None and claim.order <= self.experiment.concluded:
                continue  # others have answered meanwhile, without this one
            if claim is not None and not self.experiment.is_overtaken(id):
                return True
            other = self._next(trial, moving=id)
            if not isinstance(other, Assignment):
                return False
            earlier, assignment = assignment, other
            # How often it was made is no other choice.
            if replace(other, repeat=0, replicate=0) == replace(earlier, repeat=0, replicate=0):
                return True
        return True

    def _write_claim(self, study: optuna.Study, trial: FrozenTrial, assignment: Assignment) -> None:
        note = self.trials.note_for(trial, assignment, self.experiment.order)
        # Whoever sees the claim is to see the limit, too.
        if assignment.limit is not None:
            write_attribute(study, trial, LIMIT_KEY, assignment.limit)
        write_attribute(study, trial, ARM_KEY, note.to_dict())
        for event in self._events_of(trial):
            self.experiment.apply(event)

    def end(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Any) -> bool:
        """Take in a trial that ends now; return whether it was an evaluation, and so no answer."""
        fidelity = self.kind.fidelity
        is_single = fidelity is None or fidelity.name in trial.params
        self.over.discard(trial.number)
        note = self.under_way.claims.get(trial.number)
        if note is None:
            return is_single
        seconds: float | None = read_attribute(trial, SECONDS_KEY)
        if seconds is None or not self.kind.trusts_seconds(trial):
            if seconds is None or trial.number in self.under_way.begun_here:
                seconds = self.under_way.seconds_of(trial)
            if self.kind.in_seconds:  # then they are the cost
                write_attribute(study, trial, SECONDS_KEY, seconds)
        mark = EndNote(trial.number, self.experiment.order, worker_name(), state.name)
        told = tuple(values) if values is not None and state == TrialState.COMPLETE else None
        end = End(state, told, mark.order, mark.worker, seconds)
        write_attribute(study, trial, END_KEY, mark.to_dict())
        self._is_stale |= trial.number in self._ended  # its end could not be stored before
        self._ended[trial.number] = end
        for event in self._end(trial, note, end):
            self.experiment.apply(event)
        return is_single

    def give_up_lost(self, study: optuna.Study) -> None:
        """Note on trials that their workers are dead, or that their leases are over."""
        for trial, why, is_sure in self.under_way.lost(self.experiment.runner.counts_late):
            if str(trial.number) in self.experiment.open:
                with suppress(UpdateFinishedTrialError):  # it has ended after all
                    self.note_loss(study, trial, why, is_sure=is_sure)

    def note_loss(self, study: optuna.Study, trial: FrozenTrial, why: str, **how: Any) -> None:
        """Note on a trial that it is lost, or evaluates nothing."""
        mark = EndNote(trial.number, self.experiment.order, worker_name(), why=why, **how)
        write_attribute(study, trial, LOST_KEY, mark.to_dict())
        if (lost := lost_of(trial)) is not None:
            self.experiment.apply(lost)

    @property
    def is_worth_waiting(self) -> bool:
        """True if a trial is under way whose worker is not dead for all that is known."""
        return any(str(number) in self.experiment.open for number in self.under_way.waited_for())

    @property
    def searches(self) -> bool:
        """True if cheap levels choose which configurations are compared."""
        return isinstance(self.policy, BudgetedSearch)

    @property
    def is_over(self) -> bool:
        """True if nothing is left to do."""
        return self.experiment.finished or self.experiment.is_spent

    def answer(self) -> Answer:
        """Return the best answer so far."""
        answer = self.experiment.answer()
        notices = [self.forgotten.notice] if self.forgotten.notice else []
        if answer.arm is not None:
            answer = replace(answer, params=self.params_of(answer))
        if self.n_outside:
            which = "1 trial does" if self.n_outside == 1 else f"{self.n_outside} trials do"
            notices.append(
                f"{which} not count, because this experiment has not chosen what they are"
            )
        if not notices:
            return answer
        certificate = answer.certificate
        if certificate is not None:
            certificate = replace(certificate, notices=(*certificate.notices, *notices))
        return replace(answer, notices=(*answer.notices, *notices), certificate=certificate)

    def params_of(self, answer: Answer) -> dict[str, Any]:
        """Return all that is known about the configuration of an answer."""
        if answer.arm is None:
            return {}
        what = self.values_of(answer.arm)
        named = what.given | what.distributions.keys()
        return {name: value for name, value in what.params.items() if name in named}

    def values_of(self, arm: int) -> Known:
        """Return what is known about an arm of the experiment: an entry of its list, or a draw."""
        configurations = self.experiment.runner.configurations
        if self.trials.values.is_declared:
            return self.trials.values[configurations.entries.index(arm)]
        number = configurations.draw_of(arm)
        return self.trials.values[arm if number is None else number]

    @property
    def policy(self) -> Any:
        """The policy, for progress and pictures; None until there is one."""
        return getattr(self.experiment.runner, "policy", None)

    @property
    def n_told(self) -> int:
        """Number of results that were learned; `at_target` is brought up to date."""
        history, target = self.experiment.history(), self.experiment.runner.n_levels - 1
        for result in history[self._n_counted :]:
            seen = result.observation
            value = seen.value if isinstance(seen, Observation) and seen.has_value else None
            if value is not None and result.pull.fidelity == target:
                self.at_target.add(0, 0, float(value))
        self._n_counted = len(history)
        return self._n_counted
