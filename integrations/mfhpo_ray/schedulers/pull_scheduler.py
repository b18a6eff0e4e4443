"""The companion of searchers whose trials are pulls: time limits, and what Ray forgets."""

from __future__ import annotations

import time
from typing import Any, TypeAlias

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_name
from mfhpo_ray.experiment.configurations import find
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.processes import (
    Limits,
    check_reuse,
    early_stop,
    finite_limit,
    give_folder,
    is_tried_again,
    stop_at_once,
    unwrapped,
    was_lost,
)
from mfhpo_ray.schedulers.runs import searchers_of

Result: TypeAlias = dict[str, Any]

LIMIT_KEY = "time_limit_s"
"""Where the configuration of a trial has its limit, where a search sets it."""


class PullScheduler(FIFOScheduler):
    """Run trials in the order in which they come, and end those that take too long.

    Its limits hold for trials that hang, too: in C code, before their first report, deaf to
    signals. A trial that is ended for its time is TERMINATED, counts as no error, and frees its
    slot within a second. Its last result has the limit as ``"mfhpo/censored_at"``.

    Use it with random search, with Optuna's searcher or with those of this package, which make it
    by ``search.scheduler()``. Other searchers may fail on a result without the metric, which a
    trial has that is ended before it reported.

    Parameters
    ----------
    limit
        Seconds that a trial may run, or None; where the searcher chooses one (`SpaceSearch`), the
        smaller counts. What Ray needs to start its process, ``setup`` of a class included, does not
        count.
    memory_limit
        Bytes that a trial may hold with its child processes, or None.
    limit_key
        Where the configuration of a trial has a limit of its own, which then counts instead of
        `limit`; None there means no limit. Nested keys are joined by ``"/"``.

    Notes
    -----
    A limit is kept to about 0.1 seconds. A trial that does not report is killed with its children,
    without ``finally`` or ``atexit``. The clock starts again when a trial runs again.

    Memory is measured four times a second. The process itself counts, about 100 MB with Ray, but
    neither actors that a trial has made nor GPUs. A trial beyond the limit is killed; its last
    result has the bytes as ``"mfhpo/memory_used"``. To a race, and to a certificate, that is a
    failure. Where trials have limits of time it counts as stopped there; a `SpaceSearch` does not
    try it again.
    """

    ends_early = False  # that is, trials within their limits

    def __init__(
        self,
        limit: float | None = None,
        limit_key: str = LIMIT_KEY,
        *,
        memory_limit: float | None = None,
    ) -> None:
        FIFOScheduler.__init__(self)  # untyped in Ray, and only by its name exempt from the check
        self._limit = finite_limit("limit", limit)
        self._limit_key = check_name("limit_key", limit_key, "a key of the configuration")
        self._clock = time.monotonic
        self._limits = Limits(self._now, memory_limit)
        self._search: Any = None  # its `Evaluations`, which import this module
        self._folder: str | None = None

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Limit a trial, and tell the searcher what it holds."""
        check_reuse(tune_controller, trial)
        self._connect(tune_controller, Journal.of(trial))
        if self._search is not None and self._had_ended(tune_controller, trial):
            return
        if not trial.is_finished():
            self._limits.set(trial, self._limit_of(trial))

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: Result) -> str:
        """Stop a trial that reports beyond its limit."""
        return str(self.STOP if self._limits.exceeded(trial, result) else self.CONTINUE)

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: Result) -> None:
        """Note whether the trial's time was up, before searchers and callbacks hear of its end."""
        self._limits.settle(trial)
        self._limits.forget(trial)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Drop the trial's limit; it is added again if it is tried again."""
        search, limits, name = self._search, self._limits, trial.trial_id
        if search is not None and is_tried_again(trial):
            search.owe(name, limits.seconds_of_failed_attempt(trial))
        elif search is not None:
            search.note_seconds(name, limits.seconds(trial))
            if was_lost(trial):
                search.lose(name)
        limits.forget(trial)

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """Drop the limit of a trial that will not be started."""
        self._limits.forget(trial)

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """Keep the limits; Tune then starts the trials that wait, first in, first out."""
        search = self._search
        if search is not None and self._folder is not None:
            search.lose_awaited()  # all trials have shown by now
        self._limits.enforce(tune_controller)
        if search is None or not (search.finished and search.stops_surplus):
            return
        for trial in [each for each in tune_controller.get_live_trials() if not each.is_finished()]:
            search.discard(trial.trial_id)
            self._limits.forget(trial)
            give_folder(trial)
            stop_at_once(tune_controller, trial)

    def _now(self) -> float:
        return self._clock()

    def __getstate__(self) -> dict[str, Any]:
        # A copy is for an experiment of its own, or for the same one after a restart.
        return self.__dict__ | {"_search": None, "_folder": None}

    def _connect(self, tune_controller: Any, journal: Journal | None) -> None:
        """Find the searcher of ours below what Tune wraps it in, and connect it once."""
        search_alg = tune_controller.search_alg
        search = next((s for s in searchers_of(search_alg) if hasattr(s, "evaluations")), None)
        folder = None if journal is None else journal.folder
        if search is None or (search.evaluations is self._search and folder == self._folder):
            return
        self._search, self._folder = search.evaluations, folder
        # Tune tells a search only of conditions in a dictionary. A time budget is a stopper, too.
        if what := early_stop(getattr(unwrapped(tune_controller), "_stopper", None)):
            search.warn_of_stop(what)
        if journal is not None:
            search.connect(journal)

    def _had_ended(self, tune_controller: Any, trial: Trial) -> bool:
        """Tell the searcher about a trial; return whether it had ended before a restart."""
        search, name = self._search, trial.trial_id
        result = search.completed(name)
        if trial.is_finished():
            if result is None:
                search.discard(name)
        elif search.repeats(trial) or result is None:
            search.watch(name)
            return False
        else:  # Ray queues it again: it looks at the status after this, and counts it as it is then
            trial.set_status(Trial.TERMINATED)
            tune_controller.get_live_trials().discard(trial)
            trial.update_last_result({"config": trial.config, **result, "trial_id": name})
            # What limits the number of concurrent trials was restored too, and waits for this one.
            flat = flatten_dict(trial.last_result)
            tune_controller.search_alg.on_trial_complete(name, result=flat)
        return True

    def _limit_of(self, trial: Trial) -> float | None:
        found = find(trial.config, self._limit_key, self._limit)
        limit = finite_limit(f"config[{self._limit_key!r}] of trial {trial.trial_id}", found)
        chosen = None if self._search is None else self._search.limit_of(trial.trial_id)
        return min((one for one in (limit, chosen) if one is not None), default=None)
