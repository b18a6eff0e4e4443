"""Fits and scores on splits, as `GridSearchCV` makes them, several at once, and their table."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection._search import _yield_masked_array_for_each_param
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from mfhpo.experiment import Assignment, Ended, Experiment
from mfhpo.problem import LARGEST
from mfhpo_sklearn.resources import GivenSplits, Resource, Split, Splits


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
    def has_value(self) -> bool:
        """True if the score is one that a mean can be made of."""
        return self.score is not None and self.score >= -LARGEST

    def with_error_score(self, error_score: Any) -> Evaluation:
        """Return the evaluation with the score of a fit that raised, or raise what it raised."""
        if self.error is None:
            return self
        if error_score == "raise":
            raise self.error
        return replace(self, score=float(error_score)) if error_score < math.inf else self


@dataclass(frozen=True)
class FitArguments:
    """Further arguments, as `GridSearchCV` of the same release passes them on.

    What has one value for each sample is split like `X`. The `groups` are for the splitter.
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


@dataclass(frozen=True)
class Task:
    """The arguments of `fit`, as evaluated; `passed` goes to the estimator and the scorer."""

    estimator: Any
    X: Any
    y: Any
    scorer: Any
    passed: FitArguments
    splits: Splits | GivenSplits
    resource: Resource

    def of(self, wanted: Assignment) -> tuple[Any, ...]:
        """Return the arguments of `evaluate` for what is wanted."""
        estimator = self._with({**wanted.configuration, **self.resource.settings(wanted.level)})
        split = self.resource.part_of(self.splits[wanted.replicate], wanted.level)
        return estimator, self.X, self.y, split, self.scorer, self.passed

    def fitted(self, params: Mapping[str, Any]) -> Any:
        """Return the estimator with these parameters, fitted on all data."""
        best = self._with(params)
        best.fit(self.X, *(() if self.y is None else (self.y,)), **self.passed.for_fit())
        return best

    def test_per_train(self) -> float:
        """Return how many samples are tested for each one that is trained on at the target."""
        train, test = self.resource.part_of(self.splits[0], len(self.resource.levels) - 1)
        return len(test) / len(train)

    def _with(self, params: Mapping[str, Any]) -> Any:
        return clone(self.estimator).set_params(**clone(dict(params), safe=False))


def evaluate(
    estimator: Any, X: Any, y: Any, split: Split, scorer: Any, passed: FitArguments
) -> Evaluation:
    """Fit a clone and score it on one split; an exception is returned, so that others go on."""
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

    `error_score` is the score of a fit that raises. With `is_timed`, evaluations cost their
    seconds. After the `timeout`, in seconds, nothing is begun.
    """
    until = math.inf if timeout is None else time.monotonic() + timeout
    at_once = effective_n_jobs(n_jobs)
    try:
        workers = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # the backend "multiprocessing" hands over no results as they come
        workers = Parallel(n_jobs=n_jobs)
    with workers as parallel:
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


# `cv_results_` in scikit-learn's form.


@dataclass(frozen=True)
class Row:
    """One evaluation; a fresh value may count in a claim, as no search has selected it."""

    arm: int
    level: int
    split: int
    evaluation: Evaluation
    is_fresh: bool


def scores_of(rows: Sequence[Row], arm: int, level: int) -> list[float]:
    """Return an arm's scores at a level: the fresh ones, or else all."""
    here = [row for row in rows if (row.arm, row.level) == (arm, level)]
    scored = [(row.evaluation.score, row.is_fresh) for row in here]
    fresh = [score for score, is_fresh in scored if is_fresh and score is not None]
    return fresh or [score for score, _ in scored if score is not None]


def table_of(
    rows: Sequence[Row],
    arms: Sequence[int],
    best: int,
    params: Callable[[int, int], Mapping[str, Any]],
    levels: Sequence[Any] | None,
) -> tuple[dict[str, Any], int]:
    """Return ``cv_results_`` with a row for each of the `arms`, and the number of split columns.

    A row's scores are those at the highest level that the candidate has a value at; if it has fresh
    ones there, its mean is theirs alone. The `best` arm ranks first, then those with fresh scores,
    then by level and mean. `params` gives the parameters of an arm at a level.
    """
    by_arm: dict[int, list[Row]] = {arm: [] for arm in arms}
    for row in rows:
        by_arm[row.arm].append(row)
    known = [by_arm[arm] for arm in arms]
    summaries = [_Summary.of(each) for each in known]
    settings = [dict(params(arm, one.level)) for arm, one in zip(arms, summaries, strict=True)]
    table: dict[str, Any] = {}
    for name in ("fit_seconds", "score_seconds"):
        label = name.replace("seconds", "time")
        times = [[getattr(row.evaluation, name) for row in one.rows] for one in summaries]
        table[f"mean_{label}"] = np.array([_mean(each) for each in times])
        table[f"std_{label}"] = np.array([_spread(each) for each in times])
    table |= dict(_yield_masked_array_for_each_param(settings))
    table["params"] = settings
    n_splits = 1 + max((row.split for row in rows), default=0)
    for split in range(n_splits):
        scores = [one.scores.get(split, math.nan) for one in summaries]
        table[f"split{split}_test_score"] = np.array(scores)
    table["mean_test_score"] = np.array([one.mean for one in summaries])
    table["std_test_score"] = np.array([one.std for one in summaries])
    standings = [(arm == best, *one.standing) for arm, one in zip(arms, summaries, strict=True)]
    ordered = sorted(standings, reverse=True)
    ranks = [1 + ordered.index(standing) for standing in standings]  # equal ones share one
    table["rank_test_score"] = np.array(ranks, dtype=np.int32)
    table["n_fits"] = np.array([len(each) for each in known])
    if levels is not None:
        table["iter"] = np.array([one.level for one in summaries])
        most = [levels[s.level] if each else 0 for s, each in zip(summaries, known, strict=True)]
        table["n_resources"] = np.array(most)
    return table, n_splits


@dataclass(frozen=True)
class _Summary:
    """The evaluations of one arm at its highest level, and what they say."""

    level: int
    rows: list[Row]
    scores: dict[int, float]  # by split
    mean: float
    std: float
    is_fresh: bool

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Summary:
        valued = [row for row in rows if row.evaluation.score is not None]
        level = max((row.level for row in valued or rows), default=0)
        here = [row for row in valued if row.level == level]
        fresh = [row for row in here if row.is_fresh]
        counted = [row.evaluation.score or 0.0 for row in fresh or here]
        scores = {row.split: row.evaluation.score or 0.0 for row in here}
        return cls(level, here, scores, _mean(counted), _spread(counted), bool(fresh))

    @property
    def standing(self) -> tuple[bool, bool, bool, int, float]:
        """Sort key, larger is better; without any score, worst, and before that, with -inf."""
        has_score = not math.isnan(self.mean)
        mean = self.mean if has_score else 0.0
        return has_score, mean > -math.inf, self.is_fresh, self.level, mean


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _spread(values: Sequence[float]) -> float:
    if not values or -math.inf in values:
        return math.nan
    return float(np.std(values))
