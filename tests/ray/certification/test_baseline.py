"""A certificate of an experiment, and a search, with the configuration in use today."""

import math

import pytest
from ray import tune

from mfhpo_ray import MFSearch, SpaceSearch
from mfhpo_ray.certification import shortlist_of
from tests.ray.certification.grids import Grid, trial
from tests.ray.searchers.searching import run

GRID = Grid(*(trial(x, acc=0.5 + 0.1 * x, seed=x, data="digits") for x in range(6)))


def shortlist(baseline, top=2, grid=GRID, **options):
    given = {"metric": "acc", "mode": "max", "fidelity": None, "time_attr": "training_iteration"}
    found, _ = shortlist_of(grid, top, owned=["seed"], baseline=baseline, **given | options)
    return found


def test_known_configuration_comes_besides_the_best():
    found = shortlist({"model": {"x": 1}})
    assert [one.name for one in found.candidates] == ["trial 5", "trial 4", "trial 1"]
    assert found.baseline == 2
    assert found.about == "the 2 best of 6 trials and the baseline"
    among = shortlist({"model": {"x": 4}})
    assert (len(among.candidates), among.baseline) == (2, 1)
    assert among.about == "the 2 best of 6 trials"
    assert shortlist(None).baseline is None


def test_new_configuration_has_the_constants_and_no_claim():
    found = shortlist({"model": {"x": 9}, "seed": 3}, top=1)
    best, today = found.candidates
    assert (best.name, today.name, found.baseline) == ("trial 5", "baseline", 1)
    assert today.params == {"model": {"x": 9}, "data": "digits"}
    assert math.isnan(today.claim)


def test_fidelity_is_that_of_all():
    grid = Grid(*(trial(x, acc=0.1 * x, epochs=9) for x in range(4)))
    found = shortlist({"model": {"x": 7}, "epochs": 1}, grid=grid, fidelity="epochs")
    assert found.candidates[found.baseline].params == {"model": {"x": 7}, "epochs": 9}


@pytest.mark.parametrize(
    ("baseline", "error", "words"),
    [
        ({"y": 1}, ValueError, r"in which configurations differ, \['model/x'\]; look at 'model/x'"),
        ({"model": {"x": 1}, "y": 1}, ValueError, "look at 'y'"),
        ({}, ValueError, "look at 'model/x'"),
        (3, TypeError, "baseline must be a dictionary of parameters or None, got 3"),
    ],
)
def test_baseline_that_cannot_be_evaluated_is_refused(baseline, error, words):
    with pytest.raises(error, match=words):
        shortlist(baseline)


def loss(config):
    level, noise = config.get("epochs", 9), 0.01 * math.sin(config["seed"])
    return (config["x"] - 0.3) ** 2 + 0.1 / level + noise


def test_search_evaluates_it_first_and_says_how_the_winner_compares():
    search = SpaceSearch(
        "epochs",
        space={"x": tune.uniform(-1, 1), "epochs": tune.randint(1, 10)},
        budget=600,
        baseline={"x": 1.0, "epochs": 1},
        metric="loss",
        mode="min",
        seed=0,
    )
    first, *others = run(search, loss)
    assert (first["x"], first["epochs"]) == (1.0, 9)
    assert [config["epochs"] for config in others if config["x"] == 1.0]
    answer = search.recommendation()
    assert (answer.baseline.verdict, answer.baseline.params) == ("better", {"x": 1.0})
    assert 0.0 < answer.baseline.at_least < 0.49


def test_race_of_given_configurations():
    arms = [{"x": x} for x in (-0.5, 0.0, 0.3, 0.8)]
    levels = {"epochs": tune.randint(1, 10)}
    search = MFSearch("epochs", arms, space=None, baseline={"x": -0.5}, metric="loss", mode="min")
    search.set_search_properties(None, None, levels)
    run(search, loss)
    answer = search.recommendation()
    assert answer.baseline.verdict == "better"
    other = MFSearch("epochs", arms, baseline={"x": 7.0}, metric="loss", mode="min")
    other.set_search_properties(None, None, levels)
    with pytest.raises(ValueError, match="none of the 4 configurations"):
        other.suggest("a")
