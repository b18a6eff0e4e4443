"""What happened in a race, by going through its trials once more."""

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import optuna

from mfhpo import Observation, Policy, Pull
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.study.fidelity_race import FidelityRace


@dataclass(frozen=True)
class Standing:
    """What is known about an arm at a level, in the objective's unit; radii may be infinite."""

    fidelity: int
    count: int
    mean: float
    radius: float


@dataclass(frozen=True)
class Visit:
    """What was paid for one evaluation: the race's cost before it and after it."""

    arm: int
    fidelity: int
    begin: float
    end: float


@dataclass(frozen=True)
class Exit:
    """When an arm left, and why."""

    cost: float
    reason: str  # "eliminated", "failed" or "duplicate"


class RaceReplay:
    """A race's visits and exits, collected while it is replayed."""

    def __init__(self, study: optuna.Study, sampler: FidelitySampler) -> None:
        self.exits: dict[int, Exit] = {}
        self.visits: list[Visit] = []
        self._spent: dict[tuple[int, int], float] = defaultdict(float)
        self._paid = 0.0
        self.race = sampler.replay(study, lambda race: partial(self._hear, race))
        if self.race.policy is not None:
            self._note_exits(None, False)  # what happened after the last pull

    @property
    def policy(self) -> Policy:
        """The policy of the race; there is one once levels are known."""
        assert self.race.policy is not None
        return self.race.policy

    def _hear(
        self, race: FidelityRace, trial_number: int, pull: Pull, observation: Observation
    ) -> None:
        self.race = race
        policy = self.policy
        if not observation.failed:
            self._spent[pull.arm, pull.fidelity] += policy.cost - self._paid
        self.visits.append(Visit(pull.arm, pull.fidelity, self._paid, policy.cost))
        self._paid = policy.cost
        self._note_exits(pull, observation.failed)
        if policy.piloting:
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
            self.exits[arm] = Exit(self.policy.cost, reason)

    def _repeats_another(self, arm: int) -> bool:
        params = self.race.arms.params(arm)
        return bool(params) and any(
            self.race.arms.params(other) == params
            and not (other in self.exits and self.exits[other].reason == "duplicate")
            for other in range(len(self.race.arms))
            if other != arm
        )

    def standing(self, arm: int) -> Standing | None:
        """Return what is known about an arm where most was spent on it; None without values.

        Levels where its interval is finite come first, and what the pilot has spent does not count.
        """
        known = [
            Standing(level, count, self.race.sign * mean, radius)
            for level in range(len(self.race.levels))
            for count, mean, radius in [self.policy.summary(arm, level)]
            if count
        ]
        return max(
            known,
            key=lambda at: (math.isfinite(at.radius), self._spent[arm, at.fidelity], at.fidelity),
            default=None,
        )
