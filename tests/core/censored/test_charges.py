import math

import numpy as np
import pytest

from mfhpo.censored import Linear, par
from mfhpo.censored.charges import check_charge

LIMITS = np.array([0.25, 1.0, 4.0])


def test_at_the_limits():
    assert check_charge("cost", Linear(0.5), LIMITS).tolist() == [0.125, 0.5, 2.0]


@pytest.mark.parametrize("bad", [-0.1, math.inf, math.nan])
def test_not_finite_or_negative(bad):
    with pytest.raises(ValueError, match=f"slope must be .* at least 0, got {bad}"):
        Linear(bad)
    with pytest.raises(ValueError, match=f"factor must be .* at least 0, got {bad}"):
        par(bad)
    with pytest.raises(ValueError, match=f"cost must be finite and at least 0, got {bad} at 3"):
        check_charge("cost", lambda seconds: np.where(seconds > 3.0, bad, 0.0), LIMITS)


def test_no_function_of_an_array():
    with pytest.raises(TypeError, match=r"cost must give one value for each .* got shape \(\)"):
        check_charge("cost", lambda seconds: 1.0, LIMITS)
    for charge in (0.1, None, "linear"):
        given = charge
        with pytest.raises(TypeError, match=f"cost must be a function .* got {charge!r}"):
            check_charge("cost", given, LIMITS)
