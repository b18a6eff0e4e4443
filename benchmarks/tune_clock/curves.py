"""What training gives, and how long it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Step:
    """What one training iteration gives.

    Parameters
    ----------
    value
        The metric that is reported; NaN if training diverged.
    seconds
        Virtual seconds that it takes, at least 0; infinite for one that never ends.
    failed
        Whether it crashes after those seconds, so that nothing is reported.
    """

    value: float
    seconds: float
    failed: bool = False


class Curves(Protocol):
    """What training gives, and how long it takes."""

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        """Train for one iteration, or return None if the training function has returned already.

        `iteration` counts from 1, and follows the last one that was saved in a checkpoint.
        """


class ReplayedCurves:
    """Learning curves from a table, one per arm, with fresh noise for every replicate.

    Parameters
    ----------
    values
        Mean of the metric after each iteration, shape (arms, iterations).
    seconds
        Duration of each iteration, a number or an array that broadcasts to the shape of `values`.
    sigma
        Standard deviation of the normal noise around the means.
    seed
        The noise depends on it, the arm, the replicate and the iteration alone, so that all
        schedulers see the same.
    arm_key, seed_key
        Names in the configuration of the arm's index and of the replicate's number, 0 if missing.

    Examples
    --------
    >>> curves = ReplayedCurves([[0.1, 0.2], [0.3, 0.4]], seconds=5.0)
    >>> curves.step({"arm": 1, "seed": 0}, 2)
    Step(value=0.4, seconds=5.0, failed=False)
    """

    def __init__(
        self,
        values: npt.ArrayLike,
        seconds: npt.ArrayLike = 1.0,
        *,
        sigma: float = 0.0,
        seed: int = 0,
        arm_key: str = "arm",
        seed_key: str = "seed",
    ) -> None:
        self.values: npt.NDArray[np.float64] = np.array(values, dtype=np.float64)
        self.seconds: npt.NDArray[np.float64] = np.broadcast_to(
            np.asarray(seconds, dtype=np.float64), self.values.shape
        )
        self.sigma = sigma
        self.seed = seed
        self.arm_key = arm_key
        self.seed_key = seed_key

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        """Train for one iteration (see `Curves.step`)."""
        if iteration > self.values.shape[1]:
            return None
        arm, replicate = int(config[self.arm_key]), int(config.get(self.seed_key, 0))
        value = float(self.values[arm, iteration - 1])
        if self.sigma > 0.0:
            rng = np.random.default_rng((self.seed, arm, replicate))
            value += self.sigma * float(rng.standard_normal(iteration)[-1])
        return Step(value, float(self.seconds[arm, iteration - 1]))
