from dataclasses import replace

import numpy as np
import pytest

from benchmarks.hpo import chance
from benchmarks.hpo.certainty_answers import Outcome, Race
from benchmarks.hpo.certainty_budgets import BUDGETS, at_equal_cost, contenders, holds, rows_of
from benchmarks.hpo.certainty_pools import Bounds, Pool
from benchmarks.hpo.chance import Promise

N = 64
XS = np.random.default_rng(0).random(N)


def pool(continues=True):
    truth = 90.0 - 40.0 * (XS - 0.3) ** 2
    means = np.array([truth - 20.0, truth - 8.0, truth])
    costs = np.array([1 / 9, 1 / 3, 1.0])
    return Pool("lcbench 1", means, costs, continues, tuple({"x": float(x)} for x in XS))


def race(**options):
    nothing = Bounds(np.zeros(0), np.zeros(0))
    return Race(pool(**options), 0.1, 0.5, nothing, 3)


@pytest.mark.parametrize("name", contenders(N))
def test_everybody_keeps_its_budget_and_finds_a_good_one(name):
    answer = contenders(N)[name](race(), np.random.default_rng(0))
    for budget in BUDGETS[N]:
        if f"{budget} trainings" in name:
            assert answer.cost <= budget + 1e-6
    assert pool().regret(answer.arm) < 1.0
    if answer.certified and answer.compared is not None:
        assert answer.arm in answer.compared


def test_at_the_cost_of_halving_it_pays_no_more():
    found = contenders(N)
    rng = np.random.default_rng
    assert (
        found["model at the cost of successive halving"](race(), rng(0)).cost
        <= found["successive halving"](race(), rng(0)).cost + 1e-6
    )


def outcome(regret, wrong, certified=True, who="model, 15 trainings"):
    return Outcome(who, "lcbench 1", 14.0, regret, certified, False, False, None, wrong)


def test_rows_and_what_holds_by_hand():
    outcomes = [outcome(0.4, False), outcome(0.6, False), outcome(2.0, True), outcome(0.0, False)]
    [row] = rows_of(64, outcomes)
    assert (row["off"], row["lists"], row["certified"], row["wrong"]) == (2, 4, 4, 1)
    assert row["off_interval"] == [0.15, 0.85]  # Wilson's, of 2 in 4
    assert row["regret"] == 0.75
    assert list(holds([row]).values()) == [False]
    halving = outcome(2.0, False, certified=False, who="successive halving")
    ours = outcome(0.0, False, certified=False, who="model at the cost of successive halving")
    assert list(at_equal_cost(rows_of(64, [halving, ours])).values()) == [True]
    level = [ours, replace(halving, regret=0.0)]
    assert list(at_equal_cost(rows_of(64, level)).values()) == [False]


def test_promises_are_put_together_by_hand():
    promises = [Promise("lcbench 1", c, c > 0.6) for c in (0.4, 0.65, 0.92, 0.94)]
    [row] = chance.rows_of("development", promises)
    assert (row["promised"], row["true"]) == (0.728, 0.75)
    assert row["brier"] == round((0.16 + 0.1225 + 0.0064 + 0.0036) / 4, 3)
    assert row["bins"] == [[0.4, 0.0, 1], [0.65, 1.0, 1], [0.93, 1.0, 2]]
    assert "promised chance" in chance.picture([row]).to_html()
