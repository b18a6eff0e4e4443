import numpy as np
import pytest
from scipy.stats import binom, skewtest

from mfhpo import Gaussian, Problem
from mfhpo.knowledge.noise import departure_in_words
from mfhpo.problem import Labels
from mfhpo.racing.evidence import Evidence


def notices_of(*told):
    evidence = Evidence(Problem(len(told), costs=(1.0,), noise=Gaussian()), 0.05, (0,), None)
    for arm, values in enumerate(told):
        for value in values:
            evidence.add(arm, 0, float(value))
    return evidence.notices(np.arange(len(told)), Labels())


def test_a_rare_divergence_is_named_with_its_remedy():
    rng = np.random.default_rng(0)
    values = np.append(0.93 + 0.005 * rng.standard_normal(15), 0.03)
    [notice] = notices_of(values, values[:15])
    assert notice.startswith("arm 0 at fidelity 0: one of 16 values, 0.03, is an outlier")
    assert "Bounded(0, 1)" in notice


def test_a_second_mode_is_named():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(200) < 0.2, -5.0, 1.0) + 0.01 * rng.standard_normal(200)
    [notice] = notices_of(values)
    assert "are not normal" in notice


@pytest.mark.parametrize("n", [8, 50])
def test_normal_values_are_hardly_ever_named(n):
    rng, repeats = np.random.default_rng(n), 1_500
    named = sum(bool(notices_of(rng.standard_normal(n))) for _ in range(repeats))
    assert named <= binom.isf(0.001, repeats, 0.001)


def test_few_or_equal_values_say_nothing():
    assert notices_of([0.0] * 6 + [9.0], [0.9] * 50) == []


def test_the_skewness_is_judged_by_dagostinos_test():
    values = np.random.default_rng(2).exponential(size=60)
    deviations = values - values.mean()
    moments = [float((deviations**power).sum()) for power in (2, 3)]
    p_value = float(skewtest(values).pvalue)
    ends = float(values.mean()) - 1.0, float(values.mean()) + 1.0  # no outlier
    assert departure_in_words(60, float(values.mean()), moments, ends, 2.02 * p_value)
    assert not departure_in_words(60, float(values.mean()), moments, ends, 1.98 * p_value)
