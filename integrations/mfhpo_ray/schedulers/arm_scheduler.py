"""What our schedulers share: they hold trials back, and decide which one to start or go on with.

Ray starts whatever is PENDING, in the order of arrival. So these schedulers set what arrives to
PAUSED. `choose_trial_to_run`, which Ray calls at every step of its loop, names the trial to start.
What becomes of a trial is told as events, which are stored with the experiment.
"""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import BasicVariantGenerator
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_count, check_names
from mfhpo.experiment import Experiment
from mfhpo.experiment.settings import Settings
from mfhpo_ray.experiment.checkpoints import can_be_saved, check_reuse
from mfhpo_ray.experiment.losses import is_tried_again, was_lost
from mfhpo_ray.experiment.memory_limits import MemoryLimits
from mfhpo_ray.experiment.metric import as_number, check_aim
from mfhpo_ray.experiment.notebook import Notebook
from mfhpo_ray.experiment.recommendation import Answer
from mfhpo_ray.experiment.time_limits import (
    TimeLimits,
    finite_limit,
    give_folder,
    is_over_memory,
    unwrapped,
)
from mfhpo_ray.schedulers.claims import AGAIN, Claims, Course, Stored
from mfhpo_ray.schedulers.room import (
    MOST_SAMPLES,
    Slots,
    expected_arms,
    live_trials,
    slots_for,
    suggests,
)
from mfhpo_ray.schedulers.runs import Run, Runs, warn_if_redrawn

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

# Seconds between two notes of the answer so far.
_NOTE_PERIOD = 5.0


class ArmScheduler(FIFOScheduler, abc.ABC):
    """Runs trials that are replicates of arms: who starts, who goes on, who stops.

    Parameters
    ----------
    replicate
        The keys of the configuration in which the replicates of an arm differ, "a/b" for nested
        ones.
    arms
        Number of arms, where a search algorithm suggests them one at a time; None: its number of
        samples. The search ends with the first suggestion beyond them. Not needed with random
        search and grids.
    mode
        "max" or "min". None: as ``TuneConfig`` says.
    metric
        What to optimise. None: as ``TuneConfig`` says. A trial that ends without it has failed.
    limit
        Seconds that a trial may run from one start or resumption on, above 0. One that is stopped
        there, also if it hangs, has failed. None: no limit, so that a trial which hangs holds its
        slot, and the race, for ever.
    memory_limit
        Bytes that a trial may hold with its child processes; None for no limit. One that holds more
        is ended, and has failed (see `PullScheduler`).
    """

    # Decisions are about single results.
    _supports_buffered_results = False

    # What `mfhpo.racing.options.runs` sets.
    _policy_class: Callable[..., Any]
    _options_type: type
    _defaults: dict[str, Any]

    def __init__(
        self,
        *,
        metric: str | None,
        mode: str | None,
        replicate: str | Collection[str],
        arms: int | None,
        limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        FIFOScheduler.__init__(self)  # untyped in Ray, and only by its name exempt from the check
        check_aim(metric, mode)
        self._metric = metric
        self._mode = mode
        self._n_arms = None if arms is None else check_count("arms", arms, 2)
        keys = (replicate,) if isinstance(replicate, str) else replicate
        right = "a key of the configuration or several"
        self._replicate_keys = check_names("replicate", keys, right)
        # Tune's Repeater numbers its repeats under this key.
        self._runs = Runs((*self._replicate_keys, "__trial_index__"))
        self._slots = Slots(self._now, self._count)
        self._limit = finite_limit("limit", limit)
        self._time_limits = TimeLimits(self._now)
        self._memory_limits = MemoryLimits(memory_limit)
        self._notebook = Notebook()
        self._claims = Claims(self._runs, self._notebook, self._cost_of)
        self._noted_at = -math.inf
        # The race is open from its first choice on, and closed when it has ended; it is complete
        # when no other trials will come.
        self._is_open = False
        self._complete = False
        self._closed = False
        self._n_raced = 0
        self._may_find_one = True
        self._controller: TuneController  # once it asks what to run
        # A simulation has another clock, and other slots.
        self._clock = time.monotonic
        self._count_slots = slots_for

    # What differs from scheduler to scheduler.

    _n_levels: int  # those that trials pause at
    _course: Course  # from the first choice on

    @abc.abstractmethod
    def recommendation(self) -> Answer:
        """Return the best answer so far."""

    @abc.abstractmethod
    def _settings(
        self, candidates: Sequence[Mapping[str, Any]], n_arms: int, search: Any
    ) -> Settings:
        """Return the settings of the race, now that the number of arms is known."""

    @abc.abstractmethod
    def _make_course(self) -> Course:
        """Return who decides, now that the experiment has begun."""

    def _on_complete_search(self) -> None:
        """Learn that the search is over: all arms are known."""
        if self._runs.n_arms < self._n_raced:
            self._claims.find(arms=self._runs.n_arms)
        self._stop_those_out()
        # What waited for more suggestions waits no longer.
        self._may_find_one = True

    @property
    def _over(self) -> bool:
        """Whether the race has ended."""
        return self._is_open and self._experiment.finished

    # What Tune calls.

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take metric and mode from ``TuneConfig``; False if both they and we name one."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric = self._metric or metric
        self._mode = self._mode or mode
        return True

    def on_trial_add(self, tune_controller: TuneController, trial: Trial) -> None:
        """Hold a new trial back until it is chosen."""
        for missing, value in (("metric", self._metric), ("mode", self._mode)):
            if value is None:
                raise ValueError(
                    f"{type(self).__name__} needs to know {missing}; give it to "
                    f"tune.TuneConfig(metric=..., mode=...) or to the scheduler."
                )
        check_reuse(tune_controller, trial)
        self._notebook.open(trial, type(self).__name__)
        self._may_find_one = True
        if trial in self._runs:  # it failed, and Ray tries it again
            if trial.status == Trial.PENDING:
                tune_controller._set_trial_status(trial, Trial.PAUSED)
            return
        search = tune_controller.search_alg
        if not suggests(search) and search.total_samples > MOST_SAMPLES:
            raise ValueError(
                f"{type(self).__name__} looks at all trials before it starts one, but "
                f"num_samples=-1 makes trials without end; give tune.TuneConfig(num_samples=...)."
            )
        run = self._runs.add(trial)
        is_stored = trial.trial_id in self._notebook.records
        had_begun = is_stored or trial.run_metadata.start_time is not None
        if trial.is_finished():
            self._runs.retire(run)
        elif self._closed or (is_stored and self._was_seen_to_its_end(trial)):
            give_folder(trial)
            trial.set_status(Trial.TERMINATED)
            self._runs.retire(run)
            # A searcher, and what limits it, was restored too, and waits for this one.
            last: dict[str, Any] = flatten_dict(trial.run_metadata.last_result)
            result = last if self._metric in last else None
            search.on_trial_complete(trial.trial_id, result=result)
        elif had_begun or not suggests(search):
            # Ray adds a trial to its lists after this, by the status it has then.
            give_folder(trial)
            trial.set_status(Trial.PAUSED)
            # What is held back is not running: all others are to come as well.
            if isinstance(search, BasicVariantGenerator):
                search._live_trials.discard(trial.trial_id)
            live_trials(search).discard(trial.trial_id)
        else:
            # A model is to see results before it suggests more: what it suggests is started as
            # soon as there is room, and it is asked for one at a time.
            if self._is_open and not self._is_out(run.arm):
                self._course.send_first(run)
            self._start(run)
        if self._is_open and self._is_out(run.arm):
            self._doom(run)
            if run.arm >= self._n_raced:
                # Others would come without end, to be stopped at once.
                search.set_finished()

    def on_trial_result(
        self, tune_controller: TuneController, trial: Trial, result: dict[str, Any]
    ) -> str:
        """Learn from a result, and decide."""
        run = self._runs[trial]
        if run.doomed or self._closed or self._time_limits.exceeded(trial, result):
            return str(TrialScheduler.STOP)
        if run.begun is None or not self._course.take(run, result):
            return str(TrialScheduler.CONTINUE)
        self._may_find_one = True
        self._stop_those_out()
        if run.has_failed or run.doomed or run.reached == self._n_levels - 1 or self._over:
            return str(TrialScheduler.STOP)
        # An arm that is out may come back, if bounds that were declared are contradicted.
        if not self._is_out(run.arm) and self._course.goes_on(run, result):
            return str(TrialScheduler.CONTINUE)
        # Its result is there: saving the checkpoint is no longer limited.
        self._time_limits.forget(trial)
        # What pauses is not running: others may be suggested in its place.
        live_trials(tune_controller.search_alg).discard(trial.trial_id)
        if not can_be_saved(trial):
            tune_controller.pause_trial(trial, should_checkpoint=False)
            return str(TrialScheduler.NOOP)
        return str(TrialScheduler.PAUSE)

    def on_trial_complete(
        self, tune_controller: TuneController, trial: Trial, result: dict[str, Any]
    ) -> None:
        """Learn from a trial that has ended."""
        run = self._runs[trial]
        if run.begun is not None and not run.doomed and not self._closed:
            limit = self._time_limits.settle(trial)
            if limit is not None:
                self._course.time_out(run, limit)
                self._course.fail(run)
            elif is_over_memory(trial) or self._metric not in result:
                self._fail(run, again=False, is_lost=False)
            else:
                self._course.take_last(run, result)
            self._stop_those_out()
        self._leave(run)

    def on_trial_error(self, tune_controller: TuneController, trial: Trial) -> None:
        """Learn that a trial has failed; Ray adds it again if it may be tried again."""
        run = self._runs[trial]
        again = is_tried_again(trial)
        self._slots.leave(run)
        if self._is_open and not (run.doomed or self._closed):
            self._fail(run, again, was_lost(trial))
        self._time_limits.forget(trial)
        if not again:
            self._leave(run)
        self._may_find_one = True

    def on_trial_remove(self, tune_controller: TuneController, trial: Trial) -> None:
        """Forget a trial that was held back."""
        self._leave(self._runs[trial])

    def choose_trial_to_run(self, tune_controller: TuneController) -> Trial | None:
        """Return the trial to start or resume, if there is room for one."""
        search, self._controller = tune_controller.search_alg, tune_controller
        self._notice_ends()
        self._time_limits.enforce(tune_controller)
        self._memory_limits.enforce(tune_controller)
        if self._is_open and self._clock() - self._noted_at > _NOTE_PERIOD:
            self._note_answer()
        if not self._is_open and not self._open_if_ready(search):
            return None
        self._stop_doomed(tune_controller)
        if not self._complete and search.is_finished():
            self._complete = True
            self._on_complete_search()
        if self._over:
            self._finish(tune_controller)
            return None
        if not self._may_find_one or not self._slots.has_room(search):
            return None
        chosen = self._claims.send_again() or self._course.next()
        if chosen is None:
            # Until something happens, there will be none.
            self._may_find_one = False
            if not self._slots.busy and search.is_finished():
                self._close(tune_controller)
            return None
        self._start(chosen)
        live_trials(search).add(chosen.trial.trial_id)
        return chosen.trial

    def debug_string(self) -> str:
        """Return the scheduler's line in Tune's report."""
        return (
            f"Using {type(self).__name__}: {self._runs.n_arms} arms, {len(self._slots.busy)} busy"
        )

    # What subclasses use.

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValueError("there is nothing to recommend yet: no trial was started.")

    @property
    def _experiment(self) -> Experiment:
        return self._claims.experiment

    @property
    def _sign(self) -> float:
        return -1.0 if self._mode == "min" else 1.0

    def _value_in(self, result: Mapping[str, Any]) -> float | None:
        """Return a result's metric; NaN if it is no number, None if it is missing."""
        name = str(self._metric)
        if name not in result:
            return None
        value = as_number(result[name])
        return math.nan if value is None else value

    def _fail(self, run: Run, again: bool, is_lost: bool) -> None:
        """Tell that a run has failed; it is tried again, or was lost with its process."""
        if again:
            self._claims.lose(run, AGAIN, will_retry=True)
        elif is_lost:
            self._claims.lose(run, "its process has died")
        elif run.begun is not None:
            self._claims.end(run, None)
        self._may_find_one = True
        if not again:
            self._course.fail(run)
            self._stop_those_out()

    def _stop_those_out(self) -> None:
        for run in self._course.to_stop():
            self._doom(run)
        if self._over:
            self._note_answer()

    def _is_out(self, arm: int) -> bool:
        return self._is_open and (arm >= self._n_raced or self._course.is_out(arm))

    def _doom(self, run: Run) -> None:
        """Have a run stopped at the next step."""
        if run.doomed:
            return
        self._slots.doom(run)
        why = "the race is over" if self._closed else "its configuration has left the race"
        self._claims.lose(run, why, is_withdrawn=True)

    def _doom_arm(self, arm: int) -> None:
        for run in self._runs.of(arm):
            self._doom(run)

    def _note_answer(self) -> None:
        self._noted_at = self._clock()
        if self._notebook.is_kept:
            answer, names = self.recommendation(), self._runs.names
            self._notebook.write_answer(answer, self._metric, self._mode, names)

    def _leave(self, run: Run) -> None:
        """Let go of a run whose trial is over."""
        if not (run.doomed or self._closed):
            self._claims.lose(run, "its trial was stopped")
        self._time_limits.forget(run.trial)
        self._slots.leave(run)
        self._runs.retire(run)
        self._may_find_one = True
        is_spent = self._is_open and self._complete and self._nothing_is_left
        if is_spent and (self._closed or not self._course.has_more()):
            self._claims.find(is_exhausted=True)
        if self._is_open and not self._slots.busy and self._runs.all_over:
            # Ray may end the experiment without another step of its loop.
            self._note_answer()

    @property
    def _nothing_is_left(self) -> bool:
        """Whether all trials of all arms in the race are over."""
        arms = range(self._n_raced)
        return not any(self._runs.of(arm) and not self._is_out(arm) for arm in arms)

    def _finish(self, tune_controller: TuneController) -> None:
        """End the experiment, now that the race has ended."""
        self._close(tune_controller)

    def _close(self, tune_controller: TuneController) -> None:
        if self._closed:
            return
        self._closed = True
        tune_controller.search_alg.set_finished()
        for run in self._runs:
            if not run.trial.is_finished():
                self._doom(run)
        self._claims.find(is_exhausted=True)
        self._stop_doomed(tune_controller)
        self._note_answer()

    def _add_trial(self, trial: Trial) -> None:
        unwrapped(self._controller).add_trial(trial)

    def _now(self) -> float:
        return self._clock()

    def _count(self, trial: Trial) -> float:
        return self._count_slots(trial)

    def _cost_of(self, run: Run) -> float:
        return self._course.cost_of(run)

    def _start(self, run: Run) -> None:
        self._slots.take(run)
        limit = None if run.begun is None else run.begun.limit
        limit = self._limit if limit is None else limit
        if limit is not None:
            self._time_limits.set(run.trial, limit)

    def _notice_ends(self) -> None:
        for run in self._slots.ended():
            self._may_find_one = True
            self._time_limits.forget(run.trial)
            if run.trial.status == Trial.ERROR:  # a reset that failed is told to nobody
                if not run.doomed:
                    self._fail(run, again=False, is_lost=False)
                self._leave(run)

    def _open_if_ready(self, search: Any) -> bool:
        if not (search.is_finished() or suggests(search)):
            return False  # more trials are on their way
        stored = Stored(self._notebook.records)
        n_arms = stored.n_arms
        if n_arms is None:
            n_arms = expected_arms(search, self._n_arms, self._runs.n_arms, type(self).__name__)
            warn_if_redrawn(self._runs, self._replicate_keys)
        if n_arms == 0:
            return False
        self._runs.sort()
        n_known = self._runs.n_arms
        for run in self._runs:
            stored.renew(run, self._runs.configurations[run.arm])
        for config in stored.configurations:
            self._runs.arm(config)
        # Those that Ray has no trial of any more come on top, as the search knows none of them.
        self._n_raced = n_raced = n_arms + self._runs.n_arms - n_known
        known = min(n_raced, self._runs.n_arms)
        candidates = [self._runs.configurations[arm] for arm in range(known)]
        self._claims.begin(self._settings(candidates, n_raced, search), n_arms, stored)
        self._course = self._make_course()
        self._is_open = True
        self._stop_those_out()
        self._claims.settle(self._is_out)
        self._notebook.records = {}
        for run in list(self._slots.busy.values()):  # suggested before the race began
            if run.begun is None and not self._is_out(run.arm):
                self._course.send_first(run)
        if self._runs.n_arms > n_raced:  # several trials may be suggested before the race begins
            for arm in range(n_raced, self._runs.n_arms):
                self._doom_arm(arm)
            search.set_finished()
        return True

    def _was_seen_to_its_end(self, trial: Trial) -> bool:
        records = {trial.trial_id: self._notebook.records[trial.trial_id]}
        return Stored(records).is_over(trial.trial_id, self._n_levels - 1)

    def _stop_doomed(self, tune_controller: TuneController) -> None:
        for run in self._slots.stop_doomed(tune_controller):
            self._leave(run)
