"""The levels of a fidelity, by the distribution with which an objective asks for it."""

import difflib
from collections.abc import Iterable
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mfhpo._validation import is_number
from mfhpo.knowledge.fidelity import Fidelity, geometric_levels


def did_you_mean(name: str, others: Iterable[str], option: str = "") -> str:
    """A question about the most similar name, or nothing."""
    close = difflib.get_close_matches(name, list(others), n=1)
    return f" Did you mean {option}{close[0]!r}?" if close else ""


def levels_in(fidelity: Fidelity, distribution: BaseDistribution) -> tuple[Any, ...]:
    """The levels for an objective that asks with this distribution."""
    if fidelity.levels is None:
        levels = _derived(distribution)
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


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Whether `value` is a value of the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    if not (isinstance(distribution, (IntDistribution, FloatDistribution)) and is_number(value)):
        return False
    if not distribution.low <= value <= distribution.high:
        return False
    if distribution.step is None:
        return True
    steps = (value - distribution.low) / distribution.step
    return bool(abs(steps - round(steps)) < 1e-8)


def _derived(distribution: BaseDistribution) -> tuple[Any, ...]:
    if isinstance(distribution, CategoricalDistribution):
        return tuple(distribution.choices)
    assert isinstance(distribution, (IntDistribution, FloatDistribution))
    return geometric_levels(
        distribution.low,
        distribution.high,
        whole=isinstance(distribution, IntDistribution),
        step=distribution.step,
    )
