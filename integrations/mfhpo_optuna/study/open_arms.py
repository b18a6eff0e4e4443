"""The arms of a search: there is always another one."""

from collections.abc import Collection
from typing import Any

from optuna.distributions import BaseDistribution

from mfhpo.search import Point
from mfhpo_optuna.study.arms import Arm, Arms, ArmsLike
from mfhpo_optuna.study.places import drawn, value_at


class OpenArms(Arms):
    """Parameters of every arm that a search has begun; for `owned` see `Arms`.

    The first ones may be given: as a list of what they are, or as a number of arms to be drawn.
    """

    def __init__(self, owned: Collection[str], seed: int, given: ArmsLike | None = None) -> None:
        super().__init__(1 if given is None else given, owned, seed)
        self.n_given = 0 if given is None else len(self)
        self._seed = seed
        self._proposals: dict[int, Point] = {}

    def make_room(self, arm: int) -> None:
        """See that there is such an arm."""
        while len(self) <= arm:
            self._arms.append(Arm())

    def is_decided(self, arm: int) -> bool:
        """Return whether a trial has said what the arm is, and came to its end."""
        return self._arms[arm].decided

    def forget(self, arm: int) -> None:
        """Forget what an arm was to be, as far as no trial came to its end with it."""
        if not self.is_decided(arm) and not self.declared:
            self._arms[arm] = Arm()
            self._proposals.pop(arm, None)

    def propose(self, arm: int, point: Point) -> None:
        """Say what an arm is to be, as far as the objective will ask for it."""
        self._proposals[arm] = point

    def proposal(self, arm: int) -> Point:
        """Return what an arm is to be, as far as no trial came to its end with it."""
        return {} if self.is_decided(arm) else self._proposals.get(arm, {})

    def planned(self, arm: int, name: str, distribution: BaseDistribution) -> Any:
        """Return a given arm's value of a parameter, which an enqueued trial may still change."""
        known = self.params(arm)
        return known.get(name, self._hypercube.draw(arm, name, distribution))

    def suggest(self, arm: int, name: str, distribution: BaseDistribution) -> Any:
        """Return the arm's value of a parameter: known, proposed, or drawn."""
        known = self.params(arm)
        if arm < self.n_given:
            return super().suggest(arm, name, distribution)
        if name not in known:
            place = self._proposals.get(arm, {}).get(name)
            known[name] = (
                drawn(self._seed, arm, name, distribution)
                if place is None
                else value_at(place, distribution)
            )
        return known[name]
