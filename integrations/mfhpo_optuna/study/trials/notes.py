"""Notes on a trial for all workers: what it evaluates, how it ended, that it is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mfhpo.experiment.events import Origin, Purpose


@dataclass(frozen=True)
class _Note:
    """A note that is written as plain JSON values, without those that are as usual."""

    def to_dict(self) -> dict[str, Any]:
        """Return the note as it is written."""
        noted: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value != each.default:
                noted[each.name] = list(value) if isinstance(value, tuple) else value
        return noted


@dataclass(frozen=True)
class PullNote(_Note):
    """A trial's note about the evaluation that it claims; see `ARM_KEY`.

    `arm` is the place in a list, whose entries are known by their `key`, or the number of a draw.
    """

    trial: int
    study: str
    order: int
    arm: int
    key: str | None = None
    fidelity: int | None = None  # None: not known when it began
    block: int | None = None
    purpose: Purpose = "given"
    origin: Origin = "chosen"
    shortlist: tuple[int | str, ...] = ()  # arms that a certificate compares: keys or numbers
    point: Mapping[str, float] | None = None  # where a draw is to lie
    chooses: str = "levels of a fidelity"  # what its sampler chooses besides configurations
    retry_of: int | None = None
    worker: str | None = None
    arguments: str | None = None


@dataclass(frozen=True)
class EndNote(_Note):
    """A trial's note about its end, or about the loss of its worker; see `END_KEY`, `LOST_KEY`."""

    trial: int
    order: int
    worker: str | None = None
    state: str = ""  # of the trial, as it was to be stored
    why: str = ""
    is_sure: bool = True
    is_withdrawn: bool = False
