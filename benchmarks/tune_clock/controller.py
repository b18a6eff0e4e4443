"""A stand-in for Tune's controller, with a virtual clock."""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any

import pyarrow.fs
from ray.train._internal.session import _TrainingResult
from ray.train._internal.storage import StorageContext
from ray.tune import Checkpoint, PlacementGroupFactory
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher
from ray.tune.utils import flatten_dict

from benchmarks.tune_clock.cluster import Actor, SimulatedTrial, Slots
from benchmarks.tune_clock.curves import Curves, Step
from benchmarks.tune_clock.outcome import Event, SimulatedRun
from benchmarks.tune_clock.search import search_algorithm

# Tune's own figures: how long its loop waits for an event, for a searcher when no trial is left,
# and until it kills the process of a stopped trial that does not end.
_LOOP_SECONDS = 0.1
_AWAIT_SECONDS = 600
_CLEANUP_SECONDS = 600.0
# Of what happens at the same time, what has the lower rank comes first.
_RANK = 1
# How often the loop may turn with nothing ahead before it is taken for stuck.
_MOST_IDLE_TURNS = 1_000_000


@dataclass(frozen=True)
class Options:
    """The options of `simulate`.

    Parameters
    ----------
    slots
        Number of trials that run at once.
    max_t
        Iterations of a trial (``stop={"training_iteration": max_t}``); the scheduler gets the
        result that ends a trial in ``on_trial_complete`` only. None: until the curves end or the
        scheduler stops it.
    metric, mode
        Name of what is reported, and whether the largest or the smallest is the best; a scheduler
        or a searcher with its own keeps it.
    checkpoints
        Whether a trial that is paused is saved, and goes on from there. If not, it begins anew.
    num_samples
        Number of trials that a searcher makes; -1: until it is finished.
    max_concurrent_trials
        As in ``tune.TuneConfig``; 0: no limit.
    max_failures
        How often a trial that crashed is run again; -1: without end.
    storage
        Where trials are stored; None: nowhere.
    time_budget
        Virtual seconds after which the experiment is ended.
    poll_seconds
        How long the loop waits for an event before it asks the scheduler again. None: 0.1 as in
        Tune for a scheduler or a searcher with a clock, and otherwise for ever.
    """

    slots: int = 8
    max_t: int | None = None
    metric: str = "value"
    mode: str = "max"
    checkpoints: bool = False
    num_samples: int = -1
    max_concurrent_trials: int = 0
    max_failures: int = 0
    storage: StorageContext | None = None
    time_budget: float = math.inf
    poll_seconds: float | None = None


def simulate(
    scheduler: TrialScheduler,
    trials: Iterable[Mapping[str, Any]] | Searcher,
    curves: Curves,
    **options: Any,
) -> SimulatedRun:
    """Run an experiment of Ray Tune in virtual time.

    Parameters
    ----------
    scheduler
        Any scheduler that decides about trials only. Where the scheduler or the searcher has an
        attribute ``_clock``, it is set to the virtual clock; so is what counts a scheduler's slots.
    trials
        The configurations, in their order, or a searcher that suggests them.
    curves
        What training gives.
    **options
        See `Options`.

    Raises
    ------
    RuntimeError
        If nothing happens any more though trials are left.

    Examples
    --------
    >>> from ray.tune.schedulers import AsyncHyperBandScheduler
    >>> from benchmarks.tune_clock import ReplayedCurves, simulate
    >>> curves = ReplayedCurves([[0.3, 0.4, 0.5, 0.6], [0.1, 0.2, 0.3, 0.4]], seconds=10.0)
    >>> scheduler = AsyncHyperBandScheduler(max_t=4, reduction_factor=2)
    >>> run = simulate(scheduler, [{"arm": 0}, {"arm": 1}], curves, slots=1)
    >>> [trial.last_result["training_iteration"] for trial in run.trials]
    [4, 1]
    >>> run.iterations, run.slot_seconds, run.best()[1]
    (5, 50.0, 0.6)
    """
    return Controller(scheduler, trials, curves, Options(**options)).run()


class Controller:
    """Runs trials in virtual time; what schedulers use of Tune's controller has the same name."""

    def __init__(
        self,
        scheduler: TrialScheduler,
        trials: Iterable[Mapping[str, Any]] | Searcher,
        curves: Curves,
        options: Options,
    ) -> None:
        # A scheduler expects Tune's own controller, which this is not.
        self._scheduler_alg: Any = scheduler
        self._curves = curves
        self._options = options
        max_t = options.max_t
        self._stop = {} if max_t is None else {"training_iteration": max_t}
        self.search_alg: Any = search_algorithm(
            trials,
            self._make_trial,
            options.num_samples,
            options.max_concurrent_trials,
        )

        self._seconds = 0.0
        self._events: list[Event] = []
        # What will happen: (when, its rank at that time, a number that breaks ties, what to do).
        self._ahead: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

        self._trials: list[Trial] = []
        self._live_trials: set[Trial] = set()
        statuses = (Trial.PENDING, Trial.RUNNING, Trial.PAUSED, Trial.TERMINATED, Trial.ERROR)
        self._by_status: dict[str, set[Trial]] = {status: set() for status in statuses}
        # As Tune names them, for those who look.
        self._pending_trials = self._by_status[Trial.PENDING]
        self._running_trials = self._by_status[Trial.RUNNING]
        self._pending_trials_list: deque[Trial] = deque()
        self._decisions_after_saving: dict[Trial, str] = {}

        self._slots = Slots(options.slots)
        # Trials that wait for a slot, in turn.
        self._requests: deque[Trial] = deque()
        self._trial_to_actor: dict[Trial, Actor] = {}
        self._started_actors: set[Actor] = set()

        with_clock: list[Any] = [part for part in (scheduler, trials) if hasattr(part, "_clock")]
        for part in with_clock:
            part._clock = self._now
        self._poll_seconds = options.poll_seconds or (_LOOP_SECONDS if with_clock else math.inf)
        if hasattr(self._scheduler_alg, "_slots"):
            self._scheduler_alg._slots.count = self._count_slots
        self._tell_metric()

    # What schedulers use.

    def get_trials(self) -> list[Trial]:
        """All trials, in the order in which they were added."""
        return self._trials

    def get_live_trials(self) -> set[Trial]:
        """Trials that were not stopped."""
        return self._live_trials

    def get_trial(self, tid: str) -> Trial | None:
        """The trial with that name, if there is one."""
        return next((trial for trial in self._trials if trial.trial_id == tid), None)

    def stop_trial(self, trial: Trial) -> None:
        """End a trial, whatever its status; the scheduler and the searcher are told.

        In the middle of an iteration its slot is held on until that is over, for ten minutes at
        most.
        """
        if trial.is_finished():
            return
        if trial.status == Trial.RUNNING:
            self._scheduler_alg.on_trial_complete(self, trial, flatten_dict(trial.last_result))
            # The scheduler may have added to it.
            result = flatten_dict(trial.last_result)
            self.search_alg.on_trial_complete(trial.trial_id, result=result)
        else:
            self._scheduler_alg.on_trial_remove(self, trial)
            self.search_alg.on_trial_complete(trial.trial_id)
        self._end(trial, Trial.TERMINATED)
        self._live_trials.discard(trial)

    def pause_trial(self, trial: Trial, should_checkpoint: bool = True) -> None:
        """Take a trial out of its slot, after its iteration if it is in the middle of one."""
        self._decisions_after_saving.pop(trial, None)
        actor = self._trial_to_actor.get(trial)
        if actor is None:
            return
        if should_checkpoint:
            self._decisions_after_saving[trial] = TrialScheduler.PAUSE
            state: Any = trial.temporary_state
            state.saving_to = actor
            when = max(actor.busy_until, self._seconds)
            # A trial that has ended its step is saved at once, before others end theirs.
            rank = 0 if when == self._seconds else _RANK
            self._later(when, trial, actor, self._on_saved, rank)
        else:
            self._leave(trial)
            self._set_trial_status(trial, Trial.PAUSED)
            self._note(trial, "paused")

    def _set_trial_status(self, trial: Trial, status: str) -> None:
        if trial.status == status:
            return
        self._by_status[trial.status].remove(trial)
        self._by_status[status].add(trial)
        if status == Trial.PENDING:
            self._pending_trials_list.append(trial)
        metadata: Any = trial.run_metadata
        if status == Trial.RUNNING and metadata.start_time is None:
            metadata.start_time = self._seconds
        trial.set_status(status)

    # The loop.

    def is_finished(self) -> bool:
        """Return whether every trial has ended and no other will come."""
        return not self._any_is_live and self.search_alg.is_finished()

    def run(self) -> SimulatedRun:
        """Run until all trials have ended."""
        idle_turns = 0
        while not self.is_finished():
            idle_turns = 0 if self._ahead else idle_turns + 1
            if idle_turns > _MOST_IDLE_TURNS:
                raise self._stuck()
            self.step()
        return SimulatedRun(
            trials=tuple(self._trials),
            events=tuple(self._events),
            metric=self._options.metric,
            mode=self._options.mode,
            slot_seconds=self._slots.seconds(self._seconds),
            iterations=sum(event.kind == "result" for event in self._events),
            makespan=self._seconds,
        )

    def step(self) -> None:
        """One turn of the loop: new trials, starts, then the next event."""
        while len(self._pending_trials) < self.search_alg.max_pending:
            trial = self.search_alg.next_trial() or self._awaited_trial()
            if trial is None:
                break
            self.add_trial(trial)
        self._start_trials()
        when = self._ahead[0][0] if self._ahead else math.inf
        turn = self._seconds + self._poll_seconds
        if min(when, turn) > self._options.time_budget:
            self._seconds = max(self._seconds, self._options.time_budget)
            self.search_alg.set_finished()
            for trial in self._trials:
                if not trial.is_finished():
                    self._end(trial, Trial.TERMINATED)
        elif self._ahead and when <= turn:
            self._seconds, _, _, happen = heapq.heappop(self._ahead)
            happen()
        elif math.isfinite(turn):
            self._seconds = turn
        elif not self.is_finished():
            raise self._stuck()

    def add_trial(self, trial: Trial) -> None:
        """Add a trial; the scheduler may set its status before it is queued."""
        trial.create_placement_group_factory()
        self._trials.append(trial)
        self._live_trials.add(trial)
        self._scheduler_alg.on_trial_add(self, trial)
        self._by_status[trial.status].add(trial)
        if trial.status == Trial.PENDING:
            self._pending_trials_list.append(trial)
        self._note(trial, "added")

    @property
    def _any_is_live(self) -> bool:
        return any(self._by_status[s] for s in (Trial.PENDING, Trial.RUNNING, Trial.PAUSED))

    def _now(self) -> float:
        return self._seconds

    def _count_slots(self, trial: Trial) -> float:
        return self._options.slots

    def _tell_metric(self) -> None:
        """Tell searcher and scheduler what is optimised, unless they know."""
        options = self._options
        metric, mode = options.metric, options.mode
        public = {"stop": self._stop, "num_samples": options.num_samples}
        self.search_alg.set_search_properties(metric, mode, {}, **public)
        if not self._scheduler_alg.set_search_properties(metric, mode, **public):
            self._scheduler_alg.set_search_properties(None, None, **public)

    def _make_trial(self, trial_id: str, configuration: dict[str, Any], number: int) -> Trial:
        return SimulatedTrial(
            "simulated",
            is_saved=self._options.checkpoints,
            config=configuration,
            trial_id=trial_id,
            storage=self._options.storage,
            evaluated_params=flatten_dict(configuration),
            experiment_tag=str(number),
            placement_group_factory=PlacementGroupFactory([{"CPU": 1.0}]),
            stopping_criterion=self._stop,
            max_failures=self._options.max_failures,
            stub=True,
        )

    def _awaited_trial(self) -> Trial | None:
        """Return what a searcher suggests that is asked every second, while no trial is left."""
        for _ in range(_AWAIT_SECONDS):
            if self._any_is_live or self.search_alg.is_finished():
                break
            self._seconds += 1.0
            trial: Trial | None = self.search_alg.next_trial()
            if trial is not None:
                return trial
        return None

    def _start_trials(self) -> None:
        """Queue what the scheduler has chosen, then what waits, and give out the free slots."""
        chosen = self._scheduler_alg.choose_trial_to_run(self)
        if chosen is not None:
            self._queue_chosen(chosen)
        while self._pending_trials_list and len(self._requests) < self.search_alg.max_pending:
            trial = self._pending_trials_list.popleft()
            is_staged = trial in self._requests or trial in self._trial_to_actor
            if trial in self._pending_trials and not is_staged:
                self._requests.append(trial)
        while self._requests and self._slots.are_free:
            trial = self._requests.popleft()
            actor = self._slots.take(self._seconds, self._on_killed)
            self._trial_to_actor[trial] = actor
            self._later(actor.busy_until, trial, actor, self._on_started)

    def _queue_chosen(self, chosen: Trial) -> None:
        if chosen in self._trial_to_actor:
            return
        is_queued = chosen in self._requests
        if not is_queued:
            self._set_trial_status(chosen, Trial.PENDING)
        # An idle process is the chosen trial's at once; new ones are asked for in turn.
        if self._slots.have_idle:
            if is_queued:
                self._requests.remove(chosen)
            self._requests.appendleft(chosen)
        elif not is_queued:
            self._requests.append(chosen)

    def _stuck(self) -> RuntimeError:
        counts = {status: len(trials) for status, trials in self._by_status.items() if trials}
        return RuntimeError(
            f"after {self._seconds:g} virtual seconds nothing happens any more, with trials "
            f"{counts or 'none'}: the scheduler chooses none of those that are paused, those that "
            f"run hang, or the searcher suggests nothing."
        )

    # What happens.

    def _later(
        self,
        when: float,
        trial: Trial,
        actor: Actor,
        happen: Callable[[Trial, Actor], None],
        rank: int = _RANK,
    ) -> None:
        """Let something happen to a trial, unless it has left its slot by then."""

        def happen_if_there() -> None:
            if self._trial_to_actor.get(trial) is actor:
                happen(trial, actor)

        self._at(when, happen_if_there, rank)

    def _at(self, when: float, happen: Callable[[], None], rank: int = _RANK) -> None:
        heapq.heappush(self._ahead, (when, rank, next(self._numbers), happen))

    def _on_started(self, trial: Trial, actor: Actor) -> None:
        self._started_actors.add(actor)
        state: Any = trial.temporary_state
        state.ray_actor = actor
        trial._default_result_or_future = self._reported_by_all(trial)
        self._set_trial_status(trial, Trial.RUNNING)
        saved = trial.latest_checkpoint_result
        if saved:
            trial.temporary_state.restoring_from = saved
            trial.on_restore()
            actor.iteration = actor.restored_iteration = saved.metrics["training_iteration"]
            actor.seconds = actor.restored_seconds = saved.metrics["time_total_s"]
        self._note(trial, "started")
        self._train(trial, actor)

    def _train(self, trial: Trial, actor: Actor) -> None:
        step = self._curves.step(trial.config, actor.iteration + 1)
        if step is None:
            self._later(self._seconds, trial, actor, self._on_returned)
            return
        actor.busy_until = self._seconds + step.seconds
        if math.isinf(step.seconds):
            return
        if step.failed:
            self._later(actor.busy_until, trial, actor, self._on_failed)
            return
        self._later(actor.busy_until, trial, actor, partial(self._on_trained, step=step))

    def _on_trained(self, trial: Trial, actor: Actor, step: Step) -> None:
        actor.iteration += 1
        actor.seconds += step.seconds
        result: dict[str, Any] = {
            self._options.metric: step.value,
            "done": False,
            "training_iteration": actor.iteration,
            "time_this_iter_s": step.seconds,
            "time_total_s": actor.seconds,
            "time_since_restore": actor.seconds - actor.restored_seconds,
            "iterations_since_restore": actor.iteration - actor.restored_iteration,
            **self._reported_by_all(trial),
        }
        self._note(trial, "result", step.value)
        flat = flatten_dict(result)
        decision = self._decision(trial, flat)
        if decision == TrialScheduler.STOP:
            result["done"] = True
        else:
            self.search_alg.on_trial_result(trial.trial_id, flat)
        trial.update_last_result(result)
        trial.run_metadata.last_result_time = self._seconds
        self._execute(trial, actor, decision)

    def _reported_by_all(self, trial: Trial) -> dict[str, Any]:
        now = datetime.fromtimestamp(self._seconds, tz=timezone.utc)
        return {
            "trial_id": trial.trial_id,
            "date": now.strftime("%Y-%m-%d_%H-%M-%S"),
            "timestamp": int(self._seconds),
            "pid": 0,
            "hostname": "simulated",
            "node_ip": "127.0.0.1",
            "config": trial.config,
        }

    def _on_returned(self, trial: Trial, actor: Actor) -> None:
        """When a training function returns, Tune sees its last result again, marked as done."""
        result = trial.last_result
        result["done"] = True
        self._execute(trial, actor, self._decision(trial, flatten_dict(result)))

    def _decision(self, trial: Trial, result: dict[str, Any]) -> str:
        if trial.should_stop(result):
            return TrialScheduler.STOP
        return str(self._scheduler_alg.on_trial_result(self, trial, result))

    def _execute(self, trial: Trial, actor: Actor, decision: str) -> None:
        if trial.is_saving:
            # It was paused from elsewhere in the middle of this iteration.
            if decision in (TrialScheduler.PAUSE, TrialScheduler.STOP):
                self._decisions_after_saving[trial] = decision
        elif decision == TrialScheduler.CONTINUE:
            if self._trial_to_actor.get(trial) is actor:
                self._train(trial, actor)
        elif decision == TrialScheduler.PAUSE:
            self.pause_trial(trial)
        elif decision == TrialScheduler.STOP:
            self.stop_trial(trial)

    def _on_saved(self, trial: Trial, actor: Actor) -> None:
        if self._options.checkpoints:
            checkpoint = Checkpoint(trial.trial_id, pyarrow.fs.LocalFileSystem())
            trial.on_checkpoint(_TrainingResult(checkpoint, dict(trial.last_result)))
            self._note(trial, "saved")
        trial.temporary_state.saving_to = None
        decision = self._decisions_after_saving.pop(trial, None)
        if decision == TrialScheduler.STOP:
            self.stop_trial(trial)
        elif decision == TrialScheduler.PAUSE:
            self.pause_trial(trial, should_checkpoint=False)

    def _on_failed(self, trial: Trial, actor: Actor) -> None:
        trial.handle_error()
        if not trial.should_recover():
            self._scheduler_alg.on_trial_error(self, trial)
            self.search_alg.on_trial_complete(trial.trial_id, error=True)
            self._end(trial, Trial.ERROR)
            return
        self._end(trial, Trial.ERROR)
        self._scheduler_alg.on_trial_error(self, trial)
        self._set_trial_status(trial, Trial.PENDING)
        self._trials.remove(trial)
        self._trials.append(trial)
        self._live_trials.add(trial)
        self._scheduler_alg.on_trial_add(self, trial)
        self._note(trial, "requeued")

    def _end(self, trial: Trial, status: str) -> None:
        self._note(trial, status.lower())
        self._set_trial_status(trial, status)
        self._leave(trial)

    def _leave(self, trial: Trial) -> None:
        """Take a trial from its slot, or from the queue for one."""
        trial.temporary_state.saving_to = None
        self._decisions_after_saving.pop(trial, None)
        actor = self._trial_to_actor.pop(trial, None)
        if actor is None:
            if trial in self._requests:
                self._requests.remove(trial)
            return
        trial.temporary_state.ray_actor = None
        # Whoever is going to kill a process takes it out of these, so that it is not used again.
        keep = actor in self._started_actors
        self._started_actors.discard(actor)
        if actor.busy_until <= self._seconds or actor.is_killed:
            keep = keep and trial.status != Trial.ERROR and not actor.is_killed
            self._slots.free(actor, self._seconds, keep=keep)
            return

        when = min(actor.busy_until, self._seconds + _CLEANUP_SECONDS)
        self._at(when, lambda: self._slots.free(actor, self._seconds, keep=False))

    def _on_killed(self, actor: Actor) -> None:
        """Free the slot of a trial that was stopped; for one that was not it is an error."""
        for trial, process in self._trial_to_actor.items():
            if process is actor:
                self._later(self._seconds, trial, actor, self._on_failed)
                return
        self._slots.free(actor, self._seconds, keep=False)

    def _note(self, trial: Trial, kind: str, value: float | None = None) -> None:
        actor = self._trial_to_actor.get(trial)
        if actor is not None:
            iteration = actor.iteration
        else:
            iteration = trial.run_metadata.last_result.get("training_iteration", 0)
        self._events.append(Event(self._seconds, trial.trial_id, kind, iteration, value))
