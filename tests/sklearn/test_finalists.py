"""Searches among given settings whose budget is small: cheap levels choose the finalists."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from mfhpo_sklearn import IISESearchCV, MFSearchCV

X, y = load_breast_cancer(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, 2, 3, 4, 6, 8], "min_samples_leaf": [1, 2, 5, 10, 20, 40]}
LEVELS = [50, 150, 450]
N = 36


def given(estimator=TREE, candidates=GRID, kind=MFSearchCV, **options):
    defaults = {"resource": "n_samples", "levels": LEVELS, "budget": N, "random_state": 0}
    return kind(estimator, candidates, **{**defaults, **options})


def makes_finalists(search):
    return search.certificate_.searched


def finalists(search):
    """Rows of the finalists, in the order of the certificate."""
    settings = [dict(one.params) for one in search.certificate_.certificate.candidates]
    return [search.cv_results_["params"].index(params) for params in settings]


@pytest.mark.parametrize("kind", [MFSearchCV, IISESearchCV])
def test_cheap_levels_choose_the_finalists(kind):
    search = given(kind=kind).fit(X, y)
    answer, results = search.certificate_, search.cv_results_
    rows = finalists(search)
    left = answer.left
    assert left["left at n_samples=50"] == (results["n_resources"] == 50).sum()
    assert sum(left.values()) + answer.at_target == N
    words = str(answer)
    assert f"the {len(rows)} finalists of {N} candidates" in words
    assert f"of {N} candidates: {left['left at n_samples=50']} left at n_samples=50, " in words
    assert "random splits by StratifiedShuffleSplit into 455 samples and 114, the same" in words
    assert answer.finished
    assert answer.cost <= N
    shares = np.array([pull / 450 for pull in LEVELS])
    assert answer.trials == results["n_fits"].sum()
    assert answer.cost < shares[-1] * results["n_fits"].sum()
    assert search.best_index_ in rows
    assert search.best_params_ == results["params"][search.best_index_] == answer.params
    assert search.best_estimator_.get_params()["max_depth"] == search.best_params_["max_depth"]
    assert search.best_score_ == pytest.approx(results["mean_test_score"][search.best_index_])


def test_a_row_for_each_candidate_in_the_given_order():
    search = given(budget=10).fit(X, y)
    results, rows = search.cv_results_, finalists(search)
    given_order = [
        {"max_depth": d, "min_samples_leaf": m}
        for d in GRID["max_depth"]
        for m in GRID["min_samples_leaf"]
    ]
    assert results["params"] == given_order
    never = results["n_fits"] == 0
    assert never.sum() == search.certificate_.left["not tried"]
    assert never.any()
    assert (np.isnan(results["mean_test_score"]) == never).all()
    # Finalists have scores of fresh splits alone, and come before all that was chosen by luck.
    assert sorted(results["rank_test_score"][rows]) == list(range(1, len(rows) + 1))
    assert results["rank_test_score"][search.best_index_] == 1
    fresh = [results[f"split{split}_test_score"] for split in range(1, search.n_splits_)]
    counts = np.isfinite(fresh).sum(axis=0)
    assert set(np.flatnonzero(counts)) == set(rows)
    for row in rows:
        assert results["n_resources"][row] == 450
        scores = [column[row] for column in fresh]
        assert results["mean_test_score"][row] == pytest.approx(np.nanmean(scores))


def test_a_budget_that_pays_for_no_finalists():
    for budget, level in ((1, 150), (3, 450), (7, 450)):
        search = given(budget=budget).fit(X, y)
        assert search.certificate_.certificate is None
        assert not search.certificate_.certified
        assert search.certificate_.level == level
        assert search.cv_results_["n_resources"][search.best_index_] == level


def test_no_score_of_a_cheap_level_where_a_finalist_has_one():
    """The estimator's score is the number of its samples, so that levels cannot be mistaken."""

    class Counting(DecisionTreeClassifier):
        def fit(self, X, y):
            self.n_ = len(X)
            return super().fit(X, y)

        def score(self, X, y):
            return self.n_ + super().score(X, y)

    search = given(Counting(random_state=0)).fit(X, y)
    results = search.cv_results_
    assert (results["mean_test_score"].astype(int) // 10 * 10 == results["n_resources"]).all()
    assert search.best_score_ > 450


def test_settings_may_be_estimators_or_look_alike():
    flowers, species = load_iris(return_X_y=True)
    steps = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    models = [SVC(), LogisticRegression(), GaussianNB()]
    grid = {"model": models, "scale": [StandardScaler(), "passthrough", None]}
    search = given(steps, grid, levels=[20, 60, 120], budget=12).fit(flowers, species)
    assert makes_finalists(search)
    assert search.best_params_["model"] in models
    assert search.best_score_ > 0.8
    # A list of models alone says nothing that a model of settings could learn from.
    candidates = [{"model": SVC(C=c)} for c in (0.01, 0.1, 1.0, 10.0)] + [{"model": GaussianNB()}]
    search = given(steps, candidates, levels=[20, 60, 120], budget=9).fit(flowers, species)
    assert makes_finalists(search)
    assert search.best_params_ in candidates

    class Columns(DecisionTreeClassifier):
        def __init__(self, columns=None, random_state=0):
            super().__init__(random_state=random_state)
            self.columns = columns

    twice = [{"columns": columns} for columns in ([0], np.arange(2000), np.arange(2000) % 1999)]
    search = given(Columns(), twice * 2, levels=[20, 60, 120], budget=10).fit(flowers, species)
    assert len(search.cv_results_["params"]) == 6
    assert search.certificate_.finished
