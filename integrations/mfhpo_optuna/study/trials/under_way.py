"""Trials under way: who runs them, for how long, and which are waited for no longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from optuna.trial import FrozenTrial

from mfhpo_optuna.study.trials.attributes import LIMIT_KEY, read_attribute
from mfhpo_optuna.study.trials.news import TrialNews
from mfhpo_optuna.study.trials.notes import PullNote
from mfhpo_optuna.study.trials.processes import is_surely_alive, is_surely_dead, worker_name

# Seconds that a running trial is waited for at least, and how many times the slowest one so far.
_LEAST_LEASE, _LEASE_FACTOR = 60.0, 10.0


class UnderWay:
    """The claims of trials that have not ended.

    A trial is waited for `lease` seconds. None: ten times as long as the slowest one would have
    taken, by the declared cost of claims, and at least a minute; or a minute and twice its limit.
    """

    def __init__(
        self, news: TrialNews, lease: float | None, cost_of: Callable[[PullNote], float]
    ) -> None:
        self.claims: dict[int, PullNote] = {}
        self.begun_here: dict[int, float] = {}  # when trials began, by a clock that nobody sets
        self._news, self._lease, self._cost_of = news, lease, cost_of
        self._trials: dict[int, FrozenTrial] = {}  # as last seen
        self._seconds_per_cost = 0.0  # of the slowest trial

    def see(self, trial: FrozenTrial, claim: PullNote) -> None:
        """Note that a trial is under way."""
        self.claims[trial.number], self._trials[trial.number] = claim, trial

    def end(self, trial: FrozenTrial, claim: PullNote, seconds: float | None) -> None:
        """Note that a trial has ended, and how long it took."""
        self.give_up(trial.number)
        if seconds is not None:
            rate = seconds / self._cost_of(claim)
            self._seconds_per_cost = max(self._seconds_per_cost, rate)

    def give_up(self, number: int) -> None:
        """Forget a trial that claims nothing any more."""
        for of_running in (self.claims, self._trials, self.begun_here):
            of_running.pop(number, None)

    def seconds_of(self, trial: FrozenTrial) -> float:
        """Return how long a trial has been running."""
        if trial.number in self.begun_here:
            return self.clock() - self.begun_here[trial.number]
        return max(0.0, self._news.seconds_under_way(trial))

    def is_expired(self, number: int) -> bool:
        """Return whether a trial is no longer waited for: a dead worker, or a lease over."""
        claim, trial, lease = self.claims[number], self._trials[number], self._lease
        if _is_dead(claim):
            return True
        if lease is None and (limit := limit_of(trial)) is not None:
            lease = _LEAST_LEASE + 2.0 * limit
        if lease is None:
            lease = max(_LEAST_LEASE, _LEASE_FACTOR * self._seconds_per_cost * self._cost_of(claim))
        return self._news.seconds_under_way(trial) > lease

    def lost(self, promises_nothing: bool) -> Iterator[tuple[FrozenTrial, str, bool]]:
        """Yield the trials that are given up, why, and whether that is sure.

        A worker that may live is given up under a declared lease, which is a condition of the
        answer, and where nothing depends on the order of results.
        """
        for number, claim in list(self.claims.items()):
            trial = self._trials[number]
            unordered = promises_nothing or claim.purpose == "search"
            if _is_dead(claim):
                yield trial, "its process died", True
            elif (self._lease is not None or unordered) and self.is_expired(number):
                yield trial, f"it ran for {self._news.seconds_under_way(trial):.0f} seconds", False

    def waited_for(self) -> dict[int, PullNote]:
        """Return the claims of the trials that are waited for."""
        return {n: claim for n, claim in self.claims.items() if not self.is_expired(n)}

    @property
    def goes_on(self) -> bool:
        """True if trials are under way whose process surely runs."""
        return any(
            number in self.begun_here or is_surely_alive(claim.worker)
            for number, claim in self.waited_for().items()
        )

    clock: Callable[[], float] = staticmethod(time.monotonic)


def limit_of(trial: FrozenTrial) -> float | None:
    """Return the seconds that a trial may take; None without a limit."""
    limit: float | None = read_attribute(trial, LIMIT_KEY)
    return None if limit == float("inf") else limit


def _is_dead(claim: PullNote) -> bool:
    return claim.worker != worker_name() and is_surely_dead(claim.worker)
