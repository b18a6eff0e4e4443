"""The answer of a search for an equilibrium, in the terms of its study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mfhpo.games import Dissatisfaction, Utility
from mfhpo.problem import plain
from mfhpo.racing.recommendation import short

__all__ = ["StudyDeviation", "StudyEquilibrium"]


@dataclass(frozen=True)
class StudyDeviation:
    """The best deviation of one player from a profile, all others staying.

    Parameters
    ----------
    gain
        What it may bring the player, in the unit of its objective; never negative.
    params
        Where it leads, by the model's means: all players' parameters.
    """

    gain: Dissatisfaction
    params: dict[str, Any]


@dataclass(frozen=True)
class StudyEquilibrium:
    """The profile from which players are believed to gain least by deviating.

    Parameters
    ----------
    params
        All players' parameters, without fidelities; empty while nothing was observed.
    dissatisfaction
        By player, what it may gain by deviating while the others stay: in the unit of its
        objective, never negative, whether that is maximised or minimised.
    utilities
        By player, its objective at the profile, in the study's own sign and unit.
    probability
        With which the model that was fitted believes in each interval.
    finished
        Whether the budget is used up.
    reason
        Why the answer is what it is.
    cost, budget
        What was paid, and what may be paid.
    trials, evaluations
        Trials that were learned from, and those of them at the target fidelity for all players.
    """

    params: dict[str, Any]
    dissatisfaction: Mapping[str, Dissatisfaction]
    utilities: Mapping[str, Utility]
    probability: float
    finished: bool
    reason: str
    cost: float
    budget: float
    trials: int
    evaluations: int

    @property
    def epsilon(self) -> float:
        """The largest mean dissatisfaction, in standard deviations of the player's objective.

        Infinite while nothing is known of one of them.
        """
        return max((gain.relative for gain in self.dissatisfaction.values()), default=math.inf)

    @property
    def at_most(self) -> float:
        """The largest upper end of their intervals, in standard deviations of the objective."""
        return max(
            (gain.relative_interval[1] for gain in self.dissatisfaction.values()), default=math.inf
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        content: dict[str, Any] = plain(asdict(self))
        return content

    def __str__(self) -> str:
        paid = (
            f"  cost        {self.cost:.6g} of {self.budget:.6g} in {self.trials} trials, "
            f"{self.evaluations} of them at the target fidelity"
        )
        because = f"  because     {self.reason}"
        if not self.params:
            return "\n".join(("NO EQUILIBRIUM YET", because, paid))
        head = "EQUILIBRIUM" if self.finished else "EQUILIBRIUM SO FAR"
        params = ", ".join(f"{name}={short(value)}" for name, value in self.params.items())
        width = max(10, *(len(player) for player in self.dissatisfaction))
        unknown = [player for player, gain in self.dissatisfaction.items() if gain.mean == math.inf]
        claim = (
            f"none, for nothing was observed of {' and '.join(unknown)}"
            if unknown
            else f"nobody gains more than {self.epsilon:.3g} standard deviations of its "
            f"objective by deviating alone (at most {self.at_most:.3g})"
        )
        lines = [f"{head}: {params}", f"  claim       {claim}"]
        for player, gain in self.dissatisfaction.items():
            utility = self.utilities[player]
            lines.append(
                f"  {player:{width}}  {utility.mean:.5g} in [{utility.interval[0]:.5g}, "
                f"{utility.interval[1]:.5g}]; would gain {gain.mean:.4g} in "
                f"[{gain.interval[0]:.4g}, {gain.interval[1]:.4g}]"
            )
        lines += [
            because,
            paid,
            f"  intervals   each has probability {self.probability:g}, by the models that go with "
            f"the trials; no guarantee",
        ]
        return "\n".join(lines)
