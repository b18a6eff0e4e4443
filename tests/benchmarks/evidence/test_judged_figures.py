"""What README and docs say of the search before and after the judged tasks were played."""

import numpy as np
import pytest

from benchmarks.evidence import readme, search, tables

ON_DEVELOPMENT = "was developed on these tasks"
ON_JUDGED = "are other data sets than those of its development"


BUDGET = 100.0
LEVEL = np.full(8, 10.0)  # regrets on eight tasks


def in_one_line(text):
    return " ".join(text.split())


@pytest.fixture
def judge(monkeypatch):
    """As if the judged tasks had been played by all but some, with the figures of the others."""
    read = tables._read

    def play(without=()):
        found = read("hpo") | {"versions": {"mfhpo": "9.9"}, "date": "2026-01-02"}
        found["groups"] = {
            name: group
            | {"methods": [row for row in group["methods"] if row["method"] not in without]}
            for name, group in found["groups"].items()
        }
        monkeypatch.setattr(
            tables, "_read", lambda name: found if name == "hpo_judged" else read(name)
        )
        for page in (readme, search):
            monkeypatch.setattr(page, "is_there", lambda name: name == "hpo_judged")

    return play


def test_the_headline_is_that_of_the_judged_tasks(judge, monkeypatch):
    judge()
    with tables.reading() as names:
        said = in_one_line(readme.how_sure())
    assert f"The tasks {ON_JUDGED}, of the same families; they are played once per release" in said
    assert "here 9.9, and not yet by NePS Hyperband, OpenBox BOHB," in said
    monkeypatch.setattr(readme, "never_judged", list)
    assert "here 9.9. By mean rank," in in_one_line(readme.how_sure())
    assert ON_DEVELOPMENT not in said
    assert "hpo_judged" in names
    assert "hpo" not in names


@pytest.fixture
def compare(monkeypatch):
    """As if a comparison had given these regrets, by optimiser and task, at one budget."""

    def write(regrets):
        tasks = [f"task {number}" for number in range(len(next(iter(regrets.values()))))]
        rows = {
            task: {name: [float(of_tasks[at])] for name, of_tasks in regrets.items()}
            for at, task in enumerate(tasks)
        }
        ranked = [{"budget": BUDGET, "order": list(regrets), "alike": []}]
        found = {
            "budgets": [BUDGET],
            "tasks": {task: {"best": 90.0, "median": 70.0} for task in tasks},
            "groups": {"all tasks": {"points_by_task": rows, "rankings": ranked}},
        }
        monkeypatch.setattr(tables, "_read", lambda name: found)

    return write


def test_the_verdict_names_whom_tests_over_tasks_do_not_tell_from_ours(compare):
    mixed = LEVEL + np.array([3.0, -3.0] * 4) + np.arange(8) / 10
    compare({search.OURS: LEVEL, "dehb": mixed, "random": LEVEL + 5 + np.arange(8)})
    said = in_one_line(search._verdict())
    assert "first at 1 of 1 budgets" in said
    assert "do not tell ours from these: after 100, DEHB." in said
