"""Settings that cannot be fitted on few samples, and can on all of them."""

import numpy as np
import pytest
from scipy.stats import randint
from sklearn.exceptions import FitFailedWarning
from sklearn.neighbors import KNeighborsRegressor

from mfhpo_sklearn import SpaceSearchCV

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(500, 1))
Y = 0.5 * X[:, 0] + 2 * RNG.normal(size=500)  # of 400 samples, about 90 neighbours are best


def search(neighbours):
    return SpaceSearchCV(
        KNeighborsRegressor(),
        {"n_neighbors": neighbours},
        resource="n_samples",
        budget=40,
        epsilon=0.01,
        random_state=0,
    ).fit(X, Y)


SPACES = {
    "most fail": randint(1, 150),
    "all fail": randint(25, 150),
    "a few settings": [5, 30, 60, 90, 120, 149],
    "one setting": [5, 10, 15, 19, 90],
}


@pytest.mark.parametrize("neighbours", SPACES.values(), ids=SPACES.keys())
def test_they_are_tried_on_more(neighbours):
    with pytest.warns(FitFailedWarning, match=r"fits failed \(.* at n_samples=20.*\); the last"):
        found = search(neighbours)
    assert 60 <= found.best_params_["n_neighbors"] <= 149
    assert found.best_score_ > -0.04
    n_failed = np.isnan(found.cv_results_["mean_test_score"]).sum()
    assert n_failed < len(found.cv_results_["params"]) / 3


def test_what_fails_at_all_levels_is_given_up_with_the_levels_named():
    with pytest.raises(ValueError, match=r"all 30 fits failed \(24 at n_samples=20, .* at n_samp"):
        search(randint(1000, 2000))
