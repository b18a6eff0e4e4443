import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupShuffleSplit

from mfhpo_sklearn import MFSearchCV
from mfhpo_sklearn.resources import Resource, Splits

Y = np.repeat([0, 1], [300, 100])
X = np.arange(400.0)[:, None]


def resource(levels=None, cv=None):
    search = MFSearchCV(LogisticRegression(), [{}])
    splits = Splits(search, cv, X, Y, np.arange(400) // 2, 0)
    return Resource.of("n_samples", levels, search.estimator, splits, Y, set()), splits


def test_first_samples_are_like_all_of_them():
    few, splits = resource([40, 320], GroupShuffleSplit(test_size=0.2))
    train, test = splits[0]
    assert (np.diff(train) > 0).all()  # as the splitter leaves them
    part, same = few.part_of((train, test), 0)
    assert len(part) == 40
    assert set(part) <= set(train)
    assert (same == test).all()
    assert 9 <= Y[part].sum() <= 11
    # Not the first ones of a class.
    assert part[Y[part] == 0].mean() > 100


def test_smallest_part_has_rare_classes():
    labels = np.repeat([0, 1, 2], [1000, 4, 2])
    data = np.arange(1006.0)[:, None]
    search = MFSearchCV(LogisticRegression(), [{}])
    splits = Splits(search, None, data, labels, None, 0)
    few = Resource.of("n_samples", None, search.estimator, splits, labels, set())
    assert few.levels[0] == 30
    for number in range(5):
        part, _ = few.part_of(splits[number], 0)
        assert set(labels[part]) == set(labels[splits[number][0]])


def test_smaller_parts_are_in_larger_ones():
    several, splits = resource()
    assert several.levels == (20, 36, 107, 320)
    assert several.fidelity.costs == (20 / 320, 36 / 320, 107 / 320, 1.0)
    parts = [set(several.part_of(splits[0], level)[0]) for level in range(4)]
    assert [len(part) for part in parts] == [20, 36, 107, 320]
    assert parts[0] < parts[1] < parts[2] < parts[3]
    assert parts[3] == set(splits[0][0])
