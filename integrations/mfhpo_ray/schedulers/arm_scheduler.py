"""What our schedulers share: they hold trials back, and decide which one to start or go on with.

Ray starts whatever is PENDING, in the order of arrival. So these schedulers set what arrives to
PAUSED, and name the trial to start at every step of Ray's loop.
"""

from __future__ import annotations

import abc
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ray.air.constants import TRAINING_ITERATION
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_names
from mfhpo.experiment import Answer, Joined
from mfhpo.experiment.kinds.runner import Settings
from mfhpo_ray.experiment.journal import SHARED, EventLog, Journal, events_in
from mfhpo_ray.experiment.processes import (
    can_be_saved,
    check_reuse,
    give_folder,
    is_over_memory,
    is_tried_again,
    stopped_by,
    unwrapped,
    was_lost,
)
from mfhpo_ray.experiment.results import check_aim, in_terms_of_tune
from mfhpo_ray.schedulers.level_race import LevelRace, Meter
from mfhpo_ray.schedulers.promotion import Promotion
from mfhpo_ray.schedulers.runs import Run, Runs, Slots, is_over, searchers_of

Config: TypeAlias = Mapping[str, Any]
Result: TypeAlias = dict[str, Any]

_MOST_SAMPLES = 1_000_000  # more are meant as "without end"


class ArmScheduler(FIFOScheduler, abc.ABC):
    """Runs trials that are replicates of arms: who starts, who goes on, who stops."""

    _supports_buffered_results = False  # decisions are about single results

    _policy_class: Callable[..., Any]  # what `mfhpo.racing.options.runs` sets
    _options_type: type
    _defaults: dict[str, Any]
    _meter: Meter  # what each scheduler sets
    _promotion: Promotion | None = None  # where a model promotes trials

    def __init__(self, own: dict[str, Any]) -> None:
        """Take the options of every scheduler out of its `own`."""
        FIFOScheduler.__init__(self)  # untyped in Ray, and only by its name exempt from the check
        self._metric, self._mode = own.pop("metric"), own.pop("mode")
        check_aim(self._metric, self._mode)
        replicate = own.pop("replicate")
        keys = (replicate,) if isinstance(replicate, str) else replicate
        self._replicate_keys = check_names("replicate", keys, "a key of the configuration or more")
        self._runs = Runs((*self._replicate_keys, "__trial_index__"))  # Tune's Repeater's key
        limits = own.pop("limit", None), own.pop("memory_limit")
        self._slots = Slots(self._now, *limits)
        self._journal: Journal | None = None
        self._records: dict[str, dict[str, Any]] = {}  # of the journal, from before a restart
        self._course: LevelRace | None = None  # from the first choice on
        self._n_raced = 0  # arms in the race
        self._complete = self._closed = False  # no other trials will come; the race is over
        self._idle_at: tuple[Any, ...] = ()  # how things stood when nothing could be started
        self._clock = time.monotonic

    def recommendation(self) -> Answer:
        """Return the best answer so far; ValueError before any trial."""
        if self._course is None:
            raise ValueError("there is nothing to recommend yet: no trial was started.")
        answer, promotion = self._course.experiment.answer(), self._promotion
        return in_terms_of_tune(promotion.explained(answer) if promotion else answer, dict)

    @abc.abstractmethod
    def _settings(self, candidates: Sequence[Config], n_arms: int) -> Settings:
        """Return the settings of the race, now that the number of arms is known."""

    def _promoted(self, candidates: Sequence[Config], *more: Any, **options: Any) -> Settings:
        """Have a model promote trials, and return the settings of that (see `Promotion`)."""
        known = self._runs, unwrapped(self._controller).add_trial, self._replicate_keys
        self._promotion = Promotion(*known, *more, **options)
        return self._promotion.settings(candidates, self._sign)

    def _make_course(self, *parts: Any) -> LevelRace:
        """Return who decides, now that the experiment has begun."""
        return LevelRace(*parts)

    @property
    def _over(self) -> bool:
        """Whether the race has ended."""
        return self._course is not None and self._course.experiment.finished

    # What Tune calls.

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take metric and mode from ``TuneConfig``; False if both they and we name one."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric = self._metric or metric
        self._mode = self._mode or mode
        return True

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Hold a new trial back until it is chosen."""
        name, search = type(self).__name__, tune_controller.search_alg
        if self._metric is None or self._mode is None:
            missing = "metric" if self._metric is None else "mode"
            raise ValueError(f"{name} needs to know {missing}; give it to tune.TuneConfig.")
        check_reuse(tune_controller, trial)
        self._open(Journal.of(trial), name)
        self._idle_at = ()
        if self._runs.find(trial.trial_id) is not None:  # it failed, and Ray tries it again
            if trial.status == Trial.PENDING:
                tune_controller._set_trial_status(trial, Trial.PAUSED)
            return
        if search.total_samples > _MOST_SAMPLES and not search.is_finished():
            raise ValueError(
                f"{name} has to know how many trials there will be, but num_samples=-1 makes "
                f"trials without end; give tune.TuneConfig(num_samples=...)."
            )
        run, record = self._runs.add(trial), self._records.get(trial.trial_id)
        is_known = record is not None or trial.run_metadata.start_time is not None
        if trial.is_finished():
            self._runs.end(run)
            self._slots.hold(trial)
        elif self._closed or is_over(events_in(record), len(self._meter.levels) - 1):
            give_folder(trial)
            trial.set_status(Trial.TERMINATED)
            # A searcher, and what limits it, was restored too, and waits for this one.
            last: Result = flatten_dict(trial.run_metadata.last_result)
            result = last if self._metric in last else None
            search.on_trial_complete(trial.trial_id, result=result)
            self._runs.end(run)
        elif is_known or not any(searchers_of(search)):
            self._slots.hold_back(search, trial)
        else:
            # A model is to see results before it suggests more: what it suggests is started as
            # soon as there is room, and it is asked for one at a time.
            if self._course is not None and run.arm not in self._out:
                self._course.send_first(run)
            self._slots.take(run)
        if run.arm in self._out:
            self._doom(run)

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: Result) -> str:
        """Learn from a result, and decide."""
        run, course = self._runs[trial], self._course
        run.iteration = result.get(TRAINING_ITERATION)
        if run.doomed or self._slots.limits.exceeded(trial, result):
            return str(TrialScheduler.STOP)
        if course is None or run.begun is None:
            return str(TrialScheduler.CONTINUE)
        with course.log.at_once():
            if not course.take(run, result):
                return str(TrialScheduler.CONTINUE)
            self._judge()
            self._note_answer(urgent=False)
            is_at_end = run.reached == len(self._meter.levels) - 1
            if run.has_failed or run.doomed or is_at_end or self._over:
                return str(TrialScheduler.STOP)
            # An arm that is out may come back, if bounds that were declared are contradicted.
            if run.arm not in self._out and course.goes_on(run, result):
                return str(TrialScheduler.CONTINUE)
        # Its result is there: saving the checkpoint is no longer limited.
        self._slots.limits.forget(trial)
        # What pauses is not running: others may be suggested in its place.
        self._slots.live_trials(tune_controller.search_alg).discard(trial.trial_id)
        if can_be_saved(trial):
            return str(TrialScheduler.PAUSE)
        tune_controller.pause_trial(trial, should_checkpoint=False)
        return str(TrialScheduler.NOOP)

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: Result) -> None:
        """Learn from a trial that has ended."""
        run = self._runs[trial]
        if self._course is not None and run.begun is not None and not run.doomed:
            limit = self._slots.limits.settle(trial)
            if limit is not None and run.begun.limit is not None:
                self._course.end(run, None, stopped_at=limit)  # as the experiment has set it
            elif limit is not None or is_over_memory(trial) or self._metric not in result:
                self._course.end(run, None)
            elif (who := stopped_by(tune_controller, trial, result, run.iteration)) is not None:
                self._course.take_cut(run, result, who)
            else:
                self._course.take_last(run, result)
        self._leave(run)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Learn that a trial has failed; Ray adds it again if it may be tried again."""
        run, is_again = self._runs[trial], is_tried_again(trial)
        self._fail(run, is_again, was_lost(trial))
        (self._slots.leave if is_again else self._leave)(run)

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """Forget a trial that was held back."""
        self._leave(self._runs[trial])

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Return the trial to start or resume, if there is room for one."""
        search, self._controller = tune_controller.search_alg, tune_controller
        self._slots.release(tune_controller)
        for run in self._slots.ended():
            if run.trial.status == Trial.ERROR:  # a reset that failed is told to nobody
                self._fail(run)
                self._leave(run)
        self._slots.limits.enforce(tune_controller)
        course = self._course or self._opened(search)
        if course is None:
            return None
        self._note_answer(urgent=False)
        self._slots.stop_doomed(tune_controller, self._leave)
        if not self._complete and search.is_finished():
            self._complete = True
            if self._runs.n_arms < self._n_raced:
                course.find(arms=self._runs.n_arms)
            self._judge()
        if self._over:
            self._close(tune_controller)
            return None
        now = (course.experiment.order, len(self._slots.busy), self._complete)
        if now == self._idle_at or not self._slots.has_room(search):
            return None
        chosen = course.send_again() or course.next()
        if chosen is None:
            self._idle_at = now  # until something happens, there will be none
            if not self._slots.busy and search.is_finished():
                self._close(tune_controller)
            return None
        self._slots.take(chosen)
        self._slots.live_trials(search).add(chosen.trial.trial_id)
        return chosen.trial

    # What is known.

    @property
    def _sign(self) -> float:
        return -1.0 if self._mode == "min" else 1.0

    @property
    def _out(self) -> set[int]:
        """The arms that have left the race, whose trials are not run."""
        return set() if self._course is None else self._course.out

    # What is done.

    def _open(self, journal: Journal | None, owner: str) -> None:
        """Connect to the experiment's journal, which must be the same for all trials."""
        if not self._runs.n_arms:
            self._journal = journal
            self._records = {} if journal is None else journal.read()
        elif journal and self._journal and journal.folder != self._journal.folder:
            raise ValueError(f"this {owner} has run another experiment; make a new one.")

    def _opened(self, search: Any) -> LevelRace | None:
        """Begin the race, or go on with it after a restart; None if trials are on their way."""
        records, runs, is_finished = self._records, self._runs, search.is_finished()
        told = [each for each in events_in(records.get(SHARED)) if isinstance(each, Joined)]
        n_arms = runs.n_arms if is_finished else int(search.total_samples)
        n_arms = int(json.loads(told[0].digest)["n_arms"]) if told else n_arms
        if n_arms == 0 or not (is_finished or any(searchers_of(search))):
            return None
        # Arms that Ray has no trial of any more come on top, as the search knows none of them.
        self._n_raced = n_raced = n_arms + runs.adapt(records)
        candidates = [runs.configurations[arm] for arm in range(runs.n_arms)]
        settings = self._settings(candidates, n_raced)
        log = EventLog(settings, {"n_arms": n_arms}, self._journal, self._now)
        log.take_over(records)
        parts = log, runs, str(self._metric), self._meter, n_raced, self._promotion
        course = self._course = self._make_course(*parts)
        self._judge()
        course.settle(self._out)
        for arm in range(runs.n_arms):
            self._note_gone(arm)
        self._records = {}
        for run in list(self._slots.busy.values()):  # suggested before the race began
            if run.arm in self._out:
                self._doom(run)
            elif run.begun is None:
                course.send_first(run)
        return course

    def _fail(self, run: Run, is_again: bool = False, is_lost: bool = False) -> None:
        """Tell that a run has failed; it is tried again, or was lost with its process."""
        if run.doomed:
            return
        run.has_failed = not is_again
        if self._course is not None and is_again:
            self._course.lose(run, will_retry=True)
        elif self._course is not None and is_lost:
            self._course.lose(run, "its process has died")
        elif self._course is not None and run.begun is not None:
            self._course.end(run, None)

    def _note_gone(self, arm: int) -> None:
        """Tell a search that no trial of an arm can go on."""
        if self._course and self._promotion and not self._runs.of(arm):
            self._course.find(gone=arm)

    def _judge(self) -> None:
        """Have the runs stopped whose arms have left, and note an answer that is the last."""
        if self._course is not None:
            for run in self._course.to_stop():
                self._doom(run)
        if self._over:
            self._note_answer()

    def _doom(self, run: Run) -> None:
        """Have a run stopped at the next step."""
        if not run.doomed:
            run.doomed = True
            self._slots.doomed.append(run)
            why = "the race is over" if self._closed else "its configuration has left the race"
            if self._course is not None:
                self._course.lose(run, why, is_withdrawn=True)

    def _leave(self, run: Run) -> None:
        """Let go of a run whose trial is over."""
        course = self._course
        if course is not None and not run.doomed:
            course.lose(run, "its trial was stopped")
        self._slots.leave(run)
        self._runs.end(run)
        if course is None:
            return
        if not run.doomed:
            self._note_gone(run.arm)
        self._judge()
        left = set(range(self._n_raced)) - self._out
        is_spent = self._complete and not any(map(self._runs.of, left))
        if is_spent and (self._closed or not course.has_more()):
            course.find(is_exhausted=True)
        if not self._slots.busy and all(each.is_over for each in self._runs):
            # Ray may end the experiment without another step of its loop.
            self._note_answer()

    def _close(self, tune_controller: Any) -> None:
        """End the experiment, now that the race has ended or nothing is left to run."""
        if self._closed or self._course is None:
            return
        self._closed = True
        tune_controller.search_alg.set_finished()
        for run in self._runs:
            if not run.trial.is_finished():
                self._doom(run)
        self._course.find(is_exhausted=True)
        self._slots.stop_doomed(tune_controller, self._leave)
        self._note_answer()

    def _note_answer(self, urgent: bool = True) -> None:
        assert self._course is not None
        self._course.log.write_answer(self.recommendation, urgent)

    def _now(self) -> float:  # a simulation has another clock
        return self._clock()
