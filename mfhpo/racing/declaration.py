"""What users declare of a race, in the terms of a problem: the same for every integration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

from mfhpo._validation import check_name, check_numbers, unwrapped
from mfhpo.knowledge.bias import Bias, Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, Noise, SubGaussian
from mfhpo.problem import Problem

BiasLike: TypeAlias = Bias | Sequence[float] | None
SigmaLike: TypeAlias = float | Sequence[float] | Noise | None


@dataclass(frozen=True)
class Declaration:
    """What is declared of a fidelity, its bias and the noise, in the direction of the objective."""

    fidelity: Fidelity
    bias: Bias | None
    noise: Noise

    @classmethod
    def of(
        cls, fidelity: str | Fidelity, sigma: SigmaLike, bias: BiasLike, kind: Kind = "max"
    ) -> Declaration:
        """Take what a user gives; the bias may be declared with the fidelity instead."""
        fidelity = as_fidelity(fidelity)
        if bias is not None and fidelity.bias is not None:
            raise ValueError(
                f"bias={bias!r} and fidelity.bias={fidelity.bias!r} are both given; leave one out."
            )
        bounds = fidelity.bias if bias is None else bias
        if bounds is not None and not isinstance(bounds, Bias):
            right = "one number for each level, a mfhpo.Bias or None"
            bounds = Bias(kind, tuple(check_numbers("bias", bounds, right)))
        return cls(fidelity, bounds, as_noise(sigma))

    def problem(self, n_arms: int, levels: Sequence[Any], sign: float) -> Problem:
        """Return the problem of a race in values that are maximised; `sign` is -1 to minimise."""
        costs, noise = self.fidelity.costs_of(levels), mirrored_noise(self.noise, sign)
        return Problem(n_arms, costs, self.bias, noise, len(levels))

    def rehearse(
        self, make: Callable[..., object], options: Mapping[str, Any], levels: Sequence[Any]
    ) -> None:
        """Make a policy with a user's options before the race, so that wrong ones raise.

        `levels` is empty while they are not known.
        """
        if levels:
            problem = self.problem(2, levels, 1.0)
        else:  # as many levels as there are bounds
            declared = self.bias.bounds if self.bias else getattr(self.noise, "sigma", 1.0)
            number = len(declared) if isinstance(declared, Sequence) else 1
            problem = Problem(2, None, self.bias, self.noise, number)
        make(problem, **{**options, "seed": 0})

    def objection_to(self, budget: float | None, levels: Sequence[Any]) -> str | None:
        """Say what is wrong with a budget that pays for nothing, if the levels tell; else None."""
        costs = self.fidelity.costs_of(levels) if levels else None
        if budget is None or costs is None or budget >= costs[0]:
            return None
        return (
            f"budget={budget!r} is less than the {costs[0]:g} that one evaluation costs at the "
            f"cheapest level, {self.fidelity.name}={levels[0]!r}: nothing will be evaluated. Give "
            f"a larger budget."
        )


def mirrored_noise(noise: Noise, sign: float) -> Noise:
    """Return the noise of values that are maximised; `sign` is -1 to minimise."""
    if sign < 0.0 and isinstance(noise, Bounded):
        return Bounded(-noise.high, -noise.low)
    return noise


def as_fidelity(fidelity: str | Fidelity) -> Fidelity:
    """Return a fidelity, given its name alone or a `Fidelity`."""
    if isinstance(fidelity, Fidelity):
        return fidelity
    return Fidelity(check_name("fidelity", fidelity, "a name or a mfhpo.Fidelity"))


def as_noise(sigma: SigmaLike) -> Noise:
    """Return the noise, given a sub-Gaussian scale, one for each level, a `Noise` or None."""
    if sigma is None:
        return EstimatedNoise()
    if isinstance(sigma, (SubGaussian, Gaussian, Bounded, EstimatedNoise)):
        return sigma
    sigma = unwrapped(sigma)
    if not isinstance(sigma, Real):
        right = "a number, one for each level, a noise such as mfhpo.Gaussian() or None"
        sigma = check_numbers("sigma", sigma, right)
    return SubGaussian(sigma)
