"""`certify`: what the winner of a fitted parameter search is really worth."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from mfhpo._validation import (
    MOST_LEVELS,
    check_baseline,
    check_count,
    check_flag,
    check_instance,
    check_limit,
    shown,
)
from mfhpo.certification.candidates import Candidate, Shortlist, best_of, far_in_words, n_finalists
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.plan import plan_of
from mfhpo.certification.selection import interval_for_new_data
from mfhpo.experiment import Experiment, ShortlistSettings, key_of
from mfhpo_sklearn.evaluation import FitArguments, Task, fits
from mfhpo_sklearn.policy_search import described, own_setting
from mfhpo_sklearn.resources import WHOLE, GivenSplits, Splits, is_given_set

SearchCertificate: TypeAlias = Certificate
BaselineLike: TypeAlias = Mapping[str, Any] | Literal["estimator"] | None

_NEW = -1  # in place of the row of a baseline that the search has not tried


def certify(
    search: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    top: int | None = None,
    baseline: BaselineLike = "estimator",
    delta: float = 0.05,
    epsilon: float | None = None,
    budget: int | None = None,
    timeout: float | None = None,
    cv: Any = None,
    measure: int = 10,
    max_failures: int = 3,
    refit: bool = True,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    plan: bool = False,
) -> Any:
    """Find out which of a fitted search's best settings is best, and what it is worth.

    ``search.best_score_`` is the luckiest of many noisy means. This evaluates the best `top`
    settings again on fresh splits, until the best of them is known. With probability at least 1 -
    `delta`, no setting of the shortlist is better by more than `epsilon`, on average over random
    splits of these data. The answer says nothing about other settings. For new data of the same
    kind there is an approximate interval.

    Parameters
    ----------
    search
        A fitted ``GridSearchCV``, ``RandomizedSearchCV``, ``HalvingGridSearchCV`` or
        ``HalvingRandomSearchCV``. It is not changed. With several metrics, the one that ``refit``
        names counts.
    X, y, groups
        The data that the search was fitted on.
    top
        How many settings to compare, at least 2, or 1 with a baseline. The search's
        ``best_params_`` are always among them. A halving search's resource is set to the most that
        it gave. None: at most 6, without those that are far below the best by its own splits.
    baseline
        What is in use today, which is compared with the others: the answer says by how much the
        winner is better than it, at least. "estimator": the parameters that the search's estimator
        has itself. Or a dictionary of parameters, the others as the estimator has them. None: there
        is none.
    epsilon
        See `mfhpo_sklearn.policy_search.PolicySearchCV`.
    budget
        Largest number of fits, at least the number of settings. None: no limit.
    timeout
        Seconds after which no round is begun; the answer says so. None: no limit.
    cv
        A splitter that shuffles, of which the first split is taken under a new seed in each block.
        Or a set of splits: a number of folds, a list, or a splitter that does not shuffle, such as
        ``KFold(5)`` or ``TimeSeriesSplit()``. The claim is then about these, and exact once all of
        at most 10 were used; `epsilon` is 0 by default. None: fresh splits like the search's own.
        Where neighbours in the data are alike (one subject's, one day's), shuffled splits look
        better than they are: give `groups`, or a splitter that keeps them together.
    delta, measure, max_failures
        See `mfhpo.certification.certification.Certification`.
    refit
        See `mfhpo_sklearn.policy_search.PolicySearchCV`.
    fit_params
        Further arguments of ``fit``, as ``search.fit`` was given (see ``SpaceSearchCV.fit``).
    n_jobs
        Number of settings that are evaluated at once, on the same split. None: as in the search.
    random_state
        Makes the splits repeatable. None: new ones each time.
    plan
        Whether to evaluate nothing, and return what it would take: a
        `mfhpo.certification.plan.Plan`. Otherwise a search with ``verbose`` prints that first.

    Returns
    -------
    SearchCertificate
        ``print`` it.

    Raises
    ------
    ValueError
        If there are no fresh splits like the search's, as with ``TimeSeriesSplit``, or splits tear
        `groups` apart. What all settings raise in the first round is raised, too.
    KeyboardInterrupt
        If interrupted before any fit gave a score. Later, an interrupt ends the evaluations: the
        answer says what holds, and `best_estimator_` is None.

    Notes
    -----
    Settings are compared by their differences on the same split, which are taken as normal. A
    divergence that no split has shown is not excluded; the text says how rare it may be. A fit that
    fails is repeated on its split, until its setting leaves. A split on which all settings fail is
    left out. A score of NaN or +inf counts as a failed fit. One of -inf is the worst score: the
    setting's mean is -inf, so that it leaves at once, and the claim counts it among the worse. An
    estimator with a fixed ``random_state`` keeps it: the answer is about that seed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> from mfhpo_sklearn import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(SVC(), {"C": [0.01, 0.1, 1, 10], "gamma": [0.1, 1]}).fit(X, y)
    >>> answer = certify(search, X, y, top=4, random_state=0)
    >>> answer.certified, answer.evaluations < 100, answer.best_estimator_.score(X, y) > 0.9
    (True, True, True)
    """
    is_set = is_given_set(cv)
    shortlist, scorer = shortlist_of(search, top, baseline, "these" if is_set else "random")
    timeout = check_limit("timeout", timeout)
    if random_state is not None:
        check_count("random_state", random_state, 0)
    check_flag("refit", refit)
    check_instance("fit_params", fit_params, Mapping | None, "a dictionary or None")
    if n_jobs is not None:
        check_count("n_jobs", n_jobs, -MOST_LEVELS, MOST_LEVELS)
    X, y = indexable(X, y)
    passed = FitArguments.of(search, X, fit_params or {}, groups)
    splits = (GivenSplits if is_set else Splits)(search, cv, X, y, passed.groups, random_state)
    settings = ShortlistSettings(
        shortlist=shortlist,
        options={
            "delta": delta,
            "epsilon": epsilon,
            "budget": budget,
            "measure": measure,
            "max_failures": max_failures,
            "blocks": True,
            "replicates": len(splits) if isinstance(splits, GivenSplits) else None,
        },
        about_evaluations=f"{splits.words}, the same for all settings",
        describe=described,
    )
    experiment = Experiment(settings)
    planned = plan_of(shortlist, {**settings.options, "sigma": None}, 1.0)
    if check_flag("plan", plan):
        return planned
    if getattr(search, "verbose", 0):
        print(planned)
    arms = experiment.runner.configurations
    task = Task(search.estimator, X, y, scorer, passed, splits, WHOLE)
    scores: list[dict[int, float]] = [{} for _ in range(len(arms))]  # by split, maybe made twice
    errors: list[Exception] = []
    why = "" if timeout is None else f"timeout={timeout:g} s is over"
    try:
        found = fits(experiment, task.of, search.n_jobs if n_jobs is None else n_jobs, timeout)
        for n_evaluated, (wanted, evaluation) in enumerate(found, start=1):
            if evaluation.score is not None and evaluation.has_value:
                own = scores[arms.add(wanted.configuration)]
                own.setdefault(wanted.replicate, evaluation.score)
            if evaluation.error is not None:
                errors.append(evaluation.error)
            if n_evaluated == len(errors) == len(arms):
                raise errors[0]
    except KeyboardInterrupt:
        if not any(scores):
            raise
        why = "it was interrupted"
    answer = experiment.answer().certificate
    assert answer is not None
    if not answer.finished:
        answer = replace(answer, reason=f"{why} and {answer.reason}")
    best = None
    if refit and answer.winner is not None and why != "it was interrupted":
        try:
            best = task.fitted(arms[answer.winner])
        except KeyboardInterrupt:
            words = "the last fit was interrupted, so there is no best_estimator_"
            answer = replace(answer, notices=(*answer.notices, words))
    fresh = [] if answer.winner is None else list(scores[answer.winner].values())
    about_new_data = interval_for_new_data(fresh, task.test_per_train(), delta)
    return replace(answer, best_estimator_=best, new_data_interval=about_new_data)


# The best few candidates of a fitted search, as its own scores have them.


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
    on_splits = [results[f"split{split}_test_{metric}"] for split in range(search.n_splits_)]
    by_row = np.array(on_splits, dtype=float).T
    own_values = [tuple(row[np.isfinite(row)].tolist()) for row in by_row]  # none of failed fits
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


def _without_resource(search: Any, params: dict[str, Any]) -> dict[str, Any]:
    resource = getattr(search, "resource", None)
    return {name: value for name, value in params.items() if name != resource}
