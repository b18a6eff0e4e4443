"""Fresh splits of the data, like those of a search but for their seeds."""

import copy
import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.multiclass import type_of_target

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
        if all(np.array_equal(test, self[k][1]) for k in range(1, _SPLITS_COMPARED)):
            raise ValueError(
                f"cv={self._splitter!r} gives the same split whatever its random_state, so there "
                f"are no fresh ones; give one that shuffles, such as ShuffleSplit()."
            )

    def __getitem__(self, number: int) -> Split:
        """The split of a number: training and test indices."""
        key = np.random.SeedSequence(self._entropy, spawn_key=(number,))
        splitter = copy.copy(self._splitter)
        splitter.random_state = int(key.generate_state(1)[0])
        X, y, groups = self._data
        train, test = next(iter(splitter.split(X, y, groups)))
        return np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)


def _splitter_like(search: Any, cv: Any, y: Any, groups: Any) -> Any:
    if cv is not None:
        if not hasattr(cv, "split") or not hasattr(cv, "random_state"):
            raise ValueError(
                f"cv must be a splitter with a random_state, such as ShuffleSplit(), or None, got "
                f"{cv!r}."
            )
        return copy.copy(cv)
    own = search.cv
    if own is None or isinstance(own, (int, np.integer)):
        share = 1.0 / (_USUAL_FOLDS if own is None else int(own))
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
                stacklevel=4,
            )
        return ShuffleSplit(n_splits=1, test_size=share)
    if not hasattr(own, "split") or not hasattr(own, "random_state"):
        raise ValueError(
            f"search.cv={own!r} has no random_state, so there are no fresh splits like its own; "
            f"give a splitter that draws some, such as cv=ShuffleSplit(test_size=0.2), if the data "
            f"may be shuffled."
        )
    splitter = copy.copy(own)
    if hasattr(splitter, "shuffle"):
        splitter.shuffle = True  # the folds of a search in the order of the data are some of many
    return splitter


def _can_stratify(y: Any, share: float) -> bool:
    """Whether splits with such a share of test samples can have all classes on either side."""
    counts = np.unique(y, return_counts=True)[1]
    n_test = math.ceil(share * counts.sum())
    n_train = counts.sum() - n_test
    return bool(counts.min() >= 2 and min(n_test, n_train) >= len(counts))
