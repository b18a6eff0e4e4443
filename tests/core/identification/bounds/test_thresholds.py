"""Thresholds and the choice of fidelities: worked by hand, and against brute force."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.identification.bounds.thresholds import (
    assumption_1_holds,
    convenience_thresholds,
    select_fidelities,
)

FloatArray = npt.NDArray[np.float64]


def array(*values: float) -> FloatArray:
    return np.array(values, dtype=np.float64)


# Thresholds


def test_two_fidelities_by_hand() -> None:
    # 2 (0.4 - 0) sqrt(4) / (sqrt(16) - sqrt(4)) = 0.8 * 2 / 2 = 0.8.
    assert convenience_thresholds(array(0.4, 0.0), array(4.0, 16.0)) == pytest.approx([0.8, 0.0])


def test_the_largest_over_all_dearer_fidelities_by_hand() -> None:
    # m = 0: against 1: 2 (0.6 - 0.2) 1 / (3 - 1) = 0.4; against 2: 2 (0.6) 1 / (4 - 1) = 0.4.
    # m = 1: 2 (0.2) 3 / (4 - 3) = 1.2.
    assert convenience_thresholds(array(0.6, 0.2, 0.0), array(1.0, 9.0, 16.0)) == pytest.approx(
        [0.4, 1.2, 0.0]
    )
    # A third cost of 100 makes the first comparison the largest: 2 (0.6) / (10 - 1) = 0.1333;
    # m = 1: 2 (0.2) 3 / (10 - 3) = 0.171429.
    assert convenience_thresholds(array(0.6, 0.2, 0.0), array(1.0, 9.0, 100.0)) == pytest.approx(
        [0.4, 0.171428571, 0.0]
    )


def test_synthetic_a_is_equation_8() -> None:
    # xi = 1.15, 0.225, 0.0105, 0 and costs 1, 10, 100, 1000: Eq. 8 with its factor of 4,
    # m = 0: against 1, 4 (0.925) / (3.162278 - 1) = 1.711159 is the largest;
    # m = 1: against 2, 4 (0.2145) 3.162278 / (10 - 3.162278) = 0.396804;
    # m = 2: 4 (0.0105) 10 / (31.622777 - 10) = 0.019424.
    xi = array(1.15, 0.225, 0.0105, 0.0)
    assert convenience_thresholds(2.0 * xi, 10.0 ** np.arange(4)) == pytest.approx(
        [1.711159, 0.396804, 0.019424, 0.0], abs=1e-6
    )


def test_one_fidelity_has_threshold_zero() -> None:
    assert convenience_thresholds(array(0.0), array(5.0)).tolist() == [0.0]


ladders = st.integers(1, 6).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(0.01, 2.0), min_size=m, max_size=m),
        st.lists(st.floats(1.05, 20.0), min_size=m, max_size=m),
    )
)


def increasing(steps: tuple[list[float], list[float]]) -> tuple[FloatArray, FloatArray]:
    """Margins that decrease to 0, and costs that increase."""
    drops, ratios = steps
    margins = np.append(np.cumsum(drops[1:])[::-1], 0.0)
    return margins, np.cumprod(ratios)


@given(ladders)
def test_threshold_is_where_discarding_later_stops_being_cheaper(
    steps: tuple[list[float], list[float]],
) -> None:
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


@given(ladders, st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_thresholds_scale_with_the_values_and_not_with_the_costs(
    steps: tuple[list[float], list[float]], unit: float, currency: float
) -> None:
    margins, costs = increasing(steps)
    scaled = convenience_thresholds(unit * margins, currency * costs)
    assert scaled == pytest.approx(unit * convenience_thresholds(margins, costs), rel=1e-6)


# Assumption 1


def effort(margins: FloatArray, costs: FloatArray, m: int) -> float:
    return min(
        (math.sqrt(costs[k]) - math.sqrt(costs[m])) ** 2 / (margins[m] - margins[k]) ** 2
        for k in range(m + 1, len(costs))
    )


def assumption_1(margins: FloatArray, costs: FloatArray) -> bool:
    efforts = [effort(margins, costs, m) for m in range(len(costs) - 1)]
    return all(sum(efforts[:m]) <= efforts[m] * (1.0 + 1e-9) for m in range(len(efforts)))


def test_assumption_1_by_hand() -> None:
    # Costs 1, 4, 16, margins 0.6, 0.2, 0: e_0 = min(1 / 0.4^2, 9 / 0.6^2) = min(6.25, 25) = 6.25,
    # e_1 = 4 / 0.2^2 = 100: 6.25 <= 100 holds.
    assert assumption_1_holds(array(0.6, 0.2, 0.0), array(1.0, 4.0, 16.0))
    # Margins 0.6, 0.5, 0: e_0 = min(1 / 0.1^2, 9 / 0.6^2) = 25, e_1 = 4 / 0.5^2 = 16: it does not.
    assert not assumption_1_holds(array(0.6, 0.5, 0.0), array(1.0, 4.0, 16.0))


def test_assumption_1_at_equality_holds() -> None:
    # Costs 1, 4, 9: e_1 = 1 / 0.5^2 = 4; e_0 = min(1 / (x - 0.5)^2, 4 / x^2) = 4 at x = 1.
    assert assumption_1_holds(array(1.0, 0.5, 0.0), array(1.0, 4.0, 9.0))


def test_assumption_1_holds_for_one_and_for_two_fidelities() -> None:
    assert assumption_1_holds(array(0.0), array(1.0))
    assert assumption_1_holds(array(0.5, 0.0), array(1.0, 2.0))


@given(ladders)
def test_assumption_1_against_the_definition(steps: tuple[list[float], list[float]]) -> None:
    margins, costs = increasing(steps)
    efforts = [effort(margins, costs, m) for m in range(len(costs) - 1)]
    sums = [sum(efforts[:m]) for m in range(len(efforts))]
    if all(abs(total - own) > 1e-6 * own for total, own in zip(sums, efforts, strict=True)):
        assert assumption_1_holds(margins, costs) == assumption_1(margins, costs)


# The choice of fidelities


def brute_force(margins: FloatArray, costs: FloatArray, preselect: bool) -> set[int]:
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
    best: tuple[tuple[int, float], set[int]] = ((1, math.inf), set())
    for size in range(len(kept)):
        for chosen in itertools.combinations(kept[:-1], size):
            subset = [*chosen, kept[-1]]
            sub_margins, sub_costs = margins[subset], costs[subset]
            if assumption_1(sub_margins, sub_costs):
                total = sum(effort(sub_margins, sub_costs, m) for m in range(len(subset) - 1))
                best = min(best, ((-len(subset), total), set(subset)), key=lambda entry: entry[0])
    return best[1]


def chosen(margins: FloatArray, costs: FloatArray, preselect: bool = True) -> set[int]:
    return set(np.flatnonzero(select_fidelities(margins, costs, preselect)).tolist())


@pytest.mark.parametrize("preselect", [False, True])
def test_dominated_fidelities_are_dropped(preselect: bool) -> None:
    # 1 is dearer than 0 and as biased; 3 is dearer than 2 and more biased.
    margins, costs = array(0.5, 0.5, 0.1, 0.2, 0.0), array(1.0, 2.0, 30.0, 40.0, 1000.0)
    assert chosen(margins, costs, preselect) == {0, 2, 4}


def test_of_equals_the_first_is_kept() -> None:
    assert chosen(array(0.5, 0.5, 0.0), array(1.0, 1.0, 100.0)) == {0, 2}


@pytest.mark.parametrize("preselect", [False, True])
def test_the_target_is_dropped_when_a_cheaper_fidelity_has_no_bias(preselect: bool) -> None:
    assert chosen(array(0.5, 0.0, 0.0), array(1.0, 50.0, 1000.0), preselect) == {0, 1}
    assert chosen(array(0.0, 0.0), array(1.0, 2.0), preselect) == {0}


def test_a_useless_cheap_fidelity_is_dropped_by_assumption_1() -> None:
    # e_0 = 25 > e_1 = 16 as above; leaving out 1 or 0 makes a valid pair. {0, 2} costs
    # 9 / 0.6^2 = 25, {1, 2} costs 4 / 0.5^2 = 16: 1 and 2 are kept.
    margins, costs = array(0.6, 0.5, 0.0), array(1.0, 4.0, 16.0)
    assert chosen(margins, costs) == {1, 2}
    assert chosen(margins, costs, preselect=False) == {0, 1, 2}


@given(ladders, st.booleans())
def test_choice_against_brute_force(
    steps: tuple[list[float], list[float]], preselect: bool
) -> None:
    margins, costs = increasing(steps)
    assert chosen(margins, costs, preselect) == brute_force(margins, costs, preselect)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.sampled_from([1.0, 2.0, 5.0, 30.0])),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_choice_in_any_order_of_costs(pairs: list[tuple[float, float]], preselect: bool) -> None:
    # Measured costs need not increase with the fidelity, nor estimated margins decrease.
    margins = array(*(margin for margin, _ in pairs), 0.0)
    costs = array(*(cost for _, cost in pairs), 10.0)
    found = chosen(margins, costs, preselect)
    assert min(margins[list(found)]) == 0.0
    assert found == brute_force(margins, costs, preselect)


@settings(max_examples=200)
@given(ladders.filter(lambda steps: len(steps[0]) > 2), st.randoms(use_true_random=False))
def test_choice_does_not_depend_on_how_fidelities_are_numbered(
    steps: tuple[list[float], list[float]], shuffler: random.Random
) -> None:
    margins, costs = increasing(steps)
    order = list(range(len(costs)))
    shuffler.shuffle(order)
    assert {order[m] for m in chosen(margins[order], costs[order])} == chosen(margins, costs)


def test_many_fidelities_fall_back_to_nested_sets_that_are_valid() -> None:
    # 16 fidelities are too many for all subsets. Costs grow by 1 % only, which violates it.
    costs = 1.01 ** np.arange(16)
    margins = np.append(1.2 ** -np.arange(15.0), 0.0)
    assert not assumption_1_holds(margins, costs)
    kept = select_fidelities(margins, costs)
    assert kept[-1]
    assert assumption_1_holds(margins[kept], costs[kept])
