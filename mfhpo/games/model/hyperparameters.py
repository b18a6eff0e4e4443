"""What a model of a player's utility takes as known: scales, correlations of levels, noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_array, shown
from mfhpo.knowledge.arrays import FloatArray

# Noise is no smaller than this share of the utilities' variance: what is evaluated twice must not
# make the covariance singular.
_LEAST_NOISE = 1e-6
_POSITIVE = np.nextafter(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Hyperparameters of the autoregressive Gaussian process of `MultiOutputGP`.

    Parameters
    ----------
    length_scales
        Of the kernels ``exp(-sum(((x - x') / l) ** 2) / 2)``, shape (M, d): of each level's own
        part, the target's kernel last.
    correlations
        Of each level with the next one, between 0 and 1, shape (M - 1,).
    scales
        Standard deviation of the utility at each level, in its own unit, shape (M,).
    noise
        Variance of an observation at each level, shape (M,).
    offsets
        Mean of the utility at each level, shape (M,).

    Raises
    ------
    ValueError
        If shapes do not fit, or something is out of its range.

    Examples
    --------
    >>> paper = Hyperparameters.shared(0.89, 0.78, correlations=[0.768], noise=0.1, n_features=2)
    >>> paper.length_scales.round(3).tolist()
    [[0.801, 0.801], [0.75, 0.75]]
    """

    length_scales: FloatArray
    correlations: FloatArray
    scales: FloatArray
    noise: FloatArray
    offsets: FloatArray

    def __post_init__(self) -> None:
        for name in ("length_scales", "correlations", "scales", "noise", "offsets"):
            object.__setattr__(self, name, check_array(name, getattr(self, name), "numbers"))
        n_levels = self.scales.size
        n_features = (0, *self.length_scales.shape)[-1]
        for name, shape, least, words in (
            ("scales", (n_levels,), _POSITIVE, "positive"),
            ("length_scales", (n_levels, n_features), _POSITIVE, "positive"),
            ("correlations", (n_levels - 1,), 0.0, "from 0 to 1"),
            ("noise", (n_levels,), 0.0, "at least 0"),
            ("offsets", (n_levels,), -np.inf, ""),
        ):
            given = getattr(self, name)
            if given.shape != shape or not np.isfinite(given).all():
                raise ValueError(
                    f"{name} must be finite and of shape {shape}, as there are scales for "
                    f"{n_levels} levels, got {shown(given)}."
                )
            most = 1.0 if name == "correlations" else np.inf
            if not ((given >= least) & (given <= most)).all():
                raise ValueError(f"{name} must be {words}, got {shown(given)}.")
        object.__setattr__(self, "noise", np.maximum(self.noise, self.least_noise))

    @classmethod
    def shared(
        cls,
        rate: float,
        level_rate: float,
        *,
        correlations: npt.ArrayLike,
        noise: float | npt.ArrayLike,
        n_features: int,
    ) -> Hyperparameters:
        """Return the paper's hyperparameters: one rate for all features, unit variance, mean 0.

        Parameters
        ----------
        rate, level_rate
            h of the target's kernel ``exp(-h |x - x'|**2)`` (Eq. 20), and zeta of the others (Eq.
            21).
        correlations
            rho of each level with the next, shape (M - 1,).
        noise
            Variance of an observation: one number, or one for each level.
        n_features
            d.
        """
        rho = np.atleast_1d(np.asarray(correlations, dtype=float))
        n_levels = len(rho) + 1
        rates = np.full(n_levels, float(level_rate))
        rates[-1] = rate
        return cls(
            length_scales=np.repeat(np.sqrt(0.5 / rates)[:, None], n_features, axis=1),
            correlations=rho,
            scales=np.ones(n_levels),
            noise=np.broadcast_to(np.asarray(noise, dtype=float), (n_levels,)).copy(),
            offsets=np.zeros(n_levels),
        )

    @property
    def n_levels(self) -> int:
        """M."""
        return len(self.scales)

    @property
    def least_noise(self) -> FloatArray:
        """Smallest variance that an observation is given at each level, shape (M,)."""
        return _LEAST_NOISE * self.scales**2

    @property
    def amplitudes(self) -> FloatArray:
        """Factors of the kernels' processes in the levels' utilities, shape (M, M).

        Rows are levels; before they are scaled, ``u[m] = rho[m] u[m+1] + sqrt(1 - rho[m]**2)
        psi[m]`` (Eq. 19).
        """
        mixing = np.eye(self.n_levels)
        for level in reversed(range(self.n_levels - 1)):
            rho = self.correlations[level]
            mixing[level] = rho * mixing[level + 1]
            mixing[level, level] = np.sqrt(1.0 - rho**2)
        return self.scales[:, None] * mixing
