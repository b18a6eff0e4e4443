"""The values behind Tune's placeholders: what configurations really are."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from mfhpo_ray.experiment.encoding import decode, described
from mfhpo_ray.experiment.event_log import EventLog
from mfhpo_ray.experiment.space import Config, assign, fingerprint

REDRAWN = "drawn anew in each trial"
"""Stands in an answer for a value that differs between the trials of one configuration."""


class Shown:
    """Learns from trials what they ran with, and shows configurations with that.

    Attributes
    ----------
    redrawn
        The keys whose values differed between trials of one configuration.
    """

    def __init__(self) -> None:
        self.redrawn: set[str] = set()
        self._values: dict[str, Config] = {}

    def learn(self, configuration: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        """Learn what a trial ran with, by key; return the keys that are known as redrawn now."""
        known = self._values.setdefault(fingerprint(configuration), dict(values))
        found = [
            name
            for name, value in values.items()
            if name not in self.redrawn and described(known.get(name)) != described(value)
        ]
        self.redrawn.update(found)
        return found

    def relearn(self, log: EventLog) -> None:
        """Learn from the notes of trials before a restart."""
        for trial_id, begun in log.claims.items():
            if ran := log.notes(trial_id).get("ran"):
                self.learn(begun.configuration, decode(ran))

    def of(self, configuration: Mapping[str, Any]) -> Config:
        """Return a configuration as trials ran with it."""
        shown = copy.deepcopy(dict(configuration))
        for name, value in self._values.get(fingerprint(configuration), {}).items():
            assign(shown, name, REDRAWN if name in self.redrawn else value)
        return shown


def ran_with(result: Mapping[str, Any], names: Iterable[str]) -> Config:
    """Return what a trial ran with under these keys, by its flat result."""
    found = {name: result.get(f"config/{name}", _MISSING) for name in names}
    return {name: value for name, value in found.items() if value is not _MISSING}


_MISSING = object()
