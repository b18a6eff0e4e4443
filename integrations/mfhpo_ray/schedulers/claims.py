"""The claims of runs and their ends, told to an experiment as events, which are stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mfhpo.experiment import Assignment, Begun, Ended, Event, Experiment, Found, Joined, Lost
from mfhpo.experiment.settings import Settings
from mfhpo.problem import LARGEST
from mfhpo_ray.experiment.encoding import encode
from mfhpo_ray.experiment.event_log import DRIVER, EVENTS, SHARED, EventLog, Records, events_in
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.schedulers.runs import Run, Runs

_AGAIN = "its trial is run again"
_RESUMPTION = "resumption"


class Claims:
    """Tells an experiment where runs are sent, and what they show there.

    `cost_of` returns what a run has cost since that was asked for last.
    """

    def __init__(self, runs: Runs, cost_of: Callable[[Run], float]) -> None:
        self._runs = runs
        self._cost_of = cost_of
        self.log: EventLog  # from `begin` on
        self._found: list[dict[str, Any]] = []
        self._knows_resumption = False

    @property
    def experiment(self) -> Experiment:
        """The experiment, to be read."""
        return self.log.experiment

    def begin(
        self, settings: Settings, n_arms: int, journal: Journal | None, records: Records
    ) -> None:
        """Begin the experiment, or go on with what was told before a restart."""
        self.log = EventLog(settings, {"n_arms": n_arms}, journal)
        self.log.take_over(records)
        for event in self.experiment.events:
            self._note(event)

    def settle(self, out: set[int]) -> None:
        """Give up the claims of runs that Ray will not go on with; others are sent again."""
        for id in self.experiment.open:
            run = self._run_of(id)
            if run is not None and not run.trial.is_finished():
                run.is_sent = False
            else:
                is_withdrawn = self.experiment.ledger.open[id].pull.arm in out
                order = self.experiment.order
                why = "the driver has died"
                self._tell(Lost(id=id, order=order, why=why, is_withdrawn=is_withdrawn))

    def send(
        self, run: Run, levels: Sequence[int], work: Assignment | None = None, **how: Any
    ) -> None:
        """Send a run to the first of these levels, as assigned or else as it was suggested."""
        order = self.experiment.order
        id = f"{run.trial.trial_id}:{order}"
        if work is not None:
            self._tell(work.begun(id, order, levels=levels))
            return
        how |= {"purpose": self.experiment.runner.purpose, "origin": "enqueued"}
        configuration = self._runs.configurations[run.arm]
        self._tell(
            Begun(id=id, order=order, configuration=configuration, levels=tuple(levels), **how)
        )

    def send_again(self) -> Run | None:
        """Send a run again that failed on its way, or was on it when the driver died."""
        lost = [run for run in self._runs if run.begun is not None and run.waits]
        first = min(lost, key=lambda run: self.log.experiment.claim(run.claim).order, default=None)
        if first is not None and first.begun is not None:
            order, of = self.experiment.order, first.claim
            id = f"{first.trial.trial_id}:{order}"
            self._tell(replace(first.begun, id=id, order=order, retry_of=of, origin="retry"))
        return first

    def end(self, run: Run, value: float | None, **how: Any) -> None:
        """Tell what a run has shown; None: it failed.

        If nothing else is told, that is at the level where it was sent to, and for what it has cost
        so far (see `mfhpo.experiment.Ended`).
        """
        how = {"level": run.level, **how}
        if "cost" not in how:
            how["cost"] = self._cost_of(run)
        self._tell(Ended(id=run.claim, order=self.experiment.order, value=value, **how))

    def lose(self, run: Run, why: str = _AGAIN, **how: bool) -> None:
        """Tell that a run does not come to where it was sent, without its arm's fault."""
        if run.begun is not None:
            order, cost = self.experiment.order, self._cost_of(run)
            self._tell(Lost(id=run.claim, order=order, why=why, cost=cost, **how))

    def find(self, **found: Any) -> None:
        """Tell what was found out; it is not stored, as it may be different after a restart."""
        if found not in self._found:
            self._found.append(found)
            id = f"{DRIVER}_{len(self._found)}"  # of two with one id, only the later holds
            self.experiment.apply(Found(id=id, order=self.experiment.order, **found))

    def note_resumption(self, resumes: bool, budget: float | None) -> None:
        """Tell whether trials go on from where they pause, once: the plan depends on it."""
        if not self._knows_resumption:
            order = self.experiment.order
            self._tell(Found(id=_RESUMPTION, order=order, resumes=resumes, budget=budget))

    def _tell(self, event: Event) -> None:
        self.log.tell(event)
        self._note(event)

    def _note(self, event: Event) -> None:
        run = self._run_of(event.id)
        if run is not None:
            run.note(event)
        self._knows_resumption |= event.id == _RESUMPTION

    def _run_of(self, id: str) -> Run | None:
        return self._runs.find(id.partition(":")[0])


def told_in(record: Mapping[str, Any] | None) -> list[Event]:
    """Return the events in a record of the journal; none without a record."""
    with of_this_version("the journal in the experiment's storage"):
        return [] if record is None else events_in(record)


def n_arms_in(records: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return the number of arms that a race was begun with; None if it was not begun."""
    joined = [event for event in told_in(records.get(SHARED)) if isinstance(event, Joined)]
    return int(json.loads(joined[0].digest)["n_arms"]) if joined else None


def is_over(events: Sequence[Event], target: int) -> bool:
    """Return whether a trial has nothing more to say, if it is run: it was seen to its end."""
    last = events[-1] if events else None
    if not (isinstance(last, Ended) and last.last):
        return False
    if last.value is None:
        return last.stopped_at is not None
    return last.level == target or not abs(last.value) <= LARGEST


def adapt(records: Mapping[str, dict[str, Any]], runs: Runs) -> int:
    """Let trials, and what was told, be of the same arms; return how many have no trial any more.

    Arms are in the order in which Ray has made their trials. It restores tuples as lists. The
    failure, or the loss, of a trial that Ray runs again is none.
    """
    runs.sort()
    n_known = runs.n_arms
    for name, record in records.items():
        run, events = runs.find(name), told_in(record)
        if run is not None and events:
            events = _as_restored(events, run, runs.configurations[run.arm])
            record[EVENTS] = [encode(event.to_dict()) for event in events]
        for event in events:
            if isinstance(event, Begun):
                runs.arm(event.configuration)
    return runs.n_arms - n_known


def _as_restored(events: list[Event], run: Run, configuration: Mapping[str, Any]) -> list[Event]:
    renewed = [
        replace(event, configuration=configuration) if isinstance(event, Begun) else event
        for event in events
    ]
    last = events[-1]
    has_failed = isinstance(last, Ended) and last.value is None and last.stopped_at is None
    is_lost = isinstance(last, Lost) and not last.is_withdrawn
    if (has_failed or is_lost) and not run.trial.is_finished():
        cost = getattr(last, "cost", None)
        renewed[-1] = Lost(id=last.id, order=last.order, why=_AGAIN, cost=cost, will_retry=True)
    return renewed
