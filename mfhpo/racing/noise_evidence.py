"""What the observations say of the noise: its scale where none is declared, or a declared one."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.noise import (
    Bounded,
    EstimatedNoise,
    Gaussian,
    NoiseAudit,
    PooledVariance,
    SubGaussian,
    declared_sigmas,
)
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.knowledge.variances import ArmVariances
from mfhpo.problem import Problem

# Of delta, the share that pays for the upper bounds on an estimated noise variance.
_NOISE_SHARE = 0.1


class NoNoiseWarning(UserWarning):
    """Repeated evaluations were equal, although noise was to be estimated from them."""


class NoiseEvidence:
    """Upper bounds on the noise's variance, estimated where a declared scale does not do.

    The arguments are those of `Evidence`; each call of `learn` follows one of the statistics.
    """

    def __init__(
        self,
        problem: Problem,
        delta: float,
        compared: Sequence[int],
        statistics: PullStatistics,
        has_radius: bool,
        adaptive: bool,
        variances: bool,
        audit: bool,
    ) -> None:
        n_arms, n_fidelities, noise = problem.n_arms, problem.n_fidelities, problem.noise
        self.sigmas = declared_sigmas(noise, n_fidelities)
        self._adaptive = adaptive
        self._compared = tuple(compared)
        self._statistics = statistics
        self.is_estimated = not has_radius and isinstance(noise, EstimatedNoise)
        self._audits: list[NoiseAudit] = []
        if audit and not has_radius and isinstance(noise, SubGaussian):
            assert self.sigmas is not None
            self._audits = [NoiseAudit(sigma) for sigma in self.sigmas]
        self._estimates: list[ArmVariances] = []
        share = 1.0
        if self.is_estimated or self._audits:
            level = _NOISE_SHARE * delta / len(compared)
            self._estimates = [ArmVariances(level) for _ in range(n_fidelities)]
        if self.is_estimated:
            share -= _NOISE_SHARE
        self._own: list[list[PooledVariance]] = []
        if variances and isinstance(noise, Gaussian):
            share -= _NOISE_SHARE
            level = _NOISE_SHARE * delta / (n_arms * len(compared))
            self._own = [
                [PooledVariance(level) for _ in range(n_fidelities)] for _ in range(n_arms)
            ]
        if variances and isinstance(noise, Bounded):
            share = 0.5
        self._full_delta = share * delta
        # What is taken for the variance where it is estimated.
        self.estimated: FloatArray = np.full((n_arms, n_fidelities), np.inf)

    @property
    def delta(self) -> float:
        """Probability with which the means may leave their regions, without the noise's share."""
        return (1.0 - _NOISE_SHARE) * self._full_delta if self.widened else self._full_delta

    @property
    def level(self) -> float:
        """The same for one arm at one fidelity."""
        return self.delta / (len(self.estimated) * len(self._compared))

    @property
    def widened(self) -> bool:
        """Whether a declared scale of the noise was contradicted, and is estimated instead."""
        return any(audit.contradicted for audit in self._audits)

    @property
    def estimates_variances(self) -> bool:
        """Whether `variance_bounds` depend on what was observed."""
        return self.is_estimated or self.has_own_variances or self.widened

    @property
    def has_own_variances(self) -> bool:
        """Whether each arm has a variance of its own."""
        return bool(self._own)

    def is_estimated_at(self, fidelity: int) -> bool:
        """Whether the noise is estimated at a fidelity: by choice, or instead of a false scale."""
        return self.is_estimated or bool(self._audits and self._audits[fidelity].contradicted)

    def scale(self, fidelity: int) -> float:
        """An upper bound on the scale that is estimated at a fidelity."""
        return math.sqrt(self._estimates[fidelity].bound)

    @property
    def unaudited(self) -> dict[int, int]:
        """How many repeats are missing, by fidelity, to see that a declared sigma is too small."""
        if not self._audits:
            return {}
        counts = self._statistics.counts
        missing = {m: self._audits[m].missing for m in self._compared if counts[:, m].any()}
        return {m: repeats for m, repeats in missing.items() if repeats}

    def learn(self, arm: int, fidelity: int, value: float, growth: float) -> tuple[str, bool]:
        """Learn of a value by which the sum of an arm's squared deviations has grown.

        Return what it contradicts, in words, and whether the estimates of all arms have changed.
        """
        before = int(self._statistics.counts[arm, fidelity]) - 1
        if not before:
            return "", False
        prediction_error = growth * (before + 1) / before
        if self._own:
            self._own[arm][fidelity].add(prediction_error, 1)
        if not self._estimates:
            return "", False
        contradicted = self._audits[fidelity].add(growth, value) if self._audits else ""
        estimate = self._estimates[fidelity]
        bound = estimate.bound
        changed = estimate.add(
            prediction_error if self._adaptive else growth,
            growth,
            self._statistics.squares[:, fidelity],
            self._statistics.counts[:, fidelity],
        )
        if self.is_estimated_at(fidelity):
            if changed or contradicted:
                self._estimate(slice(None), fidelity)
            self._estimate(arm, fidelity)
        if self.is_estimated and math.isinf(bound) and estimate.bound == 0.0:
            warnings.warn(
                "repeated evaluations give exactly the same values, so there is no noise to "
                "be sure against. If that is a fixed random seed or split, the answer is the "
                "best for that one only: draw a new one in every evaluation",
                NoNoiseWarning,
                stacklevel=5,
            )
        return contradicted, bool(changed)

    def _estimate(self, arms: int | slice, fidelity: int) -> None:
        """Bring the estimated variances of some arms up to date; never below a declared one."""
        squares = self._statistics.squares[arms, fidelity]
        counts = self._statistics.counts[arms, fidelity]
        variances = self._estimates[fidelity].of_arms(squares, counts, self.level)
        if self.sigmas is not None:
            variances = np.maximum(variances, self.sigmas[fidelity] ** 2)
        self.estimated[arms, fidelity] = variances

    def variance_bounds(self, arms: IntArray) -> FloatArray:
        """Upper bounds on the noise's variance proxy, shape (n, M); infinite where unknown."""
        if self.sigmas is not None:
            bounds = np.tile(np.square(self.sigmas), (len(arms), 1))
            for m in range(len(self.sigmas)):
                if self.is_estimated_at(m):
                    bounds[:, m] = self.estimated[arms, m]
            return bounds
        if self._own:
            return np.array([[own.bound for own in self._own[arm]] for arm in arms])
        estimated: FloatArray = self.estimated[arms]
        return estimated

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as plain JSON values."""
        return {
            "estimates": [estimate.state_dict() for estimate in self._estimates],
            "own": [[own.state_dict() for own in row] for row in self._own],
            "audits": [audit.state_dict() for audit in self._audits],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state, after that of the statistics."""
        for estimate, saved in zip(self._estimates, state["estimates"], strict=True):
            estimate.load_state_dict(saved)
        for audit, saved in zip(self._audits, state["audits"], strict=True):
            audit.load_state_dict(saved)
        for fidelity in range(len(self._estimates)):
            if self.is_estimated_at(fidelity):
                self._estimate(slice(None), fidelity)
        for row, saved_row in zip(self._own, state["own"], strict=True):
            for own, saved in zip(row, saved_row, strict=True):
                own.load_state_dict(saved)
