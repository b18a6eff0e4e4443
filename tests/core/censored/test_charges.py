from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.censored import Capped, Deadline, Linear, par
from mfhpo.censored.charges import check_charge

SECONDS = np.array([0.0, 0.25, 0.5, 0.75, 2.0])
LIMITS = np.array([0.25, 1.0, 4.0])

numbers = st.floats(0.0, 100.0)


def test_linear() -> None:
    assert Linear(0.1)(SECONDS) == pytest.approx([0.0, 0.025, 0.05, 0.075, 0.2])
    assert Linear(0.0)(SECONDS).tolist() == [0.0] * 5


def test_capped() -> None:
    assert Capped(Linear(2.0), 1.5)(SECONDS) == pytest.approx([0.0, 0.5, 1.0, 1.5, 1.5])
    assert Capped(Capped(Linear(2.0), 1.5), 0.2)(SECONDS).max() == 0.2


def test_the_papers_penalty() -> None:
    # Example 2: x / 10 up to the deadline, and 10 x, not 10 (x - .5), beyond.
    penalty = Deadline(slope=0.1, deadline=0.5, fine=10.0)
    assert penalty(SECONDS) == pytest.approx([0.0, 0.025, 0.05, 7.5, 20.0])
    assert penalty(np.array([0.9])) == pytest.approx([9.0])


def test_par() -> None:
    # PAR10: a run without a result counts ten times its limit.
    assert par(10)(SECONDS) == pytest.approx([0.0, 2.5, 5.0, 7.5, 20.0])
    assert par(1) == Linear(1)


def test_shapes_are_kept_and_nothing_is_changed() -> None:
    square = np.array([[0.1, 0.9], [0.5, 0.2]])
    before = square.copy()
    for charge in (Linear(2.0), Capped(Linear(2.0), 1.0), Deadline(0.1, 0.5, 1.0), par(3)):
        assert charge(square).shape == (2, 2)
        assert (square == before).all()


def test_charges_are_values() -> None:
    assert Deadline(0.1, 0.5, 1.0) == Deadline(0.1, 0.5, 1.0)
    assert len({Linear(0.1), Linear(0.1), Capped(Linear(0.1), 1.0)}) == 2


@given(slope=numbers, deadline=numbers, more=numbers, most=numbers)
def test_what_is_provided_never_decreases(
    slope: float, deadline: float, more: float, most: float
) -> None:
    seconds = np.linspace(0.0, 200.0, 501)
    step = Deadline(slope, deadline, slope + more)
    for charge in (Linear(slope), step, Capped(step, most)):
        assert (np.diff(charge(seconds)) >= 0.0).all()
        values = check_charge("cost", charge, np.array([1.0, 7.0]))
        assert values.tolist() == charge(np.array([1.0, 7.0])).tolist()


class TestBadNumbers:
    @pytest.mark.parametrize("bad", [-0.1, math.inf, math.nan])
    def test_not_finite_or_negative(self, bad: float) -> None:
        with pytest.raises(ValueError, match=f"slope must be .* at least 0, got {bad}"):
            Linear(bad)
        with pytest.raises(ValueError, match=f"factor must be .* at least 0, got {bad}"):
            par(bad)
        with pytest.raises(ValueError, match=f"most must be .* at least 0, got {bad}"):
            Capped(Linear(1.0), bad)
        for name in ("slope", "deadline", "fine"):
            given = {"slope": 0.1, "deadline": 1.0, "fine": 2.0} | {name: bad}
            with pytest.raises(ValueError, match=f"{name} must be .* at least 0, got {bad}"):
                Deadline(**given)

    @pytest.mark.parametrize("charge", [0.1, None, "linear"])
    def test_the_charge_that_is_capped_is_no_function(self, charge: Any) -> None:
        with pytest.raises(TypeError, match=f"charge must be a function .* got {charge!r}"):
            Capped(charge, 1.0)

    def test_a_fine_below_the_slope(self) -> None:
        with pytest.raises(ValueError, match=r"fine=0\.05 is below slope=0\.1"):
            Deadline(slope=0.1, deadline=1.0, fine=0.05)
        assert Deadline(slope=0.1, deadline=1.0, fine=0.1)(np.array([3.0])) == pytest.approx(0.3)


class TestTheCheck:
    def test_what_is_charged_at_the_limits(self) -> None:
        assert check_charge("cost", Linear(0.5), LIMITS) == pytest.approx([0.125, 0.5, 2.0])

    @pytest.mark.parametrize("charge", [0.1, None, "linear"])
    def test_no_function(self, charge: object) -> None:
        with pytest.raises(TypeError, match="penalty must be a function of seconds"):
            check_charge("penalty", charge, LIMITS)

    def test_a_function_of_one_number(self) -> None:
        with pytest.raises(TypeError, match=r"cost must give one value for each .* got shape \(\)"):
            check_charge("cost", lambda seconds: 1.0, LIMITS)

    @pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
    def test_values_that_are_none(self, bad: float) -> None:
        def charge(seconds):
            return np.where(seconds > 3.0, bad, 0.0)

        with pytest.raises(ValueError, match=f"cost must be finite and at least 0, got {bad} at 3"):
            check_charge("cost", charge, LIMITS)

    def test_a_decrease_between_the_limits(self) -> None:
        # As much at every limit as at the one before, but with a hump between the last two.
        def hump(seconds):
            return 1.0 + np.maximum(1.0 - np.abs(seconds - 2.5), 0.0)

        assert hump(LIMITS).tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(ValueError, match=r"penalty must not decrease .* falls from 2 at 2\.5"):
            check_charge("penalty", hump, LIMITS)

    def test_a_decrease_at_a_limit_alone(self) -> None:
        # Nowhere on an equidistant grid, but the limits themselves are looked at.
        limits = np.array([0.1, 0.7001, 1.0])

        def dip(seconds):
            return np.where(seconds == 0.7001, 0.0, 1.0)

        with pytest.raises(ValueError, match=r"must not decrease .* to 0 at 0\.7001"):
            check_charge("penalty", dip, limits)

    def test_beyond_the_largest_limit_nothing_is_asked(self) -> None:
        def charge(seconds):
            return np.where(seconds <= 4.0, seconds, -1.0)

        assert check_charge("cost", charge, LIMITS).tolist() == [0.25, 1.0, 4.0]
