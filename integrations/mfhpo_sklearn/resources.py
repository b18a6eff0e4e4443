"""The fidelity of a search: samples to train on, or a parameter of the estimator."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mfhpo._validation import is_number, shown
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.fidelity import Fidelity, geometric_levels, native
from mfhpo_sklearn.splits import Split, Splits

SAMPLES = "n_samples"

# A cheap level has at least so many samples, and so many of a class on average.
_LEAST_SAMPLES, _LEAST_OF_CLASS = 20, 10
_SMALLEST_SHARE = 81.0  # of a parameter that is no whole number, the lowest level is one in so many


@dataclass(frozen=True)
class Resource:
    """What an evaluation is given at each level; the last level is the target.

    Parameters
    ----------
    name
        ``"n_samples"``, a parameter of the estimator, or None for no cheap levels.
    levels
        Its values, increasing.
    classes
        Classes of the samples, shape (n_samples,), to keep them in proportion, or None.
    whole
        Whether the last level is all training samples, however many of them a split has.
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
        """Return the resource that a user names; `taken` are the parameters of candidates.

        Raise ValueError or TypeError for an unknown name, levels that do not increase, or more
        samples than there are.
        """
        if name is None:
            if levels is not None:
                raise ValueError(
                    f"levels={shown(levels)} are of a resource, and resource is None; name "
                    f"it, as in resource='n_samples', or leave levels out."
                )
            return cls(None, ("full fit",))
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
            classes = _classes_of(y) if is_classifier(estimator) and y is not None else None
            known = _sample_levels(levels, len(splits[0][0]), classes)
            return cls(name, known, classes, whole=levels is None)
        own = estimator.get_params()
        if name not in own:
            close = difflib.get_close_matches(name, own, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(
                f"resource={shown(name)} is no parameter of {type(estimator).__name__}{hint} Give "
                f"'n_samples' or one of {sorted(own)}."
            )
        return cls(name, _levels_up_to(name, native(own[name])) if levels is None else levels)

    @property
    def costs(self) -> tuple[float, ...]:
        """Costs of an evaluation at each level in full fits, proportional to the levels."""
        if self.name is None:
            return (1.0,)
        return tuple(level / self.levels[-1] for level in self.levels)

    @property
    def fidelity(self) -> Fidelity | None:
        """The levels and their costs; None if there is no resource."""
        if self.name is None:
            return None
        return Fidelity(self.name, levels=self.levels, costs=self.costs)

    def name_of(self, level: int) -> str:
        """Return a level in words, by its index."""
        return f"{self.name or 'level'}={self.levels[level]!r}"

    def settings(self, level: int) -> dict[str, Any]:
        """Return the parameters of the estimator that a level sets, by its index."""
        return {} if self.name in (None, SAMPLES) else {self.name: self.levels[level]}

    def part_of(self, split: Split, level: int) -> Split:
        """Return the split with a level's training samples, which include a lower level's.

        The test samples stay the same.
        """
        train, test = split
        if self.name != SAMPLES or (self.whole and level == len(self.levels) - 1):
            return split
        return self._in_order(train)[: self.levels[level]], test

    def _in_order(self, train: IntArray) -> IntArray:
        """Return training samples in an order in which any first few are like all of them.

        They are shuffled. One of each class comes first, and all classes are in proportion.
        """
        train = np.random.default_rng(0).permutation(train)
        if self.classes is None:
            return train
        found = self.classes[train]
        place = np.empty(len(train))
        for one in np.unique(found):
            here = np.flatnonzero(found == one)
            place[here] = np.arange(len(here)) / len(here)
        return train[np.argsort(place, kind="stable")]


def _checked(name: str, levels: Sequence[Any]) -> tuple[Any, ...]:
    listed = tuple(Fidelity(name, levels=levels).levels or ())
    if not all(is_number(level) and level > 0 for level in listed):
        raise ValueError(
            f"levels of resource={name!r} must be positive numbers, as costs are proportional to "
            f"them, got {list(listed)}."
        )
    return listed


def _classes_of(y: Any) -> IntArray | None:
    labels = np.asarray(y)
    return np.unique(labels, return_inverse=True)[1] if labels.ndim == 1 else None


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
