"""What happened in a search and its certificate, told once more from a study's trials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import optuna

from mfhpo import Observation, Pull
from mfhpo.search import Replicate, SearchRace, has_levels
from mfhpo_optuna.samplers.race_sampler import RaceSampler
from mfhpo_optuna.study.fidelity_race import FidelityRace
from mfhpo_optuna.study.study_race import Listener

__all__ = ["Evaluation", "SearchStory"]


@dataclass(frozen=True)
class Evaluation:
    """One trial: what it evaluated, and what was paid once it had ended.

    Parameters
    ----------
    trial, arm, fidelity
        Its number, its configuration's, and the index of the level.
    cost
        What was paid in all, this evaluation included.
    value
        As the objective returned it; NaN for a failure.
    is_replicate
        Whether it was made for the certificate.
    """

    trial: int
    arm: int
    fidelity: int
    cost: float
    value: float
    is_replicate: bool


class SearchStory:
    """A study's evaluations in the order in which they ended.

    Parameters
    ----------
    study
        The study.
    sampler
        What it was run with.

    Attributes
    ----------
    evaluations
        All of them.
    race
        The race after the last one.
    """

    def __init__(self, study: optuna.Study, sampler: RaceSampler) -> None:
        self.evaluations: list[Evaluation] = []
        self.race = sampler.replay(study, self._listen)

    @property
    def search(self) -> SearchRace:
        """The search and its certificate."""
        if not isinstance(self.race.policy, SearchRace):
            raise ValueError("no trial has asked for the fidelity yet.")
        return self.race.policy

    @property
    def has_fidelity(self) -> bool:
        """Whether the objective has levels."""
        return has_levels(self.race.fidelity)

    def of_search(self, fidelity: int) -> list[Evaluation]:
        """The search's evaluations at a level that gave a value."""
        return [
            evaluation
            for evaluation in self.evaluations
            if evaluation.fidelity == fidelity
            and not evaluation.is_replicate
            and math.isfinite(evaluation.value)
        ]

    def replicates(self) -> list[Evaluation]:
        """The evaluations for the certificate that gave a value."""
        return [e for e in self.evaluations if e.is_replicate and math.isfinite(e.value)]

    def ladders(self) -> dict[int, list[Evaluation]]:
        """The search's evaluations that gave a value, by arm."""
        found: dict[int, list[Evaluation]] = {}
        for evaluation in self.evaluations:
            if not evaluation.is_replicate and math.isfinite(evaluation.value):
                found.setdefault(evaluation.arm, []).append(evaluation)
        return found

    def best_at_target(self) -> list[Evaluation]:
        """The search's evaluations at the target that were better than all before them."""
        best: list[Evaluation] = []
        for evaluation in self.of_search(len(self.race.levels) - 1):
            if not best or self.race.sign * (evaluation.value - best[-1].value) > 0.0:
                best.append(evaluation)
        return best

    def cost_of_search(self) -> float | None:
        """What was paid before the first evaluation for the certificate; None if there is none."""
        paid = 0.0
        for evaluation in self.evaluations:
            if evaluation.is_replicate:
                return paid
            paid = evaluation.cost
        return None

    def _listen(self, race: FidelityRace) -> Listener:
        def hear(trial_number: int, pull: Pull, observation: Observation) -> None:
            if race.policy is None:
                return
            value = observation.value if observation.has_value else None
            self.evaluations.append(
                Evaluation(
                    trial=trial_number,
                    arm=pull.arm,
                    fidelity=pull.fidelity,
                    cost=race.policy.cost,
                    value=math.nan if value is None else race.sign * value,
                    is_replicate=isinstance(pull, Replicate),
                )
            )

        return hear
