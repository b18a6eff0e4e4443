"""What users declare of a race, in the terms of a problem: the same for every integration."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeAlias

from mfhpo._validation import check_numbers
from mfhpo.bias import Bias, Kind
from mfhpo.confidence import Radius
from mfhpo.noise import Bounded, EstimatedNoise, Gaussian, Noise, SubGaussian

__all__ = [
    "BiasLike",
    "SigmaLike",
    "as_bias",
    "as_noise",
    "mirrored_noise",
    "mirrored_radius",
]

BiasLike: TypeAlias = Bias | Sequence[float] | None
SigmaLike: TypeAlias = float | Sequence[float] | Noise | None


def mirrored_radius(radius: Radius | Sequence[Radius] | None) -> Any:
    """The same radius for values with the opposite sign."""
    if radius is None:
        return None
    if isinstance(radius, Sequence):
        return [mirrored_radius(part) for part in radius]
    mirrored = copy.copy(radius)
    # Widths depend on how far values are spread; only the place from which the first one is
    # counted has a sign.
    object.__setattr__(mirrored, "first_guess", -radius.first_guess)
    return mirrored


def mirrored_noise(noise: Noise) -> Noise:
    """The same noise for values with the opposite sign."""
    return Bounded(-noise.high, -noise.low) if isinstance(noise, Bounded) else noise


def as_bias(bias: BiasLike, kind: Kind = "max") -> Bias | None:
    """Bias bounds as a user gives them, as a `Bias`; None stays None.

    Parameters
    ----------
    bias
        A `Bias`, one number for each level (the last one 0), or None.
    kind
        How numbers are meant.
    """
    if bias is None or isinstance(bias, Bias):
        return bias
    bounds = check_numbers("bias", bias, "one number for each level, a mfhpo.Bias or None")
    return Bias.order(*bounds) if kind == "order" else Bias.max(*bounds)


def as_noise(sigma: SigmaLike) -> Noise:
    """The noise as a user gives it: a sub-Gaussian scale, one for each level, a `Noise` or None.

    Examples
    --------
    >>> as_noise(0.1), as_noise(None)
    (SubGaussian(sigma=0.1), EstimatedNoise())
    """
    if sigma is None:
        return EstimatedNoise()
    if isinstance(sigma, (SubGaussian, Gaussian, Bounded, EstimatedNoise)):
        return sigma
    if isinstance(sigma, Real) and not isinstance(sigma, bool):
        return SubGaussian(float(sigma))
    right = "a number, one for each level, a noise such as mfhpo.Gaussian() or None"
    return SubGaussian(check_numbers("sigma", sigma, right))
