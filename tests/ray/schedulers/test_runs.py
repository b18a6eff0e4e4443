"""Which trials are replicates of which arm, where they stand, and how many there is room for."""

import math

import numpy as np
import pytest
import ray
from ray.tune import PlacementGroupFactory
from ray.tune.experiment import Trial

from mfhpo_ray.schedulers.runs import Runs, slots_for


def test_replicates_of_an_arm_differ_in_their_keys_only():
    runs = Runs(["net/seed"])
    first = runs.arm({"net": {"seed": 1, "width": 8}, "seed": 5})
    assert runs.arm({"seed": 5, "net": {"width": 8, "seed": 2}}) == first
    assert runs.arm({"net": {"seed": 2, "width": 8}, "seed": 6}) != first
    assert runs.configurations[first] == {"net": {"width": 8}, "seed": 5}
    # From JSON, a number of NumPy comes back as that number.
    assert runs.arm({"x": np.float64(0.1)}) == runs.arm({"x": 0.1})
    different = [1, 1.0, True, "1", (1, 2), (1, 3), None]
    assert len({runs.arm({"y": value}) for value in different}) == len(different)


def trial_with(**resources):
    factory = PlacementGroupFactory([resources])
    trial = Trial("simulated", placement_group_factory=factory, stub=True)
    trial.create_placement_group_factory()
    return trial


@pytest.mark.parametrize(
    ("there", "needed", "slots"),
    [
        ({"CPU": 8.0, "GPU": 1.0}, {"CPU": 1.0, "GPU": 0.2}, 5),
        ({"CPU": 8.0, "GPU": 1.0}, {"CPU": 1.0, "GPU": 0.1}, 8),
        ({"CPU": 4.0}, {"CPU": 0.1}, 40),
        ({"CPU": 1.0}, {"CPU": 1 / 3}, 3),
        ({"CPU": 1.0}, {"CPU": 1 / 6}, 5),  # Ray rounds it up
        ({"CPU": 1.0}, {"CPU": 0.3}, 3),
        ({"CPU": 7.0}, {"CPU": 2.0}, 3),
        ({"CPU": 1.0}, {"CPU": 2.0}, 1),  # a cluster may grow
    ],
)
def test_fractions_of_resources_fill_the_cluster(monkeypatch, there, needed, slots):
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cluster_resources", lambda: there)
    assert slots_for(trial_with(**needed)) == slots


def test_without_a_cluster_nothing_limits_the_trials(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    assert slots_for(trial_with(CPU=1.0)) == math.inf
