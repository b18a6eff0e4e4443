"""What a race knows before its first pull: what is declared, and what a pilot must find out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.parts.pilot import Pilot
from mfhpo.racing.roster import Roster
from mfhpo.racing.rule import Costs, Known, Needs

# Of delta, the share that pays for bias bounds that are estimated by the pilot.
_BIAS_SHARE = 0.5


def known_at_first(
    problem: Problem,
    needs: Needs,
    *,
    budget: float | None,
    steers: bool,
    epsilon: float | None,
    delta: float,
    audit: bool | str,
    measure: int,
    max_failures: int,
    radius: Radius | Sequence[Radius] | None,
    seed: int,
) -> Known:
    """Return what is known at first; for the arguments see `Race`.

    `steers` says whether cheap fidelities are no evidence, for lack of bias bounds.
    """
    if epsilon is None and isinstance(problem.noise, SubGaussian):
        epsilon = problem.noise.at(problem.target, problem.n_fidelities)
    target_only = needs.target_only or steers
    if target_only:
        problem = replace(problem, bias=Bias.order(*[0.0] * problem.n_fidelities))
    compared = (problem.target,) if target_only else tuple(range(problem.n_fidelities))
    pilots = needs.pilot
    if pilots is None:
        is_declared = problem.bias is not None and problem.costs is not None
        pilots = epsilon is None or not (target_only or is_declared)
    estimates = needs.estimates_bias
    if estimates is None:
        estimates = problem.bias is None
    # Bounds that are estimated may fail as well, and get their share of delta.
    bias_level = _BIAS_SHARE * delta if estimates else 0.0
    evidence = Evidence(
        problem,
        delta - bias_level,
        compared,
        radius,
        variances=needs.variances,
        audit=audit is True,
        expects_spread=needs.intake is None,
    )
    return Known(
        problem=problem,
        needs=needs,
        spending=Costs(problem, budget),
        delta=delta,
        seed=seed,
        target_only=target_only,
        compared=compared,
        evidence=evidence,
        roster=Roster(problem.n_arms),
        bias=problem.bias,
        bias_level=bias_level,
        found_epsilon=epsilon,
        piloting=pilots,
        measure=measure,
        # A single arm is compared with nothing, whatever the noise.
        waits=audit is True and problem.n_arms > 1 and needs.waits,
        waits_for_repeats=True,
        max_failures=max_failures,
        failures=np.zeros((problem.n_arms, problem.n_fidelities), dtype=np.int64),
    )


def pilot_of(known: Known, n_arms: int, n_pulls: int) -> Pilot:
    """Return the pilot of so many arms with so many pulls at each fidelity."""
    order = np.random.default_rng(known.seed).permutation(known.problem.n_arms)
    return Pilot(tuple(order.tolist()), n_arms, n_pulls, known.needs.pilot_at or known.compared)
