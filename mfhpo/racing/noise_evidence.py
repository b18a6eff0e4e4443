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
    SubGaussian,
    declared_sigmas,
)
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.knowledge.studentised import credited, least_precision
from mfhpo.knowledge.variances import ArmVariances
from mfhpo.problem import Problem

# Of delta, the share that pays for the upper bounds on an estimated noise variance.
_NOISE_SHARE = 0.1

# Repeats that must all be equal before it is said that there is no noise.
_LEAST_REPEATS = 4


class NoNoiseWarning(UserWarning):
    """Repeated evaluations were equal, although noise was to be estimated from them."""


class NoiseEvidence:
    """What is known of the noise's variance, estimated where a declared scale does not do.

    The arguments are those of `Evidence`; each call of `learn` follows one of the statistics.
    """

    def __init__(
        self,
        problem: Problem,
        delta: float,
        compared: Sequence[int],
        statistics: PullStatistics,
        has_radius: bool,
        variances: bool,
        audit: bool,
        expects_spread: bool,
    ) -> None:
        n_fidelities, noise = problem.n_fidelities, problem.noise
        self.sigmas = declared_sigmas(noise, n_fidelities)
        self._full_delta = delta
        self._compared = tuple(compared)
        self._statistics = statistics
        self._bounds_variances = variances
        self.is_estimated = not has_radius and isinstance(noise, EstimatedNoise)
        self.has_own_variances = variances and isinstance(noise, Gaussian)
        self._halves_delta = variances and isinstance(noise, Bounded)
        self._audits: list[NoiseAudit] = []
        if audit and not has_radius and isinstance(noise, SubGaussian):
            assert self.sigmas is not None
            self._audits = [NoiseAudit(sigma) for sigma in self.sigmas]
        self._estimates = [ArmVariances(statistics, m) for m in range(n_fidelities)]
        self._saw_no_noise = False
        # With these, values that are all equal make intervals of no width.
        self._may_see_none = (
            expects_spread and not has_radius and isinstance(noise, (EstimatedNoise, Gaussian))
        )

    @property
    def delta(self) -> float:
        """Probability with which the means may leave their regions, without the noise's share."""
        if self._halves_delta:
            return 0.5 * self._full_delta
        is_bounded = self._bounds_variances and (self.is_estimated or self.widened)
        share = _NOISE_SHARE if is_bounded or self.has_own_variances else 0.0
        return (1.0 - share) * self._full_delta

    @property
    def level(self) -> float:
        """The same for one arm at one fidelity."""
        return self.delta / self._n_cells

    @property
    def _n_cells(self) -> int:
        return len(self._statistics.counts) * len(self._compared)

    @property
    def widened(self) -> bool:
        """Whether a declared scale of the noise was contradicted, and is estimated instead."""
        return any(audit.contradicted for audit in self._audits)

    @property
    def estimates_variances(self) -> bool:
        """Whether `variance_bounds` depend on what was observed."""
        return self.is_estimated or self.has_own_variances or self.widened

    def stop_audit(self) -> None:
        """Believe declared scales: values will be told whose spread is not known."""
        self._audits = []

    def is_estimated_at(self, fidelity: int) -> bool:
        """Whether the noise is estimated at a fidelity: by choice, or instead of a false scale."""
        return self.is_estimated or bool(self._audits and self._audits[fidelity].contradicted)

    def scale(self, fidelity: int) -> float:
        """The scale that the arms have at a fidelity if it is one for all; NaN without repeats."""
        return math.sqrt(self._estimates[fidelity].pooled)

    @property
    def unaudited(self) -> dict[int, int]:
        """How many repeats are missing, by fidelity, to see that a declared sigma is too small."""
        if not self._audits:
            return {}
        counts = self._statistics.counts
        missing = {m: self._audits[m].missing for m in self._compared if counts[:, m].any()}
        return {m: repeats for m, repeats in missing.items() if repeats}

    def learn(self, arm: int, fidelity: int, value: float, growth: float) -> str:
        """Learn of a value by which the sum of an arm's squared deviations has grown.

        Return what it contradicts, in words.
        """
        if self._statistics.counts[arm, fidelity] < 2:
            return ""
        if not (self.is_estimated or self._audits or self._may_see_none):
            return ""
        contradicted = self._audits[fidelity].add(growth, value) if self._audits else ""
        estimate = self._estimates[fidelity]
        estimate.learn(growth)
        if self._may_see_none and not self._saw_no_noise and estimate.degrees >= _LEAST_REPEATS:
            self._saw_no_noise = estimate.pooled == 0.0
            if self._saw_no_noise:
                warnings.warn(
                    "repeated evaluations give exactly the same values, so there is no noise to "
                    "be sure against. If that is a fixed random seed or split, the answer is the "
                    "best for that one only: draw a new one in every evaluation",
                    NoNoiseWarning,
                    stacklevel=5,
                )
        return contradicted

    def estimated(self, arms: IntArray, fidelity: int) -> tuple[FloatArray, FloatArray]:
        """Variances and their degrees of freedom, shape (n,) each; never below a declared one."""
        variances, degrees = self._estimates[fidelity].of_arms(arms)
        return self._at_least_declared(variances, fidelity), degrees

    def estimated_of_pairs(
        self, leader: int, others: IntArray, fidelity: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Variances of the leader and of each other, and their degrees of freedom, shape (n,)."""
        mine, theirs, degrees = self._estimates[fidelity].of_pairs(leader, others)
        return (
            self._at_least_declared(mine, fidelity),
            self._at_least_declared(theirs, fidelity),
            degrees,
        )

    def _at_least_declared(self, variances: FloatArray, fidelity: int) -> FloatArray:
        if self.sigmas is None:
            return variances
        return np.maximum(variances, self.sigmas[fidelity] ** 2)

    def variance_bounds(self, arms: IntArray) -> FloatArray:
        """Upper bounds on the noise's variance proxy, shape (n, M); infinite where unknown.

        Those that are estimated hold at all times, and cost a share of delta.
        """
        if self.sigmas is not None:
            bounds = np.tile(np.square(self.sigmas), (len(arms), 1))
        else:
            bounds = np.full((len(arms), self._statistics.counts.shape[1]), np.inf)
        level = _NOISE_SHARE * self._full_delta
        level /= self._n_cells if self.has_own_variances else len(self._compared)
        for m in range(bounds.shape[1]):
            counts = self._statistics.counts[arms, m]
            degrees = credited(counts)
            if self.has_own_variances:
                squares = self._statistics.squares[arms, m]
            elif self.is_estimated_at(m):
                variances, of_arms = self.estimated(arms, m)
                squares = np.where(of_arms > 0.0, variances, 0.0) * of_arms
                degrees += of_arms - np.maximum(counts - 1.0, 0.0)
            else:
                continue
            precisions = 2.0 * least_precision(-math.log(level), degrees)
            known = precisions > 0.0
            bounds[:, m] = np.where(known, squares / np.where(known, precisions, 1.0), np.inf)
        return bounds

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as plain JSON values."""
        return {
            "estimates": [estimate.state_dict() for estimate in self._estimates],
            "audits": [audit.state_dict() for audit in self._audits],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state, after that of the statistics."""
        for estimate, saved in zip(self._estimates, state["estimates"], strict=True):
            estimate.load_state_dict(saved)
        if not state["audits"]:
            self.stop_audit()
        for audit, saved in zip(self._audits, state["audits"], strict=True):
            audit.load_state_dict(saved)
