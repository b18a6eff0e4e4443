"""The replicate, a split or a seed, that the evaluations of a block share."""

from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial

from mfhpo.knowledge.replicate import replicate_of
from mfhpo_optuna.study.levels import did_you_mean


@dataclass(frozen=True)
class Replicates:
    """The parameter that sets the replicate, and which one each block has."""

    name: str
    seed: int

    def of(self, block: int, distribution: BaseDistribution) -> Any:
        """The replicate of a block, for an objective that asks with this distribution.

        Raises TypeError for numbers that are not whole, ValueError if there are too few values.
        """
        if isinstance(distribution, CategoricalDistribution):
            choices = distribution.choices
            return choices[replicate_of(block, self.seed, len(choices))]
        if not isinstance(distribution, IntDistribution):
            raise TypeError(
                f"replicate={self.name!r} must be suggested as a whole number or as one of several "
                f"values, such as trial.suggest_int({self.name!r}, 0, 2**31 - 1), got "
                f"{distribution}."
            )
        step = distribution.step
        n_values = (distribution.high - distribution.low) // step + 1
        return distribution.low + step * replicate_of(block, self.seed, n_values)

    def is_of(self, block: int | None, trial: FrozenTrial) -> bool:
        """Whether a trial that gave a value was evaluated with the replicate of its block.

        A ValueError says that the objective did not ask for it.
        """
        if self.name not in trial.params:
            raise ValueError(
                f"replicate={self.name!r}, but the objective did not ask for it in trial "
                f"{trial.number}; it asked for {sorted(trial.params)}. Call "
                f"trial.suggest_int({self.name!r}, 0, 2**31 - 1) in the objective, and name that "
                f"parameter.{did_you_mean(self.name, trial.params, 'replicate=')}"
            )
        if block is None:
            return False
        found: bool = trial.params[self.name] == self.of(block, trial.distributions[self.name])
        return found
