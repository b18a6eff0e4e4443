from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.censored import Capped, Deadline, Linear, par
from mfhpo.censored.charges import check_charge

LIMITS = np.array([0.25, 1.0, 4.0])

numbers = st.floats(0.0, 100.0)


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
    def test_a_function_of_one_number(self) -> None:
        with pytest.raises(TypeError, match=r"cost must give one value for each .* got shape \(\)"):
            check_charge("cost", lambda seconds: 1.0, LIMITS)

    @pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
    def test_values_that_are_none(self, bad: float) -> None:
        def charge(seconds):
            return np.where(seconds > 3.0, bad, 0.0)

        with pytest.raises(ValueError, match=f"cost must be finite and at least 0, got {bad} at 3"):
            check_charge("cost", charge, LIMITS)
