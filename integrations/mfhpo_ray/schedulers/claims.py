"""What runs are sent to, and what came of it: told to an experiment as events, which are stored."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from mfhpo.experiment import Assignment, Begun, Ended, Event, Experiment, Found, Joined, Lost
from mfhpo.experiment.settings import Settings
from mfhpo.problem import LARGEST
from mfhpo_ray.experiment.encoding import encode
from mfhpo_ray.experiment.event_log import DRIVER, EVENTS, SHARED, EventLog, events_in
from mfhpo_ray.experiment.journal import of_this_version
from mfhpo_ray.experiment.notebook import Notebook
from mfhpo_ray.schedulers.runs import Run, Runs

ValueOf: TypeAlias = Callable[[Mapping[str, Any]], float | None]

AGAIN = "its trial is run again"
_RESUMPTION = "resumption"


class Stored:
    """What was told before a restart.

    Parameters
    ----------
    records
        Of the journal, by the names of trials.
    """

    def __init__(self, records: Mapping[str, dict[str, Any]]) -> None:
        self.records = records
        with of_this_version("the journal in the experiment's storage"):
            self._events = {name: events_in(record) for name, record in records.items()}

    @property
    def n_arms(self) -> int | None:
        """The number of arms that the race was begun with; None if it was not."""
        joined = [each for each in self._events.get(SHARED, ()) if isinstance(each, Joined)]
        return int(json.loads(joined[0].digest)["n_arms"]) if joined else None

    @property
    def configurations(self) -> list[Mapping[str, Any]]:
        """The configurations of all claims."""
        events = (event for told in self._events.values() for event in told)
        return [event.configuration for event in events if isinstance(event, Begun)]

    def is_over(self, trial_id: str, target: int) -> bool:
        """Return whether a trial has nothing more to say, if it is run: it was seen to its end."""
        last = next(reversed(self._events.get(trial_id, ())), None)
        if not (isinstance(last, Ended) and last.last):
            return False
        if last.value is None:
            return last.stopped_at is not None
        return last.level == target or not abs(last.value) <= LARGEST

    def renew(self, run: Run, configuration: Mapping[str, Any]) -> None:
        """Let a trial's claims be of its configuration, as Ray has restored it: tuples are lists.

        The failure, or the loss, of one that Ray runs again is none.
        """
        name = run.trial.trial_id
        events = self._events.get(name)
        if not events:
            return
        for place, event in enumerate(events):
            if isinstance(event, Begun):
                events[place] = replace(event, configuration=configuration)
        last = events[-1]
        has_failed = isinstance(last, Ended) and last.value is None and last.stopped_at is None
        is_lost = isinstance(last, Lost) and not last.is_withdrawn
        if not run.trial.is_finished() and (has_failed or is_lost):
            cost = getattr(last, "cost", None)
            lost = Lost(id=last.id, order=last.order, why=AGAIN, cost=cost, will_retry=True)
            events[-1] = lost
        self.records[name][EVENTS] = [encode(event.to_dict()) for event in events]


class Claims:
    """Tells an experiment where runs are sent, and what they show there.

    Parameters
    ----------
    runs
        What there is.
    notebook
        Where events are stored.
    cost_of
        Returns what a run has cost that does not come to where it was sent.
    """

    def __init__(self, runs: Runs, notebook: Notebook, cost_of: Callable[[Run], float]) -> None:
        self._runs = runs
        self._notebook = notebook
        self._cost_of = cost_of
        self._log: EventLog  # from `begin` on
        self._found: list[dict[str, Any]] = []
        self._knows_resumption = False
        self._unsent: dict[str, Run] = {}  # that have claims, and are to be sent again

    @property
    def experiment(self) -> Experiment:
        """The experiment, to be read."""
        return self._log.experiment

    def begin(self, settings: Settings, n_arms: int, stored: Stored) -> None:
        """Begin the experiment, or go on with what was told before a restart."""
        self._log = EventLog(settings, {"n_arms": n_arms}, self._notebook)
        self._log.take_over(stored.records)
        for event in self.experiment.events:
            self._knows_resumption |= event.id == _RESUMPTION
            found = self._run_of(event.id)
            if found is not None:
                found.n_claims += isinstance(event, Begun)
                found.note(event)

    def settle(self, is_out: Callable[[int], bool]) -> None:
        """Give up the claims of runs that Ray will not go on with; others are sent again."""
        for id in self.experiment.open:
            run = self._run_of(id)
            if run is not None and not run.trial.is_finished():
                self._unsent[run.trial.trial_id] = run
                continue
            withdrawn = is_out(self.experiment.ledger.open[id].pull.arm)
            why = "the driver has died"
            order = self.experiment.order
            self._log.tell(Lost(id=id, order=order, why=why, is_withdrawn=withdrawn))
            if run is not None:
                run.begun = None

    def send(
        self,
        run: Run,
        levels: Sequence[int] = (0,),
        work: Assignment | None = None,
        limit: float | None = None,
    ) -> None:
        """Send a run to the first of these levels, as assigned or else as it was suggested."""
        id, order = run.next_claim(), self.experiment.order
        if work is not None:
            begun = work.begun(id, order, levels=levels)
        else:
            begun = Begun(
                id=id,
                order=order,
                configuration=self._runs.configurations[run.arm],
                levels=tuple(levels),
                limit=limit,
                purpose=self.experiment.runner.purpose,
                origin="enqueued",
            )
        self._set_out(run, begun)

    def send_again(self) -> Run | None:
        """Send a run again that failed on its way, or was on it when the driver died."""
        for name, run in self._unsent.items():
            if run.waits and run.begun is not None:
                del self._unsent[name]
                id, order, retried = run.next_claim(), self.experiment.order, run.begun
                again = replace(retried, id=id, order=order, retry_of=retried.id, origin="retry")
                self._set_out(run, again)
                return run
        return None

    def end(
        self,
        run: Run,
        value: float | None,
        *,
        level: int | None = None,
        cost: float | None = None,
        last: bool = True,
        stopped_at: float | None = None,
    ) -> None:
        """Tell what a run has shown, at the level that it was sent to or another; None: it failed.

        Without a cost it is what the run has cost so far.
        """
        assert run.begun is not None
        event = Ended(
            id=run.begun.id,
            order=self.experiment.order,
            value=value,
            cost=self._cost_of(run) if cost is None else cost,
            stopped_at=stopped_at,
            level=run.level if level is None else level,
            last=last,
        )
        self._record(run, event)

    def lose(self, run: Run, why: str, **how: bool) -> None:
        """Tell that a run does not come to where it was sent, without its arm's fault."""
        if run.begun is None:
            return
        order, cost = self.experiment.order, self._cost_of(run)
        self._record(run, Lost(id=run.begun.id, order=order, why=why, cost=cost, **how))
        if run.begun is None:
            self._unsent.pop(run.trial.trial_id, None)
        else:
            self._unsent[run.trial.trial_id] = run

    def find(self, **found: Any) -> None:
        """Tell what was found out; it is not stored, as it may be different after a restart."""
        if found not in self._found:
            self._found.append(found)
            self.experiment.apply(Found(id=DRIVER, order=self.experiment.order, **found))

    def note_resumption(self, resumes: bool, budget: float | None) -> None:
        """Tell whether trials go on from where they pause, once: the plan depends on it."""
        if self._knows_resumption:
            return
        self._knows_resumption = True
        order = self.experiment.order
        self._log.tell(Found(id=_RESUMPTION, order=order, resumes=resumes, budget=budget))

    def _set_out(self, run: Run, begun: Begun) -> None:
        self._record(run, begun)
        run.is_sent = True

    def _record(self, run: Run, event: Event) -> None:
        self._log.tell(event)
        run.note(event)

    def _run_of(self, id: str) -> Run | None:
        return self._runs.find(id.partition(":")[0])


class Course(abc.ABC):
    """Decides which run is sent where, and tells what runs show there.

    Parameters
    ----------
    claims
        Of an experiment that has begun.
    runs
        The trials.
    value_of
        Returns the metric in a result; NaN if it is no number, None if it is not there.
    """

    def __init__(self, claims: Claims, runs: Runs, value_of: ValueOf) -> None:
        self._claims = claims
        self._runs = runs
        self._value_of = value_of

    @abc.abstractmethod
    def is_out(self, arm: int) -> bool:
        """Return whether an arm has left the race."""

    @abc.abstractmethod
    def to_stop(self) -> list[Run]:
        """Return the runs to stop, as their arms have left."""

    @abc.abstractmethod
    def next(self) -> Run | None:
        """Send the run that is to be started or resumed, and return it; None for none."""

    @abc.abstractmethod
    def send_first(self, run: Run) -> None:
        """Send a new run that was suggested, and that Ray starts itself."""

    def take(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Take a result in; return whether the run has come to where it was sent."""
        return False

    def goes_on(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Send a run on that has come to where it was sent; else it is to pause."""
        return True

    def has_more(self) -> bool:
        """Return whether there is a trial to run after all, now that all are over."""
        return False

    @abc.abstractmethod
    def take_last(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in the last result of a trial that ended by itself."""

    def time_out(self, run: Run, limit: float) -> None:
        """Take in that a run was stopped at its time limit: here, it has failed."""
        self._claims.end(run, None)

    def fail(self, run: Run) -> None:  # noqa: B027
        """Act on the failure of a run, or on its loss, which was told."""

    @abc.abstractmethod
    def cost_of(self, run: Run) -> float:
        """Return what a run has cost since that was asked for last."""
