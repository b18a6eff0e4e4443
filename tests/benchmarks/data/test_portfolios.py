"""The making of portfolios, and their checks."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.space import ConfigurationSpace, Float
from benchmarks.hpo.tasks import judged_tasks
from benchmarks.portfolios.__main__ import SHIPPED, main
from benchmarks.portfolios.checking import checked
from benchmarks.portfolios.families import _CARPS, FAMILIES_OF, Family, _published
from benchmarks.portfolios.greedy import greedy, normalised
from benchmarks.portfolios.making import Making, as_text
from benchmarks.portfolios.tasks import Task
from mfhpo.portfolios import MODELS, portfolio


def test_regrets_are_0_at_the_best_and_1_at_the_median_and_below():
    found = normalised(np.array([[10.0, 20.0, 30.0, 18.0, 22.0], [1.0, 1.0, 1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(found, [[1.0, 1.0, 0.0, 1.0, 0.8], [0.0] * 5])


def test_greedy_takes_what_lowers_the_mean_most_each_time():
    rng = np.random.default_rng(0)
    regrets = rng.random((7, 30))
    chosen = greedy(regrets, 6)
    assert chosen[0] == 0
    assert len(set(chosen)) == 6
    for k in range(1, 6):
        means = {
            one: regrets[:, [*chosen[:k], one]].min(axis=1).mean()
            for one in range(30)
            if one not in chosen[:k]
        }
        assert means[chosen[k]] == pytest.approx(min(means.values()))


def test_of_equals_greedy_takes_the_one_that_is_best_by_itself():
    regrets = np.array([[0.0, 0.9, 0.1, 0.5]])
    assert greedy(regrets, 4) == [0, 2, 3, 1]


class Bowl(Task):
    """A parabola whose top is at a place of its own."""

    space = ConfigurationSpace({"x": Float(0.0, 1.0)})

    def __init__(self, top):
        self._top = top

    @property
    def best(self):
        return 0.0

    def values(self, configurations):
        return np.array([-100.0 * (one["x"] - self._top) ** 2 for one in configurations])


def bowls(**more):
    return Family(
        {"x": 0.0},
        lambda name: Bowl(float(name)),
        ("0.2", "0.5", "0.8"),
        sources=(),
        candidates=lambda: [{"x": k / 10} for k in range(11)],
        **{"checked_on": (), **more},
    )


def test_a_portfolio_holds_the_tops_of_what_it_was_made_from():
    making = Making(bowls())
    whole, less = making.portfolio(), making.portfolio(without="0.8")
    assert whole[0] == less[0] == {"x": 0.0}
    assert [one["x"] for one in whole[1:5]] == [0.6, 0.2, 0.8, 0.5]  # first what suits two
    assert [one["x"] for one in less[1:4]] == [0.3, 0.5, 0.2]


def test_a_check_leaves_out_the_data_set_that_it_is_on():
    found = checked("bowls", bowls(), seeds=2)
    regrets = {}
    for name in ("0.2", "0.5", "0.8"):
        values = Bowl(float(name)).values(Making(bowls()).portfolio(without=name))
        regrets[name] = -np.maximum.accumulate(values)
    by_hand = np.mean(list(regrets.values()), axis=0)[[0, 2, 4, 9]]
    np.testing.assert_allclose(found["regret"]["portfolio"], by_hand, atol=0.0051)
    assert found["regret"]["portfolio, then TPE"][:4] == found["regret"]["portfolio"]
    for regret in found["regret"].values():
        assert all(later <= earlier for earlier, later in itertools.pairwise(regret))
    assert found["data sets"] == 3


def test_published_values_are_told_in_lightgbm_s_words():
    found = _published(FAMILIES_OF["lightgbm"]().default)
    assert {"num_leaves": 16, "min_child_samples": 52, "max_bin": 127}.items() <= found[6].items()
    assert found[6]["learning_rate"] == 0.242
    assert found[-1] == {
        "num_leaves": 198,
        "min_child_samples": 12,
        "learning_rate": 0.0786,
        "max_bin": 255,
        "colsample_bytree": 0.46,
        "reg_alpha": 0.0,
        "reg_lambda": 0.0,
        "extra_trees": True,
    }


def test_lightgbm_s_portfolio_is_of_what_is_published():
    first, *others = portfolio("lightgbm")
    assert first == FAMILIES_OF["lightgbm"]().default
    assert all(one in _published(first) for one in others)


@pytest.mark.parametrize("model", ["elastic_net", "random_forest", "svm"])
def test_shipped_portfolios_are_made_from_recorded_trainings(model):
    assert Making(FAMILIES_OF[model]()).portfolio() == portfolio(model)


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("model", ["mlp", "xgboost"])
def test_shipped_portfolios_are_made_from_surrogates(model):
    assert Making(FAMILIES_OF[model]()).portfolio() == portfolio(model)


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(("model", "family"), [("mlp", "lcbench"), ("xgboost", "rbv2_xgboost")])
def test_neither_judged_tasks_nor_those_it_is_checked_on_make_a_portfolio(model, family):
    found = FAMILIES_OF[model]()
    made_from = {f"{family} {one}" for one in found.made_from}
    assert not made_from & {*judged_tasks(), *DEVELOPMENT_TASKS}
    assert {f"{family} {one}" for one in found.checked_on} <= {*DEVELOPMENT_TASKS}
    if model == "xgboost":
        assert not {*found.made_from} & {*_CARPS}


@pytest.mark.parametrize("model", MODELS)
def test_a_file_reads_back(model):
    told = json.loads((SHIPPED / f"{model}.json").read_text(encoding="utf-8"))
    about = {key: value for key, value in told.items() if key != "configurations"}
    text = as_text(told["configurations"], about)
    assert text == (SHIPPED / f"{model}.json").read_text(encoding="utf-8")


def test_a_check_keeps_what_a_file_says_about_others(tmp_path, capsys):
    file = tmp_path / "found.json"
    for model in ("svm", "elastic_net"):
        assert main(["check", model, "--seeds", "1", "--output", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert list(found["portfolios"]) == ["elastic_net", "svm"]
    assert "elastic_net: " in capsys.readouterr().out


@pytest.mark.parametrize("given", [["make", "catboost"], ["check", "--seeds", "0"]])
def test_wrong_arguments_end_the_command(given):
    with pytest.raises(SystemExit):
        main(given)


def test_all_recorded_tables_are_there():
    folder = Path(__file__).parents[3] / "benchmarks" / "portfolios" / "tables"
    assert len([*folder.glob("*.npz")]) == 12
