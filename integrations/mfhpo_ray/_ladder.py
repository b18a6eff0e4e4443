"""Which runs could be sent on, by arm and by how far they have come."""

from __future__ import annotations

from collections import defaultdict

from ray.tune.experiment import Trial

from mfhpo_ray._runs import Run

__all__ = ["Ladder"]


class Ladder:
    """Where the runs of each arm stand, so that none has to be searched for.

    Parameters
    ----------
    n_levels
        Number of levels; a run that has come to the last one cannot be sent on.
    """

    def __init__(self, n_levels: int) -> None:
        self._n_levels = n_levels
        self._places: dict[str, int] = {}
        # For each arm and each level that is next, the runs in the order in which they came there.
        self._rungs: defaultdict[int, list[dict[str, Run]]] = defaultdict(
            lambda: [{} for _ in range(n_levels)]
        )

    def put(self, run: Run) -> None:
        """Note where a run stands; to be called again whenever it has come further."""
        name = run.trial.trial_id
        rungs = self._rungs[run.arm]
        if name in self._places:
            rungs[self._places.pop(name)].pop(name, None)
        following = run.reached + 1
        if following < self._n_levels:
            self._places[name] = following
            rungs[following][name] = run

    def furthest_below(self, arm: int, level: int, at_rest: Run | None) -> Run | None:
        """Of an arm's runs that were not yet at a level, the one that has come furthest.

        A run that has just come to a level, `at_rest`, can go on though it is not paused.
        """
        return self._first(arm, range(level, -1, -1), at_rest)

    def lowest(self, arm: int, at_rest: Run | None) -> Run | None:
        """Of an arm's runs, the one that has come least far."""
        return self._first(arm, range(self._n_levels), at_rest)

    def _first(self, arm: int, order: range, at_rest: Run | None) -> Run | None:
        rungs = self._rungs[arm]
        for following in order:
            over = []
            found = None
            for name, run in rungs[following].items():
                if run.waits or run is at_rest:
                    found = run
                    break
                # Those that are under way stay; there are no more of them than slots.
                if run.doomed or run.trial.status in (Trial.TERMINATED, Trial.ERROR):
                    over.append(name)
            for name in over:
                del rungs[following][name]
                del self._places[name]
            if found is not None:
                return found
        return None
