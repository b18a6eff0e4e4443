"""What a second of a trial costs."""

import pytest
from ray.tune import PlacementGroupFactory

from benchmarks.tune_clock.cluster import SimulatedTrial
from mfhpo_ray.experiment.prices import Prices, required_resources


def test_what_is_not_named_is_free():
    assert Prices({"GPU": 20}, "measured").of({"CPU": 4, "GPU": 0.5, "TPU": 1}) == 10.0
    assert Prices({"GPU": 20}, "measured").of({"CPU": 4}) == 0.0


def test_all_bundles_of_a_trial_count():
    trial = SimulatedTrial(
        "simulated",
        placement_group_factory=PlacementGroupFactory([{"CPU": 1}, {"CPU": 2, "GPU": 1}]),
        stub=True,
    )
    trial.create_placement_group_factory()
    held = required_resources(trial)
    assert Prices({"CPU": 1, "GPU": 20}, "measured").of(held) == 23.0
    assert Prices(None, "measured").of(held) == 1.0


@pytest.mark.parametrize(
    ("prices", "costs", "message"),
    [
        ({"CPU": 1}, None, "costs='measured'"),
        ({"CPU": 1}, (1.0, 2.0), "costs='measured'"),
        ({"CPU": 0}, "measured", "everything free"),
        ({}, "measured", "everything free"),
        ({"CPU": -1}, "measured", r"prices\['CPU'\]"),
        ({"CPU": float("nan")}, "measured", r"prices\['CPU'\]"),
    ],
)
def test_wrong_prices_are_named(prices, costs, message):
    with pytest.raises(ValueError, match=message):
        Prices(prices, costs)
