import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mfhpo.knowledge.bias import Bias, BiasAudit, estimate_bias
from mfhpo.knowledge.confidence import MixtureRadius

both_kinds = pytest.mark.parametrize("kind", ["max", "order"])


def test_margins_by_hand():
    assert Bias.max(0.5, 0.25, 0.0).margins == (1.0, 0.5, 0.0)
    assert Bias.order(0.5, 0.25, 0.0).margins == (0.5, 0.25, 0.0)
    assert Bias.max(1, 0) == Bias("max", (1.0, 0.0), "declared")


def test_widening_never_narrows():
    bias = Bias.order(0.3, 0.1, 0.0)
    # All grow by the same factor.
    assert bias.widened(0, 0.6) == Bias("order", (0.6, 0.2, 0.0), "widened")
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
DECLARED = np.full((1, 2), INF)


def find(bias, fidelity, means, counts, sigma, arms):
    means = np.array(means)
    spread = np.full(means.shape, sigma**2), np.full(means.shape, INF)
    audit = BiasAudit(bias.kind, 10, means.shape[1])
    return audit.find(bias, fidelity, means, np.array(counts), spread, arms)


def test_max_contradiction_by_hand():
    # Arm 7 differs by 2.0 - 0.5 = 1.5 and arm 4 by 1.0; 0.3 + 0.0 is allowed. With 16 values each,
    # a difference is as uncertain as the mean of 16 values with the scale sqrt(2) * 0.1. Ten arms
    # share the level.
    means, counts = [[1.0, 0.0], [2.0, 0.5]], [[16, 16], [16, 16]]
    found = find(Bias.max(0.3, 0.0), 0, means, counts, 0.1, [4, 7])
    assert (found.fidelity, found.reference, found.arms) == (0, 1, (7,))
    assert found.observed == pytest.approx(1.5)
    assert found.allowed == pytest.approx(0.3)
    [radius] = MixtureRadius(math.sqrt(2.0) * 0.1)(np.array([16]), 0.005)
    assert found.uncertainty == pytest.approx(radius)
    assert found.widened_to == pytest.approx(1.5 + radius)
    assert find(Bias.max(0.3, 0.0), 1, means, counts, 0.1, [4, 7]) == found


def test_order_contradiction_by_hand():
    # Biases 1.0 and -0.5: apart by 1.5, allowed 0.4. The common shift of 10 means nothing. The
    # level is shared by 90 ordered pairs, and the difference consists of four means.
    means = [[11.0, 0.0], [9.5, 0.0], [10.2, 0.0]]
    found = find(Bias.order(0.4, 0.0), 0, means, np.full((3, 2), 16), 0.1, [3, 1, 2])
    assert (found.fidelity, found.reference, found.arms) == (0, 1, (3, 1))
    assert found.observed == pytest.approx(1.5)
    [radius] = MixtureRadius(0.2)(np.array([16]), 0.05 / 90)
    assert found.uncertainty == pytest.approx(radius)
    assert found.widened_to == pytest.approx(1.5 + radius)


def test_unknown_variances_contradict_nothing():
    bias, audit = Bias.max(0.1, 0.0), BiasAudit("max", 1, 2)
    means, counts = np.array([[9.0, 0.0]]), np.array([[5, 1]])
    spread = np.array([[1e-4, INF]]), np.array([[4.0, 0.0]])
    assert audit.find(bias, 0, means, counts, spread, [0]) is None


@both_kinds
def test_estimated_variances_keep_the_level(kind):
    # Biases at the bound, the variance of each mean estimated from as few as two values, looked at
    # after every pull: false contradictions in at most 1 % of races, binomially.
    races, most, n_arms = 200, 24, 3
    bias, audit = Bias(kind, (1.0, 0.0)), BiasAudit(kind, n_arms, 2)
    rng = np.random.default_rng(5)
    shift = np.array([1.0, 1.0, -1.0] if kind == "max" else [1.0, 1.0, 0.0])
    found = 0
    for _ in range(races):
        values = rng.standard_normal((n_arms, 2, most))
        values[:, 0] += shift[:, None]
        for n in range(2, most + 1):
            # Ten values at the cheap fidelity from the beginning.
            parts = values[:, 0, : max(n, 10)], values[:, 1, :n]
            means = np.stack([part.mean(axis=1) for part in parts], axis=1)
            counts = np.array([[part.shape[1] for part in parts]] * n_arms)
            spread = np.stack([part.var(axis=1, ddof=1) for part in parts], axis=1), counts - 1.0
            if audit.find(bias, 0, means, counts, spread, range(n_arms)):
                found += 1
                break
    assert found <= binom.ppf(0.99, races, 0.01)


def excesses(bias, fidelity, means, counts, sigmas):
    """How far each comparison exceeds what the bounds allow, for a level shared by six arms."""
    n_arms, n_fidelities = means.shape
    pairs = n_fidelities * (n_fidelities - 1) / 2
    for other in range(n_fidelities):
        if other == fidelity:
            continue
        two = [fidelity, other]
        allowed = bias.bounds[fidelity] + bias.bounds[other]
        differences = means[:, fidelity] - means[:, other]
        seen = [i for i in range(n_arms) if (counts[i, two] > 0).all()]
        groups = [(i,) for i in seen]
        if bias.kind == "order":
            groups = [(i, j) for i in seen for j in seen if i != j]
        level = 0.05 / ((6 if bias.kind == "max" else 30) * pairs)
        for group in groups:
            squares = sum(sigmas[i, m] ** 2 for i in group for m in two)
            variance = sum(sigmas[i, m] ** 2 / counts[i, m] for i in group for m in two)
            [radius] = MixtureRadius(math.sqrt(squares))(np.array([squares / variance]), level)
            difference = differences[group[0]]
            observed = abs(difference)
            if bias.kind == "order":
                observed = difference - differences[group[1]]
            yield observed - radius - allowed


@given(
    st.integers(0, 5), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from(["max", "order"])
)
def test_what_it_finds_is_an_excess_and_goes_away(n_arms, n_fidelities, seed, kind):
    rng = np.random.default_rng(seed)
    bounds = np.append(rng.uniform(0.0, 1.0, n_fidelities - 1), 0.0)
    bias, audit = Bias(kind, tuple(bounds.tolist())), BiasAudit(kind, 6, n_fidelities)
    means = rng.normal(0.0, 1.5, (n_arms, n_fidelities))
    counts = rng.integers(0, 30, means.shape)
    sigmas = rng.uniform(0.1, 0.5, means.shape)
    spread = sigmas**2, np.full(means.shape, INF)
    for fidelity in range(n_fidelities):
        widened = bias
        for _ in range(100):
            found = audit.find(widened, fidelity, means, counts, spread, range(n_arms))
            largest = max(excesses(widened, fidelity, means, counts, sigmas), default=-INF)
            if found is None:
                # Which two arms are compared is chosen before their uncertainty is put together.
                assert largest <= 1e-9 or kind == "order"
                break
            assert found.fidelity < found.reference
            excess = found.observed - found.uncertainty - found.allowed
            assert 0.0 < excess <= largest + 1e-9
            assert found.widened_to > widened.bounds[found.fidelity]
            widened = widened.widened(found.fidelity, found.widened_to)
        else:
            pytest.fail("a contradiction is found again and again")


@both_kinds
def test_rounding_contradicts_nothing(kind):
    # A deterministic objective has no uncertainty, and a bias of exactly the bound is no
    # contradiction: among these targets, target + 0.3 - target differs from 0.3 by up to 1e-16.
    targets = np.linspace(0.0, 1.0, 101)
    signs = np.ones(101) if kind == "max" else np.where(np.arange(101) % 2, 0.5, -0.5)
    means = np.stack([targets + 0.3 * signs, targets], axis=1)
    assert find(Bias(kind, (0.3, 0.0)), 0, means, np.ones((101, 2)), 0.0, range(101)) is None


def test_needed_numbers_are_the_cheapest_and_enough():
    audit = BiasAudit("max", 3, 2)
    variances, costs = np.full(2, 0.0025), np.array([1.0, 10.0])
    needed = audit.needed(0.1, np.array([0, 0]), variances, costs)
    assert needed[0] / needed[1] == pytest.approx(math.sqrt(10.0), rel=0.05)
    # What is there already is kept, and saves values elsewhere.
    many = audit.needed(0.1, np.array([1000, 0]), variances, costs)
    assert many[0] == 1000.0
    assert many[1] < needed[1]
    assert np.isinf(audit.needed(0.0, np.array([0, 0]), variances, costs)).all()
    assert audit.needed(0.1, np.array([0, 4]), np.zeros(2), costs).tolist() == [1.0, 4.0]
    # A bias half as large again is then found in at least 80 % of races.
    rng, found, races = np.random.default_rng(0), 0, 400
    spread = variances[None], DECLARED
    counts = needed[None].astype(int)
    for _ in range(races):
        means = np.array([[0.15, 0.0]]) + 0.05 * rng.standard_normal((1, 2)) / np.sqrt(needed)
        found += audit.find(Bias.max(0.1, 0.0), 0, means, counts, spread, [0]) is not None
    assert found >= 0.8 * races
