"""One fit and one score on one split, as `cross_validate` makes them, and several at once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import cross_validate
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.parallel import Parallel, delayed

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


def workers(n_jobs: int | None) -> Parallel:
    """Return workers that hand over results as they come, where joblib's backend can."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    except ValueError:  # the backend "multiprocessing"
        return Parallel(n_jobs=n_jobs)


def evaluations(
    parallel: Parallel, tasks: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Evaluation]]:
    """Yield the number of each task and its evaluation; a task holds `evaluate`'s arguments.

    They come in the order of the tasks, whichever worker is faster. After a KeyboardInterrupt, all
    that have ended come before it is raised.
    """
    ended: dict[int, Evaluation] = {}
    place = 0
    try:
        for found, evaluation in parallel(
            delayed(_evaluate_at)(number, *task) for number, task in enumerate(tasks)
        ):
            ended[found] = evaluation
            while place in ended:
                yield place, ended.pop(place)
                place += 1
    except KeyboardInterrupt:
        for found in sorted(ended):
            yield found, ended[found]
        raise


def _evaluate_at(place: int, *task: Any) -> tuple[int, Evaluation]:
    return place, evaluate(*task)
