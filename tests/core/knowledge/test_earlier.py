"""Which configurations are tried first, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.knowledge.earlier import believed, checked_beliefs, first_configurations, near
from mfhpo.search import DeclaredSearch, EarlierResults

ROWS = [
    {"lr": 0.1, "loss": 0.9},
    {"lr": 0.2, "loss": 0.3, "depth": 4},
    {"lr": 0.3, "loss": float("nan")},
    {"lr": 0.4},
    {"lr": 0.5, "loss": 0.5},
    {"loss": 0.0},
]


@pytest.mark.parametrize(
    ("direction", "order"), [("minimize", [0.2, 0.5, 0.1]), ("maximize", [0.1, 0.5, 0.2])]
)
def test_rows_with_a_value_and_a_parameter_are_ranked(direction, order):
    found = EarlierResults(ROWS, value="loss", direction=direction).ranked
    assert [each["lr"] for each in found] == order
    assert {"lr": 0.2, "depth": 4} in found


def test_a_table_has_whole_numbers_and_gaps():
    table = pd.DataFrame({"depth": [3, None, 5], "kind": ["a", "b", None], "acc": [0.1, 0.3, 0.2]})
    found = EarlierResults(table, value="acc", direction="maximize").ranked
    assert found == [{"kind": "b"}, {"depth": 5}, {"depth": 3, "kind": "a"}]
    assert type(found[1]["depth"]) is int


@pytest.mark.parametrize(
    ("rows", "value"), [(ROWS, "acc"), ([{"loss": 1.0}], "loss"), ([{"x": 1, "loss": "a"}], "loss")]
)
def test_results_without_a_usable_row_say_why(rows, value):
    with pytest.raises(
        ValueError, match=f"results must have a row .*value='{value}'; none of the "
    ):
        EarlierResults(rows, value=value, direction="minimize")


def results(*places):
    rows = [{"x": x, "loss": rank} for rank, x in enumerate(places)]
    return EarlierResults(rows, value="loss", direction="minimize")


def test_the_best_of_each_source_come_first_and_each_once():
    sources = [results(1, 2, 3), results(1, 1, 4, 5), {"x": 2}, results(6)]
    found = first_configurations(sources)
    assert [each["x"] for each in found] == [1, 2, 6, 4, 3, 5]
    assert len(first_configurations([results(*range(8)), results(*range(8, 16))])) == 10


def test_what_the_search_sets_itself_is_left_out():
    rows = [{"x": 1, "epochs": 3, "acc": 0.1}, {"x": 1, "epochs": 9, "acc": 0.2}]
    source = EarlierResults(rows, value="acc", direction="maximize")
    declared = DeclaredSearch.of("epochs", budget=90, earlier=[source])
    assert declared.earlier == ({"x": 1},)
    with pytest.raises(ValueError, match=r"earlier\[1\].*must have a parameter beside \['epochs'"):
        DeclaredSearch.of("epochs", earlier=[source, {"epochs": 3}])
    with pytest.raises(ValueError, match=r"beliefs\['epochs'\] is given, but the sampler itself"):
        DeclaredSearch.of("epochs", beliefs={"epochs": 3})


@pytest.mark.parametrize("option", [{"earlier": [{"x": 1}]}, {"beliefs": {"x": 1}}])
def test_candidates_all_begin_so_that_nothing_comes_first(option):
    with pytest.raises(ValueError, match=r"earlier and beliefs .* candidates are given"):
        DeclaredSearch.of(None, candidates=[{"x": 1}, {"x": 2}], **option)


@pytest.mark.parametrize("wrong", [[1], [{1: 2}], "text", {"x": 1}, [[{"x": 1}]]])
def test_anything_else_is_no_source(wrong):
    with pytest.raises(TypeError, match=r"earlier.* must be .*a list of EarlierResults"):
        first_configurations(wrong)


def test_shares_of_the_first_are_the_weights():
    beliefs = checked_beliefs({"lr": 1e-3, "depth": (6, 0.25), "kind": ("a", 1)})
    assert beliefs == {"lr": (1e-3, 0.5), "depth": (6, 0.25), "kind": ("a", 1.0)}
    first = [set(believed(beliefs, n)) for n in range(8)]
    assert [sum(name in one for one in first) for name in beliefs] == [4, 2, 8]
    assert first[0] == {"lr", "depth", "kind"}
    assert first[1] == {"kind"}, "random ones take turns"


@pytest.mark.parametrize("weight", [0, -0.1, 1.1, float("nan"), "a", True])
def test_a_weight_is_a_share(weight):
    with pytest.raises(ValueError, match=r"beliefs\['lr'\] must have a weight above 0"):
        checked_beliefs({"lr": (1e-3, weight)})


@given(place=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_what_is_near_stays_in_the_range(place, seed):
    assert 0.0 <= near(place, [seed]) <= 1.0
    assert near(place, [seed]) == near(place, [seed])


def test_what_is_near_is_a_tenth_of_the_range_away():
    distances = [near(0.5, [seed]) - 0.5 for seed in range(1000)]
    assert np.std(distances) == pytest.approx(0.1, rel=0.1)
    assert abs(np.mean(distances)) < 0.012  # four standard errors
