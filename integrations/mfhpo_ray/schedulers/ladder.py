"""Which runs could be sent on, by arm and by how far they have come."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt
from ray.tune.experiment import Trial

from mfhpo_ray.schedulers.runs import Run

__all__ = ["Ladder"]

IntArray = npt.NDArray[np.int64]


class Ladder:
    """Where the runs of each arm stand, so that none has to be searched for."""

    def __init__(self, n_arms: int, n_levels: int) -> None:
        self._n_levels = n_levels
        # Which level is next for a run, by the name of its trial.
        self._following: dict[str, int] = {}
        # For an arm and the level that is next, the runs in the order in which they came there.
        self._rungs: defaultdict[tuple[int, int], dict[str, Run]] = defaultdict(dict)
        # How many these are; among them are runs under way, and some that are over.
        self._numbers: IntArray = np.zeros((n_arms, n_levels), dtype=np.int64)

    def put(self, run: Run) -> None:
        """Note where a run stands; to be called again whenever it has come further."""
        self._take_off(run)
        following = run.reached + 1
        if following < self._n_levels:
            self._following[run.trial.trial_id] = following
            self._rungs[run.arm, following][run.trial.trial_id] = run
            self._numbers[run.arm, following] += 1

    def with_runs_below(self, arms: IntArray, level: int) -> IntArray:
        """Those of some arms that may have a run for `furthest_below`, and no other, shape (n,)."""
        chosen: IntArray = arms[self._numbers[arms, : level + 1].any(axis=1)]
        return chosen

    def furthest_below(self, arm: int, level: int, at_rest: Run | None) -> Run | None:
        """Of an arm's runs that were not yet at a level, the one that has come furthest.

        A run that has just come to a level, `at_rest`, can go on though it is not paused.
        """
        for following in range(level, -1, -1):
            found = None
            over = []
            for run in self._rungs[arm, following].values():
                if run.waits or run is at_rest:
                    found = run
                    break
                # Those that are under way stay; there are no more of them than slots.
                if run.doomed or run.trial.status in (Trial.TERMINATED, Trial.ERROR):
                    over.append(run)
            for run in over:
                self._take_off(run)
            if found is not None:
                return found
        return None

    def _take_off(self, run: Run) -> None:
        following = self._following.pop(run.trial.trial_id, None)
        if following is not None:
            del self._rungs[run.arm, following][run.trial.trial_id]
            self._numbers[run.arm, following] -= 1
