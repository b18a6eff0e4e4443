import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from benchmarks import sklearn_search
from benchmarks.sklearn_search import OURS, WAYS, Task, one_search, summary

TASK = Task(
    "iris, tree",
    lambda: load_iris(return_X_y=True),
    DecisionTreeClassifier(random_state=0),
    {"max_depth": [1, 2, 3], "min_samples_leaf": list(range(1, 60))},
    "n_samples",
)


BUDGET = 20


@pytest.fixture(scope="module")
def records():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn_search, "BUDGET", BUDGET)
        return [one_search(TASK, way, seed, n_splits=5) for seed in (0, 1) for way in WAYS]


def test_searches_cost_about_the_same(records):
    for record in records:
        assert record["fits"] <= BUDGET
        assert record["fits"] >= 0.9 * BUDGET or record["way"] == OURS
        assert 50.0 < record["true"] <= 100.0
        assert abs(record["gap"]) < 20.0
        assert ("certified" in record) == (record["way"] == OURS)


def test_summary_counts_what_is_lost(records):
    found = summary(records)
    for way in WAYS:
        if way == OURS:
            continue
        duels = found[f"{OURS} against"][way]
        assert duels["won"] + duels["tied"] + duels["lost"] == 2
        ours, theirs = (found["iris, tree"][each]["true"] for each in (OURS, way))
        assert duels["mean gain"] == pytest.approx(ours - theirs, abs=0.02)
        assert duels["mean gain by data set"]["iris, tree"] == duels["mean gain"]
