"""Splits of the data: fresh ones, like those of a search but for their seeds, or a given set."""

import copy
import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils.multiclass import type_of_target

from mfhpo._validation import shown
from mfhpo.knowledge.fidelity import replicate_of

_USUAL_FOLDS = 5  # of scikit-learn's searches
_SPLITS_COMPARED = 20  # few groups give equal splits by chance

Split = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class Splits:
    """Splits by their number, and in `words` what they are; arguments are those of `certify`.

    Of `search` the attributes `estimator` and `cv` are used.
    """

    def __init__(self, search: Any, cv: Any, X: Any, y: Any, groups: Any, seed: int | None) -> None:
        self._data = (X, y, groups)
        self._entropy = np.random.SeedSequence(seed).entropy
        self._splitter = _splitter_like(search, cv, y, groups)
        name = type(self._splitter).__name__
        train, test = self[0]
        self.words = f"random splits by {name} into {len(train)} samples and {len(test)}"
        _check_groups(self._splitter, groups, [(train, test)])
        if all(np.array_equal(test, self[k][1]) for k in range(1, _SPLITS_COMPARED)):
            shuffles = "ShuffleSplit()" if groups is None else "GroupShuffleSplit()"
            raise ValueError(
                f"cv={self._splitter!r} gives the same split whatever its random_state, so there "
                f"are no fresh ones; give one that shuffles, such as {shuffles}."
            )

    def __getitem__(self, number: int) -> Split:
        """Return training and test indices of the split with this number."""
        key = np.random.SeedSequence(self._entropy, spawn_key=(number,))
        splitter = copy.copy(self._splitter)
        splitter.random_state = int(key.generate_state(1)[0])
        X, y, groups = self._data
        train, test = next(iter(splitter.split(X, y, groups)))
        return np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)


class GivenSplits:
    """A set of splits, such as five folds, in random order; arguments are those of `Splits`."""

    def __init__(self, search: Any, cv: Any, X: Any, y: Any, groups: Any, seed: int | None) -> None:
        try:
            splitter = check_cv(cv, y, classifier=is_classifier(search.estimator))
            splits = splitter.split(X, y, groups)
            self._splits = [(_indices(train), _indices(test)) for train, test in splits]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"cv must be 2 folds or more, a splitter, or a list of pairs of training and test "
                f"indices, got {in_words(cv)}."
            ) from error
        if not self._splits:
            raise ValueError(f"cv must give at least one split, got {in_words(cv)}.")
        _check_groups(splitter, groups, self._splits)
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self.words = f"the {len(self._splits)} splits of cv={in_words(cv)}"

    def __len__(self) -> int:
        return len(self._splits)

    def __getitem__(self, number: int) -> Split:
        """Return training and test indices of the split of a block."""
        return self._splits[replicate_of(number, self._seed, len(self))]


def is_given_set(cv: Any) -> bool:
    """Tell whether `cv` stands for a set of splits: a number, a list, or what does not shuffle."""
    if cv is None or not hasattr(cv, "split"):
        return cv is not None
    return not (hasattr(cv, "random_state") and getattr(cv, "shuffle", True))


def _indices(part: Any) -> npt.NDArray[np.int64]:
    rows = np.asarray(part)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise ValueError("indices are whole numbers")
    return np.flatnonzero(rows) if rows.dtype.kind == "b" else rows.astype(np.int64)


def _check_groups(splitter: Any, groups: Any, splits: Iterable[Split]) -> None:
    if groups is None:
        return
    labels = np.asarray(groups)
    if any(np.intersect1d(labels[train], labels[test]).size for train, test in splits):
        raise ValueError(
            f"cv={splitter!r} puts samples of one group into training and test data; give one "
            f"that keeps groups together, such as GroupShuffleSplit(), or leave groups out."
        )


def _splitter_like(search: Any, cv: Any, y: Any, groups: Any) -> Any:
    own = search.cv if cv is None else cv
    name = "search.cv" if cv is None else "cv"
    if cv is None and (own is None or isinstance(own, (int, np.integer))):
        return _usual_splitter(search, y, groups)
    if isinstance(own, TimeSeriesSplit):
        raise ValueError(
            f"{name}={own!r} has one split for each length of the past, so there are no fresh "
            f"ones to certify with; shuffled ones would train on the future. A certificate about "
            f"these splits alone is certify(..., cv={own!r})."
        )
    if not hasattr(own, "split") or not hasattr(own, "random_state"):
        right = "cv=GroupShuffleSplit(test_size=0.2)"
        if groups is None:
            right = (
                f"cv=ShuffleSplit(test_size=0.2) if the data may be shuffled, or {right} with "
                f"groups to keep together"
            )
        raise ValueError(
            f"{name} must be a splitter with a random_state, for fresh splits, got "
            f"{in_words(own)}; give one such as {right}."
        )
    splitter = copy.copy(own)
    if hasattr(splitter, "shuffle"):
        splitter.shuffle = True  # folds in the order of the data are some of many
    return splitter


def _usual_splitter(search: Any, y: Any, groups: Any) -> Any:
    """Return random splits in place of the folds that a number or nothing stands for."""
    share = 1.0 / (_USUAL_FOLDS if search.cv is None else int(search.cv))
    if groups is not None:
        return GroupShuffleSplit(n_splits=1, test_size=share)
    classes = y is not None and type_of_target(y) in ("binary", "multiclass")
    if is_classifier(search.estimator) and classes:
        if _can_stratify(y, share):
            return StratifiedShuffleSplit(n_splits=1, test_size=share)
        warnings.warn(
            f"y has a class with one sample, or more classes than one of "
            f"{round(1 / share)} folds has samples, so splits are not stratified, and some "
            f"lack a class; give more data, fewer folds as in cv=2, or a splitter.",
            stacklevel=5,
        )
    return ShuffleSplit(n_splits=1, test_size=share)


def in_words(cv: Any) -> str:
    """Return what was given as `cv`, without the indices of splits."""
    if hasattr(cv, "split") or isinstance(cv, str) or not hasattr(cv, "__iter__"):
        return shown(cv)
    if getattr(cv, "ndim", 1) == 0:  # an array of NumPy without an axis
        return shown(cv)
    return f"a list of {len(cv)} given splits" if hasattr(cv, "__len__") else "given splits"


def _can_stratify(y: Any, share: float) -> bool:
    """Return whether splits of this test share can have all classes on either side."""
    counts = np.unique(y, return_counts=True)[1]
    n_test = math.ceil(share * counts.sum())
    n_train = counts.sum() - n_test
    return bool(counts.min() >= 2 and min(n_test, n_train) >= len(counts))
