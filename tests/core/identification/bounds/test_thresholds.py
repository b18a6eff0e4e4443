import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.identification.bounds import (
    assumption_1_holds,
    convenience_thresholds,
    select_fidelities,
)


def test_synthetic_a_is_equation_8():
    # xi = 1.15, 0.225, 0.0105, 0 and costs 1, 10, 100, 1000: Eq. 8 with its factor of 4,
    # m = 0: against 1, 4 (0.925) / (3.162278 - 1) = 1.711159 is the largest;
    # m = 1: against 2, 4 (0.2145) 3.162278 / (10 - 3.162278) = 0.396804;
    # m = 2: 4 (0.0105) 10 / (31.622777 - 10) = 0.019424.
    xi = np.array([1.15, 0.225, 0.0105, 0.0])
    assert convenience_thresholds(2.0 * xi, 10.0 ** np.arange(4)) == pytest.approx(
        [1.711159, 0.396804, 0.019424, 0.0], abs=1e-6
    )


ladders = st.integers(1, 6).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(0.01, 2.0), min_size=m, max_size=m),
        st.lists(st.floats(1.05, 20.0), min_size=m, max_size=m),
    )
)


def increasing(steps):
    drops, ratios = steps
    margins = np.append(np.cumsum(drops[1:])[::-1], 0.0)
    return margins, np.cumprod(ratios)


@given(ladders)
def test_threshold_is_where_discarding_later_stops_being_cheaper(steps):
    # Definition 1: at gap = 2 margin + alpha, lambda / (gap - 2 margin)^2 equals that of the most
    # competitive dearer fidelity and is no larger than any other's.
    margins, costs = increasing(steps)
    alpha = convenience_thresholds(margins, costs)
    assert alpha[-1] == 0.0
    for m in range(len(costs) - 1):
        assert alpha[m] > 0.0
        own = costs[m] / alpha[m] ** 2
        gap = 2.0 * margins[m] + alpha[m]
        others = costs[m + 1 :] / (gap - 2.0 * margins[m + 1 :]) ** 2
        assert own == pytest.approx(others.min(), rel=1e-6)


def efforts_of(margins, costs):
    return [
        min(
            (math.sqrt(costs[k]) - math.sqrt(costs[m])) ** 2 / (margins[m] - margins[k]) ** 2
            for k in range(m + 1, len(costs))
        )
        for m in range(len(costs) - 1)
    ]


def brute_force(margins, costs, preselect):
    """Dominated ones out; then the largest valid subset, of those the least effort."""
    numbers = range(len(costs))
    kept = [
        m
        for m in numbers
        if not any(
            costs[k] <= costs[m]
            and margins[k] <= margins[m]
            and ((costs[k], margins[k]) != (costs[m], margins[m]) or k < m)
            for k in numbers
        )
    ]
    kept.sort(key=lambda m: costs[m])
    if not preselect:
        return set(kept)
    best = ((1, math.inf), set())
    for size in range(len(kept)):
        for chosen in itertools.combinations(kept[:-1], size):
            subset = [*chosen, kept[-1]]
            efforts = efforts_of(margins[subset], costs[subset])
            if all(sum(efforts[:m]) <= efforts[m] * (1.0 + 1e-9) for m in range(len(efforts))):
                entry = (-len(subset), sum(efforts)), set(subset)
                best = min(best, entry, key=lambda each: each[0])
    return best[1]


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.sampled_from([1.0, 2.0, 5.0, 30.0])),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_choice_in_any_order_of_costs(pairs, preselect):
    # Measured costs need not increase with the fidelity, nor estimated margins decrease.
    margins, costs = np.array([*pairs, (0.0, 10.0)]).T
    found = set(np.flatnonzero(select_fidelities(margins, costs, preselect)).tolist())
    assert min(margins[list(found)]) == 0.0
    assert found == brute_force(margins, costs, preselect)


def test_many_fidelities_fall_back_to_nested_sets_that_are_valid():
    # 16 fidelities are too many for all subsets. Costs grow by 1 % only, which violates it.
    costs = 1.01 ** np.arange(16)
    margins = np.append(1.2 ** -np.arange(15.0), 0.0)
    assert not assumption_1_holds(margins, costs)
    kept = select_fidelities(margins, costs)
    assert kept[-1]
    assert assumption_1_holds(margins[kept], costs[kept])
