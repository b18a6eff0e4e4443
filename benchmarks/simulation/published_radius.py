"""The confidence radius of Wang et al. (2023), which knows the time of the race."""

import numpy as np

from benchmarks.simulation.lucb_loop import growth
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.noise import declared_sigmas
from mfhpo.problem import Problem


class PublishedRadius(Radius):
    """The radius of Wang et al. (2023), which grows with the time of the race.

        B(n, t) = 2 sigma sqrt(log(4 t^4 F / level) / n)

    For values within [0, 1] (sigma = 1/2), level = delta / (K M) and F = 1 that is the paper's
    sqrt(log(L t^4 / delta) / n) with L = 4 K M. Where only the target is pulled, level is delta /
    K, and F = M. It holds at all times, for pulls in any order: by Hoeffding's inequality and a
    union bound over n and t.

    Attributes
    ----------
    time
        The time t, that the policy moves on; at least 1.
    """

    assumption = "the noise is sub-Gaussian with the declared sigma"

    def __init__(self, sigma: float, n_fidelities: int = 1) -> None:
        self.sigma = sigma
        self.n_fidelities = n_fidelities
        self.time = 1.0

    def at_time_0(self, n: FloatArray | IntArray) -> FloatArray:
        """The factor of the radius that depends on the count; the other one is `growth`."""
        return np.asarray(2.0 * self.sigma / np.sqrt(n))

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        return self.at_time_0(n) * growth(level / self.n_fidelities, self.time)


def published_radii(problem: Problem, target_only: bool) -> list[PublishedRadius]:
    """Give the published radius of every fidelity, or raise where no noise scale is declared."""
    n_fidelities = problem.n_fidelities
    sigmas = declared_sigmas(problem.noise, n_fidelities)
    if sigmas is None:
        raise ValueError(
            f"schedule needs a declared noise scale, got noise={problem.noise!r}; declare "
            f"SubGaussian or Bounded."
        )
    return [PublishedRadius(sigma, n_fidelities if target_only else 1) for sigma in sigmas]
