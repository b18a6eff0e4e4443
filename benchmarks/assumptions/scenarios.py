"""Races that break, or strain, what a certificate supposes."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mfhpo import Bias, Bounded, EstimatedNoise, Noise, SubGaussian
from mfhpo.knowledge.arrays import FloatArray

# A value, or None for a failure, and how long it took.
Outcome = tuple[float | None, float]
Draw = Callable[[int, int, np.random.Generator], Outcome]


@dataclass(frozen=True)
class World:
    """The truth of one race.

    Parameters
    ----------
    means
        True means at the target, shape (K,).
    draw
        Evaluates an arm at a level.
    of_block
        What an arm's values have besides in a block.
    """

    means: FloatArray
    draw: Draw
    of_block: Callable[[int, int], float] = lambda arm, block: 0.0


@dataclass(frozen=True)
class Scenario:
    """A kind of race, and what is declared of it.

    Parameters
    ----------
    name
        How it is called in the table.
    world
        Makes the truth of one race.
    epsilon
        Tolerance of the race.
    costs
        Of the levels.
    bias, noise
        What is declared.
    workers
        Evaluations under way at once; they end in the order of their durations, and are told in
        that of their beginnings.
    most
        Evaluations after which a race is given up.
    with_certificates
        Whether the certificates of shortlists, which know one level only, run it too.
    only_in_blocks
        Whether it is about what arms share in a block, so that nobody else runs it.
    """

    name: str
    world: Callable[[np.random.Generator], World]
    epsilon: float
    costs: tuple[float, ...] = (1.0,)
    bias: Bias | None = None
    noise: Noise = field(default_factory=EstimatedNoise)
    workers: int = 1
    most: int = 300
    with_certificates: bool = True
    only_in_blocks: bool = False


def _of(means: list[float], draw_noise: Callable[[int, np.random.Generator], float]) -> World:
    true = np.array(means)
    return World(true, lambda arm, _, rng: (true[arm] + draw_noise(arm, rng), 1.0))


def _normal(means: list[float], sigmas: list[float]) -> World:
    return _of(means, lambda arm, rng: sigmas[arm] * float(rng.standard_normal()))


def _slow_divergence(_: np.random.Generator) -> World:
    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        diverges = arm == 1 and rng.random() < 0.2
        value = (-5.0 if diverges else float(arm == 1)) + 0.3 * float(rng.standard_normal())
        return value, 300.0 if diverges else 1.0

    return World(np.array([0.0, -0.2]), draw)


def _failing(
    rate: float, n_arms: int, seconds: float = 1.0
) -> Callable[[np.random.Generator], World]:
    """Evaluations fail at random, after so many seconds; those that do not take one."""

    def world(_: np.random.Generator) -> World:
        means = np.append(np.zeros(n_arms - 1), 2.0)

        def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
            value = means[arm] + float(rng.standard_normal())
            return (None, seconds) if rng.random() < rate else (value, 1.0)

        return World(means, draw)

    return world


def _low_values_fail(_: np.random.Generator) -> World:
    """Half of one arm's values below 0 are lost, and the truth is the mean of the rest."""
    # Each side has phi(0) as its share of the mean; three quarters of the values are left.
    means = np.array([0.0, (0.3989 - 0.3989 / 2.0) / 0.75])

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        noise = float(rng.standard_normal())
        if arm == 1:
            return (None if noise < 0.0 and rng.random() < 0.5 else noise), 1.0
        return noise, 1.0

    return World(means, draw)


def _rare_divergence(_: np.random.Generator) -> World:
    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        if arm == 0:
            return 0.90 + 0.005 * float(rng.standard_normal()), 1.0
        base = 0.03 if rng.random() < 0.05 else 0.93
        return base + 0.005 * float(rng.standard_normal()), 1.0

    return World(np.array([0.90, 0.885]), draw)


def _poor_splits(_: np.random.Generator) -> World:
    """One split in ten is far worse for the rival, which is a little better on the others."""

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        gain = 0.0
        if arm == 1:
            gain = -0.19 if rng.random() < 0.1 else 0.01
        return 0.90 + gain + 0.002 * float(rng.standard_normal()), 1.0

    return World(np.array([0.90, 0.89]), draw)


def _levels(
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

        def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
            return float(means[level, arm]) + 0.02 * float(rng.standard_normal()), 1.0

        return World(target, draw)

    return world


def _false_bias(factor: float) -> Callable[[np.random.Generator], World]:
    def world(_: np.random.Generator) -> World:
        target = np.array([0.05, 0.0, 0.0])
        means = np.stack([target + factor * 0.1 * np.array([-1.0, 1.0, 0.0]), target])

        def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
            return float(means[level, arm]) + 0.05 * float(rng.standard_normal()), 1.0

        return World(target, draw)

    return world


def _accuracies(rng: np.random.Generator) -> World:
    means, rows = np.array([0.90, 0.85, 0.80, 0.80]), int(rng.integers(20, 101))
    return World(means, lambda arm, _, rng: (float(rng.binomial(rows, means[arm]) / rows), 1.0))


def _shared(rng: np.random.Generator) -> World:
    """Half of the variance is fixed for each arm, as by one split for all its evaluations."""
    means = np.array([0.2, 0.0])
    fixed = rng.standard_normal(2) * np.sqrt(0.5)

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        return float(means[arm] + fixed[arm] + np.sqrt(0.5) * rng.standard_normal()), 1.0

    return World(means, draw)


def _alike(rng: np.random.Generator) -> World:
    """Six arms share nine tenths of their noise in each block, the best and another one nothing."""
    means = np.array([0.0, *[-1.0] * 6, 0.5])
    shared = np.sqrt(np.where(np.arange(8) < 6, 0.9, 0.0))
    effects: defaultdict[int, float] = defaultdict(lambda: float(rng.standard_normal()))

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        own = np.sqrt(1.0 - shared[arm] ** 2)
        return float(means[arm] + own * rng.standard_normal()), 1.0

    return World(means, draw, lambda arm, block: float(shared[arm] * effects[block]))


def _lognormal(rng: np.random.Generator) -> float:
    spread = 0.6937  # of the logarithm, for a variance of 1
    scale = np.exp(spread**2 / 2.0)
    return float(rng.lognormal(0.0, spread) - scale)


_THREE = (1.0, 3.0, 9.0)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("normal", lambda _: _normal([1.0, 0.0, 0.0, 0.0], [1.0] * 4), 0.0),
    Scenario(
        "Student t3",
        lambda _: _of([1.0, 0.0, 0.0, 0.0], lambda _, r: float(r.standard_t(3)) / 3**0.5),
        0.0,
    ),
    Scenario("lognormal", lambda _: _of([1.0, 0.0, 0.0, 0.0], lambda _, r: _lognormal(r)), 0.0),
    Scenario("accuracies", _accuracies, 0.0),
    Scenario("order, 4 workers", _slow_divergence, 0.0, workers=4),
    Scenario("order, 16 workers", _slow_divergence, 0.0, workers=16),
    Scenario("failures 10 %", _failing(0.1, 5), 0.0),
    Scenario("failures 25 %", _failing(0.25, 5), 0.0),
    Scenario("failures 40 %", _failing(0.4, 5), 0.0),
    Scenario("low values fail", _low_values_fail, 0.2, most=600),
    Scenario("quick failures, 8 workers", _failing(0.25, 5, seconds=0.1), 0.0, workers=8),
    Scenario("rare divergence", _rare_divergence, 0.0),
    Scenario("one split in ten is poor", _poor_splits, 0.0),
    Scenario("rare divergence, bounded", _rare_divergence, 0.0, noise=Bounded(0.0, 1.0)),
    Scenario(
        "late bloomer of 12", _levels(12, 1), 0.01, costs=_THREE, most=4000, with_certificates=False
    ),
    Scenario(
        "late bloomer of 32", _levels(32, 1), 0.01, costs=_THREE, most=8000, with_certificates=False
    ),
    Scenario(
        "a tenth late", _levels(20, 2), 0.01, costs=_THREE, most=6000, with_certificates=False
    ),
    Scenario("noisy best", lambda _: _normal([3.0, 0.0, 0.0, 0.0, 0.0], [3.0] + [0.2] * 4), 0.0),
    Scenario("noisy rival", lambda _: _normal([0.5, 0.0], [0.05, 1.0]), 0.0),
    Scenario(
        "two noisy ones tied",
        lambda _: _normal([0.1, 0.1, 0.0, 0.0], [1.0, 1.0, 0.1, 0.1]),
        0.05,
    ),
    Scenario(
        "sigma half",
        lambda _: _normal([0.2, 0.0], [1.0, 1.0]),
        0.0,
        noise=SubGaussian(0.5),
    ),
    Scenario(
        "sigma a quarter",
        lambda _: _normal([0.2, 0.0], [1.0, 1.0]),
        0.0,
        noise=SubGaussian(0.25),
    ),
    Scenario(
        "bias 1.2 times",
        _false_bias(1.2),
        0.0,
        costs=(1.0, 10.0),
        bias=Bias.max(0.1, 0.0),
        with_certificates=False,
    ),
    Scenario(
        "bias 1.5 times",
        _false_bias(1.5),
        0.0,
        costs=(1.0, 10.0),
        bias=Bias.max(0.1, 0.0),
        with_certificates=False,
    ),
    Scenario("shared noise", _shared, 0.0),
    Scenario("six arms alike", _alike, 0.0, most=600, only_in_blocks=True),
)
"""What is raced; "shared noise" is a control that no data can show."""
