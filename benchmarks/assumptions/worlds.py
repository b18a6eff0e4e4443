"""Truths of races in which every evaluation has noise of its own, and what breaks them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import FloatArray

# A value, or None for a failure, and how long it took.
Drawn = tuple[float | None, float]
Draw = Callable[[int, int, int, np.random.Generator], Drawn]


@dataclass(frozen=True)
class World:
    """The truth of one race.

    Parameters
    ----------
    means
        True means at the target, shape (K,).
    draw
        Evaluates an arm at a level, on a split: that of the block, or else the evaluation's number.
    """

    means: FloatArray
    draw: Draw


def with_noise(
    means: list[float], draw_noise: Callable[[int, np.random.Generator], float]
) -> World:
    """Means at a single level, and what each evaluation has besides."""
    true = np.array(means)
    return World(true, lambda arm, level, split, rng: (true[arm] + draw_noise(arm, rng), 1.0))


def normal(means: list[float], sigmas: list[float]) -> World:
    """Normal noise of so large standard deviations."""
    return with_noise(means, lambda arm, rng: sigmas[arm] * float(rng.standard_normal()))


def slow_divergence(_: np.random.Generator) -> World:
    """A fifth of the better arm's evaluations take 300 times as long, and are poor."""

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        diverges = arm == 1 and rng.random() < 0.2
        value = (-5.0 if diverges else float(arm == 1)) + 0.3 * float(rng.standard_normal())
        return value, 300.0 if diverges else 1.0

    return World(np.array([0.0, -0.2]), draw)


def failing(
    rate: float, n_arms: int, seconds: float = 1.0
) -> Callable[[np.random.Generator], World]:
    """Evaluations fail at random, after so many seconds; those that do not take one."""

    def world(_: np.random.Generator) -> World:
        means = np.append(np.zeros(n_arms - 1), 2.0)

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            value = means[arm] + float(rng.standard_normal())
            return (None, seconds) if rng.random() < rate else (value, 1.0)

        return World(means, draw)

    return world


def low_values_fail(_: np.random.Generator) -> World:
    """Half of one arm's values below 0 are lost, and the truth is the mean of the rest."""
    # Each side has phi(0) as its share of the mean; three quarters of the values are left.
    means = np.array([0.0, (0.3989 - 0.3989 / 2.0) / 0.75])

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        noise = float(rng.standard_normal())
        if arm == 1:
            return (None if noise < 0.0 and rng.random() < 0.5 else noise), 1.0
        return noise, 1.0

    return World(means, draw)


def rare_divergence(_: np.random.Generator) -> World:
    """One evaluation in twenty of the better arm diverges, which makes it the worse one."""

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        if arm == 0:
            return 0.90 + 0.005 * float(rng.standard_normal()), 1.0
        base = 0.03 if rng.random() < 0.05 else 0.93
        return base + 0.005 * float(rng.standard_normal()), 1.0

    return World(np.array([0.90, 0.885]), draw)


def poor_splits(_: np.random.Generator) -> World:
    """One split in ten is far worse for the rival, which is a little better on the others."""

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        gain = 0.0
        if arm == 1:
            gain = -0.19 if rng.random() < 0.1 else 0.01
        return 0.90 + gain + 0.002 * float(rng.standard_normal()), 1.0

    return World(np.array([0.90, 0.89]), draw)


def levels(
    n_arms: int, n_late: int, seed_bias: float = 0.3
) -> Callable[[np.random.Generator], World]:
    """Three levels; the best arms are late: far below the others at all levels but the target."""

    def world(rng: np.random.Generator) -> World:
        target = np.sort(rng.uniform(0.6, 0.8, n_arms))
        target[-1] = 0.85
        shift = np.array([-0.10, -0.04, 0.0])[:, None] + np.array([0.02, 0.01, 0.0])[
            :, None
        ] * rng.standard_normal((3, n_arms))
        if n_late:
            shift[:2, -n_late:] -= seed_bias
        means = target + shift

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            return float(means[level, arm]) + 0.02 * float(rng.standard_normal()), 1.0

        return World(target, draw)

    return world


def slow_levels(n_arms: int) -> Callable[[np.random.Generator], World]:
    """Three levels; the best arm's evaluations mostly take 30 times as long where they are poor."""

    def world(rng: np.random.Generator) -> World:
        truth = levels(n_arms, 0)(rng)
        best = n_arms - 1

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            value, seconds = truth.draw(arm, level, split, rng)
            another, _ = truth.draw(arm, level, split, rng)
            is_poor = value is not None and another is not None and value < another
            return value, 30.0 if arm == best and is_poor else seconds

        return World(truth.means, draw)

    return world


def failing_levels(n_arms: int) -> Callable[[np.random.Generator], World]:
    """Three levels; a quarter of the evaluations fail at random."""

    def world(rng: np.random.Generator) -> World:
        truth = levels(n_arms, 0)(rng)

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            value, seconds = truth.draw(arm, level, split, rng)
            return (None if rng.random() < 0.25 else value), seconds

        return World(truth.means, draw)

    return world


def levels_on_splits(n_arms: int) -> Callable[[np.random.Generator], World]:
    """Three levels; the split has an effect on all arms, and a smaller one on each."""

    def world(rng: np.random.Generator) -> World:
        truth, seed = levels(n_arms, 0)(rng), int(rng.integers(2**31))

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            value, seconds = truth.draw(arm, level, split, rng)
            effects = np.random.default_rng([seed, split]).standard_normal(n_arms + 1)
            off = 0.1 * float(effects[-1]) + 0.02 * float(effects[arm])
            return (None if value is None else value + off), seconds

        return World(truth.means, draw)

    return world


def false_bias(factor: float) -> Callable[[np.random.Generator], World]:
    """The bias is so many times the declared one, against the best arm."""

    def world(_: np.random.Generator) -> World:
        target = np.array([0.05, 0.0, 0.0])
        means = np.stack([target + factor * 0.1 * np.array([-1.0, 1.0, 0.0]), target])

        def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
            return float(means[level, arm]) + 0.05 * float(rng.standard_normal()), 1.0

        return World(target, draw)

    return world


def accuracies(rng: np.random.Generator) -> World:
    """Accuracies on 20 to 100 rows."""
    means, rows = np.array([0.90, 0.85, 0.80, 0.80]), int(rng.integers(20, 101))
    return World(
        means, lambda arm, level, split, rng: (float(rng.binomial(rows, means[arm]) / rows), 1.0)
    )


def shared(rng: np.random.Generator) -> World:
    """Half of the variance is fixed for each arm, as by one split for all its evaluations."""
    means = np.array([0.2, 0.0])
    fixed = rng.standard_normal(2) * np.sqrt(0.5)

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        return float(means[arm] + fixed[arm] + np.sqrt(0.5) * rng.standard_normal()), 1.0

    return World(means, draw)


def lognormal(rng: np.random.Generator) -> float:
    """A skewed value of mean 0 and variance 1."""
    spread = 0.6937  # of the logarithm, for a variance of 1
    scale = np.exp(spread**2 / 2.0)
    return float(rng.lognormal(0.0, spread) - scale)


def quiet_rivals(n_arms: int, ratio: float) -> Callable[[np.random.Generator], World]:
    """The best arm, anywhere, spreads so many times as much as each of the others."""

    def world(rng: np.random.Generator) -> World:
        means, sigmas = np.zeros(n_arms), np.full(n_arms, 1.0 / ratio)
        best = int(rng.integers(n_arms))
        means[best], sigmas[best] = 0.3, 1.0
        return normal(means.tolist(), sigmas.tolist())

    return world


def accuracies_near_1(rng: np.random.Generator) -> World:
    """Accuracies on 100 rows, of which most are exactly 1."""
    means, rows = rng.permutation([0.998, 0.9985, 0.999, 0.9995]), 100

    def draw(arm: int, level: int, split: int, rng: np.random.Generator) -> Drawn:
        return float(rng.binomial(rows, means[arm]) / rows), 1.0

    return World(means, draw)
