import numpy as np

from mfhpo.identification.likelihood.agreement import agreement


def squares_of(sigmas, count, seed):
    rng = np.random.default_rng(seed)
    return np.square(sigmas) * rng.chisquare(count - 1, len(sigmas)), np.full(len(sigmas), count)


def test_arms_of_one_variance_agree():
    # The fewest degrees that fit: an arm's own 49 weigh less than what the others are worth.
    found = [agreement(*squares_of(np.full(30, 2.0), 50, seed)) for seed in range(100)]
    assert min(found) >= 64.0
    assert np.median(found) >= 256.0


def test_arms_of_very_different_variances_do_not():
    found = [agreement(*squares_of(np.geomspace(0.01, 100.0, 10), 10, seed)) for seed in range(100)]
    assert max(found) <= 2.0


def test_agreement_where_little_or_nothing_is_seen():
    counts = np.array([5, 1, 5])
    assert agreement(np.array([4.0, 0.0, 0.0]), counts) == 0.0  # of one arm alone
    assert agreement(np.zeros(3), counts) == np.inf  # no noise
    assert agreement(np.zeros(3), np.ones(3, dtype=np.int64)) == 0.0
