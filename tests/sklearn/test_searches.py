"""The searches of mfhpo_sklearn, in the manner of scikit-learn's own tests of searches."""

import pickle
import warnings
from typing import ClassVar

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    ParameterGrid,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mfhpo import ArmWithdrawnWarning
from mfhpo_sklearn import IISESearchCV, MFSearchCV, SpaceSearchCV, certify

X, y = make_classification(n_samples=150, n_features=6, flip_y=0.2, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 2, 3, 5]}


def race(estimator=TREE, space=DEPTHS, **options):
    return SpaceSearchCV(estimator, space, **{"budget": 45, "random_state": 0, **options})


def given(estimator=TREE, candidates=DEPTHS, **options):
    options = {"epsilon": 0.1, "budget": 60, "random_state": 0, **options}
    return MFSearchCV(estimator, candidates, **options)


SEARCHES = pytest.mark.parametrize("make", [race, given])


def plain(results):
    """What of `cv_results_` is no measured time."""
    return {name: list(column) for name, column in results.items() if "_time" not in name}


def same(one, other):
    np.testing.assert_equal(plain(one.cv_results_), plain(other.cv_results_))
    assert one.best_params_ == other.best_params_
    assert one.best_score_ == other.best_score_


@SEARCHES
def test_attributes_are_those_of_a_search(make):
    search = make().fit(X, y)
    results = search.cv_results_
    assert results["params"] == [{"max_depth": depth} for depth in results["param_max_depth"]]
    assert sorted(params["max_depth"] for params in results["params"]) == [1, 2, 3, 5]
    assert search.best_params_ == results["params"][search.best_index_]
    assert results["rank_test_score"][search.best_index_] == 1
    assert search.best_score_ == pytest.approx(results["mean_test_score"][search.best_index_])
    assert search.best_score_ == search.certificate_.mean
    assert search.certificate_.params == search.best_params_
    assert search.best_estimator_.get_depth() <= search.best_params_["max_depth"]
    assert search.n_splits_ == sum(name.startswith("split") for name in results)
    rows = len(results["params"])
    assert {len(column) for column in results.values()} == {rows}
    assert results["n_fits"].sum() == search.certificate_.trials
    assert (search.predict(X) == search.best_estimator_.predict(X)).all()
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    assert search.classes_.tolist() == [0, 1]
    assert search.n_features_in_ == 6
    assert search.refit_time_ > 0.0
    assert str(search.certificate_).splitlines()[0].count("max_depth=") == 1
    assert "random splits by StratifiedShuffleSplit into 120 samples and 30" in str(
        search.certificate_
    )


@SEARCHES
def test_repeatable_clone_and_pickle(make):
    search = make()
    same(search.fit(X, y), clone(search).fit(X, y))
    copy = pickle.loads(pickle.dumps(search))
    same(search, copy)
    assert (copy.predict(X) == search.predict(X)).all()
    assert str(copy.certificate_) == str(search.certificate_)
    assert plain(clone(search).set_params(random_state=1).fit(X, y).cv_results_) != plain(
        search.cv_results_
    )


@SEARCHES
def test_several_at_once(make):
    with joblib.parallel_config(backend="threading"):
        search = make(n_jobs=3).fit(X, y)
        same(search, clone(search).fit(X, y))
    answer = search.certificate_
    assert answer.trials == answer.cost == search.cv_results_["n_fits"].sum()
    assert answer.cost <= (45 if make is race else 60)
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])  # which hands over all at once
def test_several_processes(backend):
    with joblib.parallel_config(backend=backend):
        search = given(n_jobs=2, budget=8).fit(X, y)
    same(search, given(budget=8).fit(X, y))


@SEARCHES
def test_nested_and_in_a_pipeline(make):
    scores = cross_val_score(make(budget=20), X, y, cv=2)
    assert scores.shape == (2,)
    assert scores.min() > 0.6
    steps = Pipeline([("scale", StandardScaler()), ("tree", TREE)])
    space = {"tree__max_depth": [1, 3], "scale": [StandardScaler(), "passthrough"]}
    search = make(steps, space, budget=20)
    search.fit(X, y)
    assert set(search.best_params_) == {"tree__max_depth", "scale"}
    assert make_pipeline(StandardScaler(), make(budget=20)).fit(X, y).score(X, y) > 0.6


@SEARCHES
def test_regression_unsupervised_and_scoring(make):
    data, target = make_regression(n_samples=100, n_features=5, noise=20.0, random_state=0)
    search = make(Ridge(), {"alpha": [0.1, 10.0, 1e4]}, epsilon=20.0, scoring=None)
    assert search.fit(data, target).best_params_["alpha"] < 1e4
    assert "by ShuffleSplit into 80" in str(search.certificate_)
    errors = make(Ridge(), {"alpha": [0.1, 1e4]}, scoring="neg_mean_absolute_error", epsilon=20.0)
    assert errors.fit(data, target).best_score_ < 0.0
    assert errors.score(data, target) < 0.0
    search = make(KMeans(n_init=1, random_state=0), {"n_clusters": [2, 5]}, epsilon=50.0).fit(X)
    assert search.predict(X).shape == (150,)
    own = make(scoring=lambda estimator, X, y: -float(estimator.get_depth())).fit(X, y)
    assert own.best_params_ == {"max_depth": 1}
    assert own.score(X, y) == -1.0


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails, or is interrupted, where it is told to; its score is its worth and some noise."""

    def __init__(self, worth=0.0, fails=False, interrupts_after=None, calls=None):
        self.worth = worth
        self.fails = fails
        self.interrupts_after = interrupts_after
        self.calls = calls

    def fit(self, X, y, sample_weight=None):
        if self.fails:
            raise ValueError("it fails")
        if self.calls is not None:
            self.calls.append((self.worth, len(X), sample_weight))
            if self.interrupts_after is not None and len(self.calls) > self.interrupts_after:
                raise KeyboardInterrupt
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y, sample_weight=None):
        return self.worth + 0.1 * float(np.sin(1e3 * (1 + self.worth) * np.sum(X[:, 0])))

    def __sklearn_clone__(self):
        return Fragile(self.worth, self.fails, self.interrupts_after, self.calls)


@SEARCHES
def test_interrupt_keeps_what_was_computed(make):
    calls = []
    estimator = Fragile(interrupts_after=11, calls=calls)
    search = make(estimator, {"worth": [0.0, 1.0, 2.0]})
    search.best_estimator_ = "of an earlier fit"
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert search.cv_results_["n_fits"].sum() == 11
    assert search.best_params_ == {"worth": 2.0}
    assert not search.certificate_.certified
    assert not hasattr(search, "best_estimator_")
    early = make(Fragile(interrupts_after=0, calls=[]), {"worth": [0.0, 1.0]})
    with pytest.raises(KeyboardInterrupt):
        early.fit(X, y)
    assert not hasattr(early, "cv_results_")


@SEARCHES
def test_settings_that_fail(make):
    space = {"worth": [0.0, 0.5], "fails": [False, True]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = make(Fragile(), space).fit(X, y)
    kinds = {warning.category for warning in caught}
    assert FitFailedWarning in kinds
    assert (ArmWithdrawnWarning in kinds) == (make is given)
    assert search.best_params_ == {"worth": 0.5, "fails": False}
    bad = search.cv_results_["param_fails"].astype(bool)
    assert np.isnan(search.cv_results_["mean_test_score"][bad]).all()
    with pytest.warns(FitFailedWarning, match="it fails"):
        scored = make(Fragile(), space, error_score=np.float32(-9.0)).fit(X, y)
    bad = scored.cv_results_["param_fails"].astype(bool)
    assert (scored.cv_results_["mean_test_score"][bad] == -9.0).all()
    with pytest.raises(ValueError, match="it fails"):
        make(Fragile(), space, error_score="raise").fit(X, y)


@SEARCHES
@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
def test_all_fail(make):
    with pytest.raises(ValueError, match=r"all \d+ fits failed.*it fails"):
        make(Fragile(fails=True), {"worth": [0.0, 1.0]}).fit(X, y)
    with pytest.raises(ValueError, match=r"all \d+ fits failed.*it fails"):
        make(Fragile(fails=True), {"worth": [0.0, 1.0]}, error_score=0.0).fit(X, y)


@SEARCHES
def test_resource_is_set_at_each_level(make):
    options = {"levels": [5, 20], "resource": "n_estimators"}
    if make is given:
        options |= {"estimated_bias": "eliminate", "budget": 200, "epsilon": 0.3}

    class Forest(Fragile):
        seen: ClassVar[list[int]] = []

        def __init__(self, worth=0.0, n_estimators=20):
            super().__init__(worth)
            self.n_estimators = n_estimators

        def fit(self, X, y):
            Forest.seen.append(self.n_estimators)
            return super().fit(X, y)

        def __sklearn_clone__(self):
            return Forest(self.worth, self.n_estimators)

    search = make(Forest(), {"worth": [0.0, 0.4, 0.8]}, **options).fit(X, y)
    assert set(Forest.seen) == {5, 20}
    assert search.best_params_ == {"worth": 0.8, "n_estimators": 20}
    assert search.best_estimator_.n_estimators == 20
    results = search.cv_results_
    assert results["n_resources"][search.best_index_] == 20
    assert set(results["iter"]) <= {0, 1}
    assert [params["n_estimators"] for params in results["params"]] == list(results["n_resources"])
    fits = np.array(Forest.seen[:-1])
    assert search.certificate_.cost == pytest.approx((fits == 20).sum() + 0.25 * (fits == 5).sum())
    assert certify(search, X, y, budget=6, top=3, random_state=0).evaluations == 6


def test_levels_found_out():
    search = race(resource="n_samples").fit(X, y)
    assert set(search.cv_results_["n_resources"]) <= {20, 40, 120}
    most = race(LogisticRegression(max_iter=90), {"C": loguniform(0.01, 10)}, resource="max_iter")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        most.fit(X, y)
    assert most.best_params_["max_iter"] == 90
    assert set(most.cv_results_["n_resources"]) <= {1, 3, 10, 30, 90}
    tree = DecisionTreeRegressor(max_features=0.9)
    share = race(tree, DEPTHS, resource="max_features", budget=20)
    assert max(share.fit(X, y).cv_results_["n_resources"]) == 0.9


def test_a_single_setting_is_the_answer():
    for options in ({}, {"resource": "n_samples"}):
        search = race(space={"max_depth": [3]}, **options).fit(X, y)
        assert search.best_params_["max_depth"] == 3
        assert search.certificate_.finished
        assert "nothing is left to evaluate" in search.certificate_.reason


def test_given_ends_with_its_budget_or_time():
    search = given(budget=13, epsilon=0.0).fit(X, y)
    assert search.certificate_.cost == 13
    assert not search.certificate_.certified
    with joblib.parallel_config(backend="threading"):
        assert given(budget=13, epsilon=0.0, n_jobs=4).fit(X, y).certificate_.cost == 13
    with pytest.raises(ValueError, match="timeout=1e-09 ended the search before any fit"):
        given(timeout=1e-9).fit(X, y)
    with pytest.raises(ValueError, match=r"^budget=0.5 ended the search before any fit"):
        given(budget=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"^budget=0.5 ended the search before any fit"):
        race(budget=0.5).fit(X, y)


def test_parameters_are_listed_as_by_grid_search():
    grid = [{"C": [1, 0.5]}, {"kernel": ["linear"], "gamma": [0.1, "auto"]}, {"degree": [2, 3]}]
    theirs = GridSearchCV(SVC(), grid, cv=2).fit(X, y).cv_results_
    candidates = list(ParameterGrid(grid))
    ours = MFSearchCV(SVC(), candidates, budget=6, random_state=0).fit(X, y).cv_results_
    for name in ("param_C", "param_kernel", "param_gamma", "param_degree"):
        assert ours[name].dtype == theirs[name].dtype
        assert ours[name].tolist() == theirs[name].tolist()


def test_equal_scores_do_not_make_a_setting_lead():
    flowers, species = load_iris(return_X_y=True)
    # One cut tells one of three species from the others: two thirds are right on all splits.
    for kind, budget, bias in (
        (IISESearchCV, 18, [0]),
        (IISESearchCV, 18, [0.1, 0]),
        (IISESearchCV, 24, [0.1, 0]),
        (MFSearchCV, 14, [0.1, 0]),
    ):
        options = {"resource": "n_samples", "levels": [40, 120]} if len(bias) > 1 else {}
        search = kind(
            TREE, {"max_depth": [1, 2, 5]}, bias=bias, budget=budget, random_state=0, **options
        )
        search.fit(flowers, species)
        assert not search.certificate_.certified
        assert search.best_score_ > 0.9


@SEARCHES
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scoring": ["accuracy", "roc_auc"]}, ValueError, ["scoring", "roc_auc", "single"]),
        ({"scoring": {"a": "accuracy"}}, ValueError, ["scoring", "several metrics", "accuracy"]),
        ({"scoring": lambda *_: {"a": 1.0, "b": 2.0}}, ValueError, ["several metrics", "a", "b"]),
        ({"error_score": "nan"}, ValueError, ["error_score", "'raise' or a number", "'nan'"]),
        ({"cv": [([0], [1])] * 3}, ValueError, ["cv", "splitter", "got a list of 3 given splits"]),
        ({"cv": LeaveOneOut()}, ValueError, ["cv", "LeaveOneOut", "random_state"]),
        ({"cv": TimeSeriesSplit(3)}, ValueError, ["cv", "TimeSeriesSplit", "no fresh ones"]),
        ({"resource": "n_tree"}, ValueError, ["n_tree", "no parameter", "max_depth"]),
        ({"resource": "max_depth"}, ValueError, ["max_depth", "leave it out"]),
        ({"resource": "max_leaf_nodes"}, ValueError, ["max_leaf_nodes", "None", "levels=["]),
        ({"levels": [1, 2]}, ValueError, ["levels=[1, 2]", "resource is None"]),
        ({"resource": "n_samples", "levels": [9, 999]}, ValueError, ["1 to 120", "999"]),
    ],
)
def test_bad_options(make, options, error, words):
    with pytest.raises(error) as caught:
        make(**options).fit(X, y)
    for word in words:
        assert word in str(caught.value)


@SEARCHES
def test_folds_are_shuffled_and_keep_groups_together(make):
    search = make(cv=KFold(3), budget=12).fit(X, y)
    assert "random splits by KFold into 100 samples and 50" in str(search.certificate_)
    groups = np.arange(150) % 30
    search = make(cv=GroupKFold(3), budget=12).fit(X, y, groups=groups)
    assert "random splits by GroupKFold into 100 samples and 50" in str(search.certificate_)
    with (
        pytest.warns(UserWarning, match="ignored by KFold"),
        pytest.raises(ValueError, match=r"KFold.*puts samples of one group.*GroupShuffleSplit"),
    ):
        search.set_params(cv=KFold(3)).fit(X, y, groups=groups)


@pytest.mark.parametrize("kind", ["list", "number"])
def test_a_search_among_candidates(kind):
    settings = [{"max_depth": d, "min_samples_leaf": m} for d in range(1, 9) for m in (1, 3, 9, 20)]
    space = {"max_depth": list(range(1, 9)), "min_samples_leaf": [1, 3, 9, 20]}
    options = {"candidates": settings} if kind == "list" else {"candidates": 20}
    found = race(TREE, None if kind == "list" else space, resource="n_samples", **options)
    found.fit(X, y)
    tried = found.cv_results_["params"]
    assert len(tried) == found.certificate_.tried <= len(settings)
    assert all(params in settings for params in tried)
    assert found.best_params_ in tried
    assert found.certificate_.cost <= 45
    assert "candidates" in str(found.certificate_)
