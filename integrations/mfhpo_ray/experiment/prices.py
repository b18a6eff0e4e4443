"""What a second of a trial costs, by the resources that it holds."""

from collections.abc import Mapping
from typing import Any

from ray.tune.experiment import Trial

from mfhpo._validation import check_instance, check_nonnegative, shown


class Prices:
    """The cost of a second: see `mfhpo_ray.experiment.options.FidelitySearchOptions`.

    ValueError if prices are given but costs are not measured, or all prices are 0.
    """

    def __init__(self, prices: Mapping[str, float] | None, costs: Any) -> None:
        self._prices: dict[str, float] | None = None
        if prices is None:
            return
        check_instance("prices", prices, Mapping, "a dictionary by resource or None")
        if costs != "measured":
            raise ValueError(
                f"prices={shown(prices)} are for costs='measured', not for costs={costs!r}."
            )
        self._prices = {
            name: check_nonnegative(f"prices[{name!r}]", price) for name, price in prices.items()
        }
        if not any(self._prices.values()):
            raise ValueError(f"prices={shown(prices)} make everything free; give one above 0.")

    def of(self, resources: Mapping[str, float]) -> float:
        """Return the price of a second with these resources."""
        if self._prices is None:
            return 1.0
        return float(sum(self._prices.get(name, 0.0) * n for name, n in resources.items()))


def required_resources(trial: Trial) -> dict[str, float]:
    """Return what a trial holds while it runs, by the resource's name."""
    request: Any = trial.placement_group_factory
    return {} if request is None else dict(request.required_resources)
