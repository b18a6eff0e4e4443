import math

import numpy as np
import pytest
from scipy.stats import t
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from benchmarks import new_data_interval
from mfhpo.certification.selection import interval_for_new_data
from mfhpo.racing.sentences import FIXED
from mfhpo_sklearn import MFSearchCV, SpaceSearchCV, certify
from mfhpo_sklearn.resources import Splits

X, y = make_classification(n_samples=150, n_features=6, flip_y=0.2, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 2, 3, 5]}


def expected(scores, test_per_train):
    n = len(scores)
    variance = (1 / n + test_per_train) * np.var(scores, ddof=1)
    low, high = t.interval(0.95, n - 1, np.mean(scores), math.sqrt(variance))
    return pytest.approx((low, high))


def test_the_corrected_resampled_variance():
    scores = np.random.default_rng(0).normal(0.8, 0.05, 12)
    assert interval_for_new_data(scores, 0.25, 0.05) == expected(scores, 0.25)


@pytest.mark.parametrize("scores", [[], [0.8], [0.8, 0.8, 0.8]])
def test_scores_without_a_spread_say_nothing(scores):
    assert interval_for_new_data(scores, 0.25, 0.05) == (-math.inf, math.inf)


@pytest.mark.slow
def test_the_corrected_interval_holds_far_more_often_than_the_plain_one(monkeypatch):
    monkeypatch.setattr(new_data_interval, "_FITS_OF_TRUTH", 50)
    rows = new_data_interval.measure(new_data_interval.SETTINGS[2], runs=40)
    assert [(row["splits"], row["test share"]) for row in rows] == list(new_data_interval.SHAPES)
    for row in rows:
        assert row["corrected, procedure"] > row["plain, procedure"]
        assert row["corrected, procedure"] > 0.8


def lines(answer):
    text = str(answer)
    [these] = [line for line in text.splitlines() if line.startswith("  these data")]
    [new] = [line for line in text.splitlines() if line.startswith("  new data")]
    assert text.count(FIXED) == 1
    assert these.endswith("interval and claim are about random splits of these data")
    return new


@pytest.mark.parametrize(
    "search",
    [
        MFSearchCV(TREE, DEPTHS, epsilon=0.02, budget=120, random_state=0),
        MFSearchCV(TREE, DEPTHS, sigma=0.1, budget=60, random_state=0),
        SpaceSearchCV(TREE, {"max_depth": range(1, 20)}, budget=90, random_state=0),
    ],
    ids=["blocks", "a split for each fit", "race"],
)
def test_searches_give_an_interval_for_new_data(search):
    search.fit(X, y)
    answer, table = search.certificate_, search.cv_results_
    row = [
        table[f"split{split}_test_score"][search.best_index_]
        for split in range(search.n_splits_)
        # The search's own split has no part in it.
        if split or isinstance(search, MFSearchCV)
    ]
    scores = [score for score in row if not math.isnan(score)]
    assert len(scores) > 2
    assert answer.new_data_interval == expected(scores, 30 / 120)
    low, high = answer.new_data_interval
    assert f"in [{low:.5g}, {high:.5g}], wrong with probability about 0.05" in lines(answer)


def test_fewer_training_samples_make_the_interval_wider():
    search = MFSearchCV(
        TREE, DEPTHS, resource="n_samples", levels=[30, 60], budget=60, random_state=0
    ).fit(X, y)
    row = search.best_index_
    scores = [search.cv_results_[f"split{k}_test_score"][row] for k in range(search.n_splits_)]
    kept = [score for score in scores if not math.isnan(score)]
    assert search.certificate_.new_data_interval == expected(kept, 30 / 60)


def test_a_search_without_fresh_scores_knows_nothing_about_new_data():
    search = SpaceSearchCV(
        TREE, {"max_depth": range(1, 30)}, budget=12, certify_share=0.0, random_state=0
    ).fit(X, y)
    assert search.certificate_.new_data_interval == (-math.inf, math.inf)
    assert str(search.certificate_).endswith("of the same kind: nothing is known yet")


def test_certify_gives_an_interval_for_new_data():
    splits = ShuffleSplit(5, test_size=0.4, random_state=0)
    search = GridSearchCV(TREE, DEPTHS, cv=splits).fit(X, y)
    answer = certify(search, X, y, top=3, epsilon=0.02, budget=90, random_state=0)
    fresh, best = Splits(search, None, X, y, None, 0), clone(TREE).set_params(**answer.params)
    cv = [fresh[number] for number in range(answer.candidates[answer.winner].values)]
    assert answer.new_data_interval == expected(cross_val_score(best, X, y, cv=cv), 60 / 90)
    low, high = answer.new_data_interval
    assert f"in [{low:.5g}, {high:.5g}]" in lines(answer)
    assert answer.to_dict()["new_data_interval"] == [low, high]
