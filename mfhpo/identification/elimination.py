"""SE, IISE, IISE-gamma and MFE: how each sets up the engine (`engine.py`), which eliminates.

Paper 003 (Poiani, Metelli, Restelli, "Multi-Fidelity Best-Arm Identification", NeurIPS 2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mfhpo.identification.engine import Elimination
from mfhpo.knowledge.bias import Kind, check_variant
from mfhpo.problem import Problem

__all__ = [
    "IISE",
    "Elimination",
    "MaximumFidelityExploit",
    "SuccessiveElimination",
]

FloatArray = npt.NDArray[np.float64]


class IISE(Elimination):
    """Iterative imprecise successive elimination (paper 003, Algorithm 1), and its order version.

    With max bounds xi_m it is IISE; with order bounds gamma_m it is IISE-gamma (Section 5), which
    is never dearer: gamma_m <= 2 xi_m. With no bounds declared,
    see `estimated_bias`.

    Parameters
    ----------
    problem
        What is known.
    variant
        "max" or "order": the kind of bounds to estimate when none are declared. When bounds are
        declared it may be left out; naming the other kind is an error.
    **options
        See `Elimination` and `BestArmPolicy`.

    Raises
    ------
    ValueError
        If `variant` contradicts the declared bounds.
    """

    def __init__(self, problem: Problem, *, variant: Kind | None = None, **options: Any) -> None:
        check_variant(variant, problem.bias)
        self._variant: Kind = variant or "order"
        super().__init__(problem, **options)

    def _kind(self) -> Kind:
        return self._variant


class SuccessiveElimination(Elimination):
    """Successive elimination at the target fidelity only (SE), the baseline of paper 003.

    Cheaper fidelities are ignored, so that no bias is needed and the union bound is over arms
    alone: d = delta / K.
    """

    @property
    def _target_only(self) -> bool:
        return True


class MaximumFidelityExploit(IISE):
    """IISE with thresholds near 0, so that each fidelity is explored as far as it goes (MFE).

    A baseline of paper 003 that shows what the thresholds are for: it is dearer than ignoring
    cheap fidelities altogether.

    Parameters
    ----------
    problem
        What is known.
    fraction
        alpha_m as a share of the declared or estimated bound at fidelity m, in (0, 1].
    **options
        See `IISE`.
    """

    def __init__(self, problem: Problem, *, fraction: float = 0.1, **options: Any) -> None:
        if not 0.0 < fraction <= 1.0:
            raise ValueError(f"fraction must be in (0, 1], got {fraction!r}.")
        self._fraction = fraction
        super().__init__(problem, **options)

    def _thresholds(self, margins: FloatArray, costs: FloatArray) -> FloatArray:
        assert self._bias is not None
        bounds_over_margins = 0.5 if self._bias.kind == "max" else 1.0
        return self._fraction * bounds_over_margins * margins
