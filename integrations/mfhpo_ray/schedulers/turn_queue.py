"""Whose turn it is: of all runs that wait, the one that the race wants to go on first."""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from mfhpo.identification.curves.staged_elimination import BoundedElimination
from mfhpo_ray.schedulers.runs import Run, Runs


class _Turn(NamedTuple):
    key: tuple[float, ...]
    run: Run


class TurnQueue:
    """Runs that could be started or go on, those that the race wants first at the front."""

    def __init__(self, race: BoundedElimination, runs: Runs, last: int) -> None:
        self._race = race
        self._runs = runs
        self._last = last
        # One entry for each arm, or more; what has happened to the arm since then may be missing.
        self._heap: list[tuple[tuple[float, ...], int]] = []

    def add(self, arm: int) -> None:
        """Queue an arm, if it has a run that could go on; again whenever its turn may be sooner."""
        turn = self._turn(arm)
        if turn is not None:
            heapq.heappush(self._heap, (turn.key, arm))

    def renew(self) -> None:
        """Queue all arms anew."""
        self._heap = []
        for arm in range(self._runs.n_arms):
            self.add(arm)

    def first(self) -> Run | None:
        """Return the run whose turn it is; None if nothing waits."""
        turn = self._first_turn()
        return None if turn is None else turn.run

    def goes_first(self, run: Run, chosen: Iterable[Run]) -> bool:
        """Return whether a run that has just come to its level goes on before all that wait.

        Those that were `chosen`, and wait for a slot, come first if they are equals.
        """
        turn = self._turn(run.arm, run)
        if turn is None or turn.run is not run:
            return False
        first = self._first_turn()
        others = [] if first is None else [first]
        others += [self._turn_of(other) for other in chosen]
        return all(turn.key <= other.key for other in others)

    def _first_turn(self) -> _Turn | None:
        while self._heap:
            key, arm = self._heap[0]
            turn = self._turn(arm)
            if turn is None:
                heapq.heappop(self._heap)
            elif turn.key == key:
                return turn
            else:  # it was queued before something happened to it
                heapq.heapreplace(self._heap, (turn.key, arm))
        return None

    def _turn(self, arm: int, at_rest: Run | None = None) -> _Turn | None:
        """Return the turn of an arm's first run, maybe the one `at_rest`; None if none can go."""
        if arm not in self._race.active:
            return None
        waiting = [
            run
            for run in self._runs.of(arm)
            if run.reached < self._last and (run.waits or run is at_rest)
        ]
        if not waiting:
            return None
        least = min(waiting, key=lambda run: run.reached)
        most = max(waiting, key=lambda run: run.reached)
        return min(self._turn_of(least), self._turn_of(most), key=lambda turn: turn.key)

    def _turn_of(self, run: Run) -> _Turn:
        ahead = self._race.n_finished(run.arm) + sum(
            other is not run and (other.is_sent or other.reached > run.reached)
            for other in self._runs.of(run.arm)
        )
        return _Turn(self._race.turn(run.arm, ahead), run)
