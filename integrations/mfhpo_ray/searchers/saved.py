"""The saved state of a search: what is declared, and where its events are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfhpo_ray.experiment.event_log import EventLog, Records
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.recommendation import RECOMMENDATION

STATE_VERSION = 3  # those of mfhpo 0.1.4 have none


def check_state(state: Mapping[str, Any], search: str) -> None:
    """Raise ValueError if a state is of another version, or another class of searches."""
    if state.get("version") != STATE_VERSION:
        raise ValueError(
            "the saved state of the search is of another version of mfhpo, such as 0.1.4, whose "
            "states are read by that version alone. Go on with that version, or begin the "
            "experiment anew, under another RunConfig(name=...)."
        )
    if state["search"] != search:
        raise ValueError(
            f"the state is that of a {state['search']}, but this is a {search}; restore the search "
            f"that was saved."
        )


def events_of(log: EventLog | None, without_journal: bool = False) -> dict[str, Any]:
    """Return where the events are: in a journal, or else in the state itself."""
    journal = None if log is None or without_journal else log.notebook.journal
    place = None if journal is None else journal.to_record()
    return {
        "run": None if log is None else log.run,
        "journal": place,
        "records": None if log is None or place is not None else log.records,
    }


def records_of(state: Mapping[str, Any]) -> Records | None:
    """Return the records of a state's events; None if the experiment had not begun."""
    if state["journal"] is None:
        records: Records | None = state["records"]
        return records
    read = Journal.read_at(state["journal"])
    read.pop(RECOMMENDATION, None)
    return read
