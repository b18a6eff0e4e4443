import math

from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.racing.in_order import InOrder, in_turn


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


@settings(max_examples=50)
@given(st.permutations([(kind, ticket) for kind in "ab" for ticket in range(5)]))
def test_what_waits_for_nothing_is_told_as_if_it_had_been_told_at_once(ended):
    orders = {"a": InOrder(), "b": InOrder()}
    for kind, _ in ended:
        orders[kind].begin()
    one_by_one = [told for item in ended for told in orders[item[0]].end(item[1], item)]
    beginnings, kinds = (lambda item: item[1]), (lambda item: item[0])
    assert in_turn(ended, kind=kinds, beginning=beginnings, end=ended.index) == one_by_one
