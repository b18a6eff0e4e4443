"""Races that break, or strain, what a certificate supposes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from benchmarks.assumptions import split_worlds, worlds
from benchmarks.assumptions.worlds import World
from mfhpo import Bias, Bounded, EstimatedNoise, Noise, SubGaussian


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
    by
        The contestants that run it; None: those that `takes_part` names.
    delta
        Probability of a wrong certificate that is allowed.
    splits
        How many splits there are; None: they have no end.
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
    by: tuple[str, ...] | None = None
    delta: float = 0.05
    splits: int | None = None


_THREE = (1.0, 3.0, 9.0)
_POLICIES = ("MFTopTwo", "IISE", "MFLUCB", "MFGrad")
_SHORTLISTS = ("certify", "group-sequential", "blocks")
_IN_BLOCKS = ("blocks", "looks in blocks", "SearchSampler in blocks")

FINALISTS = ("finalists by model", "finalists by halving", "finalists by halving for IISE")
FINALISTS_IN_BLOCKS = ("finalists by model in blocks", "finalists by halving in blocks")
"""Races in which cheap levels choose whom the certificate is about."""


def _normal(means: list[float], _: np.random.Generator) -> World:
    return worlds.normal(means, [1.0] * len(means))


BESIDE_BASELINE = tuple(
    f"{by} + baseline" for by in ("certify", "group-sequential", "blocks", "looks in blocks")
)
"""Certificates that compare the winner with the first configuration, the one in use."""

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("normal", lambda _: worlds.normal([1.0, 0.0, 0.0, 0.0], [1.0] * 4), 0.0),
    Scenario(
        "Student t3",
        lambda _: worlds.with_noise(
            [1.0, 0.0, 0.0, 0.0], lambda _, r: float(r.standard_t(3)) / 3**0.5
        ),
        0.0,
    ),
    Scenario(
        "lognormal",
        lambda _: worlds.with_noise([1.0, 0.0, 0.0, 0.0], lambda _, r: worlds.lognormal(r)),
        0.0,
    ),
    Scenario("accuracies", worlds.accuracies, 0.0),
    Scenario("order, 4 workers", worlds.slow_divergence, 0.0, workers=4),
    Scenario("order, 16 workers", worlds.slow_divergence, 0.0, workers=16),
    Scenario("failures 10 %", worlds.failing(0.1, 5), 0.0),
    Scenario("failures 25 %", worlds.failing(0.25, 5), 0.0),
    Scenario("failures 40 %", worlds.failing(0.4, 5), 0.0),
    Scenario("low values fail", worlds.low_values_fail, 0.2, most=600),
    Scenario("quick failures, 8 workers", worlds.failing(0.25, 5, seconds=0.1), 0.0, workers=8),
    Scenario("rare divergence", worlds.rare_divergence, 0.0),
    Scenario("one split in ten is poor", worlds.poor_splits, 0.0),
    Scenario("rare divergence, bounded", worlds.rare_divergence, 0.0, noise=Bounded(0.0, 1.0)),
    Scenario(
        "late bloomer of 12",
        worlds.levels(12, 1),
        0.01,
        costs=_THREE,
        most=4000,
        with_certificates=False,
    ),
    Scenario(
        "late bloomer of 32",
        worlds.levels(32, 1),
        0.01,
        costs=_THREE,
        most=8000,
        with_certificates=False,
    ),
    Scenario(
        "a tenth late", worlds.levels(20, 2), 0.01, costs=_THREE, most=6000, with_certificates=False
    ),
    Scenario("cheap levels agree", worlds.levels(32, 0), 0.02, costs=_THREE, by=FINALISTS),
    Scenario(
        "cheap levels agree, order, 4 workers",
        worlds.slow_levels(32),
        0.02,
        costs=_THREE,
        workers=4,
        by=FINALISTS,
    ),
    Scenario(
        "cheap levels agree, failures 25 %",
        worlds.failing_levels(32),
        0.02,
        costs=_THREE,
        by=FINALISTS,
    ),
    Scenario(
        "cheap levels agree, shared splits",
        worlds.levels_on_splits(32),
        0.02,
        costs=_THREE,
        by=FINALISTS_IN_BLOCKS,
    ),
    Scenario(
        "noisy best", lambda _: worlds.normal([3.0, 0.0, 0.0, 0.0, 0.0], [3.0] + [0.2] * 4), 0.0
    ),
    Scenario("noisy rival", lambda _: worlds.normal([0.5, 0.0], [0.05, 1.0]), 0.0),
    Scenario(
        "two noisy ones tied",
        lambda _: worlds.normal([0.1, 0.1, 0.0, 0.0], [1.0, 1.0, 0.1, 0.1]),
        0.05,
    ),
    Scenario(
        "sigma half",
        lambda _: worlds.normal([0.2, 0.0], [1.0, 1.0]),
        0.0,
        noise=SubGaussian(0.5),
    ),
    Scenario(
        "sigma a quarter",
        lambda _: worlds.normal([0.2, 0.0], [1.0, 1.0]),
        0.0,
        noise=SubGaussian(0.25),
    ),
    Scenario(
        "bias 1.2 times",
        worlds.false_bias(1.2),
        0.0,
        costs=(1.0, 10.0),
        bias=Bias.max(0.1, 0.0),
        most=1000,
        with_certificates=False,
    ),
    Scenario(
        "bias 1.5 times",
        worlds.false_bias(1.5),
        0.0,
        costs=(1.0, 10.0),
        bias=Bias.max(0.1, 0.0),
        most=1000,
        with_certificates=False,
    ),
    Scenario("shared noise", worlds.shared, 0.0),
    Scenario("six arms alike", split_worlds.alike, 0.0, most=600, by=("blocks", "looks in blocks")),
    Scenario("one factor", split_worlds.one_factor, 0.0, by=("blocks", "looks in blocks")),
    *(
        Scenario(
            f"{n_arms - 1} quiet rivals, spreads 1 to {ratio}",
            worlds.quiet_rivals(n_arms, ratio),
            0.1,
            most=350,
            by=(*_POLICIES, "MFSampler", *_SHORTLISTS),
        )
        for n_arms in (8, 12)
        for ratio in (3, 5, 10)
    ),
    *(
        Scenario(
            f"accuracies near 1, epsilon {epsilon:g}",
            worlds.accuracies_near_1,
            epsilon,
            most=200,
            by=(*_POLICIES, "MFSampler", "certify", "group-sequential", *_IN_BLOCKS),
        )
        for epsilon in (0.0, 0.01)
    ),
    Scenario("first on a split pays", split_worlds.first_pays, 0.001, by=_IN_BLOCKS),
    *(
        Scenario(
            f"nearly alike on 50 rows, epsilon {epsilon:g}, delta {delta:g}",
            split_worlds.nearly_alike,
            epsilon,
            delta=delta,
            # Without blocks, the noise of 50 rows hides such a difference.
            by=_IN_BLOCKS if (epsilon, delta) != (0.001, 0.05) else (*_POLICIES, *_IN_BLOCKS),
        )
        for epsilon in (0.0, 0.001)
        for delta in (0.05, 0.01)
    ),
    *(
        Scenario(
            f"folds {words}",
            split_worlds.folds(drawn),
            0.0,
            by=("MFTopTwo", "IISE", "MFSampler", "certify", "group-sequential"),
        )
        for words, drawn in (("by number", False), ("drawn anew", True))
    ),
    Scenario(
        "fails on 2 of 20 splits",
        split_worlds.failing_on_splits,
        0.0,
        splits=20,
        by=("blocks", "looks in blocks"),
    ),
    Scenario(
        "finite set of 5 folds", split_worlds.given_set(5, False), 0.0, splits=5, by=("blocks",)
    ),
    Scenario(
        "finite set of 30 splits, one in ten is poor",
        split_worlds.given_set(30, False),
        0.0,
        splits=30,
        by=("blocks",),
    ),
    Scenario(
        "finite set of 100 questions",
        split_worlds.given_set(100, True),
        0.02,
        noise=Bounded(0.0, 1.0),
        most=400,
        splits=100,
        by=("blocks",),
    ),
    *(
        Scenario(
            f"forgotten replicate, {words}",
            split_worlds.forgotten(noise),
            0.02,
            noise=SubGaussian(0.02),
            most=150,
            by=("certify of a study", "IISESampler"),
        )
        for words, noise in (("equal repeats", 0.0), ("noise", 0.02))
    ),
    *(
        Scenario(
            f"baseline {words}",
            partial(_normal, means),
            0.3,
            most=150,
            by=BESIDE_BASELINE,
        )
        for words, means in (
            ("as good as four others", [0.0] * 5),
            ("better by .3 than four others", [0.3, 0.0, 0.0, 0.0, 0.0]),
        )
    ),
    *(
        Scenario(
            f"order in blocks, {workers} workers",
            split_worlds.slow_if_poor,
            0.0,
            workers=workers,
            by=(*_IN_BLOCKS, "MFSampler in blocks", "MFSearch in blocks", "SpaceSearch in blocks"),
        )
        for workers in (4, 16)
    ),
)
"""What is raced.

"shared noise" and "folds by number" are controls that no data can show.
"""
