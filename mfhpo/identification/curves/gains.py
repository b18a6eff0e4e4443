"""Bounds on what learning curves still gain, as users declare them: for any integration."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from mfhpo._validation import check_number, check_numbers, shown, unwrapped
from mfhpo.knowledge.arrays import FloatArray

Bound: TypeAlias = float | tuple[float, float]
StepT = TypeVar("StepT", int, float)


def _checked_gains(names: Sequence[object], gains: Sequence[tuple[float, float]]) -> FloatArray:
    """Return the least and the largest gain from each fidelity on, shape (S, 2), or raise."""
    for position, (name, (low, high)) in enumerate(zip(names, gains, strict=True)):
        if not -math.inf < low <= 0.0 <= high < math.inf:
            raise ValueError(
                f"bias[{name!r}] must be a finite number of at least 0, or a pair with 0 in "
                f"between; got {(low, high)!r} as the least and the largest gain."
            )
        before = gains[max(0, position - 1)]
        if not (before[0] <= low and high <= before[1]):
            raise ValueError(
                f"bias must not grow with the step: bias[{name!r}] allows gains in "
                f"{(low, high)!r}, bias[{names[position - 1]!r}] in {before!r} only."
            )
    return np.array(gains, dtype=np.float64).reshape(len(gains), 2)


def _as_gain(step: float, bound: Bound) -> tuple[float, float]:
    """Return the least and largest gain that a bound allows: that pair, or a distance."""
    name = f"bias[{step}]"
    bound = unwrapped(bound)
    if isinstance(bound, (Sequence, np.ndarray)):
        pair = check_numbers(name, bound, "a number or a pair of numbers")
        if len(pair) != 2:
            raise ValueError(f"{name}: a bound must be a number or a pair, got {bound!r}.")
        return pair[0], pair[1]
    largest = check_number(name, bound, " or a pair of numbers")
    return -largest, largest


def checked_bounds(bias: Any, check_step: Callable[[Any], StepT]) -> dict[StepT, Bound]:
    """Return bounds, given as ``{step: bound}``, sorted by step; ValueError if they are wrong."""
    if not isinstance(bias, Mapping) or not bias:
        raise ValueError(
            f"bias must be {{step: bound}} with at least one step, a function of the step, "
            f"or None; got {shown(bias)}."
        )
    bounds = {check_step(step): bias[step] for step in bias}
    bounds = {step: bounds[step] for step in sorted(bounds)}
    _checked_gains(list(bounds), [_as_gain(step, bound) for step, bound in bounds.items()])
    return bounds


def gains_of(
    bias: Mapping[StepT, Bound] | Callable[[StepT], Bound],
    steps: Sequence[StepT],
    sign: float = 1.0,
) -> FloatArray:
    """Return bounds on gains in values that are maximised, for `BoundedCurves`, shape (M, 2).

    `bias` gives a bound for each of the `steps` but the last. `sign` is -1 to minimise.
    """
    bounds = [bias[step] if isinstance(bias, Mapping) else bias(step) for step in steps[:-1]]
    gains = _checked_gains(steps[:-1], list(map(_as_gain, steps, bounds)))
    # Adding 0 makes 0 of -0.
    return np.concatenate((sign * gains[:, :: int(sign)], np.zeros((1, 2)))) + 0.0
