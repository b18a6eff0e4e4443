"""The portfolios that are shipped, and how they are read."""

import json
import re
from pathlib import Path

import pytest

import mfhpo.portfolios
from mfhpo.portfolios import MODELS, portfolio

SHIPPED = Path(mfhpo.portfolios.__file__).parent
DEFAULTS = {
    "elastic_net": {"C": 1.0, "l1_ratio": 0.0},
    "lightgbm": {"n_estimators": 100, "num_leaves": 31, "learning_rate": 0.1, "max_bin": 255},
    "mlp": {"learning_rate": 0.001, "batch_size": 200, "momentum": 0.9},
    "random_forest": {"max_features": "sqrt", "min_samples_leaf": 1},
    "svm": {"C": 1.0, "gamma": "scale"},
    "xgboost": {"n_estimators": 100, "learning_rate": 0.3, "max_depth": 6, "reg_lambda": 1},
}


def test_there_is_one_of_each_model():
    assert set(MODELS) == set(DEFAULTS)


@pytest.mark.parametrize("model", MODELS)
def test_a_portfolio_begins_with_the_default_and_holds_ten_different_ones(model):
    found = portfolio(model)
    assert DEFAULTS[model].items() <= found[0].items()
    assert len(found) == len({json.dumps(one, sort_keys=True) for one in found}) == 10
    assert all(one.keys() <= found[0].keys() for one in found)


@pytest.mark.parametrize("model", MODELS)
def test_a_file_names_its_sources_with_licence_and_date(model):
    file = SHIPPED / f"{model}.json"
    assert file.stat().st_size < 4_000
    told = json.loads(file.read_text(encoding="utf-8"))
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", told["date"])
    assert told["command"] == f"python -m benchmarks.portfolios make {model}"
    assert told["sources"]
    for source in told["sources"]:
        assert source["licence"] in ("MIT", "Apache-2.0")
        assert source["from"]


def test_models_of_scikit_learn_take_their_portfolios():
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    x, y = load_iris(return_X_y=True)
    models = {"elastic_net": LogisticRegression(solver="saga", max_iter=5), "svm": SVC()}
    models["random_forest"] = RandomForestClassifier(n_estimators=2)
    for model, estimator in models.items():
        own = estimator.get_params()
        default = {**portfolio(model)[0], "max_samples": None}  # all samples, too
        assert all(own[name] == value for name, value in default.items() if name in own)
        for configuration in portfolio(model):
            estimator.set_params(**configuration)
            if model != "elastic_net":
                estimator.fit(x, y)


def test_lightgbm_takes_its_portfolio():
    lightgbm = pytest.importorskip("lightgbm")
    own = lightgbm.LGBMClassifier().get_params()
    first, *others = portfolio("lightgbm")
    assert all(own[name] == value for name, value in first.items() if name in own)
    assert all(one.keys() - own.keys() <= {"max_bin", "extra_trees"} for one in others)


def test_names_are_mapped():
    own, mine = portfolio("svm"), portfolio("svm", names={"gamma": "svc__gamma"})
    assert [one["svc__gamma"] for one in mine] == [one["gamma"] for one in own]
    assert [one["C"] for one in mine] == [one["C"] for one in own]
    assert all(one.keys() == {"C", "svc__gamma"} for one in mine)
    swapped = portfolio("svm", names={"C": "gamma", "gamma": "C"})
    assert swapped[0] == {"gamma": 1.0, "C": "scale"}


def test_what_is_returned_may_be_changed():
    portfolio("svm")[0]["C"] = 7.0
    assert portfolio("svm")[0]["C"] == 1.0


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"model": "catboost"}, ValueError, "model must be one of 'elastic_net', .*'catboost'"),
        ({"model": "../svm"}, ValueError, "model must be one of"),
        ({"names": {"c": "C"}}, ValueError, "names must be one of 'C', 'gamma', got 'c'"),
        ({"names": {"C": 1}}, TypeError, r"names\['C'\] must be a name, got 1"),
        ({"names": ["C"]}, TypeError, "names must be a dictionary, got"),
        ({"names": {"C": "gamma"}}, ValueError, "names must give each parameter a name of its own"),
    ],
)
def test_wrong_arguments_are_named(given, error, words):
    with pytest.raises(error, match=words):
        portfolio(**{"model": "svm", **given})
