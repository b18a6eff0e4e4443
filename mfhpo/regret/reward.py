"""The parts that rules for reward share: the scale of the noise, radii, and words."""

from collections.abc import Callable
from dataclasses import replace

from mfhpo.knowledge.confidence import MixtureRadius, Radius, StudentMixtureRadius
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian, declared_sigmas
from mfhpo.problem import Problem, Recommendation
from mfhpo.racing.rule import Known


def scale_of(problem: Problem) -> Callable[[Known, int], float]:
    """Return what gives the noise's scale at a fidelity: declared, or as the values spread."""
    declared = declared_sigmas(problem.noise, problem.n_fidelities)
    if declared is None:
        return lambda known, fidelity: known.evidence.noise.scale(fidelity)
    return lambda known, fidelity: declared[fidelity]


def needs_pilot(problem: Problem) -> bool:
    """Tell whether costs or the scale of the noise have to be found out."""
    is_unknown = declared_sigmas(problem.noise, problem.n_fidelities) is None
    return problem.costs is None or is_unknown


def radii(problem: Problem) -> list[Radius] | None:
    """Return radii that hold whatever chooses the pulls, shape (M,); None for estimated noise."""
    declared = declared_sigmas(problem.noise, problem.n_fidelities)
    if declared is not None:
        return [MixtureRadius(sigma) for sigma in declared]
    if isinstance(problem.noise, EstimatedNoise):
        return None
    return [StudentMixtureRadius()] * problem.n_fidelities


def words(known: Known, usual: Recommendation) -> Recommendation:
    """Say what bounds rest on, and that the choice of pulls estimates the noise."""
    noise = known.problem.noise
    if isinstance(noise, Bounded):
        independent, _, *rest = usual.conditions
        within = "all values lie within the declared bounds"
        return replace(usual, conditions=(independent, within, *rest))
    if isinstance(noise, SubGaussian):
        return usual
    choice = (
        "the choice of pulls takes the pooled standard deviation of each fidelity for sigma; no "
        "interval rests on that"
    )
    return replace(usual, assumptions=(*usual.assumptions, choice))
