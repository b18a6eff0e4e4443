"""Run a policy on an instance, one pull at a time on a virtual clock."""

import heapq
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.instances import Instance
from mfhpo._validation import check_nonnegative
from mfhpo.problem import Observation, Policy, Pull


@dataclass(frozen=True)
class RunResult:
    """The end of a simulated race."""

    arm: int | None  # the recommended one, None when every arm has failed
    cost: float  # what was paid
    pulls: int  # number of evaluations that were told
    elapsed: float  # virtual seconds, a cost of 1 being 1 second of one worker
    certified: bool  # whether the policy certified its answer


def run(
    policy: Policy,
    instance: Instance,
    rng: np.random.Generator,
    *,
    workers: int = 1,
    max_pulls: int | None = None,
    failure_rate: float = 0.0,
) -> RunResult:
    """Run any policy through ask and tell, on a virtual clock.

    Up to `workers` evaluations are under way at any time. Each takes its cost in virtual seconds
    and is told when it is completed, so that they are told out of order. A pull with a limit below
    its cost is censored there. Evaluations under way at the end are stopped; the seconds they took
    are in the cost.

    Parameters
    ----------
    policy, instance, rng
        Any policy for the instance's arms and fidelities, and the source of the draws.
    workers
        Number of evaluations under way at once.
    max_pulls
        End the race after so many evaluations.
    failure_rate
        Probability with which an evaluation crashes: it costs as much and gives no value.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}.")
    if not 0.0 <= check_nonnegative("failure_rate", failure_rate) < 1.0:
        raise ValueError(f"failure_rate must lie in [0, 1), got {failure_rate!r}.")
    check_shape(policy, instance)
    clock, paid, told, started = 0.0, 0.0, 0, 0
    # (when it ends, a number that breaks ties, how long it takes, pull, observation)
    under_way: list[tuple[float, int, float, Pull, Observation]] = []
    while not policy.finished and (max_pulls is None or told < max_pulls):
        free = workers - len(under_way)
        if max_pulls is not None:
            free = min(free, max_pulls - told - len(under_way))
        if free > 0:
            pending = [entry[3] for entry in under_way]
            for pull in policy.ask(free, pending):
                observation, seconds = _evaluate(instance, rng, pull, failure_rate)
                heapq.heappush(under_way, (clock + seconds, started, seconds, pull, observation))
                started += 1
        if not under_way:
            break
        clock, _, seconds, pull, observation = heapq.heappop(under_way)
        paid += seconds
        told += 1
        policy.tell(pull, observation)
    paid += sum(clock - (end - seconds) for end, _, seconds, _, _ in under_way)
    recommendation = policy.recommend()
    return RunResult(
        arm=recommendation.arm,
        cost=paid,
        pulls=told,
        elapsed=clock,
        certified=recommendation.certified,
    )


def _evaluate(
    instance: Instance, rng: np.random.Generator, pull: Pull, failure_rate: float
) -> tuple[Observation, float]:
    """Return what a pull will give, and how many virtual seconds it takes."""
    cost = float(instance.costs[pull.fidelity])
    if pull.limit is not None and pull.limit < cost:
        return Observation(None, cost=pull.limit, censored_at=pull.limit), pull.limit
    if failure_rate > 0.0 and rng.random() < failure_rate:
        return Observation(None, cost=cost), cost
    return Observation(instance.draw(rng, pull.arm, pull.fidelity), cost=cost), cost


def check_shape(policy: Policy, instance: Instance) -> None:
    """Raise ValueError where a policy names its problem and the instance is another one."""
    problem = getattr(policy, "problem", None)
    if problem is None:
        return
    expected = (problem.n_arms, problem.n_fidelities)
    if expected != (instance.n_arms, instance.n_fidelities):
        raise ValueError(
            f"the policy's problem has {expected[0]} arms and {expected[1]} fidelities, but the "
            f"instance has {instance.n_arms} and {instance.n_fidelities}; make the policy from "
            f"instance.problem()."
        )
