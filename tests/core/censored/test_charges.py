import numpy as np
import pytest

from mfhpo.censored import Linear
from mfhpo.censored.charges import check_charge

LIMITS = np.array([0.25, 1.0, 4.0])


def test_at_the_limits():
    assert check_charge("cost", Linear(0.5), LIMITS).tolist() == [0.125, 0.5, 2.0]


def test_no_function_of_an_array():
    with pytest.raises(TypeError, match=r"cost must give one value for each .* got shape \(\)"):
        check_charge("cost", lambda seconds: 1.0, LIMITS)
    for charge in (0.1, None, "linear"):
        given = charge
        with pytest.raises(TypeError, match=f"cost must be a function .* got {charge!r}"):
            check_charge("cost", given, LIMITS)
