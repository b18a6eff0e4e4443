"""The base of all samplers: runs an experiment on a study, whatever its kind."""

import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import MOST_SEED, check_count, check_instance, check_limit
from mfhpo.experiment import Answer, Assignment, Done, Refused, Wait
from mfhpo_optuna.arguments import Settings
from mfhpo_optuna.samplers import answer as answers
from mfhpo_optuna.samplers.studies import Studies, stop
from mfhpo_optuna.samplers.suggestions import arms_only_study, value_for
from mfhpo_optuna.study.arms import enqueue_baseline
from mfhpo_optuna.study.distributions import check_choices, did_you_mean, drawn
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.loop.ends import call_at_end, end_with_optimize, mark_if_spoilt, note_end
from mfhpo_optuna.study.loop.report import ProgressLike, ProgressReport
from mfhpo_optuna.study.study_experiment import Reply, StudyExperiment
from mfhpo_optuna.study.trials.attributes import NO_ANSWER, parameters_before, write_attribute

# Seconds between two looks, and those that a trial waits at most, or as long as was waited before;
# the next one goes on waiting.
_PERIOD, _LONGEST_WAIT = 0.2, 10.0

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class StudySampler(BaseSampler):
    """Runs an experiment on a study: each trial is one evaluation, and all state is in the trials.

    Studies note the constructor's `arguments` in ``mfhpo:sampler``. A `proposer` draws the
    configurations; for others see `mfhpo_optuna.samplers.options.SamplerOptions`.
    """

    _experiment: type[StudyExperiment] = StudyExperiment
    # What `mfhpo.racing.options.runs` sets.
    _policy_class: Callable[..., Any]
    _options_type: type
    _defaults: dict[str, Any]

    def __init__(
        self,
        kind: Kind,
        arguments: Mapping[str, Any],
        *,
        proposer: BaseSampler | None = None,
        lease: float | None = None,
        progress: ProgressLike = None,
        seed: int | None = None,
    ) -> None:
        right = "a sampler of Optuna such as TPESampler() or None"
        check_instance("proposer", proposer, BaseSampler | None, right)
        if isinstance(proposer, (GridSampler, BruteForceSampler)):
            raise TypeError(
                f"proposer={type(proposer).__name__} enumerates a whole space and cannot draw "
                f"single configurations; give another one such as RandomSampler()."
            )
        self.kind, self.arguments, self._proposer = kind, dict(arguments), proposer
        self._lease = check_limit("lease", lease)
        self._seed = None if seed is None else check_count("seed", seed, 0, MOST_SEED)
        self._progress = ProgressReport(progress)
        self._settings = Settings(self, self.arguments)
        self._studies = Studies(self._new, self._settings, kind.notes())

    def recommendation(self, study: optuna.Study) -> Answer:
        """Return the best answer so far; ValueError if no trial has told the fidelity's levels.

        The study was run with this sampler, or with one made with the same arguments.
        """
        with self._studies.lock:
            return self._begun(study, "there is nothing to recommend yet.").answer()

    def known(self, study: optuna.Study) -> StudyExperiment:
        """Return what is known about a study, for pictures and reports; only to be read."""
        with self._studies.lock:
            return self._read(study)

    def reader(self) -> "StudySampler":
        """Return a sampler like this one that knows no study, to read beside other threads."""
        reader = copy(self)
        reader._studies = Studies(reader._new, self._settings, self.kind.notes())
        return reader

    def objection_to(self, study: optuna.Study) -> str:
        """Return why the sampler cannot run the study, and what to do; "" if it can."""
        check_instance("study", study, optuna.Study, "an optuna.Study")
        if objection := self.kind.objection_to(study):
            return objection
        if self.kind.has_one_objective and len(study.directions) > 1:
            return (
                f"{type(self).__name__} is for one objective, and the study is multi-objective: it "
                f"has {len(study.directions)} directions. If each objective is that of a player, "
                f"use NashSampler; else return one number, such as a weighted sum of the "
                f"objectives, and make the study with direction=."
            )
        if isinstance(study.pruner, HyperbandPruner):
            return (
                f"{type(self).__name__} does not go with HyperbandPruner, which shows a sampler "
                f"one bracket's trials only. The sampler itself decides which trials go up to the "
                f"target: make the study with pruner=optuna.pruners.NopPruner()."
            )
        return ""

    def _begun(self, study: optuna.Study, consequence: str) -> StudyExperiment:
        """Return what is known about a study; ValueError if that is nothing yet."""
        known, fidelity = self.known(study), self.kind.fidelity
        if known.policy is None and fidelity is not None:
            raise ValueError(
                f"study {study.study_name!r} has no finished trial that asked for the fidelity "
                f"{fidelity.name!r}, so {consequence}"
            )
        return known

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that `proposer` draws together; none without it."""
        self._check_study(study)
        with self._studies.lock:
            known = self._studies.of(study)
            note = known.under_way.claims.get(trial.number)
            if self._proposer is None or note is None:
                return {}
            if known.is_resumed:
                # A seeded sampler would repeat the draws that an earlier process made.
                self._proposer.reseed_rng()
                known.is_resumed = False
            values = known.trials.values
            if values.is_declared or values[note.arm].params:
                return {}  # another trial has decided what the arm is
            view = arms_only_study(study, known)
            space = self._proposer.infer_relative_search_space(view, trial)
            return {name: d for name, d in space.items() if name not in self.kind.owned}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values of the parameters in the search space."""
        if not search_space:
            return {}
        if self._proposer is not None:
            with self._studies.lock:
                view = arms_only_study(study, self._studies.of(study))
            return self._proposer.sample_relative(view, trial, search_space)
        return {
            name: self.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of a parameter: the configuration's, or what the sampler decides."""
        check_choices(param_name, param_distribution)
        if refusal := self._studies.refusal(study, trial):
            raise ValueError(refusal)
        with self._studies.lock:
            return self._value_for(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose what the trial evaluates, and note it where other workers see it."""
        end_with_optimize(study, trial)
        if type(study.pruner) is MedianPruner and self.kind.replaces_pruner:
            study.pruner = NopPruner()  # nobody asked for Optuna's default
            _logger.info(
                f"study {study.study_name!r} goes on without Optuna's MedianPruner: its sampler "
                f"decides which trials go up to the target."
            )
        if self.objection_to(study):
            return  # the first suggestion raises; raising here would leave the trial running
        enqueue_baseline(study, self.kind.baseline)
        call_at_end(study, self, lambda error: self._ended(study, error))
        try:
            refusal = self._studies.objection_to_others(study, trial.number, self._sleep)
            reply = None if refusal else self._reply(study, trial)
        except ValueError as error:  # raising here would leave the trial running
            refusal = str(error)
        if refusal:
            self._studies.refuse(study, trial, refusal)
            return
        if isinstance(reply, Done):
            self._end(study, trial)
        elif isinstance(reply, Refused):
            names = self.known(study).trials.names()
            foreign = (name for name in parameters_before(trial) or {} if name not in names)
            warnings.warn(
                f"trial {trial.number} was enqueued, and {reply.why}: it runs, but does not count."
                f"{did_you_mean(next(foreign, ''), names)}",
                stacklevel=4,
            )

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Learn from the trial, and add the answer so far; at the end stop the study."""
        note_end(study, trial, state, values)
        if self.objection_to(study):
            return
        mark_if_spoilt(study, trial, state)
        with self._studies.lock:
            if self._studies.refusal(study, trial):
                self._mark_as_no_answer(study, trial)
                return
            known = self._read(study)
            with self._studies.whole(study):
                if known.end(study, trial, state, values):
                    self._mark_as_no_answer(study, trial)
            self.kind.check(known, trial, state)
            known.give_up_lost(study)
            if known.policy is None:
                self._stop_if_hopeless(study, known)
                return
            self._progress.show(lambda: self.kind.progress(known))
            if not (is_over := known.is_over):
                answers.add_so_far(study, known)
        if is_over:
            self._conclude(study, trial)
            stop(study)

    def _reply(self, study: optuna.Study, trial: FrozenTrial) -> Reply:
        """Return what a trial is to do, which is written down; wait while that may change.

        A trial waits as long as those before it together: ``optimize`` looks at its timeout in
        between, and few trials wait. Nothing waits under ask and tell.
        """
        until: float | None = None
        while True:
            with self._studies.lock:
                known = self._read(study)
                known.give_up_lost(study)
                reply = known.reply_to(trial)
                may_wait = study._thread_local.in_optimize_loop and parameters_before(trial) is None
                if isinstance(reply, Assignment):
                    known.waits_since = None
                    with self._studies.whole(study):
                        if not known.claim(study, trial, reply) and may_wait:
                            why = "others evaluate the same"
                            known.note_loss(study, trial, why, is_withdrawn=True)
                            known.idle.add(trial.number)
                    return reply
                now = known.under_way.clock()
                if not isinstance(reply, Wait) or not may_wait:
                    self._set_aside(study, known, trial, reply)
                    return reply
                if not known.is_worth_waiting:
                    return Done(reply.why)
                if until is None:
                    _logger.info(f"nothing is evaluated for now: {reply.why}")
                    known.waits_since = known.waits_since or now
                    until = now + max(_LONGEST_WAIT, now - known.waits_since)
                if now >= until or study._stop_flag:
                    # The clock of one that waited would tell what it costs wrongly.
                    known.idle.add(trial.number)
                    return reply
            self._sleep(_PERIOD)

    def _set_aside(
        self, study: optuna.Study, known: StudyExperiment, trial: FrozenTrial, reply: Reply
    ) -> None:
        """Let a trial that begins count for nothing, and say why under ask and tell."""
        for key, value in self.kind.attributes_outside(known, trial).items():
            write_attribute(study, trial, key, value)
        in_loop = study._thread_local.in_optimize_loop
        if isinstance(reply, Wait) or (isinstance(reply, Done) and not in_loop):
            warnings.warn(
                f"trial {trial.number} has nothing to evaluate, because "
                f"{reply.why}: it runs, but does not count. Stop asking when "
                f"sampler.{self.kind.answered_by}(study).finished.",
                stacklevel=5,
            )

    def _end(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """End the loop when nothing is left to begin, though trials may still be under way."""
        if not stop(study):
            return
        with self._studies.lock:
            known = self._studies.of(study)
            known.over.add(trial.number)
            is_last = known.is_over or not known.under_way.goes_on
        if parameters_before(trial) is not None:
            warnings.warn(
                f"trial {trial.number} was enqueued after the race ended: it is pruned. Enqueue "
                f"configurations before the race, or begin another study.",
                stacklevel=5,
            )
        if is_last:
            self._conclude(study, trial)

    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        known = self._studies.of(study)
        if trial.number in known.over:
            raise optuna.TrialPruned("the race is over; see sampler.recommendation(study)")
        if trial.number in known.idle:
            raise optuna.TrialPruned("there was nothing to evaluate; the next trial goes on")
        note, kind = known.under_way.claims.get(trial.number), self.kind
        # Without a block, it began when the study had no replicate, and does not count.
        if note is None or (name == kind.replicate and note.block is None):
            return drawn(self._seed or 0, trial.number, name, distribution)
        return value_for(study, known, trial, note, name, distribution, self._proposer)

    def _conclude(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Add the trial that ``study.best_trial`` is to show, unless another worker has done so."""
        try:
            answers.wait_for_others(study, trial, self._sleep)
        finally:  # also after Ctrl-C
            with self._studies.lock:
                known = self._read(study)
                answers.add_answer(study, known)
                self._progress.show(lambda: self.kind.progress(known), is_last=True)

    def _mark_as_no_answer(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Keep a single noisy value from being the best trial, which must break no constraint."""
        if self.kind.has_one_objective:  # only a running `Trial` has a public method for it
            study._storage.set_trial_system_attr(trial._trial_id, f"constraints:{NO_ANSWER}", 1.0)

    def _stop_if_hopeless(self, study: optuna.Study, known: StudyExperiment) -> None:
        if known.is_over and stop(study):
            why = known.answer().reason
            text = f"the study is stopped: {why}; mend the objective, and run it again."
            warnings.warn(text, stacklevel=5)

    def _ended(self, study: optuna.Study, error: BaseException | None) -> None:
        """End what is shown; say once what is left, if an `optimize` ended before the end."""
        with self._studies.lock:
            self._progress.end()
            # Until the next one, others may run the study, with other arguments.
            self._studies.leave(study)
            # An error of the objective says more than what would have been left.
            is_told = error is None or isinstance(error, KeyboardInterrupt)
            known = self._studies.of(study) if is_told and self._studies.has(study) else None
            if known is None or known.policy is None or known.is_over:
                return
            progress = self.kind.progress(known)
            if progress.has_end and "cut short" not in known.trials.warned:
                known.trials.warned.add("cut short")
                _logger.warning(
                    f"optimize() ended before its sampler did, at {progress.spending}. Call "
                    f"study.optimize again to go on; "
                    f"print(study.sampler.{self.kind.answered_by}(study)) tells what is known."
                )

    def _check_study(self, study: optuna.Study) -> None:
        if objection := self.objection_to(study):
            raise ValueError(objection)

    def objection_to_others(self, study: optuna.Study) -> str:
        """Return why this worker must not run a study beside others; else note how it is run."""
        return self._studies.objection_to_others(study, -1, self._sleep)

    def _read(self, study: optuna.Study) -> StudyExperiment:
        """Return what is known about a study, with its news; the lock is held."""
        known = self._studies.read(study)
        if known.policy is not None and not known.announced:
            known.announced = True
            if words := self.kind.announcement(known):
                _logger.info("study %r: %s.", study.study_name, words)
        return known

    def _new(self, study: optuna.Study) -> StudyExperiment:
        self._check_study(study)
        # Without a seed, the study's name gives one that all its workers agree on.
        seed = zlib.crc32(study.study_name.encode()) if self._seed is None else self._seed
        return self._experiment(study, self.kind, seed, self._lease, self._settings.digest)

    _sleep: Callable[[float], None] = staticmethod(time.sleep)
