"""The base of the searches: scikit-learn's conventions around a race."""

from __future__ import annotations

import abc
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from mfhpo._validation import (
    MOST_AT_ONCE,
    MOST_LEVELS,
    check_choice,
    check_count,
    check_flag,
    check_limit,
    shown,
    unwrapped,
)
from mfhpo.certification.new_data import interval_for_new_data
from mfhpo.problem import Pull
from mfhpo.search.recommendation import failures_in_words
from mfhpo_sklearn.evaluation import Evaluation, evaluations, workers
from mfhpo_sklearn.given_race import GivenRace
from mfhpo_sklearn.open_race import OpenRace
from mfhpo_sklearn.resources import Resource
from mfhpo_sklearn.results import Results, Row, SearchRecommendation
from mfhpo_sklearn.splits import Splits, in_words

Race = GivenRace | OpenRace


@dataclass(frozen=True)
class _Task:
    """What `fit` was given, as it is evaluated; `passed` goes to the estimator and the scorer."""

    X: Any
    y: Any
    scorer: Any
    passed: Mapping[str, Any]
    splits: Splits
    resource: Resource


class PolicySearchCV(BaseSearchCV):  # type: ignore[misc] # scikit-learn has no types
    """A search that a policy runs; see `SpaceSearchCV`, `MFSearchCV` and `IISESearchCV`.

    Parameters
    ----------
    estimator
        What is fitted: any estimator of scikit-learn, such as a ``Pipeline``. One with a fixed
        ``random_state`` keeps it: the answer is then about that seed.
    levels
        Values of the resource, increasing; the last one is the target. None: up to six, each a
        third of the next, up to all training samples, or to the estimator's own value.
    cv
        A number k of folds, for splits with a test share of 1 / k; None: 5. Or a splitter with a
        `random_state`, whose first split is taken under a new seed each time, shuffled. Splits are
        stratified for classifiers, and keep `groups` together; a splitter that tears them apart is
        refused.
    scoring
        A metric, as in ``GridSearchCV``; a single one.
    n_jobs
        Number of settings that are evaluated at once.
    refit
        Whether to fit the best setting on all data, as ``best_estimator_``.
    error_score
        Score of a fit that raises. NaN: it counts as a failure. "raise": it ends the search.
    verbose
        1: a line says what was paid and which setting leads, whenever that is news; 2: a line for
        each fit, and what it gave.
    random_state
        Makes the search repeatable, as far as the estimator's own seed does.
    """

    resource: str | None
    levels: Sequence[Any] | None
    random_state: Any
    certificate_: SearchRecommendation

    def _set(self, given: Mapping[str, Any]) -> None:
        """Set a constructor's arguments, its ``locals()``, as attributes, as scikit-learn asks."""
        super().__init__(given["estimator"])
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    @abc.abstractmethod
    def _taken(self) -> set[str]:
        """Return the estimator's parameters that are compared; raise for bad candidates."""

    @abc.abstractmethod
    def _race(self, resource: Resource, seed: int) -> Race:
        """Make what decides on evaluations; raise for bad options."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Search on these data, and fit the best setting on all of them.

        Parameters
        ----------
        X
            Samples, shape (n_samples, n_features).
        y
            Targets, shape (n_samples,) or (n_samples, n_outputs), or None.
        **params
            Further arguments of ``fit``, those with one value for each sample split like `X`; with
            ``groups``, for the splitter. Scores are then not weighted. With metadata routing, what
            the estimator, the scorer and the splitter request.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For bad arguments, and if no fit gives a score.
        KeyboardInterrupt
            If interrupted. What was computed until then is kept: all attributes are set but
            ``best_estimator_``.
        """
        self._check_options()
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        X, y = indexable(X, y)
        groups, passed = self._routed(params)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        splits = Splits(self, self.cv if hasattr(self.cv, "split") else None, X, y, groups, seed)
        taken = self._taken()
        resource = Resource.of(self.resource, self.levels, self.estimator, splits, y, taken)
        task = _Task(X, y, scorer, passed, splits, resource)
        race = self._race(resource, seed)
        results = Results()
        shown: tuple[Any, ...] = ()
        try:
            for row in self._evaluations(race, task):
                results.rows.append(row)
                shown = self._show(race, row, shown)
        except KeyboardInterrupt:
            if any(row.evaluation.score is not None for row in results.rows):
                self._keep(race, task, results)
            raise
        self._warn_of_failures(results, resource)
        self._keep(race, task, results)
        if self._timeout is not None and not self.certificate_.finished:
            self.certificate_ = self.certificate_.stopped_by(f"timeout={self._timeout:g} s")
        if self.refit:
            self._refit(task)
        return self

    def _check_options(self) -> None:
        if isinstance(self.scoring, (list, tuple, set, Mapping)):
            raise ValueError(
                f"scoring={shown(self.scoring)} names several metrics, and a race needs the one "
                f"that counts; give a single one, such as scoring='accuracy'."
            )
        check_flag("refit", self.refit)
        if not isinstance(self.error_score, Real):
            check_choice("error_score", self.error_score, ("raise",), " or a number")
        if isinstance(self.cv, Integral):
            check_count("cv", self.cv, 2, MOST_AT_ONCE)
        elif self.cv is not None and not hasattr(self.cv, "split"):
            raise ValueError(
                f"cv must be a number of folds from 2, a splitter with a random_state such as "
                f"ShuffleSplit(), or None, got {in_words(self.cv)}."
            )
        if self.n_jobs is not None:
            check_count("n_jobs", self.n_jobs, -MOST_LEVELS, MOST_LEVELS)
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_count("verbose", self.verbose, 0)
        if not isinstance(self.random_state, np.random.RandomState | None):
            check_count("random_state", self.random_state, 0, 2**32 - 1)
        check_limit("timeout", self._timeout)

    @property
    def _timeout(self) -> float | None:
        limit: float | None = unwrapped(getattr(self, "timeout", None))  # not every search has one
        return limit

    def _routed(self, params: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the splitter's groups, and what goes on to the estimator and the scorer."""
        given = {name: value for name, value in params.items() if value is not None}
        if not get_config()["enable_metadata_routing"]:
            groups = given.pop("groups", None)
            return groups, given
        groups = process_routing(self, "fit", **given).splitter.split.get("groups")
        router = MetadataRouter(owner=self)
        fits = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self.estimator, method_mapping=fits)
        scores = MethodMapping().add(caller="fit", callee="score")
        router.add(scorer=self._get_scorers()[0], method_mapping=scores)
        return groups, {name: given[name] for name in router.consumes("fit", given)}

    def _evaluations(self, race: Race, task: _Task) -> Iterator[Row]:
        """Evaluate what the race asks for, several at once, and tell it in the order asked."""
        until = math.inf if self._timeout is None else time.monotonic() + self._timeout
        at_once = effective_n_jobs(self.n_jobs)
        with workers(self.n_jobs) as parallel:
            while time.monotonic() < until:
                pulls, numbers = _round(race, at_once)
                if not pulls:
                    return
                tasks = [
                    (
                        self._estimator(race, task.resource, pull),
                        task.X,
                        task.y,
                        task.resource.part_of(task.splits[number], pull.fidelity),
                        task.scorer,
                        task.passed,
                    )
                    for pull, number in zip(pulls, numbers, strict=True)
                ]
                for place, evaluation in evaluations(parallel, tasks):
                    pull = pulls[place]
                    evaluation = self._with_error_score(evaluation)
                    race.tell(pull, evaluation)
                    yield Row(pull, numbers[place], evaluation, race.is_fresh(pull))

    def _estimator(self, race: Race, resource: Resource, pull: Pull) -> Any:
        params = race.params(pull.arm) | resource.settings(pull.fidelity)
        return clone(self.estimator).set_params(**clone(params, safe=False))

    def _with_error_score(self, evaluation: Evaluation) -> Evaluation:
        if evaluation.error is None:
            return evaluation
        if self.error_score == "raise":
            raise evaluation.error
        known = math.isfinite(self.error_score)
        return replace(evaluation, score=float(self.error_score)) if known else evaluation

    def _show(self, race: Race, row: Row, shown: tuple[Any, ...]) -> tuple[Any, ...]:
        """Print a line if there is news, or each time if asked to; return what was shown last."""
        if self.verbose < 1:
            return shown
        arm, mean, (low, high), _ = race.policy.leader()
        news = arm, race.phase
        if self.verbose < 2 and news == shown:
            return shown
        text = f"[{type(self).__name__}] {race.policy.cost:.4g} paid, {race.phase}"
        if arm is not None:
            spread = f" ± {(high - low) / 2.0:.2g}" if math.isfinite(high - low) else ""
            text += f"; best so far {race.params(arm)}, {mean:.4g}{spread}"
        if self.verbose > 1:
            score = row.evaluation.score
            came = "failed" if score is None else f"{score:.4g}"
            text += f"; last {race.params(row.pull.arm)} on split {row.split}, {came}"
        print(text)
        return news

    def _why_all_failed(self) -> str:
        """Return a likely reason why all fits failed; "" if none is known."""
        return ""

    def _warn_of_failures(self, results: Results, resource: Resource) -> None:
        errors, n = results.errors, len(results.rows)
        failed = Counter(row.pull.fidelity for row in results.rows if row.evaluation.error)
        where = f" ({failures_in_words(failed, resource.name_of)})" if resource.name else ""
        if n and not results.any_fit_succeeded:
            last = errors[-1] if errors else "the scores are not finite"
            raise ValueError(
                f"all {n} fits failed{where}, so there is nothing to compare; mend the estimator, "
                f"the data, the scoring or the parameters, or set error_score='raise' to see "
                f"where. {self._why_all_failed()}The last error: {last!r}"
            ) from (errors[-1] if errors else None)
        if errors:
            warnings.warn(
                f"{len(errors)} of {n} fits failed{where}; the last error: {errors[-1]!r}",
                FitFailedWarning,
                stacklevel=3,
            )

    def _keep(self, race: Race, task: _Task, results: Results) -> None:
        resource = task.resource
        arm = race.policy.leader()[0]
        if arm is None or not results.rows:
            limits = {name: getattr(self, name, None) for name in ("budget", "seconds", "timeout")}
            given = [f"{name}={limit!r}" for name, limit in limits.items() if limit is not None]
            what = " or ".join(given) or "failures"
            raise ValueError(f"{what} ended the search before any fit gave a score; give more.")
        for earlier in ("best_estimator_", "refit_time_", "feature_names_in_"):
            self.__dict__.pop(earlier, None)
        target = len(resource.levels) - 1
        answer = race.answer(f"{task.splits.words}, {race.sharing}")
        train, test = resource.part_of(task.splits[0], target)
        about_new_data = interval_for_new_data(
            results.scores_of(arm, target), len(test) / len(train), answer.delta
        )
        self.certificate_ = replace(answer, new_data_interval=about_new_data)
        self.best_index_ = race.rows[arm]
        self.cv_results_, self.n_splits_ = results.table(
            race.rows,
            self.best_index_,
            lambda each, level: race.params(each) | resource.settings(level),
            None if resource.name is None else resource.levels,
        )
        self.best_params_ = race.params(arm) | resource.settings(target)
        self.best_score_ = self.certificate_.mean
        self.scorer_ = task.scorer
        self.multimetric_ = False

    def _refit(self, task: _Task) -> None:
        passed = task.passed
        self.best_estimator_ = clone(self.estimator).set_params(
            **clone(self.best_params_, safe=False)
        )
        if get_config()["enable_metadata_routing"]:
            passed = process_routing(self, "fit", **passed).estimator.fit
        begun = time.time()
        self.best_estimator_.fit(task.X, *(() if task.y is None else (task.y,)), **passed)
        self.refit_time_ = time.time() - begun
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _round(race: Race, at_once: int) -> tuple[list[Pull], list[int]]:
    """Return what to evaluate now, and on which splits."""
    pulls: list[Pull] = []
    numbers: list[int] = []
    while len(pulls) < at_once:
        pull = race.next(pulls)
        if pull is None:
            break
        numbers.append(race.split_of(pull, pulls))
        pulls.append(pull)
    return pulls, numbers
