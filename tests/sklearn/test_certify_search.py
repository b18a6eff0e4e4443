from __future__ import annotations

import importlib
import math
from typing import ClassVar

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)

from mfhpo import NoiseContradictedWarning
from mfhpo_sklearn import certify

# Only there once the experiment is switched on.
importlib.import_module("sklearn.experimental.enable_halving_search_cv")
HalvingRandomSearchCV = importlib.import_module("sklearn.model_selection").HalvingRandomSearchCV

X, y = make_classification(n_samples=120, n_features=6, flip_y=0.2, random_state=0)


class Noted(ClassifierMixin, BaseEstimator):
    """Scores `worth` plus what is hard about the split; notes what it was fitted on."""

    fits: ClassVar[list[tuple[float, tuple[int, ...]]]] = []

    def __init__(self, worth=0.0, n_trees=1):
        self.worth = worth
        self.n_trees = n_trees

    def fit(self, X, y, fails=None):
        if fails is not None and fails[0]:
            raise ValueError("it fails")
        self.classes_ = np.unique(y)
        Noted.fits.append((self.worth, tuple(X[:, 0])))
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        split = float(np.sum(X[:, 0]))
        own = float(np.sin(1e4 * split * (1 + self.worth)))
        return self.worth + 0.05 * split / len(X) + 0.01 * own


def searched(grid=(0.1, 0.2, 0.5, 0.4), **options):
    return GridSearchCV(Noted(), {"worth": list(grid)}, **{"cv": 4, **options}).fit(X, y)


def test_a_plan_fits_nothing(capsys):
    search = searched((0.5, 0.49, 0.48, 0.1))
    Noted.fits.clear()
    plan = certify(search, X, y, plan=True, epsilon=0.02, baseline=None)
    assert not Noted.fits
    assert [one["worth"] for one in plan.finalists] == [0.5, 0.49]
    assert "2 more left out, whose own values are far below the best" in plan.shortlist
    assert "with what splits do to all of them left out" in plan.rests_on
    search.set_params(verbose=1)
    answer = certify(search, X, y, epsilon=0.02, random_state=0, baseline=None)
    assert capsys.readouterr().out == f"{plan}\n"
    assert plan.evaluations / 3 < answer.evaluations < 3 * plan.evaluations


def test_winner_is_the_best_on_fresh_splits_and_fitted_on_all_data():
    search = searched()
    Noted.fits.clear()
    answer = certify(search, X, y, top=3, epsilon=0.02, measure=0, random_state=0, baseline=None)
    assert answer.certified
    assert answer.best_params_ == {"worth": 0.5}
    assert answer.best_score_ == answer.mean == pytest.approx(0.5, abs=0.05)
    assert answer.best_estimator_.worth == 0.5
    *fits, last = Noted.fits
    assert len(fits) == answer.evaluations
    assert last == (0.5, tuple(X[:, 0]))
    assert [result.params["worth"] for result in answer.candidates] == [0.5, 0.4, 0.2]
    # All that are left share a split, and every round has another.
    rounds = {}
    for worth, rows in fits:
        rounds.setdefault(rows, []).append(worth)
    assert {len(rows) for rows in rounds} == {90}  # three of four parts, as in the search
    assert all(len(set(worths)) == len(worths) for worths in rounds.values())
    assert len(next(iter(rounds.values()))) == 3
    assert len(rounds) == max(result.evaluations for result in answer.candidates)
    again, other = (
        certify(search, X, y, top=3, epsilon=0.02, measure=0, random_state=seed, baseline=None)
        for seed in (0, None)
    )
    assert answer == again
    assert answer.mean != other.mean


def test_splits_are_like_those_of_the_search_or_as_given():
    splitter = ShuffleSplit(5, test_size=0.5, random_state=7)
    answer = certify(searched(), X, y, cv=splitter, budget=8, random_state=0)
    assert "ShuffleSplit into 60 samples and 60" in str(answer)
    assert splitter.random_state == 7
    Noted.fits.clear()
    answer = certify(searched(cv=KFold(6)), X, y, budget=24, random_state=0)
    assert "by KFold into 100 samples and 20" in str(answer)
    assert len({rows for _, rows in Noted.fits}) > 6 + 4  # shuffled, unlike the search's
    groups = np.repeat(np.arange(12), 10)
    for cv in (3, GroupKFold(3, shuffle=True), GroupKFold(3)):
        search = searched(cv=3)
        search.cv = cv
        Noted.fits.clear()
        certify(search, groups[:, None] + 0 * X, y, groups=groups, budget=8, refit=False)
        for _, rows in Noted.fits:
            assert set(np.unique(rows, return_counts=True)[1]) == {10}  # each group, or nothing
    data, target = make_regression(n_samples=80, n_features=5, noise=20.0, random_state=0)
    ridge = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 1e4]}, refit=False).fit(data, target)
    answer = certify(ridge, data, target, random_state=0, top=3)
    assert answer.certified
    assert answer.best_params_["alpha"] < 1e4
    assert "ShuffleSplit into 64 samples and 16" in str(answer)


@pytest.mark.parametrize("resource", ["n_samples", "n_trees"])
def test_halving_search(resource):
    most = {} if resource == "n_samples" else {"max_resources": 9}
    search = HalvingRandomSearchCV(
        Noted(), {"worth": [0.1, 0.2, 0.3, 0.4, 0.5]}, resource=resource, n_candidates=5, cv=3,
        random_state=0, **most,
    ).fit(X, y)  # fmt: skip
    rows = search.cv_results_["params"]
    assert len(rows) > 5
    answer = certify(search, X, y, top=9, epsilon=0.02, random_state=0, baseline=None)
    assert len(answer.candidates) == 5
    assert answer.luckiest == 0
    assert answer.luckiest_result.params["worth"] == search.best_params_["worth"]
    assert "settings that came farthest first" in answer.shortlist
    if resource == "n_trees":
        most_given = int(max(search.cv_results_["n_resources"]))
        assert {result.params["n_trees"] for result in answer.candidates} == {most_given}


def test_metric_that_refit_names_counts():
    options = {"scoring": ["accuracy", "neg_log_loss"]}
    grid = {"C": [1e-3, 1.0, 100.0]}
    search = GridSearchCV(LogisticRegression(), grid, refit="neg_log_loss", **options).fit(X, y)
    answer = certify(search, X, y, budget=9, random_state=0)
    assert answer.mean < 0.0
    assert "mean neg_log_loss" in answer.shortlist
    unclear = GridSearchCV(LogisticRegression(), grid, refit=False, **options).fit(X, y)
    with pytest.raises(ValueError, match="refit=False, which does not say which of them counts"):
        certify(unclear, X, y)


def test_several_at_once_give_the_same_answer():
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}).fit(X, y)
    one = certify(search, X, y, random_state=0)
    with joblib.parallel_config(backend="threading"):
        assert certify(search, X, y, random_state=0, n_jobs=2) == one


def test_budget_and_timeout():
    short = certify(searched(), X, y, top=4, budget=11, epsilon=0.0, random_state=0)
    assert (short.evaluations, short.finished, short.certified) == (11, True, False)
    timed = certify(searched(), X, y, timeout=1e-9)
    assert (timed.evaluations, timed.finished, timed.winner) == (0, False, None)
    assert timed.best_estimator_ is None
    assert math.isnan(timed.mean)


class Interrupted(Noted):
    """Is interrupted at one of its fits."""

    fits_left: ClassVar[int] = 10**9

    def fit(self, X, y):
        if Interrupted.fits_left == 0:
            raise KeyboardInterrupt
        Interrupted.fits_left -= 1
        return super().fit(X, y)


def test_interrupt_gives_what_is_known(monkeypatch):
    search = GridSearchCV(Interrupted(), {"worth": [0.1, 0.2, 0.5, 0.4]}).fit(X, y)
    options = {"top": 4, "epsilon": 0.02, "random_state": 0, "baseline": None}
    whole = certify(search, X, y, **options)
    for fits, reason in (
        (11, "it was interrupted and 4 arms are not told apart yet"),
        (whole.evaluations, whole.reason),  # in the last fit
    ):
        monkeypatch.setattr(Interrupted, "fits_left", fits)
        answer = certify(search, X, y, **options)
        assert answer.evaluations == fits
        assert answer.best_params_ == {"worth": 0.5}
        assert answer.reason == reason
        assert answer.best_estimator_ is None
    assert "notice      the last fit was interrupted" in str(answer)
    monkeypatch.setattr(Interrupted, "fits_left", 0)
    with pytest.raises(KeyboardInterrupt):
        certify(search, X, y, **options)


FOLDS = [(np.arange(120) % 4 != k, np.flatnonzero(np.arange(120) % 4 == k)) for k in range(4)]


@pytest.mark.parametrize("cv", [KFold(4), 4, FOLDS, TimeSeriesSplit(4), LeaveOneGroupOut()])
def test_given_folds_are_all_used_and_the_answer_is_exact(cv):
    groups = np.arange(120) % 4 if isinstance(cv, LeaveOneGroupOut) else None
    search = searched()
    Noted.fits.clear()
    options = {"cv": cv, "groups": groups, "baseline": None}
    answer = certify(search, X, y, top=3, random_state=0, **options)
    assert (answer.certified, answer.is_exact, answer.replicates) == (True, True, 4)
    assert (answer.evaluations, answer.epsilon, answer.params) == (12 + 3, 0.0, {"worth": 0.5})
    *fits, _ = Noted.fits
    assert len(set(fits)) == 12
    assert len({rows for _, rows in fits}) == 4
    scores = cross_val_score(Noted(0.5), X, y, cv=cv, groups=groups)
    assert answer.mean == pytest.approx(scores.mean())
    text = str(answer)
    assert "by the mean score over these splits of these data, sure if" in text
    assert "interval and claim are about these 4 splits of these data" in text
    low, high = answer.new_data_interval
    assert low < answer.mean < high


def test_a_forest_without_a_seed_is_never_exact():
    search = GridSearchCV(RandomForestClassifier(10), {"max_depth": [1, 5], "n_estimators": [5, 9]})
    options = {"cv": 5, "baseline": None, "refit": False, "random_state": 0, "budget": 60}
    with pytest.warns(NoiseContradictedWarning, match="on the same replicate: values are random"):
        answer = certify(search.fit(X, y), X, y, **options)
    assert (answer.is_exact, answer.replicates) == (False, 5)
    text = str(answer)
    assert "(exact)" not in text
    assert "sure if" not in text
    assert "what is random on a replicate is drawn anew in each evaluation" in text
    assert "about these 5 splits of these data" in text


def test_a_forest_with_a_seed_is_exact():
    forest = RandomForestClassifier(10, random_state=0)
    search = GridSearchCV(forest, {"max_depth": [1, 5]}).fit(X, y)
    answer = certify(search, X, y, cv=5, baseline=None, refit=False, random_state=0)
    assert (answer.certified, answer.is_exact) == (True, True)
    assert "evaluations made twice, with the same values: " in str(answer)


def test_given_folds_come_in_random_order():
    orders = []
    for seed in (0, 1, 2):
        Noted.fits.clear()
        options = {"top": 2, "refit": False, "baseline": None}
        certify(searched(cv=3), X, y, cv=8, random_state=seed, **options)
        orders.append(tuple(dict.fromkeys(rows for _, rows in Noted.fits[-16:])))
    assert len(set(orders)) > 1
    assert set(orders[0]) == set(orders[1]) == set(orders[2])


@pytest.mark.parametrize("cv", [1, "folds", [], [3], [([0.5], [1])], [([[1]], [2])]])
def test_wrong_splits(cv):
    with pytest.raises(ValueError, match="cv must "):
        certify(searched(), X, y, cv=cv)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored:UserWarning")
def test_hints_keep_groups_together():
    groups = np.repeat(np.arange(12), 10)
    options = {"groups": groups, "random_state": 0}
    search = GridSearchCV(Noted(), {"worth": [0.1, 0.2]}, cv=LeaveOneGroupOut())
    search.fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"give one such as cv=GroupShuffleSplit\(test_size=0.2"):
        certify(search, X, y, **options)
    for cv in (KFold(3, shuffle=True), KFold(7), 7):
        with pytest.raises(ValueError, match=r"KFold.*puts samples of one group.*GroupShuffle"):
            certify(search, X, y, cv=cv, **options)

    class Unshuffled(GroupKFold):
        def split(self, X, y=None, groups=None):
            self.shuffle = False
            return super().split(X, y, groups)

    with pytest.raises(ValueError, match=r"same split.*such as GroupShuffleSplit\(\)"):
        certify(search, X, y, cv=Unshuffled(3, shuffle=True), **options)
