from dataclasses import replace

import numpy as np
import pytest

from mfhpo.games import Hyperparameters


def three_levels():
    return Hyperparameters(
        length_scales=np.full((3, 2), 0.5),
        correlations=np.array([0.5, 0.8]),
        scales=np.ones(3),
        noise=np.full(3, 0.1),
        offsets=np.zeros(3),
    )


def test_amplitudes_by_hand():
    known = replace(three_levels(), scales=np.array([1.0, 2.0, 1.0]))
    assert known.n_levels == 3
    # u1 = .8 u2 + .6 psi1; u0 = .5 u1 + sqrt(.75) psi0 = .4 u2 + .3 psi1 + sqrt(.75) psi0.
    expected = np.array([[np.sqrt(0.75), 0.3, 0.4], [0.0, 1.2, 1.6], [0.0, 0.0, 1.0]])
    assert known.amplitudes == pytest.approx(expected)


def test_rates_are_those_of_the_paper():
    known = Hyperparameters.shared(2.0, 8.0, correlations=[0.5], noise=[0.3, 0.1], n_features=3)
    # exp(-h d**2) = exp(-(d / l)**2 / 2) with l = sqrt(1 / (2 h)).
    assert known.length_scales == pytest.approx(np.array([[0.25] * 3, [0.5] * 3]))
    assert known.noise.tolist() == [0.3, 0.1]
    assert known.scales.tolist() == [1.0, 1.0]
    assert known.offsets.tolist() == [0.0, 0.0]


def test_no_noise_is_taken_for_a_little():
    known = replace(three_levels(), noise=np.zeros(3), scales=np.array([1.0, 2.0, 3.0]))
    assert known.noise == pytest.approx(np.array([1e-6, 4e-6, 9e-6]))
