"""The values behind Tune's placeholders: what configurations really are."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from mfhpo.experiment import Begun
from mfhpo_ray.experiment.encoding import decode, described
from mfhpo_ray.experiment.event_log import EventLog
from mfhpo_ray.experiment.space import Config, assign, fingerprint

REDRAWN = "drawn anew in each trial"
"""Stands in an answer for a value that differs between the trials of one configuration."""


class Shown:
    """Learns from trials what they ran with, and shows configurations with that."""

    def __init__(self) -> None:
        self._redrawn: set[str] = set()  # keys
        self._values: dict[str, Config] = {}

    def learn(self, configuration: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        """Learn what a trial ran with, by key; return the keys that are known as redrawn now."""
        known = self._values.setdefault(fingerprint(configuration), dict(values))
        new = (name for name in values if name not in self._redrawn)
        found = [name for name in new if described(known.get(name)) != described(values[name])]
        self._redrawn.update(found)
        return found

    def relearn(self, log: EventLog) -> None:
        """Learn from the notes of trials before a restart."""
        for event in log.experiment.events:
            if isinstance(event, Begun) and (ran := log.notes(event.id).get("ran")):
                self.learn(event.configuration, decode(ran))

    def of(self, configuration: Mapping[str, Any]) -> Config:
        """Return a configuration as trials ran with it."""
        shown = copy.deepcopy(dict(configuration))
        for name, value in self._values.get(fingerprint(configuration), {}).items():
            assign(shown, name, REDRAWN if name in self._redrawn else value)
        return shown
