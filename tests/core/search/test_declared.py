"""What users declare of a search: a budget, a fidelity, and configurations to choose from."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo import Fidelity, Gaussian
from mfhpo.knowledge.candidates import configurations_of, space_of
from mfhpo.problem import Observation, Pull
from mfhpo.search import (
    BudgetedSearch,
    DeclaredSearch,
    HalvingSearch,
    ModelSearch,
    Numeric,
    OneOf,
    Replicate,
)
from mfhpo.search.declared import cost_of_all, has_levels

COSTLY = Fidelity("epochs", levels=[1, 9], costs=[1.0, 9.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 50, "trials": 10}, ["budget=50", "trials=10", "give one"]),
        ({"budget": 5, "trials": 10, "seconds": 2}, ["budget=5", "trials=10", "seconds=2 each"]),
        ({"fidelity": COSTLY, "seconds": 1.0}, ["'epochs'", "costs=[1.0, 9.0]"]),
        ({"sigma": [0.1, 0.2, 0.3]}, ["sigma"]),
    ],
)
def test_what_excludes_each_other(options, words):
    with pytest.raises(ValueError, match=r".") as caught:
        DeclaredSearch.of(**{"fidelity": "epochs"} | options)
    for word in words:
        assert word in str(caught.value)


def test_costs_are_declared_proportional_or_measured():
    for fidelity, options, costs in (
        (COSTLY, {}, (1.0, 9.0)),
        ("epochs", {}, (2.0, 4.0)),
        ("epochs", {"seconds": 9.0}, (2.0, 4.0)),
    ):
        declared = DeclaredSearch.of(fidelity, **options)
        assert has_levels(declared.fidelity)
        assert declared.race([2, 4], seed=0, sign=1.0).search.costs == costs
        assert (declared.fidelity.costs == "measured") == bool(options)
    assert not has_levels(DeclaredSearch.of(None, seconds=9.0).fidelity)


COSTS = (1.0, 3.0, 9.0)


class Table:
    """Looks like a DataFrame."""

    def __init__(self, rows):
        self.rows = rows

    def to_dict(self, orient):
        assert orient == "records"
        return self.rows


ROWS = [{"lr": 0.1, "depth": 3}, {"lr": 0.2, "depth": 4}]


@pytest.mark.parametrize(
    "candidates", [ROWS, Table(ROWS), {"lr": [0.1, 0.2], "depth": (3, 4)}, tuple(ROWS)]
)
def test_rows_columns_and_tables_are_the_same(candidates):
    assert configurations_of(candidates) == ROWS


def test_what_a_table_lacks_does_not_apply():
    table = Table([{"lr": 0.1, "drop": math.nan}, {"lr": 0.2, "drop": 0.5}])
    assert configurations_of(table) == [{"lr": 0.1}, {"lr": 0.2, "drop": 0.5}]


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ([{"epochs": 1}, {"epochs": 2}], r"candidates\[0\] contains 'epochs', which the sampler"),
        ({"epochs": [1, 2]}, r"candidates\['epochs'\] is given, but the sampler itself sets"),
        ([{"x": x} for x in range(100_001)], "at most 100,000 configurations, got 100,001"),
    ],
)
def test_what_candidates_may_not_be(candidates, words):
    with pytest.raises(ValueError, match=words):
        DeclaredSearch.of("epochs", candidates=candidates)


def test_places_are_ranks_and_names_say_nothing():
    rows = [
        {"lr": 1e-5, "act": "relu", "name": "a", "seed": 3},
        {"lr": 1.0, "act": "tanh", "name": "b", "seed": 3},
        {"lr": 1e-5, "act": "relu", "name": "c", "seed": 3, "drop": 0.5},
        {"lr": 1e-1, "act": "relu", "name": "d", "seed": 3, "drop": 0.1},
    ]
    space, points = space_of(rows)
    assert space.parameters == {
        "lr": Numeric((0.0, 0.5, 1.0)),
        "act": OneOf(2),
        "drop": Numeric((0.0, 1.0)),
    }
    assert points[0] == {"lr": 0.0, "act": 0.0}
    assert points[3] == {"lr": 0.5, "act": 0.0, "drop": 0.0}


def race_of(xs, kind=ModelSearch, budget=30.0 * COSTS[-1], seed=0, **options):
    space, points = space_of([{"x": x} for x in xs])
    search = kind(COSTS, seed=seed)
    search.space = space
    search.give(points)
    return BudgetedSearch(search, budget=budget, **options)


def value(x, level, rng, sigma=0.05):
    return -abs(x - 0.3) - 0.1 * (2 - level) + sigma * rng.standard_normal()


def play(race, xs, workers=1, seed=0):
    """Play to the end; evaluations under way end in a random order."""
    rng, under_way, pulls = np.random.default_rng(seed), [], []
    while True:
        while len(under_way) < workers and (asked := race.ask(1, under_way)):
            under_way += asked
        if not under_way:
            return pulls
        pull = under_way.pop(int(rng.integers(len(under_way))))
        pulls.append(pull)
        race.tell(pull, Observation(value(xs[pull.arm], pull.fidelity, rng)))
        assert len(pulls) < 2000


@settings(deadline=None, max_examples=15)
@given(
    n=st.integers(2, 12),
    workers=st.integers(1, 6),
    seed=st.integers(0, 99),
    kind=st.sampled_from([ModelSearch, HalvingSearch]),
    budget=st.sampled_from([20.0, 90.0, 2000.0]),
)
def test_never_asks_for_anything_else_and_ends(n, workers, seed, kind, budget):
    xs = np.random.default_rng(seed).uniform(size=n).tolist()
    race = race_of(xs, kind, budget, seed)
    pulls = play(race, xs, workers, seed)
    assert race.finished
    assert race.cost <= budget
    assert {pull.arm for pull in pulls} <= set(range(n))
    searched = [(pull.arm, pull.fidelity) for pull in pulls if not isinstance(pull, Replicate)]
    assert len(searched) == len(set(searched))
    if budget == 2000.0:
        assert len(race.search.finished_arms()) == n


def test_repeats_are_no_candidates():
    race = race_of([0.1, 0.5, 0.9, 0.1, 0.5], budget=None)
    for arm in (0, 1, 3):
        race.tell(Pull(arm, 0), Observation(0.0))
    race.withdraw(3, duplicate_of=0)
    assert race.search.n_candidates == 4
    assert race.standing.left == {"left at fidelity 0": 2, "not tried": 2}


def test_an_answer_says_how_likely_it_is():
    xs = np.random.default_rng(1).uniform(size=40).tolist()
    found = []
    for epsilon in (0.0, 0.02, 10.0):
        race = race_of(xs, epsilon=epsilon)
        assert race.standing.findings()["chance"] is None
        play(race, xs)
        found.append(race.standing.findings()["chance"])
    assert found[0] < 0.95
    assert found[1] > found[0]
    assert found[2] == 1.0
    named = race_of(xs, HalvingSearch, epsilon=0.05)
    play(named, xs)
    assert named.standing.findings()["chance"] is None


OPTIONS = {"budget": 30.0, "estimated_bias": "steer"}


@pytest.mark.parametrize(
    ("options", "n_arms", "costs", "expected"),
    [
        ({}, 8, (0.5, 1.0), True),  # 32 would pay for four of each
        ({}, 7, (0.5, 1.0), False),
        ({"sigma": 0.1}, 16, (0.5, 1.0), True),
        ({"sigma": 0.1}, 15, (0.5, 1.0), False),  # for two
        ({"sigma": Gaussian()}, 15, (0.5, 1.0), True),
        ({}, 4, (1.0, 27.0), False),  # all may be finalists
        ({}, 16, (1.0,), False),
        ({}, 16, None, False),
        ({"budget": None}, 16, (0.5, 1.0), False),
        ({"bias": [0.1, 0.0]}, 16, (0.5, 1.0), False),
        ({"estimated_bias": "eliminate"}, 16, (0.5, 1.0), False),
        ({"variant": "se"}, 16, (0.5, 1.0), False),
        ({"aim": "reward per cost"}, 16, (0.5, 1.0), False),
        ({"aim": "best arm", "variant": None, "bias": None}, 16, (0.5, 1.0), True),
    ],
)
def test_when_cheap_levels_choose_the_finalists(options, n_arms, costs, expected):
    budget = (OPTIONS | options)["budget"]
    costs_more = budget is not None and budget < cost_of_all(OPTIONS | options, n_arms, costs)
    assert costs_more is expected


@pytest.mark.parametrize("full", [2.0, 4.0, 8.0])
@pytest.mark.parametrize("named", [True, False])
def test_a_small_budget_brings_something_to_the_target(full, named):
    xs = np.linspace(0.0, 1.0, 40).tolist()
    race = race_of(xs, HalvingSearch if named else ModelSearch, budget=full * COSTS[-1])
    play(race, xs)
    assert race.cost <= full * COSTS[-1]
    assert len(race.search.finished_arms()) >= (2 if full >= 8.0 else 1)


def test_what_is_left_when_all_are_at_the_target_pays_for_a_certificate():
    xs = np.linspace(0.0, 1.0, 6).tolist()
    race = race_of(xs, budget=19.0 * COSTS[-1], epsilon=0.5)
    pulls = play(race, xs)
    assert len(race.search.finished_arms()) == 6
    assert race.budget.kept == 0.0
    assert sum(isinstance(pull, Replicate) for pull in pulls) >= 4
    assert race.certificate().certified


def test_a_column_of_whole_numbers_with_gaps_has_integers():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"depth": [1, 2, None], "rate": [0.5, None, 1.0]})
    assert configurations_of(table) == [
        {"depth": 1, "rate": 0.5},
        {"depth": 2},
        {"rate": 1.0},
    ]
    assert type(configurations_of(table)[0]["depth"]) is int
    assert configurations_of(pandas.Series(ROWS)) == ROWS
