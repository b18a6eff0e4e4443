"""What was begun first is handed on first."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.racing.in_order import InOrder


def test_what_has_ended_waits_for_what_was_begun_before():
    values: InOrder[str] = InOrder()
    tickets = [values.begin() for _ in range(4)]
    assert tickets == [0, 1, 2, 3]
    assert values.end(2, "c") == []
    assert values.end(1, "b") == []
    assert (values.awaited, values.held) == ([0, 3], [(1, "b"), (2, "c")])
    assert values.end(0, "a") == ["a", "b", "c"]
    assert values.end(3, "d") == ["d"]
    assert (values.awaited, values.held, values.begun) == ([], [], 4)


def test_what_is_given_up_holds_back_nothing():
    values: InOrder[str] = InOrder()
    for _ in range(4):
        values.begin()
    assert values.end(1, "b") == []
    assert values.end(3, "d") == []
    assert values.drop(0) == ["b"]
    assert values.drop(0) == []
    assert values.drop(2) == ["d"]


def test_what_was_overtaken_too_often_is_not_waited_for():
    values: InOrder[int] = InOrder(patience=3)
    for _ in range(6):
        values.begin()
    assert values.end(2, 2) == []
    assert values.end(3, 3) == []
    # The third overtakes 0 and 1; what came later waits for nothing else.
    assert values.end(5, 5) == [2, 3]
    assert values.awaited == [4]
    assert values.end(0, 0) == [0]
    assert values.end(4, 4) == [4, 5]


def test_without_patience_all_is_handed_on_at_once():
    values: InOrder[int] = InOrder(patience=1)
    for _ in range(3):
        values.begin()
    assert [values.end(ticket, ticket) for ticket in (2, 0, 1)] == [[2], [0], [1]]


@pytest.mark.parametrize(("patience", "error"), [(0, ValueError), (1.5, TypeError)])
def test_bad_patience(patience, error):
    with pytest.raises(error, match="patience"):
        InOrder(patience)


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.data())
def test_any_order_of_ends_is_mended_also_after_a_restart(order, dropped, data):
    values: InOrder[int] = InOrder(patience=100)
    for _ in order:
        values.begin()
    out: list[int] = []
    for ticket in order:
        if data.draw(st.booleans()):
            again: InOrder[int] = InOrder(patience=100)
            again.load(values.begun, values.awaited, values.held)
            values = again
        out += values.drop(ticket) if ticket in dropped else values.end(ticket, ticket)
        # Never is one handed on before an earlier one that is under way.
        assert max(out, default=-1) < min(values.awaited, default=math.inf)
    assert out == [ticket for ticket in range(12) if ticket not in dropped]
