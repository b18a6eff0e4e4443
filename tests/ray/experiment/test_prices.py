"""What a second of a trial costs."""

from ray.tune import PlacementGroupFactory

from benchmarks.tune_clock.cluster import SimulatedTrial
from mfhpo_ray.experiment.prices import price_of, required_resources


def test_all_bundles_of_a_trial_count_and_what_is_not_named_is_free():
    trial = SimulatedTrial(
        "simulated",
        placement_group_factory=PlacementGroupFactory([{"CPU": 1}, {"CPU": 2, "GPU": 1, "TPU": 1}]),
        stub=True,
    )
    trial.create_placement_group_factory()
    held = required_resources(trial)
    assert price_of({"CPU": 1, "GPU": 20}, held) == 23.0
    assert price_of(None, held) == 1.0
    assert price_of({"GPU": 20}, held) == 20.0
