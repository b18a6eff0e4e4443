"""Races that break, or strain, what a certificate supposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mfhpo import Bias, Bounded, EstimatedNoise, Noise, SubGaussian

__all__ = ["DELTA", "SCENARIOS", "Draw", "FloatArray", "Scenario", "World"]

FloatArray = npt.NDArray[np.float64]

# A value, or None for a failure, and how long it took.
Outcome = tuple[float | None, float]
Draw = Callable[[int, int, np.random.Generator], Outcome]
MakeWorld = Callable[[np.random.Generator], "World"]
DrawNoise = Callable[[np.random.Generator], float]

DELTA = 0.05


@dataclass(frozen=True)
class World:
    """The truth of one race.

    Parameters
    ----------
    means
        True means at the target, shape (K,).
    draw
        Evaluates an arm at a level: a value or None, and its seconds.
    """

    means: FloatArray
    draw: Draw


@dataclass(frozen=True)
class Scenario:
    """A kind of race, who runs it, and what is declared.

    Parameters
    ----------
    name
        How it is called in the table.
    world
        Makes the truth of one race.
    by
        Who runs it: names of `benchmarks.assumptions.contestants`.
    epsilon
        Tolerance of the race.
    costs
        Of the levels.
    bias, noise
        What is declared.
    workers
        Evaluations under way at once; they end in the order of their durations.
    most
        Evaluations after which a race is given up.
    """

    name: str
    world: MakeWorld
    by: tuple[str, ...]
    epsilon: float = 0.0
    costs: tuple[float, ...] = (1.0,)
    bias: Bias | None = None
    noise: Noise = field(default_factory=EstimatedNoise)
    workers: int = 1
    most: int = 1000


# One level.


def _normal(means: Sequence[float], sigmas: Sequence[float]) -> MakeWorld:
    true = np.array(means)

    def draw(arm: int, _: int, rng: np.random.Generator) -> Outcome:
        return float(true[arm]) + sigmas[arm] * float(rng.standard_normal()), 1.0

    return lambda _: World(true, draw)


def _four(draw_noise: DrawNoise) -> MakeWorld:
    """Four arms, the best of them half a standard deviation ahead."""
    true = np.array([0.5, 0.0, 0.0, 0.0])
    return lambda _: World(true, lambda arm, _, rng: (float(true[arm]) + draw_noise(rng), 1.0))


def _student(rng: np.random.Generator) -> float:
    return float(rng.standard_t(3)) / 3.0**0.5


def _lognormal(rng: np.random.Generator) -> float:
    spread = 0.6937  # of the logarithm, for a variance of 1
    return float(rng.lognormal(0.0, spread)) - float(np.exp(spread**2 / 2.0))


def _accuracies(rng: np.random.Generator) -> World:
    means, rows = np.array([0.90, 0.85, 0.80, 0.80]), int(rng.integers(20, 101))
    return World(means, lambda arm, _, rng: (float(rng.binomial(rows, means[arm]) / rows), 1.0))


def _divergence(seconds: float) -> MakeWorld:
    """One time in five the rival diverges, which takes it so many seconds instead of 1."""

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        diverges = arm == 1 and rng.random() < 0.2
        value = (-5.0 if diverges else float(arm == 1)) + 0.3 * float(rng.standard_normal())
        return value, seconds if diverges else 1.0

    return lambda _: World(np.array([0.0, -0.2]), draw)


def _failing(rate: float, n_arms: int) -> MakeWorld:
    means = np.append(np.zeros(n_arms - 1), 2.0)

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        value = float(means[arm]) + float(rng.standard_normal())
        return (None if rng.random() < rate else value), 1.0

    return lambda _: World(means, draw)


def _loses_low_values(_: np.random.Generator) -> World:
    """The rival's evaluations fail one time in two if their values are below its mean."""
    means = np.array([0.5, 0.0, 0.0, 0.0])

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        noise = float(rng.standard_normal())
        fails = arm == 1 and noise < 0.0 and rng.random() < 0.5
        return (None if fails else float(means[arm]) + noise), 1.0

    return World(means, draw)


def _rare(usual: float, rare: float, share: float, steady: float, sigma: float) -> MakeWorld:
    """The rival is better than the steady arm, but for a share of its evaluations."""
    means = np.array([steady, (1.0 - share) * usual + share * rare])

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        base = steady
        if arm == 1:
            base = rare if rng.random() < share else usual
        return base + sigma * float(rng.standard_normal()), 1.0

    return lambda _: World(means, draw)


def _shared(rng: np.random.Generator) -> World:
    """Half of the variance is fixed for each arm, as by one split for all its evaluations."""
    means = np.array([0.2, 0.0])
    fixed = rng.standard_normal(2) * np.sqrt(0.5)

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        return float(means[arm] + fixed[arm] + np.sqrt(0.5) * rng.standard_normal()), 1.0

    return World(means, draw)


# Several levels.


def _biased(target: FloatArray, shift: FloatArray, sigma: float) -> World:
    """Means at the levels, shape (M, K), are those at the target and a shift."""
    means = target + shift

    def draw(arm: int, level: int, rng: np.random.Generator) -> Outcome:
        return float(means[level, arm]) + sigma * float(rng.standard_normal()), 1.0

    return World(target, draw)


def _late(n_arms: int, n_late: int) -> MakeWorld:
    """The best arms are late: far below the others at all levels but the target."""

    def world(rng: np.random.Generator) -> World:
        target = np.sort(rng.uniform(0.6, 0.8, n_arms))
        target[-1] = 0.85
        scatter = np.array([0.02, 0.01, 0.0])[:, None] * rng.standard_normal((3, n_arms))
        shift = np.array([-0.10, -0.04, 0.0])[:, None] + scatter
        shift[:2, -n_late:] -= 0.3
        return _biased(target, shift, sigma=0.02)

    return world


def _bias_by_quality(rng: np.random.Generator) -> World:
    """Cheap levels shrink the differences of the arms."""
    target = rng.permutation(np.append(rng.uniform(0.6, 0.8, 11), 0.85))
    shift = np.array([-0.4, -0.2, 0.0])[:, None] * (target - 0.5)
    return _biased(target, shift, sigma=0.02)


def _false_bias(factor: float) -> MakeWorld:
    target = np.array([0.05, 0.0, 0.0])
    shift = np.stack([factor * 0.1 * np.array([-1.0, 1.0, 0.0]), np.zeros(3)])
    return lambda _: _biased(target, shift, sigma=0.05)


def _sigma(name: str, declared: float, by: tuple[str, ...]) -> Scenario:
    return Scenario(name, _normal([0.2, 0.0], [1.0, 1.0]), by, noise=SubGaussian(declared))


def _bias(factor: float, by: tuple[str, ...]) -> Scenario:
    return Scenario(
        f"bias {factor:g} times",
        _false_bias(factor),
        by,
        costs=(1.0, 10.0),
        bias=Bias.max(0.1, 0.0),
    )


def _order(workers: int, by: tuple[str, ...], seconds: float = 300.0) -> Scenario:
    name = "order" if seconds > 1.0 else "equal durations"
    plural = "s" * (workers > 1)
    return Scenario(
        f"{name}, {workers} worker{plural}", _divergence(seconds), by, workers=workers, most=400
    )


_POLICIES = ("MFTopTwo", "IISE", "MFLUCB", "MFGrad", "SuccessiveElimination")
_SHORT = ("MFTopTwo", "IISE", "group-sequential")
_ALL = (*_POLICIES, "certify", "group-sequential", "paired")
_ESTIMATED = ("MFTopTwo, eliminate", "IISE, eliminate")
_LEVELS = (1.0, 3.0, 9.0)
_RARE = _rare(usual=0.93, rare=0.03, share=0.05, steady=0.90, sigma=0.005)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("normal", _normal([0.5, 0.0, 0.0, 0.0], [1.0] * 4), _SHORT),
    Scenario("Student t3", _four(_student), _SHORT),
    Scenario("lognormal", _four(_lognormal), _SHORT),
    Scenario("accuracies", _accuracies, (*_SHORT, "paired")),
    Scenario(
        "bias by quality", _bias_by_quality, ("MFTopTwo", *_ESTIMATED), 0.01, _LEVELS, most=3000
    ),
    _order(16, ("MFSampler", "MFSearch"), seconds=1.0),
    _order(1, ("MFSampler",)),
    _order(4, ("MFSampler", "IISESampler", "IISESearch")),
    _order(
        16, ("MFTopTwo", "IISE", "MFLUCB", "MFSampler", "IISESampler", "MFSearch", "IISESearch")
    ),
    Scenario("failures 10 %", _failing(0.1, 5), ("MFTopTwo", "group-sequential")),
    Scenario("failures 25 %", _failing(0.25, 5), _ALL),
    Scenario("failures 40 %", _failing(0.4, 5), ("MFTopTwo", "group-sequential")),
    Scenario("low values lost", _loses_low_values, ("MFTopTwo", "group-sequential", "paired")),
    Scenario("rare divergence", _RARE, (*_POLICIES, "group-sequential", "paired")),
    Scenario(
        "rare divergence, bounded",
        _RARE,
        ("MFTopTwo", "IISE"),
        noise=Bounded(0.0, 1.0),
        most=3000,
    ),
    Scenario(
        "one split in ten", _rare(0.91, 0.71, share=0.1, steady=0.90, sigma=0.002), ("paired",)
    ),
    Scenario(
        "late bloomer of 12", _late(12, 1), ("MFTopTwo", *_ESTIMATED), 0.01, _LEVELS, most=3000
    ),
    Scenario(
        "late bloomer of 32", _late(32, 1), (*_POLICIES, *_ESTIMATED), 0.01, _LEVELS, most=3000
    ),
    Scenario("a tenth late", _late(20, 2), ("MFTopTwo", *_ESTIMATED), 0.01, _LEVELS, most=3000),
    Scenario(
        "noisy best",
        _normal([1.0, 0.0, 0.0, 0.0, 0.0], [3.0] + [0.2] * 4),
        ("MFTopTwo", "IISE", "MFLUCB", "group-sequential", "paired"),
    ),
    Scenario("noisy rival", _normal([0.3, 0.0], [0.05, 1.0]), ("IISE", "group-sequential")),
    Scenario(
        "two noisy ones tied",
        _normal([0.1, 0.1, 0.0, 0.0], [1.0, 1.0, 0.1, 0.1]),
        ("IISE", "group-sequential"),
        epsilon=0.05,
    ),
    _sigma("sigma half", 0.5, (*_POLICIES, "group-sequential")),
    _sigma("sigma a quarter", 0.25, _SHORT),
    _sigma("sigma a tenth", 0.1, _SHORT),
    _bias(1.2, ("MFTopTwo", "IISE", "MFLUCB")),
    _bias(1.5, _POLICIES),
    Scenario("shared noise", _shared, (*_SHORT, "paired")),
)
"""What is raced; "shared noise" is a control that no data can show."""
