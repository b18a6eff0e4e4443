"""Half-widths of confidence intervals around a running mean that hold at all times at once."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw, zeta

from mfhpo._validation import check_nonnegative, check_positive, check_probability
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.noise import Bounded, Noise, SubGaussian


class Radius(ABC):
    """A function B with P(exists n >= 1: |mean_n - mu| > B(n)) <= level.

    B holds at all n at once. So it may be read after every pull, and may decide on the next one.

    Attributes
    ----------
    assumption
        What must be true of the noise, as a short phrase for certificates.
    first_guess
        What the prediction errors take for the mean before the first value.
    needs_squares, needs_prediction_errors
        Which spread the radius reads; it must be given, the other one is ignored.
    """

    assumption: str
    first_guess: float = 0.0
    needs_squares: bool = False
    needs_prediction_errors: bool = False

    def __call__(
        self,
        counts: FloatArray | IntArray,
        level: float,
        squares: FloatArray | None = None,
        prediction_errors: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the half-widths of the intervals; infinite, never NaN, for too few values.

        Parameters
        ----------
        counts
            Number of values n behind each mean, any shape.
        level
            Probability with which the interval may ever miss the mean, both sides together.
        squares, prediction_errors
            Sums of squared deviations, broadcastable with `counts`: from the running mean, and of
            each value from the mean of the earlier ones (of the first: from `first_guess`).
        """
        if not (isinstance(level, float) and 0.0 < level < 1.0):
            level = check_probability("level", level)
        seen = np.asarray(counts) >= 1
        # The formulas divide by n; what an unseen cell gives is replaced below.
        n = np.where(seen, counts, 1.0)
        squares = self._spread("squares", squares, self.needs_squares)
        needed = self.needs_prediction_errors
        errors = self._spread("prediction_errors", prediction_errors, needed)
        # An overflow gives inf, which is a valid half-width.
        with np.errstate(over="ignore"):
            widths = self._widths(n, level, squares, errors)
        return np.asarray(np.where(seen, widths, np.inf), dtype=np.float64)

    @abstractmethod
    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        """Compute the half-widths for counts of at least 1, by squares and prediction errors."""

    def _spread(self, name: str, values: FloatArray | None, needed: bool) -> FloatArray:
        if not needed:
            return np.zeros(())
        if values is None:
            raise ValueError(f"{type(self).__name__} needs {name}, got None; give one per count.")
        # Rounding can make a sum of squares slightly negative.
        return np.maximum(np.where(np.isnan(values), np.inf, values), 0.0)


@dataclass(frozen=True)
class _Scaled(Radius):
    sigma: float

    assumption = "the noise is sub-Gaussian with the declared sigma"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_nonnegative("sigma", self.sigma))


@dataclass(frozen=True)
class HoeffdingRadius(_Scaled):
    """The papers' radius: Hoeffding's inequality and a union bound over n.

        B(n) = sqrt(2 sigma^2 ln(4 n^2 / level) / n)

    The failures at n sum to level / (2 n^2), in total 0.82 level.

    Parameters
    ----------
    sigma
        The sub-Gaussian scale, in the unit of the values.
    """

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        return np.asarray(self.sigma * np.sqrt(2.0 * np.log(4.0 * n**2 / level) / n))


@dataclass(frozen=True)
class MixtureRadius(_Scaled):
    """The two-sided normal mixture boundary, as small as it can be at 16 pulls.

        B(n) = sigma sqrt((n + rho) (ln((n + rho) / rho) + 2 ln(1 / level))) / n

    (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021, Eq. 14), with rho of `mixture_prior`.
    It is tighter than `HoeffdingRadius` from n = 3 on.

    Parameters
    ----------
    sigma
        See `HoeffdingRadius`.
    """

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        rho = mixture_prior(level)
        logs = np.log1p(n / rho) - 2.0 * math.log(level)
        return np.asarray(self.sigma * np.sqrt((n + rho) * logs) / n)


@dataclass(frozen=True)
class EmpiricalBernsteinRadius(Radius):
    """A radius for bounded values that shrinks with the variance that is seen.

        B(n) = S(V, level / 2) / n,  V = prediction_errors,  S = the stitched boundary

    with scale c = high - low, started at V = (high - low)^2 / 2 (Howard, Ramdas, McAuliffe and
    Sekhon 2021, Theorem 4). The start is within 14 % of the best one for 10 to 1e5 pulls.

    Parameters
    ----------
    low, high
        Bounds that no value leaves, in the unit of the values. `prediction_errors` must count the
        first value from their middle.
    """

    low: float
    high: float

    assumption = "all values lie within the declared bounds"
    needs_prediction_errors = True

    def __post_init__(self) -> None:
        bounds = Bounded(self.low, self.high)  # raises when they are no bounds
        object.__setattr__(self, "low", bounds.low)
        object.__setattr__(self, "high", bounds.high)
        object.__setattr__(self, "first_guess", (self.low + self.high) / 2.0)

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        scale = self.high - self.low
        _, errors = spreads
        boundary = stitched_boundary(errors, scale**2 / 2.0, scale, level / 2.0)
        return np.asarray(boundary / n)


@dataclass(frozen=True)
class StudentMixtureRadius(Radius):
    """A radius for Gaussian values whose variance is unknown: an anytime-valid t-interval.

        B(n) = sqrt((T - 1) (n + c) squares / (n (n + c - T c))),  T = ((n + c) / (c level^2))^(1/n)

    with c = prior, where T c < n + c; infinite elsewhere (Lai 1976; Wang and Ramdas 2024). It
    inverts the likelihood ratio ``sqrt(c / (n + c)) ((n + c) V / ((n + c) V - S^2))^(n/2)``, with S
    = sum(x - mu) and V = sum((x - mu)^2), a nonnegative martingale: by Ville's inequality it ever
    reaches 1 / level with probability at most level.

    Parameters
    ----------
    prior
        Precision of the normal prior on (alternative - mu) / sigma. A larger one is tighter for
        more pulls, but stays infinite for longer: at level 1e-3, for fewer than 8 pulls with 1, and
        fewer than 5 with 0.1.
    """

    prior: float = 0.1

    assumption = "the noise is normal"
    needs_squares = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", check_positive("prior", self.prior, "; try 1"))

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        squares, _ = spreads
        log_ratio = np.log1p(n / self.prior)
        log_t = (log_ratio - 2.0 * math.log(level)) / n
        # T c < n + c in logs; n + c - T c is then (n + c) (1 - exp(log_t - log_ratio)).
        finite = log_t < log_ratio
        # What the infinite cells give is replaced below; 1 and -1 keep it free of warnings.
        factor = np.expm1(np.where(finite, log_t, 1.0))
        rest = -np.expm1(np.where(finite, log_t - log_ratio, -1.0))
        return np.asarray(np.where(finite, np.sqrt(factor * squares / (n * rest)), np.inf))


@dataclass(frozen=True)
class _BoundedRadius(Radius):
    """The smaller of two radii for bounded values, each at half of the level (a union bound)."""

    bernstein: EmpiricalBernsteinRadius
    hoeffding: MixtureRadius

    assumption = EmpiricalBernsteinRadius.assumption
    needs_prediction_errors = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "first_guess", self.bernstein.first_guess)

    def _widths(self, n: FloatArray, level: float, *spreads: FloatArray) -> FloatArray:
        one = self.bernstein._widths(n, level / 2.0, *spreads)
        return np.minimum(one, self.hoeffding._widths(n, level / 2.0, *spreads))


def default_radius(noise: Noise, fidelity: int, n_fidelities: int) -> Radius:
    """Give the tightest radius for what was declared; ValueError for other numbers of scales."""
    if isinstance(noise, SubGaussian):
        return MixtureRadius(noise.at(fidelity, n_fidelities))
    if isinstance(noise, Bounded):
        # Hoeffding's lemma: values within [low, high] are sub-Gaussian with half the range.
        hoeffding = MixtureRadius((noise.high - noise.low) / 2.0)
        return _BoundedRadius(EmpiricalBernsteinRadius(noise.low, noise.high), hoeffding)
    return StudentMixtureRadius()


_MOST_PULLS = 1e15


def pulls_until(
    radius: Radius, level: float, widths: npt.ArrayLike, variance: float | None = None
) -> FloatArray:
    """Count the pulls after which a radius is at most `widths`; infinite above 1e15 pulls.

    A radius that reads a spread needs the `variance` of the values.
    """
    wanted = np.asarray(widths, dtype=np.float64)
    flat = wanted.ravel()
    low = np.zeros(flat.shape)
    high = np.where(flat > 0.0, 2.0 * _MOST_PULLS, np.inf)
    open_ = np.flatnonzero(flat > 0.0)
    most = 64.0  # first the end is looked for, in ever larger steps: few need many pulls
    while open_.size:
        middle = np.minimum(np.floor((low[open_] + high[open_]) / 2.0), most)
        spread = None if variance is None else middle * variance
        enough = radius(middle, level, spread, spread) <= flat[open_]
        high[open_[enough]] = middle[enough]
        low[open_[~enough]] = middle[~enough]
        open_ = open_[high[open_] - low[open_] > 1.0]
        most *= 64.0
    return np.where(high <= _MOST_PULLS, high, np.inf).reshape(wanted.shape)


_ETA = 2.0
_EXPONENT = 1.4
_ZETA = float(zeta(_EXPONENT))
_STITCHING = (_ETA**0.25 + _ETA**-0.25) / math.sqrt(2.0)


def stitched_boundary(v: FloatArray, start: float, scale: float, level: float) -> FloatArray:
    """Compute the one-sided stitched sub-gamma boundary S(v), after Howard et al. 2021, Theorem 1.

        S(v) = k1 sqrt(v l(v)) + scale l(v),  l(v) = ln(zeta(s) (1 + log_eta(v / start))^s / level)

    with v at least `start`, k1 = (eta^(1/4) + eta^(-1/4)) / sqrt(2), eta = 2 and s = 1.4. For a
    positive scale it is smaller than the theorem's, because each epoch
    ``start eta^k <= v < start eta^(k + 1)`` gets its best line: with r = l(start eta^k),
    ``r / a + v a / (2 (1 - scale a))`` is crossed with probability at most exp(-r), whatever a, and
    these sum to `level`. The best a at the epoch's middle w gives
    ``sqrt(r w / 2) (1 + v / w) + scale r``, which is at most S(v) throughout the epoch.
    """
    v = np.maximum(v, start)
    log_level = math.log(_ZETA) - math.log(level)
    logs = _EXPONENT * np.log1p(np.log(v / start) / math.log(_ETA)) + log_level
    return np.asarray(_STITCHING * np.sqrt(v * logs) + scale * logs)


# Evaluations of hyperparameters are dear, so that the default looks at few.
_TUNED_FOR = 16.0


@lru_cache(maxsize=64)
def mixture_prior(level: float) -> float:
    """Give the rho of `MixtureRadius`: no other gives a smaller radius at 16 pulls.

    It is 16 / x where x - ln(1 + x) = 2 ln(1 / level): set the derivative with respect to rho to 0.
    """
    # Any x makes a valid radius. Below level 1e-150 the square would underflow, and next to 1 the
    # root is lost in rounding, so there x is only nearly the best one.
    ratio = -float(np.real(lambertw(-(max(level, 1e-150) ** 2) / math.e, -1))) - 1.0
    return _TUNED_FOR / max(ratio, 1e-6)


_OF_LAST_LOOK = 0.9  # of what is left; without the rest, no further look could ever be made


def share_of_look(look: int, planned: int | None = None) -> float:
    """Return what a look takes of delta: half of what is left, at the last planned one most."""
    if planned is None or look < planned:
        return 0.5**look
    return (_OF_LAST_LOOK if look == planned else 1.0 - _OF_LAST_LOOK) * 0.5 ** (look - 1)
