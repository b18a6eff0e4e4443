"""The levels of a fidelity and the replicates of blocks, by how an objective asks for them."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from mfhpo._validation import is_number, shown
from mfhpo.experiment.configurations import described as core_described
from mfhpo.knowledge.fidelity import Fidelity, geometric_levels, native
from mfhpo.knowledge.replicate import replicate_of


def did_you_mean(name: str, others: Iterable[str], option: str = "") -> str:
    """Return a question about the most similar name, or nothing."""
    close = difflib.get_close_matches(name, list(others), n=1)
    return f" Did you mean {option}{close[0]!r}?" if close else ""


def levels_in(fidelity: Fidelity, distribution: BaseDistribution) -> tuple[Any, ...]:
    """Return the levels for an objective that asks with this distribution."""
    if fidelity.levels is None:
        if isinstance(distribution, CategoricalDistribution):
            levels = tuple(distribution.choices)
        else:
            assert isinstance(distribution, (IntDistribution, FloatDistribution))
            low, high = distribution.low, distribution.high
            whole = isinstance(distribution, IntDistribution)
            levels = geometric_levels(low, high, whole=whole, step=distribution.step)
        fidelity.check_levels(levels)
        return levels
    for level in fidelity.levels:
        if not contains(distribution, level):
            raise ValueError(
                f"levels of the fidelity {fidelity.name!r} contain {level!r}, which the "
                f"objective's {distribution} does not allow; change the levels or what the "
                f"objective suggests."
            )
    return tuple(fidelity.levels)


def described(value: Any) -> Any:
    """Return what tells a value from others; a storage makes lists of tuples.

    1, 1.0 and True differ, and NaN equals NaN; see `mfhpo.experiment.key_of`.
    """
    return core_described(_as_stored(native(value)))


def _as_stored(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_as_stored(part) for part in value]
    if isinstance(value, dict):
        return {name: _as_stored(part) for name, part in value.items()}
    return value


def check_choices(name: str, distribution: BaseDistribution) -> None:
    """Raise ValueError for choices that Optuna takes for one another, such as 0 and False."""
    if not isinstance(distribution, CategoricalDistribution):
        return
    seen: dict[Any, Any] = {}
    for choice in distribution.choices:
        if not isinstance(choice, (bool, int, float)):
            continue
        other = seen.setdefault(float(choice), choice)
        if described(other) != described(choice):
            raise ValueError(
                f"the choices of {name!r} have {other!r} and {choice!r}, which are equal to "
                f"Optuna: it would store one for the other. Suggest texts such as "
                f"{str(other)!r} and {str(choice)!r}, and translate them in the objective."
            )


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Return whether `value` is a value of the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return any(described(value) == described(choice) for choice in distribution.choices)
    if not (isinstance(distribution, (IntDistribution, FloatDistribution)) and is_number(value)):
        return False
    if not distribution.low <= value <= distribution.high:
        return False
    if distribution.step is None:
        return True
    steps = (value - distribution.low) / distribution.step
    return bool(abs(steps - round(steps)) < 1e-8)


def own_value(distribution: BaseDistribution, value: Any) -> Any:
    """Return the value of a distribution that equals one it contains.

    Optuna tells a list, which a storage made of a tuple, from the objective's choice.
    """
    if not isinstance(distribution, CategoricalDistribution):
        return value
    return next(own for own in distribution.choices if described(own) == described(value))


@dataclass(frozen=True)
class Replicates:
    """The parameter that sets the replicate, and which one each block has."""

    name: str
    seed: int

    def of(self, block: int, distribution: BaseDistribution) -> Any:
        """Return a block's replicate, of those that the objective's distribution allows."""
        chosen = replicate_of(block, self.seed, self.count(distribution))
        if isinstance(distribution, CategoricalDistribution):
            return distribution.choices[chosen]
        assert isinstance(distribution, IntDistribution)
        return distribution.low + distribution.step * chosen

    def count(self, distribution: BaseDistribution) -> int:
        """Return how many replicates there are; TypeError for numbers that are not whole."""
        if isinstance(distribution, CategoricalDistribution):
            return len(distribution.choices)
        if not isinstance(distribution, IntDistribution):
            raise TypeError(
                f"replicate={shown(self.name)} must be suggested as a whole number or as one of "
                f"several values, such as trial.suggest_int({shown(self.name)}, 0, 2**31 - 1), got "
                f"{distribution}."
            )
        return (distribution.high - distribution.low) // distribution.step + 1

    def is_of(self, block: int, trial: FrozenTrial) -> bool:
        """Return whether a trial with a value was evaluated with the replicate of its block.

        A ValueError says that the objective did not ask for it.
        """
        if self.name not in trial.params:
            raise ValueError(
                f"replicate={shown(self.name)}, but the objective did not ask for it in trial "
                f"{trial.number}; it asked for {sorted(trial.params)}. Call "
                f"trial.suggest_int({shown(self.name)}, 0, 2**31 - 1) in the objective, and name "
                f"that parameter.{did_you_mean(self.name, trial.params, 'replicate=')}"
            )
        found: bool = trial.params[self.name] == self.of(block, trial.distributions[self.name])
        return found
