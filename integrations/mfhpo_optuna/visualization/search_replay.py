"""What happened in a search and its certificate, by going through its trials once more."""

import math
from dataclasses import dataclass
from functools import partial

import optuna

from mfhpo import Observation, Pull
from mfhpo.search import BudgetedSearch, Replicate
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.study.fidelity_race import FidelityRace


@dataclass(frozen=True)
class Evaluation:
    """One trial: what it evaluated, and what was paid in all once it had ended."""

    trial: int
    arm: int
    fidelity: int  # the level's index
    cost: float
    value: float  # as the objective returned it; NaN for a failure
    is_replicate: bool  # whether it was made for the certificate

    @property
    def is_of_search(self) -> bool:
        """Whether it was made by the search, and gave a value."""
        return not self.is_replicate and math.isfinite(self.value)


class SearchReplay:
    """A study's evaluations in the order in which they ended, and the race after the last one."""

    def __init__(self, study: optuna.Study, sampler: FidelitySampler) -> None:
        self.evaluations: list[Evaluation] = []
        self.race = sampler.replay(study, lambda race: partial(self._hear, race))

    @property
    def search(self) -> BudgetedSearch:
        """The search and its certificate."""
        if not isinstance(self.race.policy, BudgetedSearch):
            raise ValueError("no trial has asked for the fidelity yet.")
        return self.race.policy

    def of_search(self, fidelity: int) -> list[Evaluation]:
        """Return the search's evaluations at a level that gave a value."""
        return [e for e in self.evaluations if e.fidelity == fidelity and e.is_of_search]

    def replicates(self) -> list[Evaluation]:
        """Return the evaluations for the certificate that gave a value."""
        return [e for e in self.evaluations if e.is_replicate and math.isfinite(e.value)]

    def of_arm(self, arm: int | None) -> list[Evaluation]:
        """Return the search's evaluations of an arm that gave a value."""
        return [e for e in self.evaluations if e.arm == arm and e.is_of_search]

    def best_at_target(self) -> list[Evaluation]:
        """Return the search's evaluations at the target that beat all before them."""
        best: list[Evaluation] = []
        for evaluation in self.of_search(len(self.race.levels) - 1):
            if not best or self.race.sign * (evaluation.value - best[-1].value) > 0.0:
                best.append(evaluation)
        return best

    def cost_of_search(self) -> float | None:
        """Return what was paid before the first evaluation for the certificate; None without."""
        paid = 0.0
        for evaluation in self.evaluations:
            if evaluation.is_replicate:
                return paid
            paid = evaluation.cost
        return None

    def _hear(
        self, race: FidelityRace, trial_number: int, pull: Pull, observation: Observation
    ) -> None:
        if race.policy is None:
            return
        value = observation.value if observation.has_value else None
        shown = math.nan if value is None else race.sign * value
        is_replicate, cost = isinstance(pull, Replicate), race.policy.cost
        self.evaluations.append(
            Evaluation(trial_number, pull.arm, pull.fidelity, cost, shown, is_replicate)
        )
