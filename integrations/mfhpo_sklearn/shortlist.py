"""The best few candidates of a fitted search, as its own scores have them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.utils.validation import check_is_fitted

from mfhpo._validation import check_baseline, check_count, shown
from mfhpo.certification.candidates import (
    Candidate,
    Shortlist,
    best_of,
    far_in_words,
    n_finalists,
)
from mfhpo.experiment import key_of
from mfhpo.knowledge.fidelity import native
from mfhpo.search import EarlierResults

BaselineLike: TypeAlias = Mapping[str, Any] | Literal["estimator"] | None

_VALUE = "score of the search"  # no parameter has such a name
_NEW = -1  # in place of the row of a baseline that the search has not tried


def shortlist_of(
    search: Any, top: int | None, baseline: BaselineLike = None, which: str = "random"
) -> tuple[Shortlist, Any]:
    """Return the `top` best settings over `which` splits, and the search's scorer."""
    if top is not None:
        top = check_count("top", top, 2 if baseline is None else 1)
    if not hasattr(search, "estimator") or not hasattr(search, "get_params"):
        raise TypeError(f"search must be a search such as GridSearchCV, got {shown(search)}.")
    check_is_fitted(search, "cv_results_")
    metric, scorer = _metric_of(search)
    results = search.cv_results_
    scores = np.asarray(results[f"mean_test_{metric}"], dtype=np.float64)
    resources = np.asarray(results.get("n_resources", np.zeros(len(scores))))
    rounds = np.asarray(results.get("iter", np.zeros(len(scores))))
    # Of equal settings the first one counts. A halving search has a row for each round that a
    # setting was in: the last one counts.
    rows: dict[str, int] = {}
    for row in np.flatnonzero(np.isfinite(scores)).tolist():
        key = key_of(_without_resource(search, results["params"][row]), described)
        if key not in rows or rounds[row] > rounds[rows[key]]:
            rows[key] = row
    if not rows or (len(rows) < 2 and baseline is None):
        raise ValueError(
            f"search has {len(rows)} different settings with a finite score; at least 2 are needed "
            f"to tell which is best."
        )
    best = getattr(search, "best_index_", None)
    if best is not None and np.isfinite(scores[best]):
        # Equal settings may differ in their scores: the best one's is what the search promised.
        rows[key_of(_without_resource(search, results["params"][best]), described)] = int(best)
    ranked = sorted(rows.values(), key=lambda row: (-resources[row], -scores[row], row))
    first = ranked.index(best) if best in ranked else 0
    settings = {row: _without_resource(search, results["params"][row]) for row in ranked}
    today = None if baseline is None else _row_of_baseline(search, baseline, settings)
    own_values = _own_values(results, metric, search.n_splits_)
    top, n_far = n_finalists([own_values[row] for row in ranked], 1.0, top)
    kept, luckiest, place_of_baseline = best_of(ranked, first, top, today)
    resource = getattr(search, "resource", None)
    most = {}  # that a halving search gave
    if resource not in (None, "n_samples"):
        most = {resource: resources.max().item()}
    candidates = tuple(
        Candidate("baseline", {**settings[row], **most}, math.nan)
        if row == _NEW
        else Candidate(f"row {row}", {**results["params"][row], **most}, float(scores[row]))
        for row in kept
    )
    n_best = min(top, len(ranked))
    and_baseline = " and the baseline" if len(kept) > n_best else ""
    n_settings, n_failed = len(rows), int((~np.isfinite(scores)).sum())
    words = f"by the search's own mean {metric} over its {search.n_splits_} splits"
    if "n_resources" in results:
        words += ", settings that came farthest first"
    if n_failed:
        words += f"; {n_failed} rows without a score left out"
    words += far_in_words(n_far)
    shortlist = Shortlist(
        candidates=candidates,
        luckiest=luckiest,
        about=f"the {n_best} best of {n_settings} settings{and_baseline} by the mean score over "
        f"{which} splits of these data",
        words=f"{words}; the means below use new evaluations only",
        baseline=place_of_baseline,
        own_values=tuple(own_values[row] if row != _NEW else () for row in kept),
        shares_splits="n_resources" not in results,
    )
    return shortlist, scorer


def as_results(source: Any) -> Any:
    """Return what a search, or its ``cv_results_``, has found as `EarlierResults`, if it is one."""
    results = getattr(source, "cv_results_", source)
    if not isinstance(results, Mapping) or not {"params", "mean_fit_time"} <= results.keys():
        return source
    metric = refit if isinstance(refit := getattr(source, "refit", None), str) else "score"
    scores = results.get(f"mean_test_{metric}")
    if scores is None:
        raise ValueError(
            "earlier has cv_results_ of several metrics; give the fitted search, whose refit names "
            "one, or EarlierResults of settings and scores."
        )
    resources = np.asarray(results.get("n_resources", np.zeros(len(scores))))
    farthest = np.flatnonzero(resources == resources[np.isfinite(scores)].max(initial=0))
    rows = [{**results["params"][row], _VALUE: scores[row]} for row in farthest]
    return EarlierResults(rows, value=_VALUE, direction="maximize")


def own_setting(estimator: Any, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return what is given, and for other names what the estimator has itself."""
    own = estimator.get_params()
    if unknown := sorted(given.keys() - own.keys() - {*names}):
        raise ValueError(
            f"baseline={shown(dict(given))} has {unknown[0]!r}, which is no parameter of "
            f"{type(estimator).__name__}."
        )
    return {name: own[name] for name in sorted({*names, *given}) if name in own} | dict(given)


def _row_of_baseline(
    search: Any, baseline: BaselineLike, settings: dict[int, dict[str, Any]]
) -> int:
    """Return the row of the baseline, or `_NEW`, whose setting is then added to the others."""
    if not (isinstance(baseline, str) and baseline == "estimator"):
        check_baseline(baseline, has_index=False)
    given = baseline if isinstance(baseline, Mapping) else {}
    names = {name for setting in settings.values() for name in setting}
    today = _without_resource(search, own_setting(search.estimator, given, names))
    for row, setting in settings.items():
        whole = _without_resource(search, own_setting(search.estimator, setting, today))
        if key_of(whole, described) == key_of(today, described):
            return row
    settings[_NEW] = today
    return _NEW


def _own_values(results: Any, metric: str, n_splits: int) -> list[tuple[float, ...]]:
    """Return the scores of each row on the search's splits; of failed fits none."""
    scores = [results[f"split{split}_test_{metric}"] for split in range(n_splits)]
    return [tuple(row[np.isfinite(row)].tolist()) for row in np.array(scores, dtype=float).T]


def _metric_of(search: Any) -> tuple[str, Any]:
    """Return the name of the metric in ``cv_results_``, and its scorer."""
    scorer = search.scorer_
    if not getattr(search, "multimetric_", isinstance(scorer, dict)):
        return "score", scorer
    if isinstance(search.refit, str):
        several = scorer if callable(scorer) else _MultimetricScorer(scorers=scorer)
        return search.refit, _OneMetric(several, search.refit)
    start = "mean_test_"
    names = [name.removeprefix(start) for name in search.cv_results_ if name.startswith(start)]
    raise ValueError(
        f"search has the metrics {sorted(names)} and refit={search.refit!r}, which does not say "
        f"which of them counts; fit it with refit={names[0]!r} or the like."
    )


@dataclass(frozen=True)
class _OneMetric:
    """A scorer that gives one of the metrics of one that gives several."""

    scorer: Any
    name: str

    def __call__(self, estimator: Any, X: Any, *targets: Any, **params: Any) -> Any:
        return self.scorer(estimator, X, *targets, **params)[self.name]


# What `repr` tells apart in full; a class that derives from one of these may hide its state.
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def described(value: Any) -> Any:
    """Return what tells a value from others, unlike a `repr` that is cut off."""
    value = native(value)
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        return kind.__name__, [described(part) for part in value]
    if kind is dict:
        return "dict", [(described(name), described(part)) for name, part in value.items()]
    usual = BaseEstimator.__sklearn_clone__
    clones_parameters = getattr(kind, "__sklearn_clone__", usual) is usual  # and nothing else
    if hasattr(value, "get_params") and not isinstance(value, type) and clones_parameters:
        parts = value.get_params(deep=False)
        return _digest(kind), [(name, described(part)) for name, part in sorted(parts.items())]
    return _digest(value)


def _digest(value: Any) -> Any:
    try:
        return joblib.hash(value)
    except Exception:  # it cannot be pickled, as a lambda: the same if it is the same object
        return "object", id(value)


def _without_resource(search: Any, params: dict[str, Any]) -> dict[str, Any]:
    resource = getattr(search, "resource", None)
    return {name: value for name, value in params.items() if name != resource}
