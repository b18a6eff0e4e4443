"""One fit and one score on one split, as `cross_validate` makes them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import cross_validate
from sklearn.utils._param_validation import InvalidParameterError

from mfhpo_sklearn.splits import Split


@dataclass(frozen=True)
class Evaluation:
    """What came of a fit: its score, and the seconds it took.

    The score is None if the fit raised, which is the `error`, or the score is not finite.
    """

    score: float | None
    seconds: float
    fit_seconds: float
    score_seconds: float
    error: Exception | None = None


def evaluate(
    estimator: Any, X: Any, y: Any, split: Split, scorer: Any, params: Mapping[str, Any] | None
) -> Evaluation:
    """Fit and score on one split; an exception is returned, so that other settings go on.

    `params` are those of ``fit``, or whatever metadata the estimator and the scorer request.
    Raises ValueError if the scorer gives several metrics.
    """
    begun = time.perf_counter()
    try:
        found = cross_validate(
            estimator,
            X,
            y,
            cv=[split],
            scoring=scorer,
            params=None if params is None else dict(params),
            error_score="raise",
        )
    except Exception as error:
        seconds = time.perf_counter() - begun
        cause = error.__cause__
        if isinstance(error, InvalidParameterError) and isinstance(cause, InvalidParameterError):
            error = cause  # cross_validate has put its own name in place of the estimator's
        return Evaluation(None, seconds, seconds, 0.0, error)
    if "test_score" not in found:
        names = sorted(name[len("test_") :] for name in found if name.startswith("test_"))
        raise ValueError(
            f"scoring={scorer!r} gives several metrics, {names}; give the one that counts."
        )
    score, fit_seconds, score_seconds = (
        float(np.asarray(found[name])[0]) for name in ("test_score", "fit_time", "score_time")
    )
    seconds = time.perf_counter() - begun
    known = score if math.isfinite(score) else None
    return Evaluation(known, seconds, fit_seconds, score_seconds)
