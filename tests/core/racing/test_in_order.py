import math

from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.racing.in_order import InOrder


def test_what_has_ended_waits_for_what_was_begun_before():
    values = InOrder()
    tickets = [values.begin() for _ in range(4)]
    assert tickets == [0, 1, 2, 3]
    assert values.end(2, "c") == []
    assert values.end(1, "b") == []
    assert (values.awaited, values.held) == ([0, 3], [(1, "b"), (2, "c")])
    assert values.end(0, "a") == ["a", "b", "c"]
    assert values.end(3, "d") == ["d"]
    assert (values.awaited, values.held, values.begun) == ([], [], 4)
    assert values.end(0, "late") == ["late"]


@settings(max_examples=50)
@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_any_order_of_ends_is_mended(order, dropped):
    values = InOrder()
    for _ in order:
        values.begin()
    out = []
    for ticket in order:
        out += values.drop(ticket) if ticket in dropped else values.end(ticket, ticket)
        assert max(out, default=-1) < min(values.awaited, default=math.inf)
    assert out == [ticket for ticket in range(12) if ticket not in dropped]
