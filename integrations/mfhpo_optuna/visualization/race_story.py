"""What happened in a race, told once more from its trials."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import optuna

from mfhpo import Observation, Policy, Pull
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.study.fidelity_race import FidelityRace
from mfhpo_optuna.study.study_race import Listener

# Points of one arm over the whole race: enough for a curve, few enough for a small file.
_POINTS_PER_ARM = 36


@dataclass(frozen=True)
class Point:
    """What was known of an arm at a fidelity, after one of its pulls; values as the user's."""

    arm: int
    fidelity: int
    cost: float
    count: int
    mean: float
    radius: float


@dataclass(frozen=True)
class Exit:
    """When an arm left, and why."""

    cost: float
    fidelity: int
    reason: str  # "eliminated", "failed" or "duplicate"


class RaceStory:
    """A race's points and exits, collected while it is replayed."""

    def __init__(self, study: optuna.Study, sampler: FidelitySampler) -> None:
        self.points: dict[int, list[Point]] = {}
        self.exits: dict[int, Exit] = {}
        self.pilot_cost = 0.0
        self._spent: dict[tuple[int, int], float] = defaultdict(float)
        self._paid = 0.0
        self.race = sampler.replay(study, self._listen)
        if self.race.policy is not None:
            self._note_exits(None, False)  # what happened after the last pull

    @property
    def policy(self) -> Policy:
        """What ran the race; there is one once levels are known."""
        assert self.race.policy is not None
        return self.race.policy

    def _listen(self, race: FidelityRace) -> Listener:
        self.race = race
        return self._hear

    def _hear(self, trial_number: int, pull: Pull, observation: Observation) -> None:
        policy = self.policy
        if not observation.failed:
            count, mean, radius = policy.summary(pull.arm, pull.fidelity)
            self._spent[pull.arm, pull.fidelity] += policy.cost - self._paid
            self.points.setdefault(pull.arm, []).append(
                Point(pull.arm, pull.fidelity, policy.cost, count, self.race.sign * mean, radius)
            )
        self._paid = policy.cost
        self._note_exits(pull, observation.failed)
        if policy.piloting:
            self.pilot_cost = policy.cost
            self._spent.clear()

    def _note_exits(self, pull: Pull | None, failed: bool) -> None:
        active = set(self.policy.active.tolist())
        for arm in active & self.exits.keys():
            del self.exits[arm]  # an audit put it back
        for arm in set(range(len(self.race.arms))) - active - self.exits.keys():
            reason = "eliminated"
            if pull is not None and failed and pull.arm == arm:
                reason = "failed"
            elif self._repeats_another(arm):
                reason = "duplicate"
            points = self.points.get(arm, [])
            last = points[-1].fidelity if points else 0
            fidelity = pull.fidelity if pull is not None else last
            self.exits[arm] = Exit(self.policy.cost, fidelity, reason)

    def _repeats_another(self, arm: int) -> bool:
        """Whether another arm, itself no repeat, has the same parameters."""
        params = self.race.arms.params(arm)
        return bool(params) and any(
            self.race.arms.params(other) == params
            and not (other in self.exits and self.exits[other].reason == "duplicate")
            for other in range(len(self.race.arms))
            if other != arm
        )

    def shown(self, points: Sequence[Point]) -> list[list[Point]]:
        """The points of an arm to draw, a few dozen, by fidelity; none of a pilot that has ended.

        A policy may go back and forth between fidelities: each is a curve of its own.
        """
        begin = 0.0 if self.policy.piloting else self.pilot_cost
        curves = [
            [point for point in points if point.cost > begin and point.fidelity == fidelity]
            for fidelity in range(len(self.race.levels))
        ]
        total = max(1, sum(map(len, curves)))
        spare = max(0, _POINTS_PER_ARM - 2 * len(curves))
        return [_thinned(curve, 2 + spare * len(curve) // total) for curve in curves]

    def standing(self, arm: int) -> Point | None:
        """The arm's last point at the fidelity where most was spent on it, None without points.

        That is where most is known of it. Fidelities where its interval is finite come first, and
        what the pilot has spent does not count.
        """
        latest = {point.fidelity: point for point in self.points.get(arm, [])}
        return max(
            latest.values(),
            key=lambda point: (math.isfinite(point.radius), self._spent[arm, point.fidelity]),
            default=None,
        )


def _thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many of the points, evenly over the axis, with the first and the last."""
    if len(points) <= most:
        return list(points)
    costs = np.array([point.cost for point in points])
    kept = np.searchsorted(costs, np.geomspace(costs[0], costs[-1], most)).tolist()
    return [points[index] for index in sorted({0, *kept[1:-1], len(points) - 1})]
