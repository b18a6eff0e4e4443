"""The evaluations of a search, and ``cv_results_`` in scikit-learn's form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mfhpo.experiment import Assignment, Experiment
from mfhpo_sklearn.evaluation import Evaluation


@dataclass(frozen=True)
class Row:
    """One evaluation; a fresh value may count in a claim, as no search has selected it."""

    arm: int
    level: int
    split: int
    evaluation: Evaluation
    is_fresh: bool

    @classmethod
    def of(cls, experiment: Experiment, wanted: Assignment, evaluation: Evaluation) -> Row:
        """Return what came of an assignment."""
        arm = experiment.runner.configurations.find(wanted.configuration)
        assert arm is not None
        is_fresh = wanted.purpose in ("given", "certificate")
        return cls(arm, wanted.level, wanted.replicate, evaluation, is_fresh)


class Results:
    """All evaluations of a search, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def scores_of(self, arm: int, level: int) -> list[float]:
        """Return an arm's scores at a level: the fresh ones, or else all."""
        here = [row for row in self.rows if (row.arm, row.level) == (arm, level)]
        return _scores([row for row in here if row.is_fresh]) or _scores(here)

    def table(
        self,
        arms: Sequence[int],
        best: int,
        params: Callable[[int, int], Mapping[str, Any]],
        levels: Sequence[Any] | None,
    ) -> tuple[dict[str, Any], int]:
        """Return ``cv_results_`` with a row for each candidate, and the number of split columns.

        A row's scores are those at the highest level that the candidate has a value at; if it has
        fresh ones there, its mean is theirs alone. The `best` arm ranks first, then those with
        fresh scores, then by level and mean. `arms` has the arm of each row: that of several, if
        candidates are equal. `params` gives the parameters of an arm at a level.
        """
        by_arm: dict[int, list[Row]] = {arm: [] for arm in arms}
        for row in self.rows:
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
        for name in dict.fromkeys(name for each in settings for name in each):
            table[f"param_{name}"] = _masked([each.get(name, _ABSENT) for each in settings])
        table["params"] = settings
        n_splits = 1 + max((row.split for row in self.rows), default=0)
        for split in range(n_splits):
            scores = [one.scores.get(split, math.nan) for one in summaries]
            table[f"split{split}_test_score"] = np.array(scores)
        table["mean_test_score"] = np.array([one.mean for one in summaries])
        table["std_test_score"] = np.array([one.std for one in summaries])
        table["rank_test_score"] = _ranks(
            [(arm == best, *one.standing) for arm, one in zip(arms, summaries, strict=True)]
        )
        table["n_fits"] = np.array([len(each) for each in known])
        if levels is not None:
            table["iter"] = np.array([one.level for one in summaries])
            given = [
                levels[one.level] if each else 0 for one, each in zip(summaries, known, strict=True)
            ]
            table["n_resources"] = np.array(given)
        return table, n_splits


_ABSENT = object()


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


def _scores(rows: Sequence[Row]) -> list[float]:
    return [row.evaluation.score for row in rows if row.evaluation.score is not None]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _spread(values: Sequence[float]) -> float:
    if not values or -math.inf in values:
        return math.nan
    return float(np.std(values))


def _masked(values: Sequence[Any]) -> Any:
    """Return a column of parameters: numbers or objects, masked where a row has none."""
    given = [(row, value) for row, value in enumerate(values) if value is not _ABSENT]
    try:
        found = np.array([value for _, value in given])
        dtype = found.dtype if found.ndim == 1 and found.dtype.kind in "biuf" else np.dtype(object)
    except ValueError:  # sequences of different lengths
        dtype = np.dtype(object)
    column = np.ma.MaskedArray(np.empty(len(values), dtype=dtype), mask=True)
    for row, value in given:
        column[row] = value
    return column


def _ranks(standings: Sequence[tuple[Any, ...]]) -> npt.NDArray[np.int32]:
    """Return ranks, 1 for the largest; equal ones share the smallest of their ranks."""
    ranks: dict[tuple[Any, ...], int] = {}
    for rank, standing in enumerate(sorted(standings, reverse=True), 1):
        ranks.setdefault(standing, rank)
    return np.array([ranks[standing] for standing in standings], dtype=np.int32)
