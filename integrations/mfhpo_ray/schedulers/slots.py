"""Which trials hold slots, whether there is room for another, and which ones are to be stopped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ray.tune.experiment import Trial

from mfhpo_ray.experiment.time_limits import give_folder, stop_at_once
from mfhpo_ray.schedulers.room import live_trials, most_at_once
from mfhpo_ray.schedulers.runs import Run

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

# Seconds after which the cluster is asked for its size again.
_CLUSTER_PERIOD = 5.0
# Seconds that a running trial of an arm that is out has to report before it is killed.
_PATIENCE = 1.0


class Slots:
    """The runs that were started, and those that are to be stopped.

    Parameters
    ----------
    clock
        Returns the time in seconds.
    count
        Returns how many trials like this one the cluster can run; infinite if that is not known.
    """

    def __init__(self, clock: Callable[[], float], count: Callable[[Trial], float]) -> None:
        self.busy: dict[str, Run] = {}
        self.doomed: list[Run] = []
        self._clock = clock
        self._count = count
        self._n_slots = math.inf
        self._known_at = -math.inf
        self._patience_ends: dict[str, float] = {}

    def take(self, run: Run) -> None:
        """Note that a run is started or resumed."""
        self.busy[run.trial.trial_id] = run
        run.began_at = None

    def leave(self, run: Run) -> None:
        """Note that a run holds no slot any more."""
        self.busy.pop(run.trial.trial_id, None)

    def ended(self) -> list[Run]:
        """Return the runs that were started, and neither run nor wait any more."""
        under_way = (Trial.PENDING, Trial.RUNNING)
        ended = [run for run in self.busy.values() if run.trial.status not in under_way]
        for run in ended:
            self.leave(run)
        return ended

    def has_room(self, search: Any) -> bool:
        """Return whether another trial may be started: Ray must not be told more than fit."""
        if not self.busy:
            return True
        room = min(most_at_once(search), self.number())
        if math.isinf(room):
            return all(run.trial.status == Trial.RUNNING for run in self.busy.values())
        return len(self.busy) < room

    def number(self) -> float:
        """Return how many trials the cluster can run at once; infinite if that is not known."""
        now = self._clock()
        if now - self._known_at > _CLUSTER_PERIOD:
            self._known_at = now
            self._n_slots = self._count(next(iter(self.busy.values())).trial)
        return self._n_slots

    def doom(self, run: Run) -> None:
        """Have a run stopped at the next step."""
        run.doomed = True
        self.doomed.append(run)

    def stop_doomed(self, tune_controller: TuneController) -> list[Run]:
        """Stop the doomed; a trial that runs is killed if it does not report within a second."""
        now = self._clock()
        doomed, self.doomed = self.doomed[::-1], []
        stopped = []
        for run in doomed:
            trial = run.trial
            if trial.status == Trial.RUNNING:
                if now < self._patience_ends.setdefault(trial.trial_id, now + _PATIENCE):
                    # With its next result it ends by itself, and its process can be used again.
                    self.doomed.append(run)
                    continue
                stop_at_once(tune_controller, trial)
            elif not trial.is_finished():
                live_trials(tune_controller.search_alg).add(trial.trial_id)
                give_folder(trial)
                tune_controller.stop_trial(trial)
            self._patience_ends.pop(trial.trial_id, None)
            stopped.append(run)
        return stopped
