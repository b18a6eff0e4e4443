"""What may be tuned: parameters, their ranges, and which of them apply when."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Configuration: TypeAlias = Mapping[str, Any]
"""Values by parameter; parameters that do not apply are absent."""


@dataclass(frozen=True)
class Float:
    """A real number between two bounds, both included; `log` spreads draws over orders of size."""

    low: float
    high: float
    log: bool = False

    def at(self, unit: float) -> float:
        """The value at a place in [0, 1] of the range."""
        if self.log:
            value = math.exp(math.log(self.low) + unit * math.log(self.high / self.low))
        else:
            value = self.low + unit * (self.high - self.low)
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Integer:
    """A whole number between two bounds, both included; `log` spreads draws over orders of size."""

    low: int
    high: int
    log: bool = False

    def at(self, unit: float) -> int:
        """The value at a place in [0, 1] of the range."""
        value = round(Float(self.low - 0.5, self.high + 0.5, self.log).at(unit))
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Categorical:
    """One of a few values without an order."""

    choices: tuple[Any, ...]

    def at(self, unit: float) -> Any:
        """The choice at a place in [0, 1]; each has an equal share."""
        return self.choices[min(int(unit * len(self.choices)), len(self.choices) - 1)]


Parameter: TypeAlias = Float | Integer | Categorical


@dataclass(frozen=True)
class Condition:
    """A parameter applies only where another one, `parent`, has one of some values."""

    parent: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class ConfigurationSpace:
    """Parameters and the conditions under which they apply.

    Parameters
    ----------
    parameters
        By name; a parent comes before what depends on it.
    conditions
        By the name of the parameter that depends on another one.

    Raises
    ------
    ValueError
        If a condition names an unknown parameter, or a parent that comes later.

    Examples
    --------
    >>> space = ConfigurationSpace(
    ...     {"kernel": Categorical(("linear", "rbf")), "gamma": Float(1e-3, 1.0, log=True)},
    ...     {"gamma": Condition("kernel", ("rbf",))},
    ... )
    >>> space.applies("gamma", {"kernel": "linear"})
    False
    """

    parameters: Mapping[str, Parameter]
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        order = list(self.parameters)
        for name, condition in self.conditions.items():
            if name not in order or condition.parent not in order:
                raise ValueError(f"conditions[{name!r}]={condition} names an unknown parameter.")
            if order.index(condition.parent) >= order.index(name):
                raise ValueError(
                    f"conditions[{name!r}]: {condition.parent!r} must come before {name!r}."
                )

    def applies(self, name: str, configuration: Configuration) -> bool:
        """Whether a parameter applies, given the parameters before it."""
        condition = self.conditions.get(name)
        if condition is None:
            return True
        return configuration.get(condition.parent) in condition.values

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """A configuration at random, uniform in each parameter's own scale."""
        return self.at(rng.random(len(self.parameters)))

    def at(self, unit: Any) -> dict[str, Any]:
        """The configuration at a point of the unit cube, shape (number of parameters,)."""
        configuration: dict[str, Any] = {}
        for place, (name, parameter) in zip(unit, self.parameters.items(), strict=True):
            if self.applies(name, configuration):
                configuration[name] = parameter.at(float(place))
        return configuration

    def active(self, configuration: Configuration) -> dict[str, Any]:
        """What of a configuration applies; optimisers that know no conditions give too much."""
        kept: dict[str, Any] = {}
        for name in self.parameters:
            if self.applies(name, kept):
                value = configuration[name]
                # A NumPy scalar is equal to a number, but is written otherwise.
                kept[name] = value.item() if isinstance(value, np.generic) else value
        return kept


def same_configuration(configuration: Configuration) -> tuple[tuple[str, Any], ...]:
    """A key under which equal configurations are found again."""
    return tuple(sorted((name, value) for name, value in configuration.items()))
