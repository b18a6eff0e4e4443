"""Searches and their certificates beside what the estimator does today."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV

from mfhpo_sklearn import MFSearchCV, SpaceSearchCV, certify

X, y = np.random.default_rng(0).random((120, 2)), np.tile([0, 1], 60)


class Worth(BaseEstimator):
    """Scores what its parameter is worth, give or take what its samples say."""

    def __init__(self, worth=0.3, other="a"):
        self.worth = worth
        self.other = other

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.error_ = 0.2 * (X[:, 0].mean() - 0.5)
        return self

    def score(self, X, y):
        return self.worth + self.error_ + 0.05 * (X[:, 1].mean() - 0.5)


def searched(grid=(0.1, 0.5, 0.4), estimator=None, **more):
    space = {"worth": list(grid), **more}
    return GridSearchCV(estimator or Worth(), space, cv=3).fit(X, y)


def test_estimators_own_parameters_are_the_baseline():
    answer = certify(searched(), X, y, top=3, epsilon=0.01, random_state=0)
    assert [one.name for one in answer.candidates] == ["row 1", "row 2", "row 0", "baseline"]
    assert answer.baseline.params == {"worth": 0.3}
    assert answer.baseline.verdict == "better"
    assert 0.0 < answer.baseline.at_least <= 0.2 + 1e-9
    assert "3 best of 3 settings and the baseline by the mean score" in answer.about
    assert answer.best_estimator_.worth == 0.5


def test_setting_that_is_the_estimators_own_is_its_row():
    answer = certify(searched((0.1, 0.3, 0.5)), X, y, top=3, epsilon=0.01, random_state=0)
    assert len(answer.candidates) == 3
    assert (answer.baseline.name, answer.baseline.params) == ("row 1", {"worth": 0.3})
    same = searched([0.1, 0.5], other=["a"])  # beside a parameter that is as it was
    found = certify(same, X, y, baseline={"worth": 0.5}, epsilon=0.01, random_state=0)
    assert found.baseline.verdict == "winner"


def test_other_parameters_are_as_the_estimator_has_them():
    search = searched(estimator=Worth(other="b"))
    answer = certify(search, X, y, baseline={"worth": 0.45}, epsilon=0.01, random_state=0)
    assert answer.baseline.params == {"worth": 0.45}
    answer = certify(search, X, y, top=1, baseline={"other": "c"}, epsilon=0.01, random_state=0)
    assert answer.baseline.params == {"other": "c", "worth": 0.3}
    assert len(answer.candidates) == 2


def test_none_is_no_baseline():
    answer = certify(searched(), X, y, top=3, baseline=None, epsilon=0.01, random_state=0)
    assert (answer.baseline, len(answer.candidates)) == (None, 3)


@pytest.mark.parametrize(
    ("baseline", "error", "words"),
    [
        ({"z": 1}, ValueError, "has 'z', which is no parameter of Worth"),
        ("own", TypeError, "baseline must be a dictionary of parameters or None, got 'own'"),
        (3, TypeError, "got 3"),
    ],
)
def test_wrong_baselines_are_refused(baseline, error, words):
    with pytest.raises(error, match=words):
        certify(searched(), X, y, baseline=baseline)


@pytest.mark.parametrize("options", [{}, {"resource": "n_samples"}])
def test_space_search_makes_it_a_finalist(options):
    search = SpaceSearchCV(
        Worth(), {"worth": uniform(0, 1)}, baseline={}, budget=60, random_state=0, **options
    ).fit(X, y)
    assert search.cv_results_["params"][0]["worth"] == 0.3
    assert search.cv_results_["n_fits"][0] > 1
    found = search.certificate_.baseline
    assert (found.verdict, found.params) == ("better", {"worth": 0.3})
    with pytest.raises(ValueError, match="has 'z', which is no parameter"):
        SpaceSearchCV(Worth(), {"worth": uniform(0, 1)}, baseline={"z": 1}).fit(X, y)


def test_given_settings_may_have_it():
    for baseline in ({"worth": 0.1}, 0):
        search = MFSearchCV(Worth(), {"worth": [0.1, 0.5]}, baseline=baseline, random_state=0)
        assert search.fit(X, y).certificate_.baseline.verdict == "better"
    with pytest.raises(ValueError, match="none of the 2 configurations"):
        MFSearchCV(Worth(), {"worth": [0.1, 0.5]}, baseline={"worth": 9.0}).fit(X, y)
