"""Which settings are the same one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from mfhpo.experiment import key_of
from mfhpo_sklearn.shortlist import described


class Hidden:
    """Its text does not show what it is."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "Hidden()"


class Local(Hidden):
    """Cannot be pickled."""

    def __reduce__(self):
        raise TypeError("cannot pickle it")


def key(value):
    return key_of({"a": value}, described)


def mask(place):
    return np.arange(2000) == place


def steps(C):
    return [("one", make_pipeline(*(StandardScaler() for _ in range(50)), SVC(C=C)))]


def fitted(labels):
    return FrozenEstimator(SVC().fit([[0.0], [1.0]], labels))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ((1, 2), [1, 2]),
        (np.zeros(2), np.zeros(2, dtype=int)),
        (mask(500), mask(501)),
        (pd.DataFrame(mask(500)), pd.DataFrame(mask(501))),
        ({"mask": mask(500)}, {"mask": mask(501)}),
        (Hidden(1), Hidden(2)),
        (Local(1), Local(2)),
        (steps(1.0), steps(2.0)),
        (fitted([0, 1]), fitted([1, 0])),
        (SVC, SVC()),
        (np.sin, np.cos),
    ],
)
def test_settings_that_differ(one, other):
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "value",
    [
        mask(500),
        Hidden(1),
        make_pipeline(StandardScaler(), SVC(class_weight={0: 1.0, 1: 2.0})),
        make_pipeline(FunctionTransformer(lambda rows: rows), SVC()),
    ],
)
def test_a_copy_is_the_same_setting(value):
    assert key(clone(value, safe=False)) == key(value)
