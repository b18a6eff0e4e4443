"""Races at the edge of what is declared, and how often their answers are wrong."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from benchmarks.simulation.instances import BernoulliInstance, GaussianInstance
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.noise import Noise
from tests.core.racing.plays import play


@dataclass(frozen=True)
class Hard:
    """The last arm is the best by `gap`, and looks as bad below the target as the bounds allow.

    `gap`, `bound` and `epsilon` are in units of the noise.
    """

    kind: Kind = "max"
    gap: float = 1.8
    bound: float = 0.4
    epsilon: float = 0.0
    n_arms: int = 3
    noise: Noise | None = None
    bernoulli: bool = False
    most_pulls: int = 400

    def instance(self):
        """Three fidelities; biases of -bound and +bound, or of half that for order bounds."""
        unit = 0.5 if self.bernoulli else 2.0
        best = np.arange(self.n_arms) == self.n_arms - 1
        target = np.where(best, self.gap, 0.0)
        reach = self.bound if self.kind == "max" else self.bound / 2.0
        bias = np.where(best, -reach, reach)
        means = unit * np.array([target + bias, target + bias / 2.0, target])
        bounds = unit * np.array([self.bound, self.bound / 2.0, 0.0])
        if self.bernoulli:
            means += 0.5 - unit * self.gap / 2.0
            return BernoulliInstance(means, [1.0, 3.0, 9.0], xi=bounds, gamma=bounds)
        return GaussianInstance(
            means + 10.0, [1.0, 3.0, 9.0], xi=bounds, gamma=bounds, variance=unit**2
        )

    @property
    def tolerance(self):
        return self.epsilon * (0.5 if self.bernoulli else 2.0)


def wrong_and_certified(hard, make, races, seed):
    """Races whose certified arm is not within epsilon, or that lost the best; certified ones."""
    instance = hard.instance()
    problem = instance.problem(hard.kind, hard.noise)
    rng = np.random.default_rng(seed)
    wrong = certified = 0
    for _ in range(races):
        policy = make(problem)
        play(policy, lambda pull: instance.draw(rng, pull.arm, pull.fidelity), most=hard.most_pulls)
        answer = policy.recommend()
        certified += answer.certified
        gap = float(instance.means[-1].max() - instance.means[-1, answer.arm])
        wrong += (
            answer.certified and gap > hard.tolerance
        ) or instance.best_arm not in policy.active
    return wrong, certified


def most_allowed(races, delta):
    return float(binom.ppf(1.0 - 1e-4, races, delta))
