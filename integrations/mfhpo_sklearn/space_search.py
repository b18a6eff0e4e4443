"""`SpaceSearchCV`: search a space of distributions on a budget, then certify the best."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import check_baseline
from mfhpo.experiment import Configurations, DistributionSpace, Experiment, SearchSettings
from mfhpo.experiment.kinds.runner import numbered
from mfhpo.knowledge.candidates import configurations_of
from mfhpo.search import DeclaredSearch, EarlierResults
from mfhpo_sklearn.policy_search import PolicySearchCV, described, own_setting
from mfhpo_sklearn.resources import Resource

_VALUE = "score of the search"  # no parameter has such a name
_REPLICATE = "number of the split"  # no parameter of an estimator has such a name
_USUAL_BUDGET = 100.0  # full fits: as many as 20 settings on five folds take


class SpaceSearchCV(PolicySearchCV):
    """Searches a space with cheap and full fits, then certifies the best that it has found.

    When to use it: as you would use ``RandomizedSearchCV`` or ``HalvingRandomSearchCV``, for a
    budget of some tens or hundreds of fits. A model of all levels of the resource
    (`mfhpo.search.ModelSearch`) decides which setting to try and which to go on with, all on one
    split of the data. The second half of the budget evaluates the finalists again, on fresh splits
    that they share. No setting is tried twice. Once all settings of a space were tried, the best
    `top` of them go to full fits, and the rest of the budget to the certificate.

    What it guarantees, on average over random splits of these data: with probability at least 1 -
    `delta`, no setting of the shortlist is better than the certified one by more than `epsilon`.
    It says nothing about settings outside the shortlist. For new data of the same kind there is an
    approximate interval.

    Parameters
    ----------
    param_distributions
        A dictionary with a list of values or a distribution of scipy.stats for each parameter. Or a
        list of such dictionaries, one of which each setting is drawn from. Lists of increasing
        numbers have an order to the model.
    candidates
        The settings to choose from, instead of a space: a list of dictionaries, a dictionary of
        columns or a DataFrame. Or how many to draw from `param_distributions`. All begin with as
        much of the resource as the budget pays for, and the model says which get more.
    resource
        What makes fits cheap: ``"n_samples"``, the number of training samples, or a parameter of
        the estimator such as ``"max_iter"``. None: every fit is a full one.
    budget
        What may be paid in full fits, certificate included. A fit with a third of the resource
        counts as a third. None, without `seconds`: 100.
    seconds
        The budget in seconds of fitting and scoring, summed over workers, instead of `budget`. What
        fits cost is measured, by setting; the total may be missed by one fit of each worker. No fit
        is stopped.
    certify_share
        Share of the budget that is kept for the certificate, in [0, 1). It is large because scores
        differ from split to split, and the search sees one alone. Nothing is kept if the share does
        not pay for four full fits, or for ten where seconds are measured. Then ``best_score_`` is
        the search's own, a lucky one.
    top
        Largest number of settings on the shortlist, at least 2.
    baseline
        The setting in use today, as a dictionary; the other parameters are as the estimator has
        them, so that ``{}`` is the estimator itself. It is fitted with all of the resource first,
        and is always among the finalists; ``certificate_`` says by how much the winner is better
        than it, at least. That takes half of `delta`. With `candidates`, it is one of them. None:
        there is none.
    earlier, beliefs
        See `mfhpo.search.SearchOptions`. Results are fitted searches, or their ``cv_results_``.
    max_failures
        A setting of the shortlist without any score leaves after so many fits that fail.

    Attributes
    ----------
    certificate_
        ``print`` it: what is certified, how sure that is, and what it rests on
        (`mfhpo.experiment.Answer`).
    best_params_, best_score_, best_index_, best_estimator_, refit_time_, scorer_, n_splits_
        As in ``GridSearchCV``, but the score is the mean on fresh splits, as far as there are any,
        and a setting has scores in some of the columns ``split<k>_test_score`` only.
    cv_results_
        A row for each setting, with the columns of ``GridSearchCV``. ``split0_test_score`` is the
        search's own, and not part of the mean where there are fresh ones. ``n_fits`` counts fits of
        any size. With a resource, ``n_resources`` is the most that the setting was given, and
        ``iter`` the place of that among the levels.

    Notes
    -----
    A space of some tens of settings is better raced whole, by `MFSearchCV`. Several workers make
    other choices than one.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from mfhpo_sklearn import SpaceSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": loguniform(0.01, 1000), "kernel": ["rbf", "linear"]}
    >>> search = SpaceSearchCV(SVC(), space, budget=60, random_state=0).fit(X, y)
    >>> search.best_score_ > 0.9, search.certificate_.cost <= 60
    (True, True)
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        candidates: Any = None,
        resource: str | None = None,
        levels: Sequence[Any] | None = None,
        budget: float | None = None,
        seconds: float | None = None,
        certify_share: float = 0.5,
        top: int = 8,
        baseline: Mapping[str, Any] | int | None = None,
        earlier: Sequence[Any] | None = None,
        beliefs: Mapping[str, Any] | None = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        max_failures: int = 3,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        error_score: Any = np.nan,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self._set(locals())

    def _taken(self) -> set[str]:
        return self._parameters().names

    def _parameters(self) -> DistributionSpace:
        """Return the space, or what varies between the candidates."""
        if self.param_distributions is not None:
            return DistributionSpace(self.param_distributions, "param_distributions")
        given = self._given()
        if given is None or isinstance(given, int):
            raise ValueError(
                f"param_distributions=None needs candidates to choose from, got "
                f"candidates={self.candidates!r}; give a list of settings, or a space."
            )
        names = dict.fromkeys(name for each in given for name in each)
        values = {name: [each[name] for each in given if name in each] for name in names}
        return DistributionSpace(values)

    def _settings(self, resource: Resource, seed: int) -> SearchSettings:
        fidelity = resource.fidelity
        if self.seconds is not None and fidelity is not None:
            fidelity = replace(fidelity, costs=None)
        budget, given = self.budget, self._given()
        if budget is None and self.seconds is None:
            budget = _USUAL_BUDGET
        listed = given if isinstance(given, list) else []
        parameters = self._parameters()
        today = check_baseline(self.baseline, has_index=given is not None)
        if given is None and today is not None:
            today = own_setting(self.estimator, today, parameters.names)
        declared = DeclaredSearch.of(
            fidelity,
            budget=budget,
            seconds=self.seconds,
            replicate=_REPLICATE,
            certify_share=self.certify_share,
            top=self.top,
            delta=self.delta,
            epsilon=self.epsilon,
            max_failures=self.max_failures,
            baseline=today,
            earlier=self.earlier,
            as_results=as_results,
            beliefs=self.beliefs,
            candidates=numbered(Configurations(listed, described)) if listed else given,
        )
        return SearchSettings(
            declared=declared,
            levels=resource.levels,
            space=None if listed else parameters,
            candidates=listed,
            seed=seed,
            describe=described,
        )

    def _given(self) -> int | list[dict[str, Any]] | None:
        """Return the candidates as a list, or how many to draw."""
        given = self.candidates
        return None if given is None else configurations_of(given, may_repeat=True)

    def _rows(self, experiment: Experiment, evaluated: Collection[int]) -> list[int]:
        entries = experiment.runner.configurations.entries
        return [arm for arm in entries if arm in evaluated] or sorted(evaluated)


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
