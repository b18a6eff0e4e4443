"""What is passed to `fit` reaches estimator, scorer and splitter as `GridSearchCV` passes it."""

import threading
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from scipy.sparse import coo_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, PredefinedSplit
from sklearn.model_selection._search import BaseSearchCV
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch

from mfhpo_sklearn import IISESearchCV, MFSearchCV, SpaceSearchCV, certify
from mfhpo_sklearn.certification import shortlist_of
from mfhpo_sklearn.evaluation import FitArguments, evaluate

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 1))
HEAVY = X[:, 0] > 1.2  # few rows, nearly all of the weight
WEIGHTS = np.where(HEAVY, 100.0, 1.0)
y = np.where(HEAVY, X[:, 0] > 1.6, rng.random(600) < 0.97).astype(int)
FOLD = np.where(rng.random(600) < 0.3, 0, -1)
SPLIT = (np.flatnonzero(FOLD == -1), np.flatnonzero(FOLD == 0))
LEAVES = {"min_samples_leaf": [1, 50, 150]}  # with weights, 1 is best by far
FORWARDS = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 7)


class Noted(ClassifierMixin, BaseEstimator):
    """Notes what its methods were passed."""

    seen: ClassVar[list[tuple]] = []

    def __init__(self, depth=1):
        self.depth = depth

    def fit(self, X, y, sample_weight=None, **params):
        self.classes_ = np.unique(y)
        Noted.seen.append(("fit", X.shape, str(sample_weight), str(params)))
        return self

    def predict(self, X):
        return X[:, 0] > 0.3 * self.depth

    def score(self, X, y, sample_weight=None):
        Noted.seen.append(("score", X.shape, str(sample_weight)))
        return accuracy_score(y, self.predict(X), sample_weight=sample_weight)


def counted(y_true, y_pred, importance=None):
    Noted.seen.append(("score", len(y_true), str(importance)))
    return float(np.mean(y_true == y_pred))


def own_scorer(estimator, X, y):
    return float(np.mean(estimator.predict(X) == y))


def metrics(estimator, X, y):
    return {"one": own_scorer(estimator, X, y), "two": 0.0}


def same_as_grid_search(estimator, given, **options):
    """Check that one evaluation is passed, and gives, what the same one of a grid search does."""
    Noted.seen.clear()
    grid = GridSearchCV(estimator, {"depth": [1, 2]}, cv=PredefinedSplit(FOLD), **options)
    grid.fit(X, y, **given)
    expected, Noted.seen[:] = Noted.seen[:], []
    name = options["refit"] if grid.multimetric_ else "score"
    _, scorer = shortlist_of(grid, 2)
    passed = FitArguments.of(grid, X, given)
    for depth, score in zip([1, 2], grid.cv_results_[f"mean_test_{name}"], strict=True):
        found = evaluate(clone_of(estimator, depth), X, y, SPLIT, scorer, passed)
        assert (found.score, found.error) == (score, None)
    assert Noted.seen == expected[:-1]  # the last: refit
    return passed


def clone_of(estimator, depth):
    return sklearn.clone(estimator).set_params(depth=depth)


@pytest.mark.filterwarnings("ignore:The scoring .* does not support sample_weight")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scoring": "neg_mean_absolute_error"},
        {"scoring": "neg_max_error"},
        {"scoring": own_scorer},
        {"scoring": metrics, "refit": "one"},
        {"scoring": ["accuracy", "neg_max_error"], "refit": "accuracy"},
        {"scoring": ["accuracy", "neg_max_error"], "refit": "neg_max_error"},
    ],
)
def test_without_routing(options):
    given = {"sample_weight": WEIGHTS, "groups": FOLD, "other": "text", "none": None}
    passed = same_as_grid_search(Noted(), given, **options)
    assert passed.groups is FOLD
    assert set(passed.fit) == {"sample_weight", "other", "none"}


def test_with_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = Noted().set_score_request(sample_weight="own")
        estimator.set_fit_request(sample_weight="own")
        given = {"own": WEIGHTS, "importance": np.arange(600.0)}
        scorer = make_scorer(counted).set_score_request(importance=True)
        weighted = get_scorer("accuracy").set_score_request(sample_weight="own")
        same_as_grid_search(estimator, {"own": WEIGHTS})
        same_as_grid_search(Noted(), {"importance": given["importance"]}, scoring=scorer)
        two = {"counted": scorer, "weighted": weighted}
        for name in two:
            same_as_grid_search(Noted(), given, scoring=two, refit=name)
        with pytest.raises(TypeError, match="unexpected argument"):
            FitArguments.of(GridSearchCV(Noted(), {}), X, given)


def test_groups_reach_who_asks_for_them():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = GridSearchCV(Noted(), {}, cv=GroupShuffleSplit())
        assert FitArguments.of(asking, X, {}, FOLD).groups is FOLD
        assert FitArguments.of(asking, X, {"groups": FOLD}).groups is FOLD
        assert FitArguments.of(GridSearchCV(Noted(), {}), X, {}, FOLD).groups is FOLD
        scorer = make_scorer(counted).set_score_request(importance="groups")
        passed = FitArguments.of(GridSearchCV(Noted(), {}, scoring=scorer), X, {}, FOLD)
        assert passed.score["groups" if "groups" in passed.score else "importance"] is FOLD


def test_a_release_that_weights_no_scores(monkeypatch):
    def as_in_1_6(self, params):
        params = dict(params)
        groups = params.pop("groups", None)
        return Bunch(
            estimator=Bunch(fit=params),
            splitter=Bunch(split={"groups": groups}),
            scorer=Bunch(score={}),
        )

    monkeypatch.setattr(BaseSearchCV, "_get_routed_params_for_fit", as_in_1_6)
    passed = same_as_grid_search(Noted(), {"sample_weight": WEIGHTS})
    assert (set(passed.fit), passed.score) == ({"sample_weight"}, {})


def test_searches_of_other_libraries_pass_all_to_fit():
    passed = FitArguments.of(object(), X, {"sample_weight": WEIGHTS}, FOLD)
    assert (passed.fit, passed.score, passed.groups) == ({"sample_weight": WEIGHTS}, {}, FOLD)


@pytest.mark.skipif(not FORWARDS, reason="scores are weighted since scikit-learn 1.7")
def test_weights_decide_in_certificates_and_searches():
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    grid = GridSearchCV(tree, LEAVES).fit(X, y, sample_weight=WEIGHTS)
    assert grid.best_params_ == {"min_samples_leaf": 1}
    options = {"epsilon": 0.1, "random_state": 0}
    answer = certify(grid, X, y, fit_params={"sample_weight": WEIGHTS}, **options)
    assert (answer.params, answer.certified) == ({"min_samples_leaf": 1}, True)
    assert abs(answer.mean - grid.best_score_) < 0.05
    assert max(result.mean for result in answer.candidates[1:]) < 0.8  # 0.95 without weights
    for search in (
        MFSearchCV(tree, LEAVES, budget=60, **options),
        IISESearchCV(tree, LEAVES, budget=60, **options),
        SpaceSearchCV(tree, candidates=LEAVES, budget=20, **options),
    ):
        search.fit(X, y, sample_weight=WEIGHTS)
        assert search.best_params_["min_samples_leaf"] == 1


def test_data_that_has_no_rows_yet():
    given = {"sample_weight": WEIGHTS.tolist()}
    grid = GridSearchCV(DecisionTreeClassifier(max_depth=1), LEAVES).fit(coo_array(X), y, **given)
    answer = certify(grid, coo_array(X), y, fit_params=given, epsilon=0.5, random_state=0)
    assert answer.best_estimator_ is not None


class Callback:
    """Counts its fits, as one that stops a training early counts rounds without progress."""

    most = 0

    def __init__(self):
        self.fits = 0

    def __call__(self):
        self.fits += 1
        Callback.most = max(Callback.most, self.fits)


class Calling(Noted):
    shared: ClassVar[set[int]] = set()

    def fit(self, X, y, callbacks=(), evaluation=()):
        for callback in callbacks:
            callback()
        Calling.shared.update(map(id, evaluation))
        return super().fit(X, y)


class Locked(Callback):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_callbacks_are_copied_for_each_fit(monkeypatch):
    monkeypatch.setattr(Callback, "most", 0)
    Calling.shared.clear()
    own, locked = Callback(), Locked()
    given = {"callbacks": [own], "evaluation": (X, y)}
    space = {"depth": [1, 2]}
    options = {"epsilon": 0.1, "random_state": 0}
    for search in (
        MFSearchCV(Calling(), space, budget=12, **options),
        IISESearchCV(Calling(), space, budget=12, **options),
        SpaceSearchCV(Calling(), candidates=space, budget=8, **options),
    ):
        search.fit(X, y, **given)
    grid = GridSearchCV(Calling(), space, cv=2).fit(X, y)
    certify(grid, X, y, fit_params=given, **options)
    assert (own.fits, Callback.most) == (0, 1)
    assert Calling.shared == {id(X), id(y)}  # data is not copied
    answer = certify(grid, X, y, fit_params={"callbacks": [locked, own]}, **options)
    assert (own.fits, locked.fits) == (0, answer.evaluations + 1)  # what cannot be copied
