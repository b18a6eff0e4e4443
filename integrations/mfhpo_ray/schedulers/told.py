"""What was told before a restart, by the events in the experiment's journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mfhpo.experiment import Begun, Ended, Event, Joined, Lost
from mfhpo.problem import LARGEST
from mfhpo_ray.experiment.encoding import encode
from mfhpo_ray.experiment.event_log import EVENTS, SHARED, events_in
from mfhpo_ray.experiment.journal import of_this_version
from mfhpo_ray.schedulers.runs import Run, Runs

AGAIN = "its trial is run again"


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
        renewed[-1] = Lost(id=last.id, order=last.order, why=AGAIN, cost=cost, will_retry=True)
    return renewed
