"""What is known of the fidelities' bias: declared, estimated from a pilot, and audited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import check_nonnegative
from mfhpo.knowledge.arrays import FloatArray

Kind = Literal["max", "order"]


class BiasContradictedWarning(UserWarning):
    """What was observed contradicts a bias bound; the bound was widened."""


@dataclass(frozen=True)
class Bias:
    """Bounds on how far each fidelity's means are from the target's.

    Parameters
    ----------
    kind
        "max": bound m is xi_m, with ``|mu_im - mu_iM| <= xi_m`` for every arm i.
        "order": bound m is gamma_m, the largest difference between two arms' biases,
        ``|(mu_im - mu_iM) - (mu_jm - mu_jM)| <= gamma_m``.
    bounds
        One bound per fidelity, shape (M,), in the unit of the values; the last one is 0.
    source
        "declared", "estimated" (from a pilot), or "widened" (an audit contradicted it).

    Raises
    ------
    ValueError
        If a bound is negative, or the last one is not 0.

    Examples
    --------
    >>> Bias.max(0.3, 0.1, 0.0).margins
    (0.6, 0.2, 0.0)
    >>> Bias.underestimating(0.3, 0.1, 0.0).margins
    (0.3, 0.1, 0.0)
    """

    kind: Kind
    bounds: tuple[float, ...]
    source: Literal["declared", "estimated", "widened"] = "declared"

    def __post_init__(self) -> None:
        if self.kind not in ("max", "order"):
            raise ValueError(f"kind must be 'max' or 'order', got {self.kind!r}.")
        bounds = tuple(float(bound) for bound in self.bounds)
        if not bounds:
            raise ValueError("bias must have one bound per fidelity, got none.")
        for position, bound in enumerate(bounds):
            check_nonnegative(f"bias[{position}]", bound)
        if bounds[-1] != 0.0:
            raise ValueError(
                f"bias must end with 0, the target's bias, got {list(bounds)}; "
                f"append 0.0 if the target was left out."
            )
        object.__setattr__(self, "bounds", bounds)

    @classmethod
    def max(cls, *bounds: float) -> Bias:
        """Bounds xi_m on every arm's own bias (Poiani et al. 2022, Section 2)."""
        return cls("max", bounds)

    @classmethod
    def order(cls, *bounds: float) -> Bias:
        """Bounds gamma_m on the difference of two arms' biases (Poiani et al. 2022, Section 5)."""
        return cls("order", bounds)

    @classmethod
    def underestimating(cls, *bounds: float) -> Bias:
        """Bounds for fidelities that never overestimate, such as training for fewer epochs.

        Every arm's bias lies in [-xi_m, 0], so that gamma_m = xi_m (Poiani et al. 2022, Section 5).
        """
        return cls("order", bounds)

    @property
    def margins(self) -> tuple[float, ...]:
        """How far apart two arms with equal targets can be at each fidelity: 2 xi_m or gamma_m."""
        factor = 2.0 if self.kind == "max" else 1.0
        return tuple(factor * bound for bound in self.bounds)

    def widened(self, fidelity: int, bound: float) -> Bias:
        """A copy whose bound at `fidelity` is at least `bound`."""
        bounds = list(self.bounds)
        bounds[fidelity] = max(bounds[fidelity], bound)
        return Bias(self.kind, tuple(bounds), "widened")


def check_variant(variant: Kind | None, declared: Bias | None) -> None:
    """Raise ValueError if a variant is no kind of bounds, or not that of the declared ones."""
    if variant not in (None, "max", "order"):
        raise ValueError(f"variant must be 'max' or 'order', got {variant!r}.")
    if declared is not None and variant not in (None, declared.kind):
        raise ValueError(
            f"variant={variant!r} but the declared bounds are of kind {declared.kind!r}; leave "
            f"variant out, or declare bounds of kind {variant!r}, as by Bias.{variant}(...)."
        )


def estimate_bias(differences: FloatArray, kind: Kind, n_arms: int, level: float) -> Bias:
    """Bound the bias of all arms from a pilot that saw some of them at every fidelity.

    `differences` are the pilot's means at each fidelity minus those at the target, shape (P, M), P
    >= 2. Biases of different arms at one fidelity are taken as exchangeable normal draws. The bound
    is a prediction interval for all `n_arms` at once (Student's t with a union bound), so it covers
    arms that the pilot did not see; the bound of one fidelity may fail with probability `level`.
    The noise of the pilot's means widens it, never narrows it.
    """
    pilot_arms = differences.shape[0]
    quantile = float(stdtrit(pilot_arms - 1, 1.0 - level / (2.0 * n_arms)))
    centre = differences.mean(axis=0)
    reach = quantile * differences.std(axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / pilot_arms)
    bounds = np.abs(centre) + reach if kind == "max" else 2.0 * reach
    bounds[-1] = 0.0
    return Bias(kind, tuple(bounds.tolist()), source="estimated")


@dataclass(frozen=True)
class Contradiction:
    """Observations that no means within the bias bounds can explain, radii included.

    The bound at `fidelity`, the cheaper one, is in doubt by comparison with the `reference`. The
    arm (max bounds) or two arms (order bounds) differ by what was `observed`, give or take the sum
    of their radii; `widened_to` is the largest bound that this allows, radii included.
    """

    fidelity: int
    reference: int
    arms: tuple[int, ...]
    observed: float
    uncertainty: float
    allowed: float
    widened_to: float

    def describe(self, arm: Callable[[int], str], fidelity: Callable[[int], str]) -> str:
        """What was seen, and what follows, given how arms and fidelities are named."""
        arms = " and ".join(map(arm, self.arms))
        cheap = fidelity(self.fidelity)
        return (
            f"{arms}: the values at {cheap} and {fidelity(self.reference)} differ by "
            f"{self.observed:.4g} ± {self.uncertainty:.4g}, but the bias bounds allow at most "
            f"{self.allowed:.4g}; the bound at {cheap} is widened to {self.widened_to:.4g} and "
            f"the arms it had eliminated are put back"
        )


def find_contradiction(
    bias: Bias, fidelity: int, means: FloatArray, radii: FloatArray, arms: Sequence[int]
) -> Contradiction | None:
    """Find the largest contradiction of the bias bounds at `fidelity` beyond the radii, if any.

    While all confidence intervals and all bounds hold, nothing is ever found. Means and radii have
    the shape (n, M), a row for each of `arms`; an infinite radius marks what was not seen.
    """
    worst: Contradiction | None = None
    largest_excess = 0.0
    for other in range(len(bias.bounds)):
        uncertainty = radii[:, fidelity] + radii[:, other]
        seen = np.flatnonzero(np.isfinite(uncertainty))
        if other == fidelity or not seen.size:
            continue
        uncertainty = uncertainty[seen]
        difference = means[seen, fidelity] - means[seen, other]
        if bias.kind == "max":
            first = int(np.argmax(np.abs(difference) - uncertainty))
            involved: tuple[int, ...] = (first,)
            observed = abs(float(difference[first]))
            total = float(uncertainty[first])
        else:
            high = int(np.argmax(difference - uncertainty))
            low = int(np.argmin(difference + uncertainty))
            involved = (high, low)
            observed = float(difference[high] - difference[low])
            total = float(uncertainty[high] + uncertainty[low])
        allowed = bias.bounds[fidelity] + bias.bounds[other]
        # What rounding alone can make of equal numbers is no contradiction.
        rounding = 1e-12 * (allowed + float(np.abs(means[seen][:, [fidelity, other]]).max()))
        excess = observed - total - allowed - rounding
        if excess > largest_excess:
            largest_excess = excess
            cheap, reference = min(fidelity, other), max(fidelity, other)
            worst = Contradiction(
                fidelity=cheap,
                reference=reference,
                arms=tuple(int(arms[seen[row]]) for row in involved),
                observed=observed,
                uncertainty=total,
                allowed=allowed,
                # A hair more, so that rounding cannot find the same contradiction again.
                widened_to=(observed + total) * (1.0 + 1e-9) - bias.bounds[reference],
            )
    return worst
