"""Trials under way, and how long they are waited for."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from optuna.trial import FrozenTrial

from mfhpo import Pull
from mfhpo_optuna.study.attributes import LIMIT_KEY, PullNote, pull_note, read_attribute
from mfhpo_optuna.study.trials.news import TrialNews
from mfhpo_optuna.study.trials.processes import is_surely_dead

# Seconds that a running trial is waited for at least, and how many times the slowest one so far.
_LEAST_LEASE = 60.0
_LEASE_FACTOR = 10.0

# Parameters, note and limit of a trial, and whether there was a policy already.
_Look: TypeAlias = tuple[dict[str, Any], PullNote, float | None, bool]


@dataclass(frozen=True)
class Running:
    """A trial that is under way: what it evaluates, and since when."""

    pull: Pull
    since: datetime | None
    blind: bool = False  # begun before the policy could choose
    worker: str | None = None  # see `worker_name`; None: this process
    arguments: str | None = None  # a digest of its sampler's, if it tells; None: this one's
    level_is_open: bool = False  # it may still be evaluated at another level than the pull's


class UnderWay:
    """The trials of a race that are under way: what they evaluate, since when, and by whom.

    `default_lease` gives the seconds that a pull is waited for where `lease` is None.
    """

    def __init__(
        self, news: TrialNews, lease: float | None, default_lease: Callable[[Pull], float]
    ) -> None:
        self.running: dict[int, Running] = {}  # by number; the race adds what it finds out
        self.n_begun = 0  # in all, also of trials that have ended since
        # When trials began here, by a clock that nobody sets; others are as their attributes say.
        self.begun_here: dict[int, float] = {}
        self._news = news
        self.lease = lease  # seconds; None: `default_lease` says
        self._default_lease = default_lease
        self._looks: dict[int, _Look] = {}  # what was last seen of trials
        self._arms_in_news: set[int] = set()  # of which something is new since then

    def begin(self, trial: FrozenTrial, pull: Pull, blind: bool) -> None:
        """Note that a trial evaluates a pull, which was chosen here."""
        # Optuna copies the attributes of a failed trial to the one that repeats it, which is known
        # from them before it begins.
        self.n_begun += trial.number not in self.running
        self.begun_here[trial.number] = time.monotonic()
        self._is_news_of(pull.arm, trial.number)
        self.running[trial.number] = Running(pull, trial.datetime_start, blind)

    def see(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull, as its attributes say.

        One that has begun here keeps what was chosen here.
        """
        is_new = trial.number not in self.running
        self.n_begun += is_new
        if is_new or trial.number not in self.begun_here:
            note = _note_of(trial)
            self.running[trial.number] = Running(
                pull, trial.datetime_start, worker=note.worker, arguments=note.arguments
            )

    def changed(self, trials: Sequence[FrozenTrial], has_policy: bool) -> list[FrozenTrial]:
        """Return the trials under way about which something is new: most have not changed.

        What an arm is, each of its trials says: all are among them if one is.
        """
        for trial in trials:
            if self._looks.get(trial.number) != _look_at(trial, has_policy):
                self._is_news_of(_note_of(trial).arm, trial.number)
        return [trial for trial in trials if _note_of(trial).arm in self._arms_in_news]

    def keep_looks(self, seen: Sequence[FrozenTrial], has_policy: bool) -> None:
        """See trials that were seen now again only if something is new about their arms."""
        for trial in seen:
            if not self.is_expired(trial.number):  # it may be waited for again
                self._looks[trial.number] = _look_at(trial, has_policy)
        self._arms_in_news.clear()

    def end(self, trial: FrozenTrial) -> None:
        """Note that a trial, whatever it evaluated, is under way no longer."""
        note = pull_note(trial)
        if note is not None:
            self._is_news_of(note.arm, trial.number)
        self.running.pop(trial.number, None)
        self._looks.pop(trial.number, None)

    def _is_news_of(self, arm: int, trial_number: int) -> None:
        """See all trials of an arm again, and of the one that this trial was of before."""
        self._arms_in_news.add(arm)
        if trial_number in self.running:
            self._arms_in_news.add(self.running[trial_number].pull.arm)

    def waited_for(self, trial_number: int) -> list[tuple[int, Pull]]:
        """Return numbers and pulls of the other trials that are waited for."""
        return [
            (number, running.pull)
            for number, running in self.running.items()
            if number != trial_number and not self.is_expired(number)
        ]

    def chosen_by(self, trial_number: int) -> list[tuple[int, Any, str | None]]:
        """Return the other trials that are waited for, with workers and digests of arguments."""
        return [
            (number, self.running[number].worker, self.running[number].arguments)
            for number, _ in self.waited_for(trial_number)
        ]

    def is_expired(self, trial_number: int) -> bool:
        """Return whether a trial is no longer waited for: a dead worker, or a lease over."""
        running = self.running[trial_number]
        return is_surely_dead(running.worker) or self.is_overdue(
            trial_number, running.pull, running.since
        )

    def is_overdue(self, trial_number: int, pull: Pull, since: datetime | None) -> bool:
        """Return whether the lease of a trial is over that began at `since`."""
        lease = self._default_lease(pull) if self.lease is None else self.lease
        return self._news.seconds_under_way(trial_number, since) > lease

    def seconds_since_beginning(self, trial: FrozenTrial) -> float | None:
        """Return how long a trial that ends now has run; None if its beginning is unknown."""
        if trial.number in self.begun_here:
            return time.monotonic() - self.begun_here[trial.number]
        if trial.datetime_start is None:
            return None
        return max(0.0, (datetime.now() - trial.datetime_start).total_seconds())


def _look_at(trial: FrozenTrial, has_policy: bool) -> _Look:
    limit = read_attribute(trial, LIMIT_KEY)
    return dict(trial.params), _note_of(trial), limit, has_policy


def _note_of(trial: FrozenTrial) -> PullNote:
    note = pull_note(trial)
    assert note is not None
    return note


def default_lease(slowest_seconds: float) -> float:
    """Return the seconds to wait for a trial where the slowest took `slowest_seconds`."""
    return max(_LEAST_LEASE, _LEASE_FACTOR * slowest_seconds)
