"""Between values of Tune's domains and the places of a search's model."""

from __future__ import annotations

import math
from typing import Any

from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Integer,
    LogUniform,
    Normal,
    Quantized,
    Sampler,
)
from scipy.special import ndtr, ndtri

from mfhpo._validation import is_number
from mfhpo.search import Numeric, OneOf, place_in_range
from mfhpo_ray.experiment.space import bounds_of, step_of

__all__ = ["kind_of", "place_of", "value_at"]

_BELOW_1 = 1.0 - 1e-12
_TAIL = 1e-9  # of a normal distribution, on either side


def kind_of(domain: Domain) -> Numeric | OneOf | None:
    """What a domain is to a model; None if there is nothing to choose, or no model of it."""
    if isinstance(domain, Categorical):
        n = len(domain.categories)
        return OneOf(n) if n > 1 else None
    if isinstance(domain, Integer):
        first, last, _ = _steps(domain)
        return _stepwise(domain) if first < last else None
    if not isinstance(domain, Float):
        return None
    if isinstance(_inner(domain), Normal):
        return Numeric()
    low, high, step = bounds_of(domain)
    if step is not None:
        return _stepwise(domain) if round(low / step) < round(high / step) else None
    return Numeric() if low < high else None


def place_of(value: Any, domain: Float | Integer) -> float | None:
    """Where a number lies in its domain, from 0 to 1; None if it is none of its values.

    A place is the share of the draws that Tune's own sampling has below the value. Whole numbers
    are in the middle of what is rounded to them.

    >>> from ray import tune
    >>> place_of(10.0, tune.loguniform(1.0, 100.0)), place_of(0, tune.randint(0, 5))
    (0.5, 0.1)
    """
    if not is_number(value):
        return None
    if isinstance(domain, Integer):
        first, last, step = _steps(domain)
        index = float(value) / step
        if not first <= index <= last:
            return None
        if _is_log(domain):
            middle = (math.log(index) + math.log(index + 1.0)) / 2.0
            return (middle - math.log(first)) / math.log((last + 1.0) / first)
        return (index - first + 0.5) / (last - first + 1)
    sampler = _inner(domain)
    if isinstance(sampler, Normal):
        return float(ndtr((value - sampler.mean) / sampler.sd))
    low, high, _ = bounds_of(domain)
    if not low <= value <= high:
        return None
    return place_in_range(float(value), low, high, _is_log(domain))


def value_at(place: float, domain: Domain) -> Any:
    """The value at a place, or of the index of a category; a uniform place gives Tune's draws."""
    if isinstance(domain, Categorical):
        return domain.categories[min(int(place), len(domain.categories) - 1)]
    place = min(max(place, 0.0), _BELOW_1)
    if isinstance(domain, Integer):
        first, last, factor = _steps(domain)
        if _is_log(domain):
            index = int(_on_log_scale(place, first, last + 1.0))
        else:
            index = first + int(place * (last - first + 1))
        return domain.cast(min(max(index, first), last) * factor)
    if not isinstance(domain, Float):
        raise TypeError(f"cannot place a value of a {type(domain).__name__}.")
    sampler, step = _inner(domain), step_of(domain)
    if isinstance(sampler, Normal):
        value = sampler.mean + sampler.sd * float(ndtri(min(max(place, _TAIL), 1.0 - _TAIL)))
        return domain.cast(value if step is None else round(value / step) * step)
    low, high, _ = bounds_of(domain)
    value = _on_log_scale(place, low, high) if _is_log(domain) else low + place * (high - low)
    if step is not None:
        value = round(value / step) * step
    return domain.cast(min(high, max(low, value)))


def _stepwise(domain: Float | Integer) -> Numeric:
    return Numeric.stepwise(
        lambda place: value_at(place, domain), lambda value: place_of(value, domain) or 0.0
    )


def _steps(domain: Integer) -> tuple[int, int, int]:
    """First and last of the whole numbers that are drawn, and what they are multiplied by."""
    low, high, given = bounds_of(domain)
    step = 1 if given is None else int(given)
    return round(low / step), round(high / step), step


def _inner(domain: Domain) -> Sampler:
    sampler: Sampler = domain.get_sampler()
    return sampler.get_sampler() if isinstance(sampler, Quantized) else sampler


def _is_log(domain: Domain) -> bool:
    return isinstance(_inner(domain), LogUniform)


def _on_log_scale(place: float, low: float, high: float) -> float:
    return math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
