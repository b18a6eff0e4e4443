"""A score of -inf is the worst score and no failed fit; NaN and +inf are failures."""

import json
import math
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV

from mfhpo import ArmWithdrawnWarning
from mfhpo_sklearn import IISESearchCV, MFSearchCV, SpaceSearchCV, certify

X = np.random.default_rng(0).normal(size=(120, 2))
y = np.arange(120) % 2


class Scored(ClassifierMixin, BaseEstimator):
    """Its score is its worth and some noise; on a share of splits it is `instead`."""

    shows = False

    def __init__(self, worth=0.0, share=0.0, instead=-math.inf, raises=False):
        self.worth = worth
        self.share = share
        self.instead = instead
        self.raises = raises

    def fit(self, X, y):
        if self.raises:
            raise ValueError("it fails")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        place = float(np.sum(X[:, 0]))
        if Scored.shows and (np.sin(1e4 * place) + 1.0) / 2.0 < self.share:
            return self.instead
        return self.worth + 0.1 * float(np.sin(1e3 * (1 + self.worth) * place))


@pytest.fixture
def shown(monkeypatch):
    monkeypatch.setattr(Scored, "shows", True)


def certified(monkeypatch, space, **options):
    monkeypatch.setattr(Scored, "shows", False)  # the search was lucky
    search = GridSearchCV(Scored(), space).fit(X, y)
    monkeypatch.setattr(Scored, "shows", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ArmWithdrawnWarning)
        return certify(search, X, y, top=4, random_state=0, baseline=None, **options)


@pytest.mark.parametrize("instead", [-math.inf, -1e60])
def test_a_setting_that_scores_minus_infinity_is_worse_than_all_others(monkeypatch, instead):
    sometimes = {"worth": [0.5], "share": [0.3], "instead": [instead]}
    space = [{"worth": [0.1, 0.2, 0.4]}, sometimes]
    answer = certified(monkeypatch, space)
    assert (answer.certified, answer.params) == (True, {"worth": 0.4})
    worst = answer.candidates[0]
    assert (worst.params["worth"], worst.mean, worst.standing) == (0.5, -math.inf, "worse")
    assert worst.failures == 0
    assert (answer.compared, answer.not_compared) == (4, ())
    assert answer.evaluations == sum(each.values for each in answer.candidates)
    assert "notice      row 3 gave -inf" in str(answer)
    assert "failed" not in str(answer)
    assert math.isfinite(answer.corrected_mean)
    assert json.loads(json.dumps(answer.to_dict()))["candidates"][0]["mean"] is None


def test_the_only_one_without_such_a_score_is_certified(monkeypatch):
    space = [{"worth": [0.2]}, {"worth": [0.3, 0.5], "share": [0.5]}]
    for epsilon in (0.05, None):
        answer = certified(monkeypatch, space, epsilon=epsilon)
        assert (answer.certified, answer.params, answer.within) == (True, {"worth": 0.2}, 0.0)
        assert answer.reason == "every other candidate gave -inf"
        assert math.isfinite(answer.epsilon)
        assert str(answer).startswith("CERTIFIED: row 0, worth=0.2")


def test_all_score_minus_infinity(monkeypatch):
    answer = certified(monkeypatch, {"worth": [0.1, 0.2], "share": [1.0]})
    assert (answer.certified, answer.winner, answer.evaluations) == (False, None, 2)
    assert answer.reason == "every candidate gave -inf"
    assert answer.best_estimator_ is None


@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
@pytest.mark.parametrize("instead", [math.nan, math.inf])
def test_no_number_and_plus_infinity_are_failures(monkeypatch, instead):
    monkeypatch.setattr(Scored, "shows", False)
    always = {"worth": [0.5], "share": [1.0], "instead": [instead]}
    search = GridSearchCV(Scored(), [{"worth": [0.1, 0.4]}, always]).fit(X, y)
    monkeypatch.setattr(Scored, "shows", True)
    answer = certify(search, X, y, random_state=0)
    assert answer.params == {"worth": 0.4}
    assert answer.candidates[0].standing == "failed"
    given = MFSearchCV(Scored(), search.cv_results_["params"], budget=60, random_state=0)
    given.fit(X, y)
    assert given.best_params_ == {"worth": 0.4}
    assert np.isnan(given.cv_results_["mean_test_score"][2])


def searches(candidates, **options):
    yield MFSearchCV(Scored(), candidates, budget=60, random_state=0, **options)
    yield IISESearchCV(Scored(), candidates, budget=60, random_state=0, **options)
    yield SpaceSearchCV(Scored(), candidates=candidates, budget=20, random_state=0, **options)


def check_is_last(search, row):
    results = search.cv_results_
    assert results["mean_test_score"][row] == -math.inf
    assert results["rank_test_score"].argmax() == row
    assert search.best_params_ == {"worth": 0.4, "share": 0.0}
    assert math.isfinite(search.best_score_)


@pytest.mark.usefixtures("shown")
def test_in_searches_it_ranks_last_and_is_no_failed_fit():
    candidates = [{"worth": 0.1, "share": 0.0}, {"worth": 0.5, "share": 1.0}]
    candidates.append({"worth": 0.4, "share": 0.0})
    for search in searches(candidates):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FitFailedWarning)
            warnings.simplefilter("error", ArmWithdrawnWarning)
            search.fit(X, y)
        check_is_last(search, 1)
        assert search.cv_results_["n_fits"][1] == 1  # one is enough
    for search in searches([{"worth": 0.1, "share": 1.0}, {"worth": 0.5, "share": 1.0}]):
        with pytest.raises(ValueError, match=r"none of \d+ scores is finite"):
            search.fit(X, y)


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("kind", [MFSearchCV, IISESearchCV])
def test_all_settings_score_minus_infinity_at_times(kind):
    with pytest.raises(ValueError, match="every setting left the search"):
        kind(Scored(share=0.1), {"worth": [0.5, 0.5001]}, epsilon=0.0, random_state=1).fit(X, y)


@pytest.mark.usefixtures("shown")
def test_error_score_may_be_minus_infinity():
    candidates = [{"worth": 0.4, "share": 0.0}, {"worth": 0.5, "raises": True}]
    for search in searches(candidates, error_score=-math.inf):
        with pytest.warns(FitFailedWarning, match="it fails"):
            search.fit(X, y)
        check_is_last(search, 1)
