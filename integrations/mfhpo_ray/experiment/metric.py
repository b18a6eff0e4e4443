"""The metric: its name and direction, the numbers that trials report, and what they found."""

import math
from collections.abc import Mapping
from typing import Any, SupportsFloat

import numpy as np
from ray.tune import ResultGrid
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_choice, check_name
from mfhpo.knowledge.earlier import EarlierResults
from mfhpo.knowledge.fidelity import native
from mfhpo_ray.experiment.space import copied


def check_aim(metric: Any, mode: Any) -> None:
    """Raise TypeError or ValueError for what is no metric's name, or no direction."""
    if metric is not None:
        check_name("metric", metric, "the name of one metric or None")
    check_choice("mode", mode, (None, "max", "min"))


def aim_of(results: ResultGrid) -> tuple[str | None, str | None]:
    """Return the metric and the mode of an experiment, as far as its ``TuneConfig`` has them."""
    analysis = getattr(results, "_experiment_analysis", None)
    return getattr(analysis, "default_metric", None), getattr(analysis, "default_mode", None)


def value_in(result: Mapping[str, Any], metric: str) -> float | None:
    """Return a result's metric; NaN if it is no number, None if it is missing."""
    value = as_number(result.get(metric))
    return math.nan if value is None and metric in result else value


def as_number(value: Any) -> float | None:
    """Return a number, or an array or tensor of one element, as a float; None for anything else.

    >>> as_number(np.float32(0.5)), as_number("0.5"), as_number(True), as_number(None)
    (0.5, None, None, None)
    """
    if type(value) is float:  # quickly
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsFloat):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):  # an array or a tensor of several elements
        return None


def as_results(source: Any) -> Any:
    """Return what an experiment has found as `EarlierResults`; anything else as it is."""
    if not isinstance(source, ResultGrid):
        return source
    metric, mode = aim_of(source)
    if not (metric and mode):
        raise ValueError(
            "earlier has results of an experiment whose TuneConfig names no metric and mode; give "
            "EarlierResults of its configurations and values."
        )
    rows, name = [], f"{metric} of the experiment"  # no key of a configuration
    for result in (source[number] for number in range(len(source))):
        value = as_number(flatten_dict(result.metrics or {}).get(metric))
        if not result.error:
            rows.append({**copied(result.config or {}), name: value})
    return EarlierResults(rows, value=name, direction="maximize" if mode == "max" else "minimize")


def scalars(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and texts of a flat result, without the configuration."""
    plain = {name: native(result[name]) for name in result if not name.startswith("config/")}
    return {name: plain[name] for name in plain if isinstance(plain[name], (int, float, str))}
