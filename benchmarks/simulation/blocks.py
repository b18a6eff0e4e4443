"""Run best-arm policies on an instance fast: many pulls at once, as the tables need it."""

import math

import numpy as np

from benchmarks.simulation.instances import Instance
from benchmarks.simulation.lucb import play
from benchmarks.simulation.rounds import Rounds, plan_rounds, tell_rounds
from benchmarks.simulation.runner import RunResult, check_shape
from benchmarks.simulation.sums import tell_sum
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Observation
from mfhpo.racing.race import Race

# A block looks ahead by this share of the rounds that are done: arms that leave in the middle of
# a block have been drawn for nothing afterwards.
_LOOK_AHEAD = 0.4
_LOOK_AHEAD_AT_LEAST = 16


def run_rounds(
    policy: Race,
    instance: Instance,
    rng: np.random.Generator,
    *,
    resolution: float = 1e-3,
    block: int = 1 << 15,
    max_pulls: int | None = None,
) -> RunResult:
    """Run an elimination policy to its end, fast: by whole rounds, in blocks of rounds.

    The rule is checked after every round up to round ``1 / resolution``, and then at steps of
    ``resolution * t`` rounds. The radius holds at all rounds at once, so the rule stays valid; the
    race costs at most that share more.

    Parameters
    ----------
    policy
        A policy with declared bias, costs and noise (see `plan_rounds`).
    instance, rng
        What is pulled, and the source of the draws.
    resolution
        How often the rule is checked, in [0, 1); 0 checks after every round.
    block
        About how many values to draw at once; the default keeps them in a core's own cache.
    max_pulls
        Stop soon after that many pulls (a race between equals never ends by itself).
    """
    if not 0.0 <= resolution < 1.0:
        raise ValueError(f"resolution must lie in [0, 1), got {resolution!r}; try 1e-3.")
    if block < 1:
        raise ValueError(f"block must be at least 1, got {block}.")
    check_shape(policy, instance)
    while not policy.finished and (max_pulls is None or policy.pulls < max_pulls):
        plan = plan_rounds(policy)
        totals = _next_totals(plan, resolution, block)
        tell_rounds(
            policy,
            totals,
            instance.running_sums(rng, plan.arms, plan.fidelity, plan.done, plan.sums, totals),
        )
    return _result(policy)


def _next_totals(plan: Rounds, resolution: float, block: int) -> IntArray:
    """Rounds of the next block after which the rule is checked, shape (T,), T >= 1."""
    reach = plan.done + max(_LOOK_AHEAD_AT_LEAST, int(_LOOK_AHEAD * plan.done))
    if plan.until is not None:
        reach = min(reach, plan.until)
    most = max(1, block // len(plan.arms))
    if resolution * reach < 2.0:  # every step is one round
        return np.arange(plan.done + 1, min(reach, plan.done + most) + 1)
    totals: list[int] = []
    last = plan.done
    while last < reach and len(totals) < most:
        last = min(reach, last + max(1, int(resolution * last)))
        totals.append(last)
    return np.array(totals, dtype=np.int64)


def run_repeats(
    policy: Race,
    instance: Instance,
    rng: np.random.Generator,
    *,
    resolution: float = 1e-2,
    max_pulls: int | None = None,
) -> RunResult:
    """Run any best-arm policy to its end, fast: what it asks for is pulled several times at once.

    Answers stay as sure (see `tell_sum`). A pull is repeated a share `resolution` of
    the mean number of pulls of the remaining arms, and not for more than that share of what was
    paid so far. The policy's budget is kept. 0 is as `run`; for the rest see `run_rounds`.
    """
    if not 0.0 <= resolution < 1.0:
        raise ValueError(f"resolution must lie in [0, 1), got {resolution!r}; try 1e-2.")
    check_shape(policy, instance)
    while not policy.finished and (max_pulls is None or policy.pulls < max_pulls):
        [pull] = policy.ask()
        done, mean, _ = policy.summary(pull.arm, pull.fidelity)
        cost = float(instance.costs[pull.fidelity])
        per_arm = policy.pulls / max(1, len(policy.active))
        wanted = resolution * min(per_arm, policy.cost / cost)
        most = (policy.budget - policy.cost) / cost
        if max_pulls is not None:
            most = min(most, max_pulls - policy.pulls)
        count = max(1, int(min(wanted, most)))
        arm, so_far = np.array([pull.arm]), np.array([done * mean])
        totals = np.array([done + count])
        sums = instance.running_sums(rng, arm, pull.fidelity, done, so_far, totals)
        tell_sum(policy, pull, count, float(sums[0, 0] - so_far[0]))
    return _result(policy)


def run_lucb(
    policy: Race, instance: Instance, rng: np.random.Generator, max_pulls: int | None = None
) -> RunResult:
    """Run LUCB to its end, fast; the same rule as pull by pull."""

    def running_sums(arm: int, fidelity: int, start: int, total: float, count: int) -> FloatArray:
        totals = np.arange(start + 1, start + count + 1)
        sums = np.array([total])
        drawn = instance.running_sums(rng, np.array([arm]), fidelity, start, sums, totals)
        return np.asarray(drawn[0])

    check_shape(policy, instance)
    most = math.inf if max_pulls is None else max_pulls
    while not policy.finished and policy.pulls < most:
        before = policy.pulls
        play(policy, running_sums, max_pulls)
        if policy.pulls == before:  # decided, but the winner is still being measured
            [pull] = policy.ask()
            policy.tell(pull, Observation(instance.draw(rng, pull.arm, pull.fidelity)))
    return _result(policy)


def _result(policy: Race) -> RunResult:
    recommendation = policy.recommend()
    return RunResult(
        arm=recommendation.arm,
        cost=policy.cost,
        pulls=policy.pulls,
        elapsed=policy.cost,
        certified=recommendation.certified,
    )
