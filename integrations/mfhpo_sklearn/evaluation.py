"""One fit and one score on one split, as `GridSearchCV` makes them, and several at once."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from mfhpo.experiment import Assignment, Ended, Experiment
from mfhpo.problem import LARGEST
from mfhpo_sklearn.splits import Split


@dataclass(frozen=True)
class Evaluation:
    """What came of a fit: its score, and the seconds it took.

    The score is None if the fit raised, which is the `error`, or the score is NaN or beyond 1e50:
    no setting is worth that. A score of -inf, or below -1e50, is one, the worst.
    """

    score: float | None
    seconds: float
    fit_seconds: float
    score_seconds: float
    error: Exception | None = None

    @property
    def is_worst(self) -> bool:
        """True if the setting is worse than any other: no mean with such a score is finite."""
        return self.score is not None and self.score < -LARGEST

    @property
    def has_value(self) -> bool:
        """True if the score is one that a mean can be made of."""
        return self.score is not None and not self.is_worst

    def with_error_score(self, error_score: Any) -> Evaluation:
        """Return the evaluation with the score of a fit that raised, or raise what it raised."""
        if self.error is None:
            return self
        if error_score == "raise":
            raise self.error
        return replace(self, score=float(error_score)) if error_score < math.inf else self


@dataclass(frozen=True)
class FitArguments:
    """Further arguments of ``fit``, as `GridSearchCV` of the same release passes them on.

    Parameters
    ----------
    fit, score
        What the estimator and the scorer are passed, by name. What has one value for each sample
        is split like `X`.
    groups
        What the splitter is passed, or None.
    """

    fit: Mapping[str, Any]
    score: Mapping[str, Any]
    groups: Any

    @classmethod
    def of(cls, search: Any, X: Any, given: Mapping[str, Any], groups: Any = None) -> FitArguments:
        """Return what a search passes on; `groups` are for the splitter, whoever asks for them."""
        if not hasattr(search, "_get_routed_params_for_fit"):  # a search of another library
            return cls(dict(given), {}, groups)
        if groups is not None and get_config()["enable_metadata_routing"]:
            asked = get_routing_for_object(search).consumes("fit", ["groups"])
            given = {**given, **dict.fromkeys(asked, groups)}
        routed = search._get_routed_params_for_fit(_check_method_params(X, dict(given)))
        own = routed.splitter.split.get("groups")
        return cls(routed.estimator.fit, routed.scorer.score, own if groups is None else groups)

    def for_fit(self) -> dict[str, Any]:
        """Return the estimator's arguments for one fit, with its own copies of what has a state."""
        return {name: _copied(value) for name, value in self.fit.items()}


def _copied(value: Any) -> Any:
    """Return a copy of what a fit may change, such as callbacks; data is shared."""
    if hasattr(value, "shape"):
        return value
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    try:
        return copy.deepcopy(value)
    except Exception:  # what cannot be copied, such as an open file or a lock
        return value


def evaluate(
    estimator: Any, X: Any, y: Any, split: Split, scorer: Any, passed: FitArguments
) -> Evaluation:
    """Fit a clone and score it on one split; an exception is returned, so that others go on.

    Raises ValueError if the scorer gives several metrics.
    """
    begun = time.perf_counter()
    try:
        found = _fit_and_score(
            clone(estimator),
            X,
            y,
            scorer=scorer,
            train=split[0],
            test=split[1],
            verbose=0,
            parameters=None,
            fit_params=passed.for_fit(),
            score_params=passed.score,
            return_times=True,
            error_score="raise",
        )
    except Exception as error:
        seconds = time.perf_counter() - begun
        return Evaluation(None, seconds, seconds, 0.0, error)
    score = found["test_scores"]
    if isinstance(score, Mapping):
        raise ValueError(
            f"scoring={scorer!r} gives several metrics, {sorted(score)}; give the one that counts."
        )
    seconds = time.perf_counter() - begun
    known = float(score) if score <= LARGEST else None  # NaN is none, either
    return Evaluation(known, seconds, found["fit_time"], found["score_time"])


def workers(n_jobs: int | None) -> Parallel:
    """Return workers that hand over results as they come, where joblib's backend can."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # the backend "multiprocessing"
        return Parallel(n_jobs=n_jobs)


def fits(
    experiment: Experiment,
    task_of: Callable[[Assignment], tuple[Any, ...]],
    n_jobs: int | None,
    timeout: float | None,
    *,
    is_timed: bool = False,
    error_score: Any = math.nan,
) -> Iterator[tuple[Assignment, Evaluation]]:
    """Evaluate what an experiment asks for, several at once, and yield what it was told.

    A task holds the arguments of `evaluate`, and `error_score` is the score of a fit that raises.
    With `is_timed`, evaluations cost their seconds. After the `timeout`, in seconds, nothing is
    begun.
    """
    until = math.inf if timeout is None else time.monotonic() + timeout
    at_once = effective_n_jobs(n_jobs)
    with workers(n_jobs) as parallel:
        while time.monotonic() < until:
            wanted: list[Assignment] = []
            first = experiment.n_begun
            while len(wanted) < at_once and isinstance(work := experiment.next(), Assignment):
                experiment.apply(work.begun(str(first + len(wanted)), experiment.order))
                wanted.append(work)
            if not wanted:
                return
            # In this order, whichever worker is faster: what is interrupted may be poor, and what
            # was begun after it is not told.
            found = parallel(delayed(evaluate)(*task_of(each)) for each in wanted)
            for place, each in enumerate(found):
                evaluation, order = each.with_error_score(error_score), experiment.order
                cost = evaluation.seconds if is_timed else None
                id, value = str(first + place), evaluation.score
                experiment.apply(Ended(id=id, order=order, value=value, cost=cost))
                yield wanted[place], evaluation
