"""Trials as they run and end: which have news, which are under way, and how each has ended."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any, TypeAlias

import optuna
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages._cached_storage import _CachedStorage
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from mfhpo.experiment import Lost
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.processes import is_surely_alive, is_surely_dead

TrialAt: TypeAlias = Callable[[int], FrozenTrial]
"""Returns the trial of a number; LookupError if there is none."""

# Seconds that a running trial is waited for at least, and how many times the slowest one so far.
_LEAST_LEASE, _LEASE_FACTOR = 60.0, 10.0


class TrialNews:
    """Reads each trial of a study while it is under way, and once when it has ended."""

    def __init__(self) -> None:
        self._n_read = 0
        self._open: set[int] = set()
        # When trials were first seen running, by a clock that nobody sets; None at the first
        # reading, as they had begun before. The dictionary is None until then.
        self.seen: dict[int, float | None] | None = None

    def read(self, study: optuna.Study) -> list[FrozenTrial] | None:
        """Return the new trials and those that had not ended; None if the study lost trials.

        It was deleted and made again then, and has not as many yet.
        """
        with _trials_in_place(study) as trial_at:  # as they are at one moment
            try:
                if self._n_read > 0:
                    trial_at(self._n_read - 1)
                news = list(map(trial_at, sorted(self._open)))
            except LookupError:
                return None
            with suppress(LookupError):
                for number in count(self._n_read):
                    news.append(trial_at(number))
        self._n_read += len(news) - len(self._open)
        now, before = None if self.seen is None else time.monotonic(), self.seen or {}
        self._open, self.seen = set(), {}
        for trial in news:
            if not trial.state.is_finished():
                self._open.add(trial.number)
            if trial.state == TrialState.RUNNING:
                self.seen[trial.number] = before.get(trial.number, now)
        return news

    def seconds_under_way(self, trial: FrozenTrial) -> float:
        """Return how long a trial has been running.

        The time that the study says counts only for trials that ran when it was first read, because
        another machine's clock may have written it.
        """
        seen, since = (self.seen or {}).get(trial.number), trial.datetime_start
        if seen is not None:
            return time.monotonic() - seen
        return 0.0 if since is None else (datetime.now() - since).total_seconds()


@contextmanager
def _trials_in_place(study: optuna.Study) -> Iterator[TrialAt]:
    """Yield access to a study's trials where its storage keeps them, brought up to date.

    Optuna's own methods, for other storages, go through all trials: slow in a long study.
    """
    with ExitStack() as locks:
        try:
            trial_at = _in_place(study._storage, study._study_id, locks)
        except AttributeError:  # a version of Optuna whose storages are made otherwise
            locks.close()
            trial_at = None
        yield trial_at or study.get_trials(deepcopy=False).__getitem__


def _in_place(storage: Any, study_id: int, locks: ExitStack) -> TrialAt | None:
    reads = type(storage).get_all_trials  # a subclass may read in its own way
    if reads in (InMemoryStorage.get_all_trials, _CachedStorage.get_all_trials):
        if isinstance(storage, _CachedStorage):
            storage._read_trials_from_remote_storage(study_id)
        locks.enter_context(storage._lock)
        at: TrialAt = storage._studies[study_id].trials.__getitem__
        return at
    if reads is not JournalStorage.get_all_trials:
        return None
    locks.enter_context(storage._thread_lock)
    storage._sync_with_backend()
    replay = storage._replay_result
    if study_id not in replay._studies:
        raise KeyError(study_id)
    trials, ids = replay._trials, replay._study_id_to_trial_ids[study_id]
    return lambda number: trials[ids[number]]


class UnderWay:
    """The claims of trials that have not ended.

    A trial is waited for `lease` seconds. None: ten times as long as the slowest one would have
    taken, by the declared cost of claims, and at least a minute; or a minute and twice its limit.
    """

    def __init__(
        self, news: TrialNews, lease: float | None, cost_of: Callable[[attributes.PullNote], float]
    ) -> None:
        self.claims: dict[int, attributes.PullNote] = {}
        self.begun_here: dict[int, float] = {}  # when trials began, by a clock that nobody sets
        self._news, self._lease, self._cost_of = news, lease, cost_of
        self._trials: dict[int, FrozenTrial] = {}  # as last seen
        self._seconds_per_cost = 0.0  # of the slowest trial

    def see(self, trial: FrozenTrial, claim: attributes.PullNote) -> None:
        """Note that a trial is under way."""
        self.claims[trial.number], self._trials[trial.number] = claim, trial

    def end(self, trial: FrozenTrial, claim: attributes.PullNote, seconds: float | None) -> None:
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
        if is_surely_dead(claim.worker):
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
            if is_surely_dead(claim.worker):
                yield trial, "its process died", True
            elif (self._lease is not None or unordered) and self.is_expired(number):
                yield trial, f"it ran for {self._news.seconds_under_way(trial):.0f} seconds", False

    def waited_for(self) -> dict[int, attributes.PullNote]:
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


# Returns the seconds that the objective has run which this thread serves; None without one.
objective_clock: ContextVar[Callable[[], float] | None] = ContextVar(
    "objective_clock", default=None
)


def limit_of(trial: BaseTrial, given: float | None = None) -> float | None:
    """Return the seconds that a trial may take, by its note or as `given`; None without a limit."""
    noted: float | None = attributes.read_attribute(trial, attributes.LIMIT_KEY)
    if noted is None or noted == float("inf"):
        return given
    return float(noted) if given is None else min(float(noted), given)


@dataclass(frozen=True)
class End:
    """The end of a trial, as the storage says or as it is told at this moment.

    `order` and `worker` are what whoever ended it has noted; None if nobody did. Only COMPLETE
    trials have values: pruned ones have reported some only.
    """

    state: TrialState
    values: tuple[float, ...] | None
    order: int | None = None
    worker: str | None = None
    seconds: float | None = None


def end_of(trial: FrozenTrial) -> End:
    """Return how a finished trial has ended."""
    state, note = trial.state, attributes.read_attribute(trial, attributes.END_KEY)
    # It may have been copied to the one that repeats it, or another state was stored after all.
    is_own = note is not None and (note.trial, note.state) == (trial.number, state.name)
    order, worker = (note.order, note.worker) if is_own else (None, None)
    seconds: float | None = attributes.read_attribute(trial, attributes.SECONDS_KEY)
    begun, ended = trial.datetime_start, trial.datetime_complete
    # A trial whose worker died is failed when somebody notices, maybe days later.
    if seconds is None and state != TrialState.FAIL and begun and ended:
        seconds = max(0.0, (ended - begun).total_seconds())  # the clock may have been set back
    values = tuple(trial.values) if trial.values and state == TrialState.COMPLETE else None
    return End(state, values, order, worker, seconds)


def lost_of(trial: FrozenTrial) -> Lost | None:
    """Return that a trial was given up, as somebody has noted on it."""
    note: attributes.EndNote | None = attributes.read_attribute(trial, attributes.LOST_KEY)
    if note is None or note.trial != trial.number:
        return None
    return Lost(
        id=str(trial.number),
        order=note.order,
        why=note.why,
        cost=0.0 if note.is_withdrawn else None,
        is_sure=note.is_sure,
        is_withdrawn=note.is_withdrawn,
    )
