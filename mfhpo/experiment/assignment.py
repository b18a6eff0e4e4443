"""The replies to a worker that asks for work: evaluate this, wait, no, or it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mfhpo.experiment.events import Begun, Origin, Purpose

Available: TypeAlias = Callable[[int, Mapping[str, Any], int], bool]
"""Tells whether a host can evaluate an arm, with a configuration, at a level now."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """An evaluation to make.

    Parameters
    ----------
    configuration
        What to evaluate, without the parameters that the engine sets.
    level
        Index of the level; -1: the levels are not known before the objective asks for one.
    replicate
        Number of the split, fold or seed: evaluations with the same one share it.
    repeat
        How many evaluations of this configuration, level and purpose were begun before: for a host
        in which each evaluation has a seed of its own.
    draw, point, block, limit, purpose, shortlist, origin
        See `mfhpo.experiment.Begun`.
    """

    configuration: Mapping[str, Any]
    level: int
    replicate: int
    repeat: int = 0
    draw: int | None = None
    point: Mapping[str, float] | None = None
    block: int | None = None
    limit: float | None = None
    purpose: Purpose = "given"
    shortlist: tuple[str, ...] = ()
    origin: Origin = "chosen"

    def begun(
        self,
        id: str,
        order: int,
        *,
        worker: str = "",
        time: float = 0.0,
        levels: Sequence[int] | None = None,
    ) -> Begun:
        """Return the event that claims it.

        `levels` are all levels that it may give values at; None: its own alone.
        """
        content = {name: vars(self)[name] for name in vars(self).keys() - {"level", "repeat"}}
        content["levels"] = None if self.level < 0 else (self.level,)
        if levels is not None:
            content["levels"] = tuple(levels)
        return Begun(id=id, order=order, worker=worker, time=time, **content)


@dataclass(frozen=True)
class Wait:
    """Nothing can be begun now: ask again after an evaluation has ended.

    Parameters
    ----------
    why
        For whom or what, in words.
    is_held_up
        Whether so many results wait for one evaluation that no other of its kind is begun.
    """

    why: str
    is_held_up: bool = False


@dataclass(frozen=True)
class Refused:
    """A refusal of what a user has enqueued; `why` says in words what it is not, or exceeds."""

    why: str


@dataclass(frozen=True)
class Done:
    """The experiment is over; `why` says it in words."""

    why: str
