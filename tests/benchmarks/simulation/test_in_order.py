from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulation.in_order import InOrder


@settings(max_examples=50)
@given(st.permutations(range(12)))
def test_any_order_of_ends_is_mended(order):
    values, out = InOrder(), []
    assert [values.begin() for _ in order] == list(range(12))
    for n, ticket in enumerate(order, 1):
        out += values.end(ticket, ticket)
        ended = set(order[:n])
        assert out == list(range(min(set(range(13)) - ended)))
