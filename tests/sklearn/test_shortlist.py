"""Which settings are the same one, and which of earlier searches are tried first."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from mfhpo.experiment import key_of
from mfhpo.search import EarlierResults
from mfhpo_sklearn import SpaceSearchCV
from mfhpo_sklearn.policy_search import described


class Hidden:
    """Its text does not show what it is."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "Hidden()"


class Local(Hidden):
    """Cannot be pickled."""

    def __reduce__(self):
        raise TypeError("cannot pickle it")


def key(value):
    return key_of({"a": value}, described)


def mask(place):
    return np.arange(2000) == place


def steps(C):
    return [("one", make_pipeline(*(StandardScaler() for _ in range(50)), SVC(C=C)))]


def fitted(labels):
    return FrozenEstimator(SVC().fit([[0.0], [1.0]], labels))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ((1, 2), [1, 2]),
        (np.zeros(2), np.zeros(2, dtype=int)),
        (mask(500), mask(501)),
        (pd.DataFrame(mask(500)), pd.DataFrame(mask(501))),
        ({"mask": mask(500)}, {"mask": mask(501)}),
        (Hidden(1), Hidden(2)),
        (Local(1), Local(2)),
        (steps(1.0), steps(2.0)),
        (fitted([0, 1]), fitted([1, 0])),
        (SVC, SVC()),
        (np.sin, np.cos),
    ],
)
def test_settings_that_differ(one, other):
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "value",
    [
        mask(500),
        Hidden(1),
        make_pipeline(StandardScaler(), SVC(class_weight={0: 1.0, 1: 2.0})),
        make_pipeline(FunctionTransformer(lambda rows: rows), SVC()),
    ],
)
def test_a_copy_is_the_same_setting(value):
    assert key(clone(value, safe=False)) == key(value)


X, y = np.random.default_rng(0).random((60, 2)), np.tile([0, 1], 30)


class Worth(BaseEstimator):
    """Scores how near its parameter is to 1, and little else."""

    def __init__(self, rate=0.3, kind="a"):
        self.rate = rate
        self.kind = kind

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return -abs(np.log10(self.rate)) - (self.kind == "b") + 0.01 * X[:, 0].mean()


def settings(earlier=None, **options):
    space = {"rate": loguniform(1e-3, 100), "kind": ["a", "b"]}
    search = SpaceSearchCV(
        Worth(), space, budget=24, earlier=earlier, random_state=0, refit=False, **options
    )
    return search.fit(X, y)


def grid(rates, **options):
    return GridSearchCV(Worth(), {"rate": rates, "kind": ["a", "b"]}, cv=2, **options).fit(X, y)


def test_the_best_of_each_source_take_turns_with_random_ones():
    fitted = grid([0.01, 2.0, 50.0])
    rows = [{"rate": 5.0, "loss": 0.1}, {"rate": 1000.0, "kind": "b", "loss": 0.0}]
    table = EarlierResults(rows, value="loss", direction="minimize")
    table_of_scores = grid([0.5, 90.0]).cv_results_
    search = settings([fitted, table_of_scores, table, {"kind": "c", "rate": 0.2}])
    tried = search.cv_results_["params"]
    assert [tried[place]["rate"] for place in (0, 2)] == pytest.approx([2.0, 0.5])
    assert [tried[place]["kind"] for place in (0, 2, 4)] == ["a", "a", "b"]
    assert tried[6]["rate"] == pytest.approx(0.2)
    assert search.certificate_.earlier >= 4
    assert "came from earlier results" in str(search.certificate_)
    plain = settings().cv_results_["params"]
    assert tried[1] == plain[1]


def test_only_those_that_came_farthest_count_by_the_metric_that_refits():
    halving = HalvingGridSearchCV(
        Worth(), {"rate": [0.1, 0.9, 50.0]}, min_resources=20, factor=3, cv=2, random_state=0
    ).fit(X, y)
    assert settings([halving]).cv_results_["params"][0]["rate"] == pytest.approx(0.9)
    metrics = {"good": lambda e, X, y: e.score(X, y), "bad": lambda e, X, y: -e.score(X, y)}
    several = grid([0.9, 50.0], scoring=metrics, refit="bad")
    first = settings([several]).cv_results_["params"][0]
    assert (first["rate"], first["kind"]) == (pytest.approx(50.0), "b")
    with pytest.raises(ValueError, match="cv_results_ of several metrics; give the fitted search"):
        settings([several.cv_results_])


def test_beliefs_are_drawn_around():
    tried = settings(beliefs={"rate": (1.0, 0.5), "kind": "b"}).cv_results_["params"]
    assert [one["kind"] for one in tried[:8:2]] == ["b"] * 4
    assert all(0.02 < one["rate"] < 50 for one in tried[:8:2])


def test_sources_of_no_use_say_why():
    with pytest.raises(ValueError, match="earlier has no configuration with a value of the space"):
        settings([{"C": 1.0}])
    failed = grid([0.5])
    failed.cv_results_["mean_test_score"][:] = np.nan
    with pytest.raises(ValueError, match=r"results must have a row .*score of the search"):
        settings([failed])
