"""Optuna's distributions: which values they have, at which places, and as which levels."""

import difflib
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from mfhpo._validation import is_number, shown
from mfhpo.experiment import configurations
from mfhpo.knowledge.fidelity import Fidelity, geometric_levels
from mfhpo.knowledge.replicate import replicate_of
from mfhpo.search import Numeric, OneOf, Point, place_in_range

_WITHOUT_STEPS = Numeric()

described = partial(configurations.described, as_stored=True)
"""Returns what tells a value from others; 1, 1.0 and True differ, and NaN equals NaN."""


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
    # A whole number may be beyond all floats.
    return bool(distribution.low <= value <= distribution.high and distribution._contains(value))


def index_of(value: Any, values: Sequence[Any]) -> int | None:
    """Return the place of the first of some values that is equal; a storage may have brought it."""
    known, sought = [*map(described, values)], described(value)
    return known.index(sought) if sought in known else None


def own_value(distribution: BaseDistribution, value: Any) -> Any:
    """Return the value of a distribution that equals this one, such as the tuple for a list."""
    if not isinstance(distribution, CategoricalDistribution):
        return value
    return next(own for own in distribution.choices if described(own) == described(value))


def drawn(seed: int, number: int, name: str, distribution: BaseDistribution) -> Any:
    """Draw a value of a parameter for a trial or an arm; the same whoever asks."""
    key = [seed, number, zlib.crc32(name.encode())]
    return from_unit(float(np.random.default_rng(key).random()), distribution)


def from_unit(unit: float, distribution: BaseDistribution) -> Any:
    """Map `unit`, uniform in [0, 1), to a value that follows the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(unit * len(distribution.choices))]
    if isinstance(distribution, IntDistribution):
        first, last, every = distribution.low, distribution.high, distribution.step
        if distribution.log:
            return min(last, max(first, round(_log_scale(unit, first - 0.5, last + 0.5))))
        return first + every * int(unit * ((last - first) // every + 1))
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        if distribution.step is not None:
            steps = int(unit * (math.floor((high - low) / distribution.step + 1e-9) + 1))
            return min(high, low + distribution.step * steps)
        value = _log_scale(unit, low, high) if distribution.log else low + unit * (high - low)
        return min(high, max(low, value))
    raise TypeError(f"cannot draw from a {type(distribution).__name__}.")


def _log_scale(unit: float, low: float, high: float) -> float:
    return math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))


def kind_of(distribution: BaseDistribution) -> Numeric | OneOf | None:
    """Return what a parameter is to a model; None if there is nothing to choose."""
    if distribution.single():
        return None
    if isinstance(distribution, CategoricalDistribution):
        return OneOf(len(distribution.choices))
    if isinstance(distribution, (IntDistribution, FloatDistribution)) and distribution.step:
        return _stepwise(distribution)
    return _WITHOUT_STEPS


@lru_cache(maxsize=256)
def _stepwise(how: IntDistribution | FloatDistribution) -> Numeric:
    return Numeric.stepwise(
        partial(value_at, distribution=how), partial(place_of, distribution=how)
    )


def place_of(value: Any, distribution: BaseDistribution) -> float:
    """Return where a value lies in its range, from 0 to 1, or the index of a choice."""
    if isinstance(distribution, CategoricalDistribution):
        return float(distribution.to_internal_repr(value))
    if isinstance(distribution, (IntDistribution, FloatDistribution)):
        half = (distribution.step or 0.0) / 2.0  # a value with steps lies in the middle of its own
        low, high = distribution.low - half, distribution.high + half
        return place_in_range(value, low, high, distribution.log)
    raise TypeError(f"cannot place a value of a {type(distribution).__name__}.")


def value_at(place: float, distribution: BaseDistribution) -> Any:
    """Return the value at a place; the inverse of `place_of`, up to rounding."""
    if isinstance(distribution, CategoricalDistribution):
        n = len(distribution.choices)
        return distribution.choices[min(int(place), n - 1)]
    return from_unit(min(max(place, 0.0), 1.0 - 1e-12), distribution)


def point_of(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> Point:
    """Return a configuration as a model sees it, without parameters of one value."""
    return {
        name: place_of(params[name], distribution)
        for name, distribution in distributions.items()
        if name in params and not distribution.single()
    }


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
        """Return whether a trial has its block's replicate; ValueError if it asked for none."""
        if self.name not in trial.params:
            raise ValueError(
                f"replicate={shown(self.name)}, but the objective did not ask for it in trial "
                f"{trial.number}; it asked for {sorted(trial.params)}. Call "
                f"trial.suggest_int({shown(self.name)}, 0, 2**31 - 1) in the objective, and name "
                f"that parameter.{did_you_mean(self.name, trial.params, 'replicate=')}"
            )
        found: bool = trial.params[self.name] == self.of(block, trial.distributions[self.name])
        return found


def signs_of(study: optuna.Study) -> tuple[float, ...]:
    """Return of each objective 1 if it is maximised, and -1 if it is minimised."""
    maximise = StudyDirection.MAXIMIZE
    return tuple(1.0 if way == maximise else -1.0 for way in study.directions)


def did_you_mean(name: str, others: Iterable[str], option: str = "") -> str:
    """Return a question about the most similar name, or nothing."""
    close = difflib.get_close_matches(name, list(others), n=1)
    return f" Did you mean {option}{close[0]!r}?" if close else ""
