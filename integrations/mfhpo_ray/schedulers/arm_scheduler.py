"""What our schedulers share: they hold trials back, and decide which one to start or go on with.

Ray starts whatever is PENDING, in the order of arrival. So these schedulers set what arrives to
PAUSED. `choose_trial_to_run`, which Ray calls at every step of its loop, names the trial to start.
"""

from __future__ import annotations

import abc
import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import BasicVariantGenerator
from ray.tune.utils import flatten_dict

from mfhpo import Recommendation
from mfhpo._validation import check_count, check_names
from mfhpo_ray.experiment.checkpoints import can_be_saved, check_reuse
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import of_this_version
from mfhpo_ray.experiment.losses import Losses, is_tried_again, was_lost
from mfhpo_ray.experiment.memory_limits import MemoryLimits
from mfhpo_ray.experiment.metric import as_number, check_aim
from mfhpo_ray.experiment.notebook import Notebook
from mfhpo_ray.experiment.recommendation import Answer
from mfhpo_ray.experiment.time_limits import (
    TimeLimits,
    finite_limit,
    give_folder,
    is_over_memory,
    stop_at_once,
)
from mfhpo_ray.schedulers.room import live_trials, most_at_once, slots_for, suggests
from mfhpo_ray.schedulers.runs import Run, Runs

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

AnswerT = TypeVar("AnswerT", bound=Recommendation)

# Seconds after which the cluster is asked for its size again.
_CLUSTER_PERIOD = 5.0
# Seconds between two notes of the answer so far.
_NOTE_PERIOD = 5.0
# Seconds that a running trial of an arm that is out has to report before it is killed.
_PATIENCE = 1.0
# The journal's record of what the race was begun with.
RACE = "race"
# More samples than this are meant as "without end".
_MANY = 1_000_000


class Entry(NamedTuple):
    """What was written of a trial before a restart: its arm, and its run unless Ray forgot it."""

    record: Mapping[str, Any]
    arm: int
    run: Run | None


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
        self._busy: dict[str, Run] = {}
        self._doomed: list[Run] = []
        self._patience_ends: dict[str, float] = {}
        self._losses = Losses()
        self._limit = finite_limit("limit", limit)
        self._time_limits = TimeLimits(self._now)
        self._memory_limits = MemoryLimits(memory_limit)
        self._notebook = Notebook()
        self._noted_at = -math.inf
        # The race is open from its first choice on, and closed when it has ended; it is complete
        # when no other trials will come.
        self._is_open = False
        self._complete = False
        self._closed = False
        self._n_raced = 0
        self._may_find_one = True
        self._warned: set[object] = set()
        self._slots = math.inf
        self._slots_known_at = -math.inf
        # A simulation has another clock, and other slots.
        self._clock = time.monotonic
        self._count_slots = slots_for

    # What differs from scheduler to scheduler.

    @abc.abstractmethod
    def recommendation(self) -> Answer:
        """Return the best answer so far."""

    @abc.abstractmethod
    def _open(self, n_arms: int, search: Any) -> None:
        """Begin the race, now that the number of arms is known; the first runs wait."""

    @abc.abstractmethod
    def _recover(self, entries: Sequence[Entry]) -> None:
        """Take in what was written before a restart."""

    @abc.abstractmethod
    def _next(self) -> Run | None:
        """Return the run to start or resume, marked with what it is granted; None for none."""

    @abc.abstractmethod
    def _grant_first(self, run: Run) -> None:
        """Note that a new run is started by Ray itself."""

    @abc.abstractmethod
    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        """Learn from a result, and decide what becomes of its trial."""

    @abc.abstractmethod
    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        """Learn from the last result of a trial that ended by itself."""

    @abc.abstractmethod
    def _on_failure(self, run: Run) -> None:
        """Learn that a run failed before it came to where it was sent."""

    @abc.abstractmethod
    def _on_retry(self, run: Run) -> None:
        """Learn that a run failed without its arm's fault, or that Ray tries it again."""

    def _on_timeout(self, run: Run, limit: float) -> None:
        """Learn that a run was stopped at its time limit."""
        self._on_failure(run)

    def _on_complete_search(self) -> None:
        """Learn that the search is over: all arms are known."""

    @property
    @abc.abstractmethod
    def _over(self) -> bool:
        """Whether the race has ended."""

    @abc.abstractmethod
    def _is_out(self, arm: int) -> bool:
        """Return whether an arm is not in the race, or not any more."""

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
            run = self._runs[trial]
            run.granted, run.began_at = None, None
            if trial.status == Trial.PENDING:
                tune_controller._set_trial_status(trial, Trial.PAUSED)
            return
        search = tune_controller.search_alg
        if not suggests(search) and search.total_samples > _MANY:
            raise ValueError(
                f"{type(self).__name__} looks at all trials before it starts one, but "
                f"num_samples=-1 makes trials without end; give tune.TuneConfig(num_samples=...)."
            )
        run = self._runs.add(trial)
        record = self._notebook.records.get(trial.trial_id)
        had_begun = record is not None or trial.run_metadata.start_time is not None
        if trial.is_finished():
            self._runs.retire(run)
        elif self._closed or (record is not None and record.get("over")):
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
            self._grant_first(run)
            self._make_busy(run)
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
        self._losses.forget(run.arm)
        decision = self._on_result(run, result)
        if decision == TrialScheduler.PAUSE:
            # Its result is there: saving the checkpoint is no longer limited.
            self._time_limits.forget(trial)
            # What pauses is not running: others may be suggested in its place.
            live_trials(tune_controller.search_alg).discard(trial.trial_id)
            if not can_be_saved(trial):
                tune_controller.pause_trial(trial, should_checkpoint=False)
                return str(TrialScheduler.NOOP)
        return decision

    def on_trial_complete(
        self, tune_controller: TuneController, trial: Trial, result: dict[str, Any]
    ) -> None:
        """Learn from a trial that has ended."""
        run = self._runs[trial]
        if not run.doomed and not self._closed:
            limit = self._time_limits.settle(trial)
            if limit is not None:
                self._on_timeout(run, limit)
            elif is_over_memory(trial):
                self._on_failure(run)
            else:
                self._on_end(run, result)
        self._leave(run)

    def on_trial_error(self, tune_controller: TuneController, trial: Trial) -> None:
        """Learn that a trial has failed; Ray adds it again if it may be tried again."""
        run = self._runs[trial]
        again = is_tried_again(trial)
        if not run.doomed:
            if again or (was_lost(trial) and self._losses.excuse(run.arm)):
                self._on_retry(run)
            else:
                self._on_failure(run)
        run.granted = None
        self._busy.pop(trial.trial_id, None)
        self._time_limits.forget(trial)
        if not again:
            self._leave(run)
        self._may_find_one = True

    def on_trial_remove(self, tune_controller: TuneController, trial: Trial) -> None:
        """Forget a trial that was held back."""
        self._leave(self._runs[trial])

    def choose_trial_to_run(self, tune_controller: TuneController) -> Trial | None:
        """Return the trial to start or resume, if there is room for one."""
        search = tune_controller.search_alg
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
        if not self._may_find_one or not self._has_room(search):
            return None
        chosen = self._next()
        if chosen is None:
            # Until something happens, there will be none.
            self._may_find_one = False
            if not self._busy and search.is_finished():
                self._close(tune_controller)
            return None
        self._make_busy(chosen)
        live_trials(search).add(chosen.trial.trial_id)
        return chosen.trial

    def debug_string(self) -> str:
        """Return the scheduler's line in Tune's report."""
        return f"Using {type(self).__name__}: {self._runs.n_arms} arms, {len(self._busy)} busy"

    # What subclasses use.

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValueError("there is nothing to recommend yet: no trial was started.")

    def _without_more(self, answer: AnswerT, nothing_is_left: bool) -> AnswerT:
        """Return an answer that says so if no trials are left to change it."""
        if answer.finished or not (self._closed or nothing_is_left):
            return answer
        reason = f"no replicates are left to tell: {answer.reason}"
        return replace(answer, finished=True, reason=reason)

    @property
    def _sign(self) -> float:
        return -1.0 if self._mode == "min" else 1.0

    def _value(self, result: Mapping[str, Any]) -> float | None:
        """Return a result's metric, larger is better; None if it is missing or no number."""
        value = as_number(result.get(str(self._metric)))
        return None if value is None else self._sign * value

    def _warn_once(
        self, about: object, message: str, category: type[Warning] = UserWarning
    ) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(message, category, stacklevel=3)

    def _doom(self, run: Run) -> None:
        """Have a run stopped at the next step."""
        if not run.doomed:
            run.doomed = True
            self._doomed.append(run)

    def _doom_arm(self, arm: int) -> None:
        for run in self._runs.of(arm):
            self._doom(run)

    def _write(self, run: Run, record: Mapping[str, Any]) -> None:
        self._notebook.write(run.trial.trial_id, {"config": encode(run.trial.config), **record})

    def _note_answer(self) -> None:
        self._noted_at = self._clock()
        if self._notebook.is_kept:
            answer, names = self.recommendation(), self._runs.names
            self._notebook.write_answer(answer, self._metric, self._mode, names)

    def _room(self) -> float:
        """Return how many trials the cluster can run at once; infinite if that is not known."""
        now = self._clock()
        if now - self._slots_known_at > _CLUSTER_PERIOD:
            self._slots_known_at = now
            self._slots = self._count_slots(next(iter(self._busy.values())).trial)
        return self._slots

    def _leave(self, run: Run) -> None:
        """Let go of a run whose trial is over."""
        run.granted = None
        self._time_limits.forget(run.trial)
        self._busy.pop(run.trial.trial_id, None)
        self._runs.retire(run)
        self._may_find_one = True
        if self._is_open and not self._busy and self._runs.all_over:
            # Ray may end the experiment without another step of its loop.
            self._note_answer()

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
        self._stop_doomed(tune_controller)
        self._note_answer()

    def _now(self) -> float:
        return self._clock()

    def _make_busy(self, run: Run) -> None:
        self._busy[run.trial.trial_id] = run
        if self._limit is not None:
            self._time_limits.set(run.trial, self._limit)

    def _notice_ends(self) -> None:
        for name, run in list(self._busy.items()):
            if run.trial.status in (Trial.PENDING, Trial.RUNNING):
                continue
            del self._busy[name]
            self._may_find_one = True
            self._time_limits.forget(run.trial)
            if run.trial.status == Trial.ERROR:  # a reset that failed is told to nobody
                self._on_failure(run)
                self._leave(run)

    def _open_if_ready(self, search: Any) -> bool:
        if not (search.is_finished() or suggests(search)):
            return False  # more trials are on their way
        records = self._notebook.records
        if RACE in records:
            n_arms = int(records.pop(RACE)["n_arms"])
        elif search.is_finished():
            n_arms = self._runs.n_arms
            if self._n_arms is not None and suggests(search):
                n_arms = min(n_arms, self._n_arms)
        else:
            n_arms = search.total_samples if self._n_arms is None else self._n_arms
            if n_arms > _MANY:
                raise ValueError(
                    f"{type(self).__name__} needs the number of arms where the search goes on "
                    f"without end; give arms=... to it, or num_samples to tune.TuneConfig."
                )
        if n_arms == 0:
            return False
        self._runs.sort()
        self._open(n_arms, search)
        self._is_open = True
        self._n_raced = n_arms
        self._notebook.write(RACE, {"n_arms": n_arms})
        runs = {run.trial.trial_id: run for run in self._runs}
        with of_this_version("the journal in the experiment's storage"):
            entries = []
            for name, record in records.items():
                run = runs.get(name)
                arm = self._runs.arm(decode(record["config"])) if run is None else run.arm
                if arm < n_arms:
                    entries.append(Entry(record, arm, run))
            self._recover(entries)
        self._notebook.records = {}
        if self._runs.n_arms > n_arms:  # several trials may be suggested before the race begins
            for arm in range(n_arms, self._runs.n_arms):
                self._doom_arm(arm)
            search.set_finished()
        return True

    def _stop_doomed(self, tune_controller: TuneController) -> None:
        """Stop the doomed; a trial that runs is killed if it does not report within a second."""
        patient: list[Run] = []
        while self._doomed:
            run = self._doomed.pop()
            trial = run.trial
            if trial.status == Trial.RUNNING:
                now = self._clock()
                if now < self._patience_ends.setdefault(trial.trial_id, now + _PATIENCE):
                    # With its next result it ends by itself, and its process can be used again.
                    patient.append(run)
                    continue
                stop_at_once(tune_controller, trial)
            elif not trial.is_finished():
                live_trials(tune_controller.search_alg).add(trial.trial_id)
                give_folder(trial)
                tune_controller.stop_trial(trial)
            self._patience_ends.pop(trial.trial_id, None)
            self._leave(run)
        self._doomed = patient

    def _has_room(self, search: Any) -> bool:
        """Return whether another trial may be started: Ray must not be told more than fit."""
        if not self._busy:
            return True
        room = min(most_at_once(search), self._room())
        if math.isinf(room):
            return all(run.trial.status == Trial.RUNNING for run in self._busy.values())
        return len(self._busy) < room
