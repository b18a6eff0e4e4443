"""What happened in a race or a search, by going through its trials once more."""

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import optuna

from mfhpo import Observation, Policy, Pull
from mfhpo.search import BudgetedSearch, Replicate
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.study.fidelity_race import FidelityRace


@dataclass(frozen=True)
class Evaluation:
    """One trial: what it evaluated, and what was paid in all before and after it."""

    trial: int
    arm: int
    fidelity: int  # the level's index
    begin: float
    end: float
    value: float  # as the objective returned it; NaN without one
    failed: bool
    is_replicate: bool  # whether it was made for the certificate
    spent: float  # what it took of the budget, in its unit

    @property
    def has_value(self) -> bool:
        """Whether it gave a value."""
        return math.isfinite(self.value)

    @property
    def is_of_search(self) -> bool:
        """Whether it was made by the search, and gave a value."""
        return self.has_value and not self.is_replicate


class Replay:
    """A study's evaluations in the order in which they ended, and the race after the last one."""

    def __init__(self, study: optuna.Study, sampler: FidelitySampler) -> None:
        self.evaluations: list[Evaluation] = []
        self._cost = self._spent = 0.0
        self.race = sampler.replay(study, lambda race: partial(self._hear, race))

    @property
    def policy(self) -> Policy:
        """The policy of the race."""
        if self.race.policy is None:
            raise ValueError("no trial has asked for the fidelity yet.")
        return self.race.policy

    def _hear(self, race: FidelityRace, trial: int, pull: Pull, observation: Observation) -> None:
        self.race = race
        if race.policy is None:
            return
        before = self._cost, self._spent
        self._cost, self._spent = race.policy.cost, spent_of(race.policy)
        value = observation.value if observation.has_value else None
        evaluation = Evaluation(
            trial=trial,
            arm=pull.arm,
            fidelity=pull.fidelity,
            begin=before[0],
            end=self._cost,
            value=math.nan if value is None else race.sign * value,
            failed=observation.failed,
            is_replicate=isinstance(pull, Replicate),
            spent=self._spent - before[1],
        )
        self.evaluations.append(evaluation)
        self._note(evaluation)

    def _note(self, evaluation: Evaluation) -> None:
        """Take note of what has changed with an evaluation."""


def spent_of(policy: Policy) -> float:
    """Return what was spent, in the unit of a budget."""
    return policy.spending[0] if isinstance(policy, BudgetedSearch) else policy.cost


@dataclass(frozen=True)
class Standing:
    """What is known about an arm at a level, in the objective's unit; radii may be infinite."""

    fidelity: int
    count: int
    mean: float
    radius: float


@dataclass(frozen=True)
class Exit:
    """When an arm left, and why."""

    cost: float
    reason: str  # "eliminated", "failed" or "duplicate"


class RaceReplay(Replay):
    """A race's evaluations and exits."""

    def __init__(self, study: optuna.Study, sampler: FidelitySampler) -> None:
        self.exits: dict[int, Exit] = {}
        self._paid: dict[tuple[int, int], float] = defaultdict(float)
        super().__init__(study, sampler)
        if self.race.policy is not None:
            self._note_exits()  # what happened after the last pull

    def _note(self, evaluation: Evaluation) -> None:
        if not evaluation.failed:
            self._paid[evaluation.arm, evaluation.fidelity] += evaluation.end - evaluation.begin
        self._note_exits(evaluation.arm if evaluation.failed else None)
        if self.policy.piloting:
            self._paid.clear()

    def _note_exits(self, failed: int | None = None) -> None:
        active = set(self.policy.active.tolist())
        for arm in active & self.exits.keys():
            del self.exits[arm]  # an audit put it back
        for arm in set(range(len(self.race.arms))) - active - self.exits.keys():
            repeats = "duplicate" if self._repeats_another(arm) else "eliminated"
            self.exits[arm] = Exit(self.policy.cost, "failed" if arm == failed else repeats)

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
            key=lambda at: (math.isfinite(at.radius), self._paid[arm, at.fidelity], at.fidelity),
            default=None,
        )
