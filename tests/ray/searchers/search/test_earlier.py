"""Searches that try the best of earlier experiments first, by plain calls."""

import pytest
from ray import tune

from mfhpo import Fidelity
from mfhpo.search import EarlierResults
from mfhpo_ray import SpaceSearch
from tests.ray.certification.grids import Grid

LEVELS = Fidelity("epochs", levels=[1, 3, 9])
MODEL = [{"kind": "svm", "C": tune.loguniform(0.1, 10)}, {"kind": "tree"}, "none"]
SPACE = {
    "opt": {"lr": tune.loguniform(1e-4, 1), "depth": tune.randint(1, 9)},
    "model": tune.choice(MODEL),
    "epochs": tune.randint(1, 10),
}


class Aimed(Grid):
    """Results of an experiment that knows its metric and mode."""

    def __init__(self, *trials, metric="loss", mode="min"):
        super().__init__(*[(config, {metric: value}, None) for config, value in trials])
        self._experiment_analysis = type("", (), {"default_metric": metric, "default_mode": mode})


def tried(n=8, space=SPACE, **known):
    search = SpaceSearch(LEVELS, metric="loss", mode="min", budget=300, seed=0, **known)
    search.set_search_properties(None, None, space)
    configs = [search.suggest(f"trial {number}") for number in range(n)]
    for number in range(n):
        search.on_trial_complete(f"trial {number}", {"loss": float(number)})
    return configs, search


def config(lr, depth, model):
    return {"opt": {"lr": lr, "depth": depth}, "model": model, "epochs": 3, "seed": 7}


def test_the_best_of_each_source_take_turns_with_random_ones():
    svm, tree = {"kind": "svm", "C": 2.0}, {"kind": "tree"}
    minimised = Aimed((config(0.5, 3, tree), 2.0), (config(0.01, 4, svm), 1.0))
    maximised = Aimed((config(0.02, 5, "none"), 2.0), (config(0.5, 4, svm), 1.0), mode="max")
    rows = [{"opt/lr": 5.0, "opt/depth": 6.0, "acc": 0.1}, {"opt/lr": 0.3, "acc": 0.9}]
    table = EarlierResults(rows, value="acc", direction="maximize")
    configs, search = tried(earlier=[minimised, maximised, table])
    assert configs[0]["opt"]["lr"] == pytest.approx(0.01)
    assert (configs[0]["opt"]["depth"], configs[0]["model"]["kind"]) == (4, "svm")
    assert configs[0]["model"]["C"] == pytest.approx(2.0)
    assert (configs[2]["opt"]["depth"], configs[2]["model"]) == (5, "none")
    assert configs[4]["opt"]["lr"] == pytest.approx(0.3)
    assert configs[6]["model"] == tree
    assert [one["epochs"] for one in configs] == [1] * 8, "the search sets the level"
    plain, _ = tried()
    assert [configs[place] for place in (1, 3, 5, 7)] == [plain[place] for place in (1, 3, 5, 7)]
    assert search.recommendation().earlier == 4


def test_beliefs_are_drawn_around():
    configs, _ = tried(beliefs={"opt/lr": 0.01, "model": "none"})
    assert [one["model"] for one in configs[::2]] == ["none"] * 4
    assert all(3e-4 < one["opt"]["lr"] < 0.3 for one in configs[::2])


def test_sources_of_no_use_say_why():
    grid = Grid(({"x": 1}, {"loss": 1.0}, None))
    with pytest.raises(ValueError, match="names no metric and mode; give EarlierResults"):
        SpaceSearch(earlier=[grid])
    with pytest.raises(ValueError, match=r"results must have a row .*loss of the experiment"):
        SpaceSearch(earlier=[Aimed(({"x": 1}, float("nan")))])
    with pytest.raises(ValueError, match=r"earlier has no configuration with a value of the space"):
        tried(earlier=[Aimed(({"x": 1}, 1.0))])
    with pytest.raises(ValueError, match=r"beliefs\['opt/lr'\] must be a value of the space"):
        tried(beliefs={"opt/lr": 2.0})
