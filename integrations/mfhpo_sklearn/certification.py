"""`certify`: what the winner of a fitted parameter search is really worth."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from sklearn.utils import indexable

from mfhpo._validation import MOST_LEVELS, check_count, check_flag, check_instance, check_limit
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.plan import plan_of
from mfhpo.certification.selection import interval_for_new_data
from mfhpo.experiment import Experiment, ShortlistSettings
from mfhpo_sklearn.evaluation import FitArguments, Task, fits
from mfhpo_sklearn.resources import WHOLE, GivenSplits, Splits, is_given_set
from mfhpo_sklearn.shortlist import BaselineLike, described, shortlist_of

SearchCertificate: TypeAlias = Certificate


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
        ``best_params_`` are always among them. A halving search's resource, such as the number of
        trees, is set to the most that it gave. None: at most 6, without those that are far below
        the best by its own splits.
    baseline
        What is in use today, which is compared with the others: the answer says by how much the
        winner is better than it, at least. "estimator": the parameters that the search's estimator
        has itself. Or a dictionary of parameters, the others as the estimator has them. None: there
        is none.
    epsilon
        See `mfhpo_sklearn.policy_search.PolicySearchCV`.
    budget
        Largest number of fits, at least the number of settings. When it is spent, the answer is not
        certified, but says what holds. None: no limit.
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
        ``print`` it; it also shows what the search's own winner had promised, and turned out to be.

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
