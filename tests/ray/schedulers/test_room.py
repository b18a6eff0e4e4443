"""How many trials a cluster has room for."""

import math

import pytest
import ray
from ray.tune import PlacementGroupFactory
from ray.tune.experiment import Trial

from mfhpo_ray.schedulers.room import slots_for


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
