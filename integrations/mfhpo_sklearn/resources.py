"""What a fit is given: a split of the data, and a level of the search's resource.

Splits are fresh ones, like those of a search but for their seeds, or a given set. A resource is the
number of samples to train on, or a parameter of the estimator.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils.multiclass import type_of_target

from mfhpo._validation import is_number, shown
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.fidelity import Fidelity, geometric_levels, native, replicate_of

SAMPLES = "n_samples"

# A cheap level has at least so many samples, and so many of a class on average.
_LEAST_SAMPLES, _LEAST_OF_CLASS = 20, 10
_SMALLEST_SHARE = 81.0  # of a parameter that is no whole number, the lowest level is one in so many
_USUAL_FOLDS = 5  # of scikit-learn's searches
_SPLITS_COMPARED = 20  # few groups give equal splits by chance

Split = tuple[IntArray, IntArray]


class Splits:
    """Splits by their number, and in `words` what they are; arguments are those of `certify`."""

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


def _indices(part: Any) -> IntArray:
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
        counts = np.unique(y, return_counts=True)[1]
        n_test = math.ceil(share * len(y))
        if counts.min() >= 2 and min(n_test, len(y) - n_test) >= len(counts):  # all on either side
            return StratifiedShuffleSplit(n_splits=1, test_size=share)
        warnings.warn(
            f"y has too few samples of a class for {round(1 / share)} folds, so splits are not "
            f"stratified, and some lack a class; give fewer folds as in cv=2, or a splitter.",
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


@dataclass(frozen=True)
class Resource:
    """The resource by its name, None for no cheap levels; the last level is the target.

    The `classes` of samples are kept in proportion. If it is `whole`, the last level is all
    training samples, however many of them a split has.
    """

    name: str | None
    levels: tuple[Any, ...]
    classes: IntArray | None = None
    whole: bool = False

    @classmethod
    def of(
        cls,
        name: str | None,
        levels: Sequence[Any] | None,
        estimator: Any,
        splits: Splits,
        y: Any,
        taken: Collection[str],
    ) -> Resource:
        """Return the resource that a user names; `taken` are the parameters of candidates."""
        if name is None:
            if levels is not None:
                raise ValueError(
                    f"levels={shown(levels)} are of a resource, and resource is None; name "
                    f"it, as in resource='n_samples', or leave levels out."
                )
            return WHOLE
        if not isinstance(name, str):
            raise TypeError(
                f"resource must be 'n_samples', the name of a parameter or None, got {shown(name)}."
            )
        if name in taken:
            raise ValueError(
                f"resource={name!r} is set by the search, and cannot be among the parameters that "
                f"are compared; leave it out of them."
            )
        if levels is not None:
            levels = _checked(name, levels)
        if name == SAMPLES:
            classes = None
            if is_classifier(estimator) and np.ndim(y) == 1:
                classes = np.unique(np.asarray(y), return_inverse=True)[1]
            known = _sample_levels(levels, len(splits[0][0]), classes)
            return cls(name, known, classes, whole=levels is None)
        own = estimator.get_params()
        if name not in own:
            raise ValueError(
                f"resource={shown(name)} is no parameter of {type(estimator).__name__}. Give "
                f"'n_samples' or one of {sorted(own)}."
            )
        return cls(name, _levels_up_to(name, native(own[name])) if levels is None else levels)

    @property
    def fidelity(self) -> Fidelity | None:
        """The levels and their costs in full fits; None if there is no resource."""
        if self.name is None:
            return None
        costs = tuple(level / self.levels[-1] for level in self.levels)
        return Fidelity(self.name, levels=self.levels, costs=costs)

    def name_of(self, level: int) -> str:
        """Return a level in words, by its index."""
        return f"{self.name or 'level'}={self.levels[level]!r}"

    def settings(self, level: int) -> dict[str, Any]:
        """Return the parameters of the estimator that a level sets, by its index."""
        return {} if self.name in (None, SAMPLES) else {self.name: self.levels[level]}

    def part_of(self, split: Split, level: int) -> Split:
        """Return the split with a level's training samples, which include a lower level's."""
        train, test = split
        if self.name != SAMPLES or (self.whole and level == len(self.levels) - 1):
            return split
        return self._in_order(train)[: self.levels[level]], test

    def _in_order(self, train: IntArray) -> IntArray:
        """Return training samples, shuffled, with all classes in proportion in any first few."""
        train = np.random.default_rng(0).permutation(train)
        if self.classes is None:
            return train
        found = self.classes[train]
        place = np.empty(len(train))
        for one in np.unique(found):
            here = np.flatnonzero(found == one)
            place[here] = np.arange(len(here)) / len(here)
        return train[np.argsort(place, kind="stable")]


WHOLE = Resource(None, ("full fit",))  # there are no cheap levels


def _checked(name: str, levels: Sequence[Any]) -> tuple[Any, ...]:
    listed = tuple(Fidelity(name, levels=levels).levels or ())
    if not all(is_number(level) and level > 0 for level in listed):
        raise ValueError(
            f"levels of resource={name!r} must be positive numbers, as costs are proportional to "
            f"them, got {list(listed)}."
        )
    return listed


def _sample_levels(
    levels: Sequence[Any] | None, most: int, classes: IntArray | None
) -> tuple[int, ...]:
    if levels is None:
        n_classes = 1 if classes is None else int(classes.max()) + 1
        least = min(max(_LEAST_SAMPLES, _LEAST_OF_CLASS * n_classes), most)
        return geometric_levels(least, most)
    for level in levels:
        if not is_number(level) or level != int(level) or not 1 <= level <= most:
            raise ValueError(
                f"levels of resource='n_samples' must be whole numbers from 1 to {most}, the "
                f"training samples of a split, got {list(levels)}."
            )
    return tuple(int(level) for level in levels)


def _levels_up_to(name: str, own: Any) -> tuple[Any, ...]:
    """Return levels up to the estimator's own value."""
    if not is_number(own) or own <= 0:
        raise ValueError(
            f"resource={name!r} needs levels: the estimator has {name}={own!r}, which is no "
            f"positive number to go up to. Give them, as in levels=[10, 30, 90]."
        )
    whole = isinstance(own, int)
    return geometric_levels(1 if whole else own / _SMALLEST_SHARE, own, whole=whole)
