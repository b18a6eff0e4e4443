"""Which arms are dearer than others, as far as prices are known."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Point
from mfhpo.search.policy import SearchPolicy


def dearness_of(
    search: SearchPolicy,
    arms: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    point: Point | None = None,
) -> FloatArray:
    """Return the `dearness` of arms, new ones at a point; 1 for unknown ones."""
    found = np.ones(len(arms))
    points = [search._points.get(arm, point) for arm in arms]
    known = [(i, each) for i, each in enumerate(points) if each is not None]
    if search.prices is None or not known:
        return found
    rows = [i for i, _ in known]
    found[rows] = search.dearness(
        search.space.features([each for _, each in known]),
        np.array(starts)[rows],
        np.array(ends)[rows],
        [arms[i] for i in rows],
    )
    return found


def too_dear(search: SearchPolicy, arms: Iterable[int]) -> set[int]:
    """Return arms with a value below the target that can no longer be brought there."""
    if search.prices is None or math.isinf(search.affordable):
        return set()
    levels = {arm: search.level_of(arm) for arm in arms if arm in search._points}
    found = set()
    for level in range(search.lowest, search.target):
        here = [arm for arm in levels if levels[arm] == level]
        if here:
            features = search.space.features([search._points[arm] for arm in here])
            prices = search.price_from(level, search.target) * search.dearness(
                features, level, search.target, here
            )
            found.update(np.array(here)[prices > search.affordable].tolist())
    return found
