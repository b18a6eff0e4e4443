"""Searches for what the trials themselves earn."""

import warnings

import pytest

from mfhpo_ray import MFEliminationSearch, MFSearch, MFUCBSearch
from tests.ray.searchers.searching import ARMS, EPOCHS, run

AIMS = {
    MFUCBSearch: {"aim": "reward per cost", "bias": [0.1, 0.05, 0.0]},
    MFEliminationSearch: {"aim": "reward per pull", "epsilon": 0.1},
}


def search_of(cls, **options):
    arguments = {"arms": ARMS, "metric": "loss", "sigma": 0.05, "budget": 300.0, "seed": 0}
    return cls(EPOCHS, **{**arguments, **options})


@pytest.mark.parametrize("cls", AIMS, ids=lambda cls: cls.__name__)
def test_a_search_by_name_plays_what_its_aim_plays(cls):
    options = dict(AIMS[cls])
    by_aim = search_of(MFSearch, mode="max", **options)
    del options["aim"]
    by_name = search_of(cls, mode="max", **options)
    configs = run(by_name)
    assert configs == run(by_aim)
    answer = by_name.recommendation()
    assert (answer.certified, answer.finished, answer.config) == (False, True, {"x": -0.9})
    assert 291.0 < answer.cost <= 300.0


def test_losses_that_are_maximised_are_warned_of_once():
    search = search_of(MFEliminationSearch, mode="min")
    with pytest.warns(UserWarning, match="the reward per pull is maximised, and loss is minimised"):
        search.suggest("a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.suggest("b")
