"""What a second of a trial costs, by the resources that it holds."""

from collections.abc import Mapping
from typing import Any

from ray.tune.experiment import Trial

from mfhpo._validation import check_instance, check_nonnegative, shown


def check_prices(prices: Mapping[str, float] | None, costs: Any) -> dict[str, float] | None:
    """Return prices; ValueError if costs are not measured, or all prices are 0."""
    if prices is None:
        return None
    check_instance("prices", prices, Mapping, "a dictionary by resource or None")
    if costs != "measured":
        raise ValueError(
            f"prices={shown(prices)} are for costs='measured', not for costs={costs!r}."
        )
    checked = {name: check_nonnegative(f"prices[{name!r}]", prices[name]) for name in prices}
    if not any(checked.values()):
        raise ValueError(f"prices={shown(prices)} make everything free; give one above 0.")
    return checked


def price_of(prices: Mapping[str, float] | None, resources: Mapping[str, float]) -> float:
    """Return the price of a second with these resources; 1 without prices."""
    if prices is None:
        return 1.0
    return float(sum(prices.get(name, 0.0) * n for name, n in resources.items()))


def required_resources(trial: Trial) -> dict[str, float]:
    """Return what a trial holds while it runs, by the resource's name."""
    request: Any = trial.placement_group_factory
    return {} if request is None else dict(request.required_resources)
