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


def of_ours(group):
    return tables.only(tables.result("hpo")["groups"][group]["methods"], method=search.OURS)


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


@pytest.fixture
def not_judged(monkeypatch):
    for page in (readme, search):
        monkeypatch.setattr(page, "is_there", lambda name: False)


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


def test_the_headline_says_that_they_have_not_been_played(not_judged):
    said = in_one_line(readme.how_sure())
    assert ON_DEVELOPMENT in said
    assert "have not been played yet" in said
    assert ON_JUDGED not in said
    assert search.judged() == "This version has not been judged yet."


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


def test_the_verdict_says_if_tests_over_tasks_tell_ours_from_all_others(compare):
    compare({search.OURS: LEVEL, "dehb": LEVEL + 1 + np.arange(8), "random": LEVEL * 3})
    assert in_one_line(search._verdict()).endswith("from these: after 100, none.")


def test_a_comparison_names_who_is_ahead_and_whom_tests_tell_from_ours(monkeypatch):
    order = ["dehb", search.OURS, "optuna gp", "random"]
    ranked = {"budget": BUDGET, "order": order, "alike": [order[:3], order[2:]]}
    of_one = {"points": [1.0], "rank": [1.0], "milliseconds": 1.0}
    group = {"methods": [{"method": name} | of_one for name in order], "rankings": [ranked]}
    found = {"budgets": [BUDGET], "groups": {"NAS": group}}
    monkeypatch.setattr(tables, "_read", lambda name: found)
    said = in_one_line(search.comparison("hpo_nas", "NAS"))
    assert "the place of ours is 2 of 4 after 100, behind DEHB." in said
    assert said.endswith("tell these from ours: after 100, random search.")
