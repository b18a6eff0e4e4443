import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mfhpo.knowledge.bias import Bias, estimate_bias, find_contradiction

both_kinds = pytest.mark.parametrize("kind", ["max", "order"])


def test_margins_by_hand():
    assert Bias.max(0.5, 0.25, 0.0).margins == (1.0, 0.5, 0.0)
    assert Bias.order(0.5, 0.25, 0.0).margins == (0.5, 0.25, 0.0)
    assert Bias.underestimating(0.5, 0.0) == Bias.order(0.5, 0.0)
    assert Bias.max(1, 0) == Bias("max", (1.0, 0.0), "declared")


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((), "bias must have one bound per fidelity, got none"),
        ((-0.1, 0.0), r"bias\[0\] must be a finite number of at least 0, got -0.1"),
        ((0.1, math.nan, 0.0), r"bias\[1\] must be a finite number of at least 0, got nan"),
        ((0.2, 0.1), "bias must end with 0"),
    ],
)
def test_errors_name_the_bound(bounds, message):
    for make in (Bias.max, Bias.order, Bias.underestimating):
        with pytest.raises(ValueError, match=message):
            make(*bounds)
    with pytest.raises(ValueError, match="kind must be 'max' or 'order'"):
        Bias("mean", (0.0,))


def test_widening_never_narrows():
    bias = Bias.order(0.3, 0.1, 0.0)
    assert bias.widened(0, 0.5) == Bias("order", (0.5, 0.1, 0.0), "widened")
    assert bias.widened(0, 0.2) == Bias("order", (0.3, 0.1, 0.0), "widened")
    assert bias == Bias.order(0.3, 0.1, 0.0)


def test_estimate_by_hand():
    # Differences -0.2 and -0.4: mean -0.3, sd 0.1414214. One degree of freedom: t at probability p
    # is tan(pi (p - 1/2)); 1 - 0.1 / (2 * 1) = 0.95 gives tan(0.45 pi) = 6.3137515. Reach:
    # 6.3137515 * 0.1414214 * sqrt(1 + 1/2) = 1.0935739.
    differences = np.array([[-0.2, 0.0], [-0.4, 0.0]])
    bias = estimate_bias(differences, "max", 1, 0.1)
    assert (bias.kind, bias.source) == ("max", "estimated")
    assert bias.bounds == pytest.approx((0.3 + 1.0935739, 0.0), abs=1e-6)
    bias = estimate_bias(differences, "order", 1, 0.1)
    assert (bias.kind, bias.source) == ("order", "estimated")
    assert bias.bounds == pytest.approx((2.0 * 1.0935739, 0.0), abs=1e-6)


def test_estimate_pays_for_the_number_of_arms_by_hand():
    # Five arms share 0.1: 1 - 0.1 / 10 = 0.99, tan(0.49 pi) = 31.820516.
    differences = np.array([[0.0, 1.0, 0.0], [0.0, 3.0, 0.0]])
    bias = estimate_bias(differences, "max", 5, 0.1)
    # Fidelity 0 has neither a mean nor a spread; fidelity 1: 2 + 31.820516 * sqrt(2) * sqrt(1.5).
    assert bias.bounds == pytest.approx((0.0, 2.0 + 31.820516 * math.sqrt(3.0), 0.0), abs=1e-4)


@both_kinds
@pytest.mark.parametrize(("pilot_arms", "noise"), [(2, 0.5), (10, 0.0)])
def test_estimate_covers_all_arms_with_the_stated_probability(kind, pilot_arms, noise):
    # 500 races of 12 arms, of which the pilot sees the first; the bias of one fidelity may fail
    # with probability 0.1, so that more than the 99.9 % quantile of binom(500, 0.1) is a defect.
    races, n_arms, level = 500, 12, 0.1
    rng = np.random.default_rng([1, pilot_arms, int(10 * noise)])
    failures = 0
    for _ in range(races):
        biases = rng.normal(0.3, 1.0, n_arms)
        seen = biases[:pilot_arms] + noise * rng.standard_normal(pilot_arms)
        differences = np.stack([seen, np.zeros(pilot_arms)], axis=1)
        bound = estimate_bias(differences, kind, n_arms, level).bounds[0]
        true = np.abs(biases).max() if kind == "max" else np.ptp(biases)
        failures += bool(true > bound)
    assert failures <= binom.ppf(0.999, races, level)


INF = math.inf


def test_max_contradiction_by_hand():
    # Arm 7 differs by 2.0 - 0.5 = 1.5 ± 0.1 + 0.2; 0.3 + 0.0 is allowed: 0.9 too much. Arm 4
    # differs by 1.0 ± 0.0: 0.7 too much.
    means = np.array([[1.0, 0.0], [2.0, 0.5]])
    radii = np.array([[0.0, 0.0], [0.1, 0.2]])
    found = find_contradiction(Bias.max(0.3, 0.0), 0, means, radii, [4, 7])
    assert (found.fidelity, found.reference, found.arms) == (0, 1, (7,))
    assert found.observed == pytest.approx(1.5)
    assert found.uncertainty == pytest.approx(0.3)
    assert found.allowed == pytest.approx(0.3)
    assert found.widened_to == pytest.approx(1.8)
    assert find_contradiction(Bias.max(0.3, 0.0), 1, means, radii, [4, 7]) == found


def test_order_contradiction_by_hand():
    # Biases 1.0 ± 0.0 and -0.5 ± 0.3 (0.1 + 0.2): apart by 1.5 ± 0.3, allowed 0.4. The common
    # shift of 10 means nothing.
    means = np.array([[11.0, 0.0], [9.5, 0.0], [10.2, 0.0]])
    radii = np.array([[0.0, 0.0], [0.1, 0.2], [0.0, 0.0]])
    bias = Bias.order(0.4, 0.0)
    found = find_contradiction(bias, 0, means, radii, [3, 1, 2])
    assert (found.fidelity, found.reference, found.arms) == (0, 1, (3, 1))
    assert found.observed == pytest.approx(1.5)
    assert found.uncertainty == pytest.approx(0.3)
    assert found.widened_to == pytest.approx(1.8)


def explained(bias, fidelity, means, radii):
    n_arms, n_fidelities = means.shape
    for other in range(n_fidelities):
        allowed = bias.bounds[fidelity] + bias.bounds[other] + 1e-9
        low = means[:, fidelity] - means[:, other] - radii[:, fidelity] - radii[:, other]
        high = means[:, fidelity] - means[:, other] + radii[:, fidelity] + radii[:, other]
        for i in range(n_arms):
            if other == fidelity:
                continue
            if bias.kind == "max" and (low[i] > allowed or high[i] < -allowed):
                return False
            if bias.kind == "order" and any(low[i] - high[j] > allowed for j in range(n_arms)):
                return False
    return True


@given(
    st.integers(0, 5), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from(["max", "order"])
)
def test_it_fires_exactly_when_nothing_explains_what_was_seen(n_arms, n_fidelities, seed, kind):
    rng = np.random.default_rng(seed)
    bounds = np.append(rng.uniform(0.0, 1.0, n_fidelities - 1), 0.0)
    bias = Bias(kind, tuple(bounds.tolist()))
    means = rng.normal(0.0, 1.5, (n_arms, n_fidelities))
    radii = rng.uniform(0.0, 0.5, (n_arms, n_fidelities))
    radii[rng.random(radii.shape) < rng.choice([0.2, 0.8])] = INF
    for fidelity in range(n_fidelities):
        widened = bias
        for _ in range(100):
            found = find_contradiction(widened, fidelity, means, radii, range(n_arms))
            assert (found is None) == explained(widened, fidelity, means, radii)
            if found is None:
                break
            assert found.fidelity < found.reference
            assert found.observed - found.uncertainty > found.allowed
            assert found.widened_to > widened.bounds[found.fidelity]
            widened = widened.widened(found.fidelity, found.widened_to)
        else:
            pytest.fail("a contradiction is found again and again")


@both_kinds
def test_rounding_contradicts_nothing(kind):
    # A deterministic objective has no radius, and a bias of exactly the bound is no contradiction:
    # among these targets, target + 0.3 - target differs from 0.3 by up to 1e-16.
    targets = np.linspace(0.0, 1.0, 101)
    signs = np.ones(101) if kind == "max" else np.where(np.arange(101) % 2, 0.5, -0.5)
    means = np.stack([targets + 0.3 * signs, targets], axis=1)
    bias = Bias(kind, (0.3, 0.0))
    assert find_contradiction(bias, 0, means, np.zeros((101, 2)), range(101)) is None
