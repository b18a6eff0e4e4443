"""What our schedulers share: they hold trials back, and decide which one to start or go on with.

Ray starts whatever is PENDING, in the order of arrival. A scheduler that is to decide sets what
arrives to PAUSED, and names the trial to start in `choose_trial_to_run`, which Ray calls at every
step of its loop. Ray saves no scheduler's state, so that what was observed is written to the
experiment's `Journal` at once, and read from there after ``Tuner.restore``.
"""

from __future__ import annotations

import abc
import logging
import math
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import ray
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_count
from mfhpo_ray.experiment.checkpoints import can_be_saved
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.folders import give_folder
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.losses import Losses, was_lost
from mfhpo_ray.experiment.numbers import as_number
from mfhpo_ray.experiment.prices import required_resources
from mfhpo_ray.experiment.recommendation import RECOMMENDATION, Answer, to_record
from mfhpo_ray.experiment.time_limits import TimeLimits, finite_limit, stop_at_once
from mfhpo_ray.schedulers.runs import Run, Runs

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

__all__ = ["ArmScheduler", "Entry"]

_logger = logging.getLogger("mfhpo_ray")

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
    metric, mode
        What is optimised, "max" or "min"; None: as ``TuneConfig`` says.
    replicate
        Keys of the configuration in which replicates of one arm differ.
    arms
        Number of arms, where a search algorithm suggests them one at a time; None: its number of
        samples.
    limit
        Seconds that a trial may run from one start or resumption on, or None; one that is stopped
        there has failed.
    """

    # Decisions are about single results.
    _supports_buffered_results = False

    def __init__(
        self,
        *,
        metric: str | None,
        mode: str | None,
        replicate: str | Collection[str],
        arms: int | None,
        limit: float | None = None,
    ) -> None:
        FIFOScheduler.__init__(self)  # untyped in Ray, and only by its name exempt from the check
        if mode not in (None, "max", "min"):
            raise ValueError(f"mode must be 'max', 'min' or None, got {mode!r}.")
        if metric is not None and not isinstance(metric, str):
            raise TypeError(f"metric must be the name of a metric or None, got {metric!r}.")
        if not isinstance(replicate, Collection) or not all(isinstance(k, str) for k in replicate):
            raise TypeError(
                f"replicate must be a key of the configuration or several: {replicate!r}."
            )
        keys = (replicate,) if isinstance(replicate, str) else tuple(replicate)
        self._metric = metric
        self._mode = mode
        self._n_arms = None if arms is None else check_count("arms", arms, 2)
        # Tune's Repeater numbers its repeats under this key.
        self._runs = Runs((*keys, "__trial_index__"))
        self._replicate_keys = keys
        self._busy: dict[str, Run] = {}
        self._doomed: list[Run] = []
        self._patience_ends: dict[str, float] = {}
        self._losses = Losses()
        self._limit = finite_limit("limit", limit)
        self._time_limits = TimeLimits(self._now)
        self._journal: Journal | None = None
        self._records: dict[str, dict[str, Any]] = {}
        self._unwritten: dict[str, Mapping[str, Any]] = {}
        self._connected = False
        self._is_open = False
        self._may_find_one = True
        self._closed = False
        self._complete = False
        self._noted_at = -math.inf
        self._n_raced = 0
        self._slots = math.inf
        self._slots_known_at = -math.inf
        # A simulation has another clock, and other slots.
        self._clock = time.monotonic
        self._count_slots = _slots

    # What differs from scheduler to scheduler.

    @abc.abstractmethod
    def recommendation(self) -> Answer:
        """The best answer so far."""

    @abc.abstractmethod
    def _open(self, n_arms: int) -> None:
        """Begin the race, now that the number of arms is known; the first runs wait."""

    @abc.abstractmethod
    def _recover(self, entries: Sequence[Entry]) -> None:
        """Take in what was written before a restart."""

    @abc.abstractmethod
    def _next(self) -> Run | None:
        """The run to start or to go on with, marked with what it is granted; None if none is."""

    @abc.abstractmethod
    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        """Learn from a result, and decide what becomes of its trial."""

    @abc.abstractmethod
    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        """Learn from the last result of a trial that ended by itself."""

    @abc.abstractmethod
    def _on_failure(self, run: Run) -> None:
        """Learn that a run failed before it came to where it was sent."""

    def _on_retry(self, run: Run) -> None:
        """Learn that a run failed for which its arm is not to blame, or that Ray tries again."""
        self._on_failure(run)

    @property
    @abc.abstractmethod
    def _over(self) -> bool:
        """Whether the race has ended."""

    def _is_out(self, arm: int) -> bool:
        """Whether an arm has left the race."""
        return False

    def _all_are_there(self) -> None:
        """Note that the search is over: all arms are known."""

    def _grant_first(self, run: Run) -> None:
        """Note that a new run is started by Ray itself."""

    def _on_step(self, tune_controller: TuneController) -> None:
        """Do what has to be done at every step of Ray's loop."""

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
        self._connect(trial)
        if trial in self._runs:  # it failed, and Ray tries it again
            run = self._runs[trial]
            run.granted, run.began_at = None, None
            if trial.status == Trial.PENDING:
                tune_controller._set_trial_status(trial, Trial.PAUSED)
            self._may_find_one = True
            return
        search = tune_controller.search_alg
        if not _suggests(search) and search.total_samples > _MANY:
            raise ValueError(
                f"{type(self).__name__} looks at all trials before it starts one, but "
                f"num_samples=-1 makes trials without end; give tune.TuneConfig(num_samples=...)."
            )
        run = self._runs.add(trial)
        if trial.is_finished():
            self._runs.retire(run)
        elif self._closed or self._was_over(trial):
            give_folder(trial)
            trial.set_status(Trial.TERMINATED)
            self._runs.retire(run)
            # A searcher, and what limits it, was restored too, and waits for this one.
            search.on_trial_complete(trial.trial_id, result=self._last_result(trial))
        elif not _suggests(search) or self._was_begun(trial):
            # Ray adds a trial to its lists after this, by the status it has then.
            give_folder(trial)
            trial.set_status(Trial.PAUSED)
            # What is held back is not running: all others are to come as well.
            if isinstance(search, BasicVariantGenerator):
                search._live_trials.discard(trial.trial_id)
            self._limiter_lets_go(tune_controller, trial)
        else:
            # A model is to see results before it suggests more: what it suggests is started as
            # soon as there is room, and it is asked for one at a time.
            self._grant_first(run)
            self._busy[trial.trial_id] = run
            self._set_limit(run)
        if self._is_open and self._is_out(run.arm):
            self._doom(run)
            if run.arm >= self._n_raced:
                # Others would come without end, to be stopped at once.
                search.set_finished()
        self._may_find_one = True

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
            self._limiter_lets_go(tune_controller, trial)
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
            self._learn_from_end(run, result)
        self._leave(run)

    def on_trial_error(self, tune_controller: TuneController, trial: Trial) -> None:
        """Learn that a trial has failed; Ray adds it again if it may be tried again."""
        run = self._runs[trial]
        again = trial.should_recover()
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
        """The trial to start or to resume, if there is room for one."""
        self._look_at_busy()
        self._time_limits.enforce(tune_controller)
        self._on_step(tune_controller)
        self._stop_doomed(tune_controller)
        if self._is_open and self._clock() - self._noted_at > _NOTE_PERIOD:
            self._note_answer()
        if not self._is_open and not self._open_if_ready(tune_controller):
            return None
        if not self._complete and tune_controller.search_alg.is_finished():
            self._complete = True
            self._all_are_there()
        if self._over:
            self._close(tune_controller)
            return None
        if not self._may_find_one or not self._has_room(tune_controller):
            return None
        chosen = self._next()
        if chosen is None:
            # Until something happens, there will be none.
            self._may_find_one = False
            self._end_if_exhausted(tune_controller)
            return None
        self._busy[chosen.trial.trial_id] = chosen
        self._set_limit(chosen)
        self._limiter_takes(tune_controller, chosen.trial)
        return chosen.trial

    def debug_string(self) -> str:
        """What Tune prints of the scheduler."""
        return f"Using {type(self).__name__}: {self._runs.n_arms} arms, {len(self._busy)} busy"

    # What subclasses use.

    @property
    def _sign(self) -> float:
        return -1.0 if self._mode == "min" else 1.0

    def _value(self, result: Mapping[str, Any]) -> float | None:
        """The metric in a result, larger is better; None if it is missing or no number."""
        value = as_number(result.get(str(self._metric)))
        return None if value is None else self._sign * value

    def _doom(self, run: Run) -> None:
        """Have a run stopped at the next step."""
        if not run.doomed:
            run.doomed = True
            self._doomed.append(run)

    def _doom_arm(self, arm: int) -> None:
        for run in self._runs.of(arm):
            self._doom(run)

    def _write(self, run: Run, record: Mapping[str, Any]) -> None:
        """Write what is known of a run at once, so that a restart finds it."""
        self._put(run.trial.trial_id, {"config": encode(run.trial.config), **record})

    def _note_answer(self) -> None:
        """Write the answer so far where `mfhpo_ray.recommendation` finds it."""
        self._noted_at = self._clock()
        if self._journal is not None:
            # Trials of an arm differ in nothing that a scheduler sets.
            answer = self.recommendation()
            self._put(
                RECOMMENDATION, to_record(answer, str(self._metric), str(self._mode), owned="")
            )

    # Helpers.

    def _now(self) -> float:
        return self._clock()

    def _connect(self, trial: Trial) -> None:
        if self._metric is None or self._mode is None:
            missing = "metric" if self._metric is None else "mode"
            raise ValueError(
                f"{type(self).__name__} needs to know {missing}; give it to "
                f"tune.TuneConfig(metric=..., mode=...) or to the scheduler."
            )
        journal = Journal.of(trial)
        if self._connected:
            if journal and self._journal and journal.folder != self._journal.folder:
                raise ValueError(
                    f"this {type(self).__name__} has run another experiment; make a new one for "
                    f"each Tuner."
                )
            return
        self._connected = True
        self._journal = journal
        if journal is not None:
            self._records = journal.read()
            self._records.pop(RECOMMENDATION, None)

    def _put(self, name: str, record: Mapping[str, Any]) -> None:
        """Write a record, and those that the storage would not take before."""
        if self._journal is None:
            return
        self._unwritten[name] = record
        try:
            for waiting in list(self._unwritten):
                self._journal.write(waiting, self._unwritten[waiting])
                del self._unwritten[waiting]
        except Exception as error:  # file systems raise errors of their own
            _logger.warning(
                "%d records could not be written to the experiment's storage, and are lost if "
                "the driver dies now; they are tried again with the next one: %s",
                len(self._unwritten),
                error,
            )

    def _last_result(self, trial: Trial) -> dict[str, Any] | None:
        result: dict[str, Any] = flatten_dict(trial.run_metadata.last_result)
        return result if self._metric in result else None

    def _set_limit(self, run: Run) -> None:
        if self._limit is not None:
            self._time_limits.set(run.trial, self._limit)

    def _learn_from_end(self, run: Run, result: Mapping[str, Any]) -> None:
        stopped_at = self._time_limits.settle(run.trial)
        if stopped_at is None:
            self._on_end(run, result)
        else:
            self._on_failure(run)

    def _look_at_busy(self) -> None:
        """Take note of trials that do not run any more."""
        for name, run in list(self._busy.items()):
            if run.trial.status in (Trial.PENDING, Trial.RUNNING):
                continue
            del self._busy[name]
            self._may_find_one = True
            self._time_limits.forget(run.trial)
            if run.trial.status == Trial.ERROR:  # a reset that failed is told to nobody
                self._on_failure(run)
                self._leave(run)

    def _was_begun(self, trial: Trial) -> bool:
        """Whether a trial that Ray adds had been started before a restart."""
        return trial.trial_id in self._records or trial.run_metadata.start_time is not None

    def _was_over(self, trial: Trial) -> bool:
        """Whether a trial that Ray wants to run again had come to its end before a restart."""
        return bool(self._records.get(trial.trial_id, {}).get("over"))

    def _open_if_ready(self, tune_controller: TuneController) -> bool:
        search = tune_controller.search_alg
        if not (search.is_finished() or _suggests(search)):
            return False  # more trials are on their way
        if RACE in self._records:
            n_arms = int(self._records.pop(RACE)["n_arms"])
        elif search.is_finished():
            n_arms = self._runs.n_arms
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
        self._open(n_arms)
        self._is_open = True
        self._n_raced = n_arms
        self._put(RACE, {"n_arms": n_arms})
        runs = {run.trial.trial_id: run for run in self._runs}
        with of_this_version("the journal in the experiment's storage"):
            entries = [self._entry(record, runs.get(k)) for k, record in self._records.items()]
            self._recover([entry for entry in entries if entry.arm < n_arms])
        self._records = {}
        return True

    def _entry(self, record: Mapping[str, Any], run: Run | None) -> Entry:
        arm = self._runs.arm(decode(record["config"])) if run is None else run.arm
        return Entry(record, arm, run)

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
                self._limiter_takes(tune_controller, trial)
                give_folder(trial)
                tune_controller.stop_trial(trial)
            self._patience_ends.pop(trial.trial_id, None)
            self._leave(run)
        self._doomed = patient

    def _leave(self, run: Run) -> None:
        run.granted = None
        self._time_limits.forget(run.trial)
        self._busy.pop(run.trial.trial_id, None)
        self._runs.retire(run)
        self._may_find_one = True
        if self._is_open and not self._busy and self._runs.all_over:
            # Ray may end the experiment without another step of its loop.
            self._note_answer()

    def _close(self, tune_controller: TuneController) -> None:
        """End the experiment: the race is over."""
        if self._closed:
            return
        self._closed = True
        tune_controller.search_alg.set_finished()
        for run in list(self._runs):
            if not run.trial.is_finished():
                self._doom(run)
        self._stop_doomed(tune_controller)
        self._note_answer()

    def _end_if_exhausted(self, tune_controller: TuneController) -> None:
        """Stop what is left, if nothing is under way and no arm of the race can be tried."""
        if not self._busy and tune_controller.search_alg.is_finished():
            self._close(tune_controller)

    def _has_room(self, tune_controller: TuneController) -> bool:
        """Whether another trial may be started: Ray must not be told more than it has room for."""
        if not self._busy:
            return True
        most = _most_at_once(tune_controller.search_alg) or math.inf
        room = min(most, self._room(next(iter(self._busy.values())).trial))
        if math.isinf(room):
            return all(run.trial.status == Trial.RUNNING for run in self._busy.values())
        return len(self._busy) < room

    def _room(self, trial: Trial) -> float:
        """How many trials the cluster has room for at once; infinite where that is not known."""
        now = self._clock()
        if now - self._slots_known_at > _CLUSTER_PERIOD:
            self._slots_known_at = now
            self._slots = self._count_slots(trial)
        return self._slots

    def _limiter_lets_go(self, tune_controller: TuneController, trial: Trial) -> None:
        """A trial that pauses is not running: others may be suggested in its place."""
        limiter = _limiter(tune_controller.search_alg)
        if limiter is not None:
            limiter.live_trials.discard(trial.trial_id)

    def _limiter_takes(self, tune_controller: TuneController, trial: Trial) -> None:
        limiter = _limiter(tune_controller.search_alg)
        if limiter is not None:
            limiter.live_trials.add(trial.trial_id)


def _suggests(search: Any) -> bool:
    """Whether a search algorithm suggests trials one at a time, rather than listing them."""
    return getattr(search, "searcher", None) is not None


def _limiter(search: Any) -> ConcurrencyLimiter | None:
    """The wrapper that limits how many trials a searcher has under way, if there is one."""
    searcher = getattr(search, "searcher", None)
    while searcher is not None:
        if isinstance(searcher, ConcurrencyLimiter) and searcher._limit_concurrency:
            return searcher
        searcher = getattr(searcher, "searcher", None)
    return None


def _most_at_once(search: Any) -> int:
    """``max_concurrent_trials``, or 0 for no limit."""
    if isinstance(search, BasicVariantGenerator):
        return int(search.max_concurrent or 0)
    limiter = _limiter(search)
    return 0 if limiter is None else int(limiter.max_concurrent)


def _slots(trial: Trial) -> float:
    """How many trials like this one fit into the cluster, at least one."""
    if not ray.is_initialized():
        return math.inf
    needed = required_resources(trial)
    there = ray.cluster_resources()
    fitting = [there.get(name, 0.0) // amount for name, amount in needed.items() if amount > 0]
    return max(1.0, min(fitting, default=math.inf))
