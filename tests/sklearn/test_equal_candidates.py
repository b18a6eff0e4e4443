"""Equal candidates are one setting: fitted once on a split, and shown in the row of each."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV

from mfhpo_sklearn import IISESearchCV, MFSearchCV, SpaceSearchCV, certify

X = np.random.default_rng(0).normal(size=(120, 2))
y = np.arange(120) % 2
GIVEN = [{"worth": 0.5}, {"worth": 0.1}, {"worth": 0.5}]


class Drawn(ClassifierMixin, BaseEstimator):
    """Its score is its worth and some noise, which is drawn anew by each fit."""

    rng = np.random.default_rng(0)

    def __init__(self, worth=0.0):
        self.worth = worth

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_fitted_ = len(X)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return self.worth + 0.05 * float(Drawn.rng.normal())


def searches(candidates, **options):
    yield MFSearchCV(Drawn(), candidates, budget=60, random_state=0, **options)
    yield IISESearchCV(Drawn(), candidates, budget=60, random_state=0, **options)
    yield SpaceSearchCV(Drawn(), candidates=candidates, budget=20, random_state=0, **options)
    with_levels = {"resource": "n_samples", "levels": [20, 60, 96], **options}
    yield MFSearchCV(Drawn(), candidates, budget=60, random_state=0, **with_levels)


def check_rows_are_equal(search, one, other):
    for name, column in search.cv_results_.items():
        np.testing.assert_equal(column[one], column[other], name)


@pytest.mark.parametrize("place", range(4))
def test_equal_candidates_are_one_setting(place):
    search = list(searches(GIVEN, epsilon=0.0))[place].fit(X, y)
    assert search.cv_results_["params"][0]["worth"] == 0.5
    assert len(search.cv_results_["params"]) == 3
    check_rows_are_equal(search, 0, 2)
    assert search.best_index_ == 0
    assert search.cv_results_["rank_test_score"].tolist() == [1, 3, 1]
    answer = search.certificate_
    assert (answer.certified, answer.compared, answer.epsilon) == (True, 2, 0.0)
    # What both rows show was paid once.
    assert answer.trials == search.cv_results_["n_fits"][:2].sum()
    assert answer.params["worth"] == 0.5


def test_certify_compares_equal_settings_once():
    for worths, best in (([0.5, 0.1, 0.5], None), ([0.1, 0.5, 0.5, 0.3], None)):
        search = GridSearchCV(Drawn(), {"worth": worths}, cv=3).fit(X, y)
        best = search.best_index_
        answer = certify(search, X, y, top=4, epsilon=0.0, random_state=0, baseline=None)
        assert answer.compared == len(set(worths))
        assert (answer.certified, answer.params) == (True, {"worth": 0.5})
        # The row that the search hands over is the one that is shown, with what it promised.
        assert answer.candidates[answer.luckiest].name == f"row {best}"
        assert answer.candidates[answer.luckiest].claim == search.best_score_
    search = GridSearchCV(Drawn(), {"worth": [0.9, 0.1, 0.1]}, cv=3).fit(X, y)
    answer = certify(search, X, y, random_state=0, baseline=None)
    names = [candidate.name for candidate in answer.candidates]
    assert names == ["row 0", "row 1"]  # the first of equal ones
    same = GridSearchCV(Drawn(), {"worth": [0.5, 0.5]}).fit(X, y)
    with pytest.raises(ValueError, match="1 different settings"):
        certify(same, X, y, baseline=None)
