"""What races how: policies, radii and ways of telling, and the random instances of the races."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mfhpo import Pull
from mfhpo.knowledge.arrays import FloatArray

Variant = Literal[
    "SE",
    "IISE max",
    "IISE order",
    "MFE",
    "MFLUCB",
    "MFTopTwo max",
    "MFTopTwo order",
    "MFGrad",
    "certify",
    "group-sequential",
    "blocks",
]
Told = Literal["in order", "out of order", "by duration"]
_AT_RANDOM: tuple[Told, ...] = ("in order", "out of order")
_FOR_ESTIMATES: tuple[Told, ...] = ("out of order", "by duration")
Knowledge = Literal[
    "mixture", "Hoeffding", "stitched", "empirical Bernstein", "tightest", "Student", "estimated"
]
Values = Literal["Gaussian", "Bernoulli"]

VARIANTS: tuple[Variant, ...] = get_args(Variant)
_ELIMINATIONS: tuple[Variant, ...] = ("SE", "IISE max", "IISE order", "MFE")
OF_SHORTLISTS: tuple[Variant, ...] = ("certify", "group-sequential", "blocks")
"""Certificates that compare a shortlist, at the target alone."""

# Which values satisfy the assumption of each radius.
VALUES: dict[Knowledge, tuple[Values, ...]] = {
    "mixture": ("Gaussian", "Bernoulli"),
    "Hoeffding": ("Gaussian", "Bernoulli"),
    "stitched": ("Gaussian", "Bernoulli"),
    "empirical Bernstein": ("Bernoulli",),
    "tightest": ("Bernoulli",),
    "Student": ("Gaussian",),
    "estimated": ("Gaussian",),
}
_MOST_PULLS = 1500
_MOST_PULLS_WHEN_HARD = 300


@dataclass(frozen=True)
class Condition:
    """What is raced how.

    `knowledge` is the radius, or what of the noise is declared; `shrink` multiplies the radius.
    """

    variant: Variant
    knowledge: Knowledge = "mixture"
    tolerant: bool = False
    told: Told = "in order"
    shrink: float = 1.0


@dataclass(frozen=True)
class Instance:
    """Means (M, K), standard deviations (M, K) and what a policy is told."""

    means: FloatArray
    deviations: FloatArray
    values: Values
    costs: tuple[float, ...]
    bounds: tuple[float, ...]
    epsilon: float
    most_pulls: int

    def draw(self, rng: np.random.Generator, pull: Pull) -> float:
        """The value of one pull."""
        mean = float(self.means[pull.fidelity, pull.arm])
        if self.values == "Bernoulli":
            return float(rng.random() < mean)
        return mean + float(self.deviations[pull.fidelity, pull.arm]) * rng.standard_normal()


_POLICY_VARIANTS = tuple(variant for variant in VARIANTS if variant not in OF_SHORTLISTS)

CONDITIONS: tuple[Condition, ...] = (
    *(
        Condition(variant, tolerant=tolerant, told=told)
        for tolerant in (False, True)
        for variant in _POLICY_VARIANTS
        for told in _AT_RANDOM
    ),
    *(Condition(variant, told="by duration") for variant in _POLICY_VARIANTS),
    *(
        Condition("IISE max", knowledge, told=told)
        for knowledge in VALUES
        if knowledge != "mixture"
        for told in _AT_RANDOM
    ),
    *(
        Condition(variant, "estimated", told=told)
        for variant in _POLICY_VARIANTS
        if variant not in _ELIMINATIONS
        for told in _FOR_ESTIMATES
    ),
    *(
        Condition(variant, "estimated", tolerant)
        for variant in OF_SHORTLISTS
        for tolerant in (False, True)
    ),
    Condition("IISE max", shrink=0.3),
)


def draw_instance(rng: np.random.Generator, condition: Condition, values: Values) -> Instance:
    """Draw an instance; see `benchmarks.delta_correctness.__main__`."""
    # Few arms more often than many: 2 to 20, uniform on a logarithmic scale.
    n_arms = int(math.exp(rng.uniform(math.log(2.0), math.log(21.0))))
    n_fidelities = int(rng.integers(1, 5))
    bernoulli = values == "Bernoulli"
    sigma = 0.5 if bernoulli else 1.0
    hard = not condition.tolerant and rng.random() < 0.25
    epsilon = 0.0
    if condition.tolerant:
        # Most arms are right answers, and one is only just wrong.
        epsilon = sigma * rng.uniform(0.9, 1.2)
        gaps = epsilon * rng.uniform(0.0, 1.3, n_arms)
        gaps[-1] = 1.02 * epsilon
        middle = 0.65 * epsilon
    else:
        largest_gap = 1.3 if bernoulli else 2.0
        gap = sigma * (0.05 if hard else rng.uniform(1.1, largest_gap))
        gaps = gap * rng.uniform(1.0, 1.1, n_arms)
        gaps[-1] = gap
        middle = gap / 2.0
    gaps[0] = 0.0
    targets = (0.5 if bernoulli else rng.normal()) + middle - gaps

    largest = rng.uniform(0.02, 0.1) if bernoulli else rng.uniform(0.02, 0.5)
    bounds = largest * rng.uniform(0.1, 0.7) ** np.arange(n_fidelities)
    bounds[-1] = 0.0
    # Shares of the bound, in [-1, 1]; at worst all of them lead away from the best arm.
    shares = rng.uniform(-1.0, 1.0, (n_fidelities, n_arms))
    if rng.random() < 0.5:
        shares = np.where(np.arange(n_arms) == 0, -1.0, 1.0) * np.ones((n_fidelities, 1))
    if condition.variant.endswith("order"):
        common = bounds * rng.uniform(-0.5, 0.5, n_fidelities)
        biases = common[:, None] + bounds[:, None] * shares / 2.0
    else:
        biases = bounds[:, None] * shares
    means = targets + biases
    deviations = np.full(means.shape, sigma)
    if condition.knowledge == "Student":
        deviations = rng.uniform(0.3, 1.0, means.shape)
    if condition.knowledge == "estimated":
        deviations = deviations * rng.uniform(0.3, 1.0, (n_fidelities, 1))
    ratio = rng.uniform(1.3, 4.0)
    costs = tuple((ratio ** np.arange(n_fidelities)).tolist())
    order = rng.permutation(n_arms)
    return Instance(
        means[:, order],
        deviations[:, order],
        values,
        costs,
        tuple(bounds.tolist()),
        epsilon,
        _MOST_PULLS_WHEN_HARD if hard else _MOST_PULLS,
    )
