"""Problems whose means are known: the papers' instances."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from mfhpo._validation import check_increasing, check_nonnegative
from mfhpo.knowledge.bias import Bias, Kind
from mfhpo.knowledge.noise import Noise, SubGaussian
from mfhpo.problem import Problem

__all__ = [
    "BernoulliInstance",
    "GaussianInstance",
    "Instance",
    "TruncatedNormalInstance",
    "load_instance",
    "synthetic_a",
    "synthetic_b",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# A sum of this many truncated normals or more is drawn at once instead of one by one.
_LARGE_SUM = 32


class Instance:
    """A bandit whose means are known, so that a policy's answers can be judged.

    Parameters
    ----------
    means
        Mean of every arm at every fidelity, shape (M, K); row 0 is the cheapest fidelity, the
        last row is the target.
    costs
        Cost of one pull at each fidelity, shape (M,), positive and increasing.
    xi, gamma
        Declared bounds on the bias and on its variation between arms, shape (M,) (paper 003,
        Sections 2 and 5). None: the smallest ones that the means satisfy.
    variance
        Sub-Gaussian variance proxy of one observation, sigma squared.

    Raises
    ------
    ValueError
        If a shape does not fit, a value is not finite, or the costs do not increase.
    """

    def __init__(
        self,
        means: npt.ArrayLike,
        costs: Sequence[float] | FloatArray,
        *,
        xi: Sequence[float] | FloatArray | None = None,
        gamma: Sequence[float] | FloatArray | None = None,
        variance: float = 1.0,
    ) -> None:
        self.means: FloatArray = np.array(means, dtype=np.float64)
        if self.means.ndim != 2 or not self.means.size or not np.isfinite(self.means).all():
            raise ValueError(
                f"means must be finite numbers of shape (fidelities, arms), got an array of shape "
                f"{self.means.shape}."
            )
        self.costs = self._per_fidelity("costs", costs)
        check_increasing("costs", self.costs.tolist())
        if self.costs[0] <= 0.0:
            raise ValueError(f"costs must be positive, got {self.costs.tolist()}.")
        biases = self.means - self.means[-1]
        self.xi: FloatArray = (
            np.abs(biases).max(axis=1) if xi is None else self._per_fidelity("xi", xi)
        )
        self.gamma: FloatArray = (
            np.ptp(biases, axis=1) if gamma is None else self._per_fidelity("gamma", gamma)
        )
        self.variance = check_nonnegative("variance", variance)

    def _per_fidelity(self, name: str, values: Sequence[float] | FloatArray) -> FloatArray:
        array = np.array(values, dtype=np.float64)
        if array.shape != (self.n_fidelities,):
            raise ValueError(
                f"{name} must have one value per fidelity, {self.n_fidelities} as means has rows, "
                f"got shape {array.shape}."
            )
        return array

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return int(self.means.shape[1])

    @property
    def n_fidelities(self) -> int:
        """Number of fidelities M."""
        return int(self.means.shape[0])

    @property
    def best_arm(self) -> int:
        """The arm with the largest mean at the target fidelity."""
        return int(np.argmax(self.means[-1]))

    def problem(self, kind: Kind | None = "max", noise: Noise | None = None) -> Problem:
        """What a policy may be told: bounds xi ("max"), gamma ("order") or none (None).

        Without `noise` it is sub-Gaussian with the instance's variance.
        """
        bounds = self.xi if kind == "max" else self.gamma
        return Problem(
            self.n_arms,
            costs=tuple(self.costs.tolist()),
            bias=None if kind is None else Bias(kind, tuple(bounds.tolist())),
            noise=SubGaussian(math.sqrt(self.variance)) if noise is None else noise,
        )

    def draw(self, rng: np.random.Generator, arm: int, fidelity: int) -> float:
        """One observation of an arm at a fidelity."""
        return float(self._values(rng, np.array([arm]), fidelity, 1)[0, 0])

    def running_sums(
        self,
        rng: np.random.Generator,
        arms: IntArray,
        fidelity: int,
        start: int,
        sums: FloatArray,
        totals: IntArray,
    ) -> FloatArray:
        """Continue the sums of the arms' observations with fresh draws.

        Parameters
        ----------
        rng
            Source of the draws.
        arms, fidelity
            The arms that are pulled, shape (n,), and where.
        start, sums
            Number of observations so far, and their sum for each arm, shape (n,).
        totals
            Numbers of observations at which the sums are wanted, shape (T,), strictly increasing
            from above `start`. The result has shape (n, T).
        """
        sizes = np.diff(totals, prepend=start)
        result = self._increments(rng, arms, fidelity, sizes)
        result[:, 0] += sums
        return np.cumsum(result, axis=1, out=result)

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        """Sums of ``sizes[t]`` fresh draws, independent of each other, shape (n, T).

        Subclasses override this or `_values`, each of which is defined by the other.
        """
        values = self._values(rng, arms, fidelity, int(sizes.sum()))
        if values.shape[1] == len(sizes):
            return values
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        return np.add.reduceat(values, starts, axis=1)

    def _values(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, count: int
    ) -> FloatArray:
        """`count` fresh draws of each arm, shape (n, count)."""
        return self._increments(rng, arms, fidelity, np.ones(count, dtype=np.int64))


class GaussianInstance(Instance):
    """Normal noise of the given variance; sums of any size are drawn exactly, at once."""

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        result = rng.standard_normal((len(arms), len(sizes)))
        means = self.means[fidelity, arms][:, None]
        if sizes.max() > 1:
            result *= np.sqrt(self.variance * sizes)
            result += means * sizes
        else:
            if self.variance != 1.0:
                result *= math.sqrt(self.variance)
            result += means
        return result


class BernoulliInstance(Instance):
    """Observations 0 or 1; sums of any size are drawn exactly, as binomials.

    Its variance proxy is 1/4 unless another one is given. Means must be within [0, 1].
    """

    def __init__(
        self,
        means: npt.ArrayLike,
        costs: Sequence[float] | FloatArray,
        *,
        variance: float = 0.25,
        **bounds: Any,
    ) -> None:
        super().__init__(means, costs, variance=variance, **bounds)
        low, high = float(self.means.min()), float(self.means.max())
        if low < 0.0 or high > 1.0:
            raise ValueError(f"means must be probabilities within [0, 1], got {low} to {high}.")

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        successes = rng.binomial(sizes, self.means[fidelity, arms][:, None])
        return np.asarray(successes, dtype=np.float64)


class TruncatedNormalInstance(Instance):
    """The mean plus normal noise that is cut off on both sides (paper 003's Yahtzee).

    Sums of fewer than 32 observations are drawn exactly. Larger ones are drawn as a normal variable
    with the sum's mean, variance and kurtosis (the first Cornish-Fisher term; the noise has no
    skewness): for the default noise the distribution function is wrong by less than 1e-5.

    Parameters
    ----------
    means, costs, **bounds
        As for `Instance`.
    sd, cut
        Standard deviation of the noise before it is cut off; it lies within [-cut, cut].
    variance
        Variance proxy that is declared; None: ``sd ** 2``, which cutting off leaves valid.
    """

    def __init__(
        self,
        means: npt.ArrayLike,
        costs: Sequence[float] | FloatArray,
        *,
        sd: float = 0.05,
        cut: float = 0.08,
        variance: float | None = None,
        **bounds: Any,
    ) -> None:
        if not (0.0 < sd < math.inf and 0.0 < cut < math.inf):
            raise ValueError(f"sd and cut must be positive and finite, got sd={sd!r}, cut={cut!r}.")
        super().__init__(means, costs, variance=sd**2 if variance is None else variance, **bounds)
        self.sd = sd
        self.cut = cut
        # Moments of a standard normal variable within [-c, c], by partial integration.
        c = cut / sd
        self._low, high = float(ndtr(-c)), float(ndtr(c))
        self._span = high - self._low
        edge = math.exp(-c * c / 2.0) / math.sqrt(2.0 * math.pi) * 2.0 / self._span
        second = 1.0 - c * edge
        fourth = 3.0 * second - c**3 * edge
        self._scale = sd * math.sqrt(second)
        self._excess_kurtosis = fourth / second**2 - 3.0

    def _values(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, count: int
    ) -> FloatArray:
        result = rng.random((len(arms), count))
        result *= self._span
        result += self._low
        ndtri(result, out=result)
        result *= self.sd
        result += self.means[fidelity, arms][:, None]
        return result

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        large = sizes >= _LARGE_SUM
        if not large.any():
            return super()._increments(rng, arms, fidelity, sizes)
        result = np.empty((len(arms), len(sizes)))
        if not large.all():
            result[:, ~large] = super()._increments(rng, arms, fidelity, sizes[~large])
        counts = sizes[large]
        normal = rng.standard_normal((len(arms), len(counts)))
        normal += self._excess_kurtosis / (24.0 * counts) * (normal**3 - 3.0 * normal)
        sums = self.means[fidelity, arms][:, None] * counts
        result[:, large] = sums + self._scale * np.sqrt(counts) * normal
        return result


def synthetic_a(rng: np.random.Generator, n_arms: int = 2000) -> GaussianInstance:
    """A fresh draw of the recipe of paper 003's Synthetic A (Section 7 and its appendix E).

    The published figures belong to one such draw (see `load_instance`): the costs follow the gap
    between the two best arms, which differs a lot from draw to draw.
    """
    return _synthetic(
        rng,
        n_arms,
        costs=(1.0, 10.0, 100.0, 1000.0),
        shifts=(1.0, 0.2, 0.01, 0.0),
        gamma=(0.3, 0.05, 0.001, 0.0),
    )


def synthetic_b(rng: np.random.Generator, n_arms: int = 1000) -> GaussianInstance:
    """A fresh draw of the recipe of paper 003's Synthetic B; see `synthetic_a`."""
    return _synthetic(
        rng,
        n_arms,
        costs=(16.0, 64.0, 256.0, 1024.0, 4096.0),
        shifts=(1.0, 0.4, 0.1, 0.01, 0.0),
        gamma=(0.3, 0.1, 0.01, 0.001, 0.0),
    )


def _synthetic(
    rng: np.random.Generator,
    n_arms: int,
    costs: Sequence[float],
    shifts: Sequence[float],
    gamma: Sequence[float],
) -> GaussianInstance:
    """Lower means are the target's minus a shift, plus U(-gamma/2, gamma/2)."""
    if n_arms < 1:
        raise ValueError(f"n_arms must be at least 1, got {n_arms}.")
    targets = rng.standard_normal(n_arms)
    half = np.array(gamma)[:, None] / 2.0
    spread = half * rng.uniform(-1.0, 1.0, (len(costs), n_arms))
    means = targets - np.array(shifts)[:, None] + spread
    return GaussianInstance(
        means, costs, xi=np.array(shifts) + half[:, 0], gamma=gamma, variance=1.0
    )


def load_instance(
    path: str | Path, noise: Literal["gaussian", "truncated normal"] = "gaussian"
) -> GaussianInstance | TruncatedNormalInstance:
    """Read one of the instances that were published with paper 003 and its 2024 follow-up.

    Parameters
    ----------
    path
        A NumPy .npz file with the arrays means (M, K), costs (M,), variance (), and optionally xi
        and gamma (M,).
    noise
        "gaussian", of the file's variance; or "truncated normal", of standard deviation .05 within
        .08 of the mean (Yahtzee), the file's variance being what is declared.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message says where the files come from.
    ValueError
        If the file is not such an archive, or an array is missing.
    """
    if noise not in ("gaussian", "truncated normal"):
        raise ValueError(f"noise must be 'gaussian' or 'truncated normal', got {noise!r}.")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}. mfhpo does not ship the instances that were published with "
            f"the papers 'Multi-Fidelity Best-Arm Identification' (NeurIPS 2022) and 'Optimal "
            f"Multi-Fidelity Best-Arm Identification' (NeurIPS 2024). Put them there, or draw a "
            f"fresh instance with synthetic_a(rng) or synthetic_b(rng)."
        )
    try:
        archive = np.load(path, allow_pickle=False)
    except (EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a NumPy .npz archive: {error}") from error
    if isinstance(archive, np.ndarray):
        raise ValueError(f"{path} is not a NumPy .npz archive: it holds a single array.")
    with archive:
        arrays = {name: archive[name] for name in archive.files}
    missing = [name for name in ("means", "costs", "variance") if name not in arrays]
    if missing:
        raise ValueError(
            f"{path} has no {' and no '.join(missing)} (it has {', '.join(sorted(arrays))}); an "
            f"instance needs means (M, K), costs (M,) and variance, and may have xi and gamma (M,)."
        )
    instance = GaussianInstance if noise == "gaussian" else TruncatedNormalInstance
    return instance(
        arrays["means"],
        arrays["costs"],
        xi=arrays.get("xi"),
        gamma=arrays.get("gamma"),
        variance=float(arrays["variance"]),
    )
