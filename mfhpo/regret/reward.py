"""What the policies that maximise reward share: no certificate, and answers."""

import abc

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import MixtureRadius, Radius, StudentMixtureRadius
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Noise, SubGaussian, declared_sigmas
from mfhpo.problem import Problem
from mfhpo.racing.race import RacingPolicy


class RewardPolicy(RacingPolicy):
    """A policy that maximises the reward while it runs, and certifies nothing.

    Parameters and errors are those of `RacingPolicy`. Without a budget it never finishes by itself.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        delta: float = 0.05,
        budget: float | None = None,
        max_failures: int = 3,
        seed: int = 0,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        self._declared_sigmas = declared_sigmas(problem.noise, problem.n_fidelities)
        radii = _radii(problem.noise, self._declared_sigmas, problem.n_fidelities)
        super().__init__(
            problem,
            delta=delta,
            budget=budget,
            radius=radii,
            max_failures=max_failures,
            seed=seed,
            pilot_arms=pilot_arms,
            pilot_pulls=pilot_pulls,
        )

    @property
    @abc.abstractmethod
    def _purpose(self) -> str:
        """What the policy is for, and why the answer is not certified."""

    @property
    def finished(self) -> bool:
        """Whether no arm is left, or the next pull would exceed the budget."""
        if not self._roster.active.any():
            return True
        left = self.budget - self._cost - self.held_cost
        if max(map(self._cost_of, range(self.problem.n_fidelities))) <= left:
            return False
        [pull] = self.ask()
        return self._cost_of(pull.fidelity) > left

    @property
    def counts(self) -> IntArray:
        """Number of values of every arm at every fidelity, shape (K, M)."""
        return self._evidence.counts.copy()

    @property
    def fidelity(self) -> int:
        """The fidelity of the next pull; 0 when no arm is left."""
        pulls = self.ask()
        return pulls[0].fidelity if pulls else 0

    def _needs_pilot(self) -> bool:
        return self.problem.costs is None or self._declared_sigmas is None

    def _end_pilot(self) -> None:
        if self._settle():
            self._plan()
            self._judge(self.problem.target)

    def _reason(self, arm: int | None) -> str:
        if arm is None:
            return "every arm failed and left the race"
        if self.finished:
            return f"the budget of {self.budget:g} is spent; {self._purpose}"
        if self._piloting:
            return f"the pilot is not complete; {self._purpose}"
        return self._purpose

    def _noise_in_words(self) -> str:
        if isinstance(self.problem.noise, Bounded):
            return "all values lie within the declared bounds"
        return super()._noise_in_words()

    def _assumptions(self) -> tuple[str, ...]:
        if isinstance(self.problem.noise, (Bounded, SubGaussian)):
            return super()._assumptions()
        choice = (
            "the choice of pulls takes the pooled standard deviation of each fidelity for sigma; "
            "no interval rests on that"
        )
        return (*super()._assumptions(), choice)

    def _sigmas(self) -> FloatArray:
        """Return noise scales, shape (M,): declared, or the pooled standard deviation."""
        return np.array([self._sigma(m) for m in range(self.problem.n_fidelities)])

    def _sigma(self, fidelity: int) -> float:
        if self._declared_sigmas is None:
            return self._evidence.noise_scale(fidelity)
        return self._declared_sigmas[fidelity]


def _radii(noise: Noise, sigmas: list[float] | None, n_fidelities: int) -> list[Radius] | None:
    """Return radii that hold whatever chooses the pulls, shape (M,); None for estimated noise."""
    if sigmas is not None:
        return [MixtureRadius(sigma) for sigma in sigmas]
    if isinstance(noise, EstimatedNoise):
        return None
    return [StudentMixtureRadius()] * n_fidelities
