"""Run LUCB on an instance, fast."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mfhpo.identification.lucb import MFLUCB
from mfhpo.problem import Observation
from mfhpo.simulation.instances import Instance
from mfhpo.simulation.runner import RunResult, check_shape

__all__ = ["run_lucb"]


def run_lucb(
    policy: MFLUCB, instance: Instance, rng: np.random.Generator, max_pulls: int | None = None
) -> RunResult:
    """Run a race to its end by `MFLUCB.play`; the same rule as pull by pull.

    Parameters
    ----------
    policy
        A policy with declared bias, costs and noise.
    instance
        What is pulled.
    rng
        Source of the draws.
    max_pulls
        Stop after so many pulls (a race between equals never ends by itself).

    Returns
    -------
    RunResult
        Its virtual time is that of one worker.

    Raises
    ------
    ValueError
        If the policy was made for another shape, or cannot be played (see `MFLUCB.play`).

    Examples
    --------
    >>> from mfhpo.simulation.instances import GaussianInstance
    >>> instance = GaussianInstance([[0.0, 0.4], [0.0, 0.5]], costs=[1.0, 5.0], variance=0.01)
    >>> result = run_lucb(MFLUCB(instance.problem()), instance, np.random.default_rng(0))
    >>> result.arm, result.certified
    (1, True)
    """

    def running_sums(
        arm: int, fidelity: int, start: int, total: float, count: int
    ) -> npt.NDArray[np.float64]:
        totals = np.arange(start + 1, start + count + 1)
        sums = np.array([total])
        drawn = instance.running_sums(rng, np.array([arm]), fidelity, start, sums, totals)
        return np.asarray(drawn[0])

    check_shape(policy, instance)
    most = math.inf if max_pulls is None else max_pulls
    while not policy.finished and policy.pulls < most:
        before = policy.pulls
        policy.play(running_sums, max_pulls)
        if policy.pulls == before:  # decided, but the winner is still being measured
            [pull] = policy.ask()
            policy.tell(pull, Observation(instance.draw(rng, pull.arm, pull.fidelity)))
    recommendation = policy.recommend()
    return RunResult(
        arm=recommendation.arm,
        cost=policy.cost,
        pulls=policy.pulls,
        elapsed=policy.cost,
        certified=recommendation.certified,
    )
