"""What is known about the fidelities' bias: declared, estimated from a pilot, and audited."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtr, stdtrit

from mfhpo._validation import check_choice, check_nonnegative, check_sequence
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import MixtureRadius, pulls_until

Kind = Literal["max", "order"]

# Probability with which bounds that hold are ever found to be too small, too large a difference in
# either direction counted; a bound that holds with equality can only be exceeded in one.
_AUDIT_LEVEL = 0.05

_UNIT_RADIUS = MixtureRadius(1.0)

# Bounds are to be found too small where a bias is half as large again. That succeeds with a
# probability of about 80 % once this many uncertainties are no more than that half.
_EXCESS = 0.5
_UNCERTAINTIES = 1.5


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

    Examples
    --------
    >>> Bias.max(0.3, 0.1, 0.0).margins
    (0.6, 0.2, 0.0)
    >>> Bias.order(0.3, 0.1, 0.0).margins
    (0.3, 0.1, 0.0)
    """

    kind: Kind
    bounds: tuple[float, ...]
    source: Literal["declared", "estimated", "widened"] = "declared"

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(Kind))
        check_choice("source", self.source, ("declared", "estimated", "widened"))
        bounds = self.bounds
        if self.source == "declared":
            listed = check_sequence("bias", bounds, "one number for each fidelity")
            bounds = tuple(check_nonnegative(f"bias[{m}]", one) for m, one in enumerate(listed))
        if not bounds:
            raise ValueError("bias must have one bound per fidelity, got none.")
        if bounds[-1] != 0.0:
            raise ValueError(
                f"bias must end with 0, the target's bias, got {list(bounds)}; "
                f"append 0.0 if the target was left out."
            )
        object.__setattr__(self, "bounds", bounds)

    @classmethod
    def max(cls, *bounds: float) -> Bias:
        """Return bounds xi_m on every arm's own bias (Poiani et al. 2022, Section 2)."""
        return cls("max", bounds)

    @classmethod
    def order(cls, *bounds: float) -> Bias:
        """Return bounds gamma_m on the difference of two biases (Poiani et al. 2022, Section 5).

        Biases in [-xi_m, 0], such as those of fewer epochs, have gamma_m = xi_m.
        """
        return cls("order", bounds)

    @property
    def margins(self) -> tuple[float, ...]:
        """How far apart two arms with equal targets can be at each fidelity: 2 xi_m or gamma_m."""
        factor = 2.0 if self.kind == "max" else 1.0
        return tuple(factor * bound for bound in self.bounds)

    def widened(self, fidelity: int, bound: float) -> Bias:
        """Return a copy with a larger bound at `fidelity`; the others grow by the same factor."""
        declared = self.bounds[fidelity]
        factor = max(1.0, bound / declared) if declared > 0.0 else 1.0
        bounds = [each * factor for each in self.bounds]
        bounds[fidelity] = max(declared, bound)
        return replace(self, bounds=tuple(bounds), source="widened")


def check_variant(variant: Kind | None, declared: Bias | None) -> None:
    """Raise if a variant is no kind of bounds, or not that of the declared ones."""
    check_choice("variant", variant, (None, *get_args(Kind)))
    if declared is not None and variant not in (None, declared.kind):
        raise ValueError(
            f"variant={variant!r} but the declared bounds are of kind {declared.kind!r}; leave "
            f"variant out, or declare bounds of kind {variant!r}, as by Bias.{variant}(...)."
        )


def estimate_bias(differences: FloatArray, kind: Kind, n_arms: int, level: float) -> Bias:
    """Bound the bias of all arms from a pilot that saw some of them at every fidelity.

    `differences` are the pilot's means at each fidelity minus those at the target, shape (P, M), P
    >= 2. Biases of different arms at one fidelity are taken as exchangeable normal draws. The bound
    is a prediction interval for all `n_arms` at once (Student's t with a union bound); that of one
    fidelity may fail with probability `level`.
    """
    pilot_arms = len(differences)
    quantile = float(stdtrit(pilot_arms - 1, 1.0 - level / (2.0 * n_arms)))
    reach = quantile * differences.std(axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / pilot_arms)
    bounds = np.abs(differences.mean(axis=0)) + reach if kind == "max" else 2.0 * reach
    bounds[-1] = 0.0
    return Bias(kind, tuple(bounds.tolist()), source="estimated")


@dataclass(frozen=True)
class Contradiction:
    """Observations that no means within the bias bounds can explain."""

    fidelity: int  # the cheaper one, whose bound is in doubt
    reference: int  # the other one
    arms: tuple[int, ...]  # one (max bounds) or two (order bounds)
    observed: float  # by how much they differ, give or take the uncertainty
    uncertainty: float
    allowed: float
    widened_to: float  # the largest bound that the observations allow

    def describe(self, arm: Callable[[int], str], fidelity: Callable[[int], str]) -> str:
        """Say what was seen and what follows, given names of arms and fidelities."""
        arms = " and ".join(map(arm, self.arms))
        cheap = fidelity(self.fidelity)
        return (
            f"{arms}: the values at {cheap} and {fidelity(self.reference)} differ by "
            f"{self.observed:.4g} ± {self.uncertainty:.4g}, but the bias bounds allow at most "
            f"{self.allowed:.4g}; the bound at {cheap} is widened to {self.widened_to:.4g} and "
            f"the arms it had eliminated are put back"
        )


class BiasAudit:
    """Compares the same arms at two fidelities with the bias bounds.

    For max bounds, the difference of an arm's means at two fidelities is compared with the sum of
    their bounds; for order bounds, how far two arms' differences are apart. The uncertainty is that
    of `MixtureRadius` for the difference. For estimated variances it uses Student's quantile with
    the smallest degrees of freedom of the means, which is conservative (Mickey and Brown 1966). The
    level .05 is shared by all arms (or ordered pairs of arms) and pairs of fidelities. It holds for
    numbers of values that do not depend on the values, and so only approximately in a race.
    """

    def __init__(self, kind: Kind, n_arms: int, n_fidelities: int) -> None:
        n_pairs = n_fidelities * (n_fidelities - 1) // 2
        n_compared = n_arms if kind == "max" else n_arms * (n_arms - 1)
        self._level = _AUDIT_LEVEL / max(1, n_compared * n_pairs)

    def _uncertainty(
        self, variances: FloatArray, counts: IntArray, degrees: FloatArray
    ) -> FloatArray:
        """Return the uncertainty of sums and differences of C means, given their values (n, C)."""
        scales = np.sqrt(variances.sum(axis=1))
        noisy = (scales > 0.0) & np.isfinite(scales)
        parts = variances[noisy] / counts[noisy]
        errors = np.sqrt(parts.sum(axis=1))
        pulls = np.maximum((scales[noisy] / errors) ** 2, 1.0)
        quantiles = _UNIT_RADIUS(pulls, self._level) * np.sqrt(pulls)
        freedom = degrees[noisy].min(axis=1)
        estimated = np.isfinite(freedom)
        quantiles[estimated] = -stdtrit(freedom[estimated], ndtr(-quantiles[estimated]))
        scales[noisy] = quantiles * errors
        return np.asarray(scales)

    def find(
        self,
        bias: Bias,
        fidelity: int,
        means: FloatArray,
        counts: IntArray,
        spread: tuple[FloatArray, FloatArray],
        arms: Sequence[int],
    ) -> Contradiction | None:
        """Find the largest contradiction of the bias bounds at `fidelity`, if any.

        Arrays have shape (n, M). `spread` holds variances, infinite if unknown, and degrees of
        freedom, infinite if declared.
        """
        worst: Contradiction | None = None
        largest_excess = 0.0
        known = (counts > 0) & np.isfinite(spread[0])
        for other in range(len(bias.bounds)):
            pair = [fidelity, other]
            seen = np.flatnonzero(known[:, pair].all(axis=1))
            if other == fidelity or not seen.size:
                continue
            cells = np.ix_(seen, np.array(pair))
            parts = spread[0][cells], counts[cells], spread[1][cells]
            difference = means[seen, fidelity] - means[seen, other]
            uncertainty = self._uncertainty(*parts)
            if bias.kind == "max":
                involved = [int(np.argmax(np.abs(difference) - uncertainty))]
                observed = abs(float(difference[involved[0]]))
            else:
                high = int(np.argmax(difference - uncertainty))
                involved = [high, int(np.argmin(difference + uncertainty))]
                if involved == [high, high]:
                    continue
                observed = float(difference[high] - difference[involved[1]])
            together = (part[involved].reshape(1, -1) for part in parts)
            total = float(self._uncertainty(*together)[0])
            allowed = bias.bounds[fidelity] + bias.bounds[other]
            # What rounding alone can make of equal numbers is no contradiction.
            rounding = 1e-12 * (allowed + float(np.abs(means[cells]).max()))
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

    def needed(
        self, bound: float, counts: IntArray, variances: FloatArray, costs: FloatArray
    ) -> FloatArray:
        """Return the cheapest numbers of values that mostly reveal a bias half as large again.

        They are at least `counts`, and infinite where none suffices; one for each mean compared.
        """
        found = np.maximum(counts, 1.0)
        total = float(variances.sum())
        if total == 0.0:
            return found
        width = _EXCESS * bound / _UNCERTAINTIES / math.sqrt(total)
        # A plan need not be exact, and the same width comes again and again.
        pulls = _pulls_for(float(f"{width:.2g}"), self._level)
        if not math.isfinite(total * pulls):
            return np.full(counts.shape, np.inf)
        sigmas = np.sqrt(variances)
        is_open = sigmas > 0.0
        # The cheapest numbers go with sigma / sqrt(cost). What there is more of stays as it is.
        while is_open.any():
            left = total / pulls - float((variances[~is_open] / found[~is_open]).sum())
            price = float((sigmas[is_open] * np.sqrt(costs[is_open])).sum())
            wanted = sigmas / np.sqrt(costs) * price / left
            enough = is_open & (wanted <= found)
            if not enough.any():
                found[is_open] = np.ceil(wanted[is_open])
                break
            is_open &= ~enough
        return found


@lru_cache(maxsize=1024)
def _pulls_for(width: float, level: float) -> float:
    """Return how many values of variance 1 make the uncertainty of their mean that small."""
    return float(pulls_until(_UNIT_RADIUS, level, [width])[0])
