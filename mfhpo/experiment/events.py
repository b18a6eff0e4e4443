"""The events of an experiment: frozen values, as plain JSON and back.

By its counter, a value that somebody chose by comes before the choice, and all readers put the
events into the same order. Arms are named by their configurations, because numbers depend on who
read what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal

from mfhpo._validation import shown
from mfhpo.knowledge.fidelity import native
from mfhpo.knowledge.space import Numeric, OneOf, Point

Purpose = Literal["given", "search", "certificate"]
Origin = Literal["chosen", "enqueued", "retry", "earlier", "belief"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened.

    Parameters
    ----------
    id, order
        What it is about; and one more than the largest counter that its writer had read.
    """

    id: str
    order: int

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain JSON values, if the configuration's values are.

        Fields with their default values are left out.
        """
        record: dict[str, Any] = {"event": type(self).__name__}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is each.default or (each.default_factory is dict and not value):
                continue
            record[each.name] = _plain(list(value) if isinstance(value, tuple) else value)
        return record


@dataclass(frozen=True, kw_only=True)
class Joined(Event):
    """A worker takes part, with these settings.

    Parameters
    ----------
    digest, version
        What workers at one time must have in common; and the version of the library.
    """

    digest: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Found(Event):
    """Something was found out that nobody had declared.

    Parameters
    ----------
    replicates, levels
        How many replicates there are, and values of the fidelity. What is found first holds.
    arms
        How many configurations there are after all, where others were expected.
    gone
        The number of a configuration that can be evaluated no more; what it has shown still counts.
    is_exhausted
        Whether no further evaluation can be made.
    resumes, budget
        Whether an evaluation goes on from its configuration's last level, and the budget of a
        search then, in place of the declared one.
    """

    replicates: int | None = None
    levels: tuple[Any, ...] | None = None
    arms: int | None = None
    gone: int | None = None
    is_exhausted: bool = False
    resumes: bool | None = None
    budget: float | None = None


@dataclass(frozen=True, kw_only=True)
class Begun(Event):
    """An evaluation was begun: a claim.

    Parameters
    ----------
    configuration
        What is evaluated, without the parameters that the engine sets.
    draw
        Number of a configuration whose values the host draws when they are asked for;
        `configuration` has those that are known.
    levels
        Indices of the levels that it may give values at, mostly one. It is sent to the lowest; the
        others are there for reports that skip levels. None: not known yet; its end tells.
    point
        The configuration as a model sees it, where it was drawn from a space.
    block, limit
        See `mfhpo.Pull`.
    replicate
        See `mfhpo.experiment.Assignment`. None: the host has another way to tell evaluations apart.
    purpose
        "given": to compare given configurations. "search": to find good ones. "certificate": to
        compare a shortlist.
    shortlist
        Keys of the configurations that a certificate compares.
    origin
        Who chose it, or why it is tried first.
    retry_of
        The claim whose place it takes, or any earlier one in that place. It has a place of its own
        if that one was given up, or was of another configuration, level or block.
    is_baseline
        Whether the host knows that the configuration is the one in use today.
    """

    configuration: Mapping[str, Any]
    draw: int | None = None
    levels: tuple[int, ...] | None = None
    point: Mapping[str, float] | None = None
    block: int | None = None
    limit: float | None = None
    replicate: int | None = None
    purpose: Purpose = "given"
    shortlist: tuple[str, ...] = ()
    origin: Origin = "chosen"
    retry_of: str | None = None
    is_baseline: bool = False

    def __post_init__(self) -> None:
        for name in ("draw", "block", "replicate"):
            _check(name, getattr(self, name), Integral)
        for level in self.levels or ():
            _check("levels", level, Integral)
        _check("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """An evaluation gave something, or failed.

    Parameters
    ----------
    value, values
        In the objective's direction; None, or what is not finite, is a failure. In a game, each
        player's.
    cost
        What was paid, in the unit of the costs. None: as declared.
    stopped_at
        The limit at which it was stopped, in seconds; infinite if none is large enough.
    level
        Index of the level that the value is of. None: the only one that was claimed; of a failure
        of several, or whose level nobody knew, the lowest without an end.
    last
        Whether the claim ends with it, so that no value at another level follows.
    configuration
        What was really evaluated. None: what was claimed. A value of anything else is paid, and is
        neither a value nor a failure. A failure may have some of the values alone.
    parameters
        What parameters are to a model: those that are new or have changed since the last end.
    points
        Where draws lie, by their numbers: the evaluated one, and others once that is known.
    """

    value: float | None
    values: tuple[float | None, ...] | None = None
    cost: float | None = None
    stopped_at: float | None = None
    level: int | None = None
    last: bool = True
    configuration: Mapping[str, Any] | None = None
    parameters: Mapping[str, Numeric | OneOf] = field(default_factory=dict)
    points: Mapping[int, Point] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for value in (self.value, *(self.values or ())):
            if value is not None and (not isinstance(value, Real) or isinstance(value, bool)):
                name = "value" if value is self.value else "values"
                raise ValueError(f"{name} must be a number or None, got {shown(value)}.")
        _check("cost", self.cost)
        if self.stopped_at != math.inf:
            _check("stopped_at", self.stopped_at)
        _check("level", self.level, Integral)

    @property
    def has_value(self) -> bool:
        """True if it gave anything that may be a value."""
        return (self.value is not None and not math.isnan(self.value)) or bool(self.values)


@dataclass(frozen=True, kw_only=True)
class Lost(Event):
    """An evaluation will never end: its worker died, or it was given up.

    Parameters
    ----------
    why
        In words, such as "its process died".
    cost
        What was paid all the same. None: as declared.
    is_sure
        Whether the worker is surely dead. Else it was given up when its lease was over, and that it
        is dead is a condition of the answer.
    will_retry
        Whether another claim will take its place, which is kept open for it (`Begun.retry_of`).
        Whoever learns that none will come tells the loss again without this.
    is_withdrawn
        Whether the host has stopped it because its configuration had left. It and what waits for it
        are left out, without a condition.
    is_cut
        Whether somebody else has stopped it, perhaps for its values: it is left out under a
        condition.
    """

    why: str
    cost: float | None = 0.0
    is_sure: bool = True
    will_retry: bool = False
    is_withdrawn: bool = False
    is_cut: bool = False

    def __post_init__(self) -> None:
        _check("cost", self.cost)


@dataclass(frozen=True, kw_only=True)
class Concluded(Event):
    """A worker has given its answer, which what comes late is not to take back.

    Parameters
    ----------
    open
        The claims that had not ended as far as it knew: their ends come after it, whatever their
        counters say.
    """

    open: tuple[str, ...] = ()


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Joined, Found, Begun, Ended, Lost, Concluded)
}


def event_of(record: Mapping[str, Any]) -> Event:
    """Return the event whose `to_dict` gave a record; ValueError if none did."""
    content = dict(record)
    kind = _KINDS.get(content.pop("event", ""))
    names = set() if kind is None else {each.name for each in fields(kind)}
    if kind is None or not content.keys() <= names:
        raise ValueError(f"record must be what an event's to_dict gave, got {record!r:.200}.")
    for name, value in content.items():
        if isinstance(value, list):
            content[name] = tuple(value)
    if "points" in content:  # JSON has made texts of the numbers
        content["points"] = {int(draw): point for draw, point in content["points"].items()}
    if "parameters" in content:
        content["parameters"] = {
            name: Numeric(tuple(places)) if isinstance(places, list) else OneOf(places)
            for name, places in content["parameters"].items()
        }
    return kind(**content)


def _plain(value: Any) -> Any:
    """Return a value without NumPy's numbers; of what a parameter is, the places or how many."""
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, Numeric):
        return list(value.places)
    return value.n if isinstance(value, OneOf) else native(value)


def _check(name: str, value: Any, kind: type = Real) -> None:
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if value is not None and not (is_number and 0.0 <= float(value) < math.inf):
        what = "whole" if kind is Integral else "finite"
        raise ValueError(f"{name} must be a {what} number of at least 0, got {shown(value)}.")
