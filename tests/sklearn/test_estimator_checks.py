"""scikit-learn's own checks of estimators, on the searches of mfhpo_sklearn."""

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from mfhpo_sklearn import IISESearchCV, SpaceSearchCV

# As scikit-learn checks its own searches, for which it names the first of these as well.
_SMALL = {"cv": 2, "budget": 6, "error_score": "raise", "random_state": 0}
_CANNOT_HOLD = {
    "check_supervised_y_2d": "Ridge takes several targets, and a search does not say so"
}


def _cannot_hold(search):
    return _CANNOT_HOLD if isinstance(search.estimator, Ridge) else {}


@parametrize_with_checks(
    [
        SpaceSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, **_SMALL),
        IISESearchCV(Ridge(), {"alpha": [0.1, 1.0]}, **_SMALL),
    ],
    expected_failed_checks=_cannot_hold,
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
