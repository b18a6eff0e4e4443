"""Truths of races in which a split changes the values of all arms that are evaluated on it."""

from collections.abc import Callable

import numpy as np

from benchmarks.assumptions.worlds import Drawn, World

# The standard deviation of what a split does to all arms.
_OF_SPLIT = 0.1
_N_FOLDS = 5


def alike(rng: np.random.Generator) -> World:
    """Six arms share nine tenths of their noise on each split, the best and another one nothing."""
    means = np.array([0.0, *[-1.0] * 6, 0.5])
    shared = np.sqrt(np.where(np.arange(8) < 6, 0.9, 0.0))
    seed = _seed(rng)

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        own = np.sqrt(1.0 - shared[arm] ** 2) * rng.standard_normal()
        return float(means[arm] + shared[arm] * _effect(seed, split) + own), 1.0

    return World(means, draw)


def one_factor(rng: np.random.Generator) -> World:
    """What a split does to each of 20 arms is a multiple of one number, and hardly anything else.

    The two best arms are equally good, and it moves them most, in opposite directions.
    """
    means = np.array([1e-9, 0.0, *[-3.0] * 18])
    moved = np.array([1.0, -1.0, *np.linspace(-0.7, 0.7, 18)])
    order = rng.permutation(20)
    means, moved = means[order], moved[order]
    seed = _seed(rng)

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        own = 0.02 * float(rng.standard_normal())
        return float(means[arm] + moved[arm] * _effect(seed, split) + own), 1.0

    return World(means, draw)


def first_pays(rng: np.random.Generator) -> World:
    """The first evaluation on a split takes 5 % more seconds, which are the objective's value.

    The true means are those of an arm that is the first on every other split.
    """
    seconds, more = np.array([1.0, 1.0]), 0.05
    seconds[rng.integers(2)] -= 0.01
    seed, seen = _seed(rng), set[int]()

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        first = split not in seen
        seen.add(split)
        own = 0.01 * float(rng.standard_normal())
        return -float(seconds[arm] + more * first + _OF_SPLIT * _effect(seed, split) + own), 1.0

    return World(-(seconds + more / 2.0), draw)


def nearly_alike(rng: np.random.Generator) -> World:
    """Accuracies on 50 rows; two arms differ in one row of some hundreds.

    The better arm has nine tenths of these rows right, as of all others, the other arm a half. On
    most splits they are equal, and on ten in a row often enough.
    """
    rows, right = 50, 0.9
    odd = np.zeros(2)
    odd[rng.integers(2)] = np.exp(rng.uniform(np.log(0.003), np.log(0.02)))
    seed = _seed(rng)

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        are_right = np.random.default_rng([seed, split]).random(rows) < right
        are_odd = rng.random(rows) < odd[arm]
        return float(np.where(are_odd, rng.random(rows) < 0.5, are_right).mean()), 1.0

    return World(right - odd * (right - 0.5), draw)


def folds(drawn: bool) -> Callable[[np.random.Generator], World]:
    """Five arms on five folds: that of the evaluation's number, or one `drawn` by a seed of it."""

    def world(rng: np.random.Generator) -> World:
        means = np.zeros(5)
        means[rng.integers(5)] = 0.1
        of_fold = 0.1 * rng.standard_normal(_N_FOLDS)
        of_fold -= of_fold.mean()
        seed = _seed(rng)

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            fold = split % _N_FOLDS
            if drawn:
                fold = int(np.random.default_rng([seed, split]).integers(_N_FOLDS))
            return float(means[arm] + of_fold[fold] + 0.05 * rng.standard_normal()), 1.0

        return World(means, draw)

    return world


def given_set(n: int, right: bool) -> Callable[[np.random.Generator], World]:
    """Four arms on n splits, of which the true means are those over all: a finite set.

    They are `right` or wrong on questions that are hard for all of them. Else one split in ten is
    poor for one arm or another, by ten times the noise.
    """

    def world(rng: np.random.Generator) -> World:
        if right:
            hard, own = rng.random(n), rng.random((4, n))
            worth = np.sort(rng.uniform(0.5, 0.7, 4))[:, None]
            values = (0.7 * hard + 0.3 * own < worth).astype(float)
        else:
            values = 0.03 * np.arange(4)[:, None] + 0.1 * rng.standard_normal((4, n))
            values -= np.where(rng.random((4, n)) < 0.1, 1.0, 0.0)

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            return float(values[arm, split]), 1.0

        return World(values.mean(axis=1), draw)

    return world


def failing_on_splits(rng: np.random.Generator) -> World:
    """The best arm fails on two of 20 splits, always on the same ones."""
    means = np.zeros(4)
    best = int(rng.integers(4))
    means[best] = 0.5
    fails_on = rng.choice(20, size=2, replace=False).tolist()
    seed = _seed(rng)

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        if arm == best and split in fails_on:
            return None, 1.0
        own = 0.3 * float(rng.standard_normal())
        return float(means[arm] + _OF_SPLIT * _effect(seed, split) + own), 1.0

    return World(means, draw)


def forgotten(noise: float) -> Callable[[np.random.Generator], World]:
    """Values depend on the split more than on the arm, and have little noise besides, or none."""

    def world(rng: np.random.Generator) -> World:
        means = np.linspace(0.0, 0.1, 6)
        seed = _seed(rng)

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            of_split = _effect(seed, split) + 0.5 * _effect(seed, split, arm)
            own = noise * float(rng.standard_normal())
            return float(means[arm] + _OF_SPLIT * of_split + own), 1.0

        return World(means, draw)

    return world


def slow_if_poor(rng: np.random.Generator) -> World:
    """Evaluations of one arm that are poor by chance take 300 times as long.

    Those that are quick make it look better than the other one.
    """
    means, sigmas = np.array([0.0, -0.5]), (0.3, 1.5)
    seed = _seed(rng)

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        luck = float(rng.standard_normal())
        value = means[arm] + _OF_SPLIT * _effect(seed, split) + sigmas[arm] * luck
        return float(value), 300.0 if arm == 1 and luck < -0.3 else 1.0

    return World(means, draw)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _effect(*key: int) -> float:
    """What depends on a split, and perhaps on an arm, alone: a standard normal number."""
    return float(np.random.default_rng(key).standard_normal())
