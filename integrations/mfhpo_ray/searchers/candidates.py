"""The configurations of a search: where they come from, and how answers show them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

from mfhpo._validation import (
    MOST_ARMS,
    check_configurations,
    check_count,
    check_dictionaries,
    check_instance,
)
from mfhpo.experiment import Begun
from mfhpo_ray.experiment.encoding import decode, described
from mfhpo_ray.experiment.event_log import EventLog
from mfhpo_ray.experiment.space import (
    FUNCTIONS,
    Config,
    assign,
    check_grids,
    copied,
    draw_configs,
    fingerprint,
    has,
    open_names,
    open_part,
    placeholders_in,
    without,
)
from mfhpo_ray.searchers.parameters import Parameters

ArmsLike: TypeAlias = int | Sequence[Mapping[str, Any]]

_REDRAWN = "drawn anew in each trial"
"""Stands in an answer for a value that differs between the trials of one configuration."""


class Candidates:
    """The configurations of a search, before and after the Tuner has handed over its space.

    Without `arms` a search draws its own; without a `space` of the user it is the Tuner's. Of the
    `keys` that the search sets, that of the fidelity or the limit is the first. Messages have the
    `name` of the user's argument for `arms`.
    """

    def __init__(
        self,
        arms: int | list[Config] | None,
        space: Mapping[str, Any] | None,
        keys: Sequence[str],
        name: str,
    ) -> None:
        self.given = arms
        self._name = name
        self._keys = tuple(keys)
        self.tuner_space: dict[str, Any] = {}
        check_instance("space", space, Mapping | None, "a dictionary of Tune's domains or None")
        if space is not None and isinstance(self.given, list):
            raise ValueError(
                f"space and {name}=[...] are given, but {name} come from one of them; "
                f"leave one out."
            )
        self._space = None if space is None else dict(space)

    @property
    def space(self) -> dict[str, Any]:
        """Search space as far as it is known."""
        return {**(self._space or {}), **self.tuner_space}

    def take(self, config: Mapping[str, Any]) -> bool:
        """Take the Tuner's search space; False if what it draws is not the search's to draw."""
        check_grids(config)
        self.tuner_space = dict(config)
        names = open_names(without(config, self._keys))
        if isinstance(self.given, list):
            _check_cover(self._name, self.given, names)
            return True
        return self._space is None or not names

    @property
    def redrawn(self) -> list[str]:
        """The keys beside those of all configurations that Tune may draw anew in each trial."""
        return placeholders_in(without(self.tuner_space, self._keys), FUNCTIONS)

    def source(
        self, seed: int, while_drawing: Any, drawn: list[Config] | None
    ) -> list[Config] | Parameters:
        """Return the configurations, or the space that a search draws from.

        Those that were `drawn` before a restart are the same after it: functions of a space may
        draw others. The first key that the search sets has the value `while_drawing` meanwhile.
        """
        if isinstance(self.given, list):
            return self.given
        if self.given is not None and drawn is not None:
            return drawn
        space = self.tuner_space if self._space is None else self._space
        rest = without(space, self._keys)
        if not open_names(rest):
            raise ValueError(
                f"configurations are to be drawn, but there is nothing to draw from: give the "
                f"Tuner a param_space with more than the constants {sorted(rest)}, or the search a "
                f"space=..., or the configurations themselves."
            )
        values = dict.fromkeys(self._keys, seed) | {self._keys[0]: while_drawing}
        owned = {name: value for name, value in values.items() if has(space, name)}
        # The Tuner has the constants of its space, which may be large.
        beyond = rest if self._space is None else None
        if self.given is None:
            return Parameters(space, owned, beyond)
        whole = without(space, list(owned))
        for name, value in owned.items():
            assign(whole, name, value)
        arms = [without(arm, self._keys) for arm in draw_configs(whole, self.given, seed)]
        return arms if beyond is None else [open_part(beyond, arm) for arm in arms]


def check_arms(arms: ArmsLike | None, owned: Collection[str], name: str) -> int | list[Config]:
    """Return the number of arms, or the arms themselves."""
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        return check_count(name, int(arms), 1, MOST_ARMS)
    right = (
        "a list of configurations, or a number to draw from a search space, which is given as "
        "space=... or to the Tuner"
    )
    listed = [copied(arm) for arm in check_dictionaries(name, arms, right)]
    if not listed:
        raise ValueError(f"{name}=[] is empty; give at least one configuration.")
    check_configurations(name, listed, owned=owned, owner="search", contains=has, key=fingerprint)
    return listed


def _check_cover(argument: str, arms: Sequence[Config], names: Sequence[str]) -> None:
    for position, arm in enumerate(arms):
        for name in names:
            if not has(arm, name):
                raise ValueError(
                    f"{argument}[{position}]={arm!r} has no {name!r}, which param_space leaves "
                    f"open; add it to the {argument}, or drop it from param_space."
                )


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
            assign(shown, name, _REDRAWN if name in self._redrawn else value)
        return shown
