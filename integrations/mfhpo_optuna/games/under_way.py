"""The trials of a game that are under way, and how long they are waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from optuna.trial import FrozenTrial

from mfhpo.search import Point

__all__ = ["QUERY_KEY", "Plan", "UnderWay"]

QUERY_KEY = "mfhpo:query"
"""User attribute of a trial: the query that it is."""

_LEAST_LEASE = 60.0  # seconds
_PATIENCE = 10.0  # times what the slowest trial would have taken


@dataclass(frozen=True)
class Plan:
    """What a trial is to evaluate.

    Parameters
    ----------
    levels
        Index of each player's level.
    profile
        None while the game is not known: parameters are drawn at random.
    """

    levels: tuple[int, ...]
    profile: Point | None = None

    @classmethod
    def of(cls, trial: FrozenTrial) -> Plan | None:
        """What was noted on a trial, or None if nothing was planned for it."""
        tag: Mapping[str, Any] = trial.user_attrs.get(QUERY_KEY, {})
        return cls(tuple(tag["levels"]), tag.get("profile")) if "levels" in tag else None

    @property
    def tag(self) -> dict[str, Any]:
        """What tells other workers of it, as plain JSON values."""
        tag: dict[str, Any] = {"levels": list(self.levels)}
        return tag if self.profile is None else tag | {"profile": dict(self.profile)}


class UnderWay:
    """Running trials and their plans.

    Parameters
    ----------
    lease
        Seconds after which a trial is no longer waited for; None: ten times what the slowest one
        so far would have taken, and at least a minute.
    """

    def __init__(self, lease: float | None) -> None:
        self._lease = lease
        self._seconds_per_cost = 0.0
        self._running: dict[int, tuple[FrozenTrial, Plan]] = {}

    def __len__(self) -> int:
        return len(self._running)

    def add(self, trial: FrozenTrial, plan: Plan) -> None:
        """Note what a trial evaluates, as it is known now."""
        self._running[trial.number] = trial, plan

    def remove(self, trial_number: int) -> None:
        """Forget a trial: it has ended, or nothing is planned for it any more."""
        self._running.pop(trial_number, None)

    def plan(self, trial_number: int) -> Plan | None:
        """What a trial is to evaluate."""
        return self._running[trial_number][1] if trial_number in self._running else None

    def ahead_of(self, trial_number: int) -> dict[int, Plan]:
        """Plans of trials with lower numbers: those to which this one gives way."""
        return {
            number: plan for number, (_, plan) in self._running.items() if number < trial_number
        }

    def took(self, trial: FrozenTrial, ended: datetime | None, cost: float) -> None:
        """Learn from a trial of this cost how long trials take."""
        if ended is not None and trial.datetime_start is not None:
            rate = (ended - trial.datetime_start).total_seconds() / cost
            self._seconds_per_cost = max(self._seconds_per_cost, rate)

    def waited_for(
        self, trial_number: int, cost_of: Callable[[FrozenTrial, Plan], float]
    ) -> list[tuple[FrozenTrial, Plan]]:
        """All but the given trial, and but those whose lease is over, by their numbers.

        Parameters
        ----------
        trial_number
            Of the one that is left out.
        cost_of
            What a trial costs.
        """
        now = datetime.now()
        return [
            (trial, plan)
            for number, (trial, plan) in sorted(self._running.items())
            if number != trial_number and not self._expired(trial, cost_of(trial, plan), now)
        ]

    def _expired(self, trial: FrozenTrial, cost: float, now: datetime) -> bool:
        if trial.datetime_start is None:
            return False
        lease = self._lease
        if lease is None:
            lease = max(_LEAST_LEASE, _PATIENCE * self._seconds_per_cost * cost)
        return (now - trial.datetime_start).total_seconds() > lease
