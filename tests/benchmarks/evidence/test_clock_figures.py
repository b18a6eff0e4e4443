import pytest

from benchmarks.evidence import clock, tables
from benchmarks.evidence.search import OURS

POINTS = [10.0, 100.0]


def part(ours, other, rank, alike=()):
    """Eight runs of two methods; ours has these regrets in percent, and the rank 1 or 2."""
    ranks = {OURS: rank, "random": [3.0 - one for one in rank]}
    order = [sorted(ranks, key=lambda name: ranks[name][at]) for at in range(2)]
    group = {
        "methods": [
            {"method": name, "percent": regret, "points": regret, "rank": ranks[name]}
            for name, regret in ((OURS, ours), ("random", other))
        ],
        "rankings": [
            {"budget": budget, "order": of, "alike": [list(of)] if budget in alike else []}
            for budget, of in zip(POINTS, order, strict=True)
        ],
    }
    return {
        "budgets": POINTS,
        "seeds": [0, 1],
        "tasks": dict.fromkeys("abcd"),
        "groups": dict.fromkeys(("all tasks", "LCBench", "rbv2_xgboost"), group),
    }


@pytest.fixture(autouse=True)
def played(monkeypatch):
    found = {
        "workers": {
            "1": part(ours=[8.0, 2.0], other=[9.0, 7.0], rank=[1.0, 1.0]),
            "64": part(ours=[20.0, 5.0], other=[18.0, 7.0], rank=[2.0, 1.25], alike=[10.0]),
        }
    }
    monkeypatch.setattr(tables, "_read", lambda name: found)


def test_ranks_by_hand():
    table, _, said = clock.ranks().partition("\n\n")
    head, _, first, second = table.splitlines()
    assert head == "| after 10 / 100 | 1 worker | 64 workers |"
    assert first.endswith("| 1.0 / 1.0 | 2.0 / 1.2 |")
    assert second == "| random search | 2.0 / 2.0 | 1.0 / 1.8 |"
    assert " ".join(said.split()) == (
        "2 seeds of 4 tasks. By mean rank, ours is first at 2 of 2 points with 1; 1 of 2 points "
        "with 64, behind random search. Tests over the runs leave another optimiser statistically "
        "alike at 1 of these 4 points."
    )
    assert clock.firsts() == (3, 4)


def test_what_workers_are_worth_by_hand():
    assert clock.worth_of_workers().splitlines()[2:] == [
        "| 1 | 8.0 / 2.0 | 1.0 / 1.0 |",
        "| 64 | 20.0 / 5.0 | 2.5 / 2.5 |",
    ]
    assert clock.most_workers() == ("64", 2.5)


def test_losses_by_hand():
    said = " ".join(clock.losses().split())
    assert "first by mean rank at 3 of 4 points" in said
    assert said.endswith(
        "its mean regret is the least on LCBench at 3 and on rbv2_xgboost at 3 of them. "
        "With 64 it ends at 2.5 times one worker's regret."
    )
