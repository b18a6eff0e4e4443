"""Pulls on their way, what is written down of those that ended, and their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mfhpo import Observation, Pull
from mfhpo.knowledge.fidelity import native
from mfhpo.search import Replicate
from mfhpo_ray.experiment.metric import as_number
from mfhpo_ray.experiment.time_limits import CENSORED_KEY

_MASK = (1 << 31) - 1  # seeds have 31 bits


@dataclass
class UnderWay:
    """A trial that evaluates a pull."""

    pull: Pull
    replicate: int  # how many pulls of the same arm and fidelity were begun before
    since: float  # when it was suggested, or restored, by the search's clock
    seconds: float | None = None  # what its results so far said that it took
    resources: Mapping[str, float] | None = None  # what it holds, once that is known
    restored: bool = False  # begun before a restart
    owed: float = 0.0  # seconds of attempts that failed, and that Ray tried again

    def took(self, result: Mapping[str, Any], now: float) -> float:
        """Return the seconds by the last result, by earlier ones, or by the clock."""
        seconds = as_number(result.get("time_total_s"))
        if seconds is None:
            seconds = self.seconds
        stopped_at = as_number(result.get(CENSORED_KEY))
        if stopped_at is not None:
            return stopped_at if seconds is None else max(seconds, stopped_at)
        return max(0.0, now - self.since) if seconds is None else seconds

    def state_dict(self) -> dict[str, Any]:
        """Return what outlasts a restart, as plain JSON values."""
        return {**_pull_to_record(self.pull), "replicate": self.replicate, "owed": self.owed}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], now: float) -> UnderWay:
        """Return what was saved; its trial begins anew."""
        pull, replicate = _pull_from_record(state), int(state["replicate"])
        return cls(pull, replicate, now, restored=True, owed=float(state["owed"]))


@dataclass(frozen=True)
class Ended:
    """A pull with what came back, as it is written in the journal."""

    number: int  # how many had ended before it
    pull: Pull
    replicate: int
    observation: Observation  # in the unit and the direction of the metric
    config: dict[str, Any]  # the arm's, encoded
    result: dict[str, Any]  # what the trial had reported last

    def to_record(self) -> dict[str, Any]:
        """Return the record for the journal."""
        return {
            "number": self.number,
            **_pull_to_record(self.pull),
            "replicate": self.replicate,
            "value": self.observation.value,
            "cost": self.observation.cost,
            "censored_at": self.observation.censored_at,
            "config": self.config,
            "result": self.result,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Ended:
        """Return the pull of a record."""
        return cls(
            number=int(record["number"]),
            pull=_pull_from_record(record),
            replicate=int(record["replicate"]),
            observation=Observation(record["value"], record["cost"], record["censored_at"]),
            config=record["config"],
            result=record["result"],
        )


def scalars(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and texts of a flat result, without the configuration."""
    plain = {name: native(value) for name, value in result.items()}
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, (bool, int, float, str)) and not name.startswith("config/")
    }


def _pull_to_record(pull: Pull) -> dict[str, Any]:
    record: dict[str, Any] = {"arm": pull.arm, "fidelity": pull.fidelity, "limit": pull.limit}
    if pull.block is not None:
        record["block"] = pull.block
    if isinstance(pull, Replicate):
        record["shortlist"] = list(pull.shortlist)
    return record


def _pull_from_record(record: Mapping[str, Any]) -> Pull:
    arm, fidelity, limit = int(record["arm"]), int(record["fidelity"]), record["limit"]
    block = record.get("block")
    if "shortlist" in record:
        return Replicate(arm, fidelity, limit, block, shortlist=tuple(record["shortlist"]))
    return Pull(arm, fidelity, limit, block)


def replicate_seed(
    seed: int, arm: int, fidelity: int, r: int, *, n_arms: int, n_fidelities: int
) -> int:
    """Return the seed of an arm's r-th pull at a fidelity, from 0 to 2**31 - 1.

    No two pulls of a race share one, before 2**31 divided by the number of pairs of arms and
    fidelities were begun of one pair.

    >>> replicate_seed(7, 0, 0, 0, n_arms=2, n_fidelities=3)
    232282773
    """
    number = (r * n_arms + arm) * n_fidelities + fidelity
    # Each step maps the numbers of 31 bits onto themselves one to one, so that none occurs twice.
    for key in np.random.SeedSequence(seed).generate_state(3).tolist():
        number = ((number ^ (key & _MASK)) * ((key << 1 | 1) & _MASK)) & _MASK
        number ^= number >> 16
    return number
