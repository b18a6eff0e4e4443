"""The base of the searches: scikit-learn's conventions around an experiment."""

from __future__ import annotations

import abc
import math
import time
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, indexable

from mfhpo._validation import (
    MOST_AT_ONCE,
    MOST_LEVELS,
    check_choice,
    check_count,
    check_flag,
    check_limit,
    shown,
)
from mfhpo.certification.selection import interval_for_new_data
from mfhpo.experiment import Answer, Experiment, RaceSettings, SearchSettings
from mfhpo.knowledge.fidelity import native
from mfhpo.search.standing import failures_in_words
from mfhpo_sklearn.evaluation import FitArguments, Row, Task, fits, scores_of, table_of
from mfhpo_sklearn.resources import Resource, Splits, in_words


class PolicySearchCV(BaseSearchCV):  # type: ignore[misc] # scikit-learn has no types
    """A search that a policy runs.

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
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the score. 0 asks for the very best, which may never be certain.
        None: one standard deviation of a setting's score over splits.
    n_jobs
        Number of settings that are evaluated at once.
    refit
        Whether to fit the best setting on all data, as ``best_estimator_``.
    error_score
        Score of a fit that raises. NaN: it counts as a failure, as any score of NaN or +inf does.
        "raise": it ends the search. A score of -inf is the worst: the setting ranks last, and at
        the target leaves at once.
    verbose
        1: a line says what was paid and which setting leads, whenever that is news.
    random_state
        Makes the search repeatable, as far as the estimator's own seed does.
    """

    resource: str | None
    levels: Sequence[Any] | None
    seconds: float | None = None  # not every search has these two
    timeout: float | None = None
    random_state: Any
    certificate_: Answer

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
    def _settings(self, resource: Resource, seed: int) -> RaceSettings | SearchSettings:
        """Return what kind of experiment it is; raise for bad options."""

    @abc.abstractmethod
    def _rows(self, experiment: Experiment, evaluated: Collection[int]) -> list[int]:
        """Return the arm of each row of ``cv_results_``, given those that were evaluated."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Search on these data, fit the best setting on all of them, and return the search.

        Parameters
        ----------
        X, y
            Samples and targets, as for the estimator.
        **params
            Further arguments of ``fit``, passed on as ``GridSearchCV`` does: those with one value
            for each sample are split like `X`, and ``groups`` are for the splitter. Scores are
            weighted by ``sample_weight`` where the scorer takes it, since scikit-learn 1.7. Each
            fit gets its own copy of callbacks and the like.

        Raises
        ------
        KeyboardInterrupt
            If interrupted. What was computed until then is kept: all attributes are set but
            ``best_estimator_``.
        """
        self._check_options()
        timeout = check_limit("timeout", self.timeout)
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        X, y = indexable(X, y)
        passed = FitArguments.of(self, X, params)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        splits = Splits(
            self, self.cv if hasattr(self.cv, "split") else None, X, y, passed.groups, seed
        )
        taken = self._taken()
        resource = Resource.of(self.resource, self.levels, self.estimator, splits, y, taken)
        task = Task(self.estimator, X, y, scorer, passed, splits, resource)
        settings = self._settings(resource, seed)
        is_shared = settings.declared.replicate is not None
        how = "the same for all settings" if is_shared else "another one for each fit"
        experiment = Experiment(replace(settings, about_evaluations=f"{splits.words}, {how}"))
        rows: list[Row] = []
        shown: tuple[Any, ...] = ()
        try:
            found = fits(
                experiment,
                task.of,
                self.n_jobs,
                timeout,
                is_timed=self.seconds is not None,
                error_score=self.error_score,
            )
            for wanted, evaluation in found:
                arm = experiment.runner.configurations.add(wanted.configuration)
                is_fresh = wanted.purpose in ("given", "certificate")
                rows.append(Row(arm, wanted.level, wanted.replicate, evaluation, is_fresh))
                if self.verbose:
                    shown = self._show(experiment, shown)
        except KeyboardInterrupt:
            if any(row.evaluation.has_value for row in rows):
                self._keep(experiment, task, rows)
            raise
        self._warn_of_failures(rows, resource)
        self._keep(experiment, task, rows)
        if timeout is not None and not self.certificate_.finished:
            self.certificate_ = self.certificate_.stopped_by(f"timeout={timeout:g} s")
        if self.refit:
            begun = time.time()
            best = self.best_estimator_ = task.fitted(self.best_params_)
            self.refit_time_ = time.time() - begun
            if hasattr(best, "feature_names_in_"):
                self.feature_names_in_ = best.feature_names_in_
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

    def _show(self, experiment: Experiment, shown: tuple[Any, ...]) -> tuple[Any, ...]:
        """Print a line if there is news; return what was shown last."""
        runner = experiment.runner
        arm, mean, (low, high) = runner.leader()
        policy = runner.policy
        phase = f"{len(policy.active)} of {len(runner.configurations)} candidates left"
        if runner.purpose == "search":
            n = len(policy.shortlist)
            phase = f"evaluates the {n} best again" if n else "searches"
        news = arm, phase
        if news == shown:
            return shown
        text = f"[{type(self).__name__}] {runner.cost:.4g} paid, {phase}"
        if arm is not None:
            spread = f" ± {(high - low) / 2.0:.2g}" if math.isfinite(high - low) else ""
            text += f"; best so far {runner.configurations[arm]}, {mean:.4g}{spread}"
        print(text)
        return news

    def _warn_of_failures(self, rows: Sequence[Row], resource: Resource) -> None:
        made, n = [row.evaluation for row in rows], len(rows)
        errors = [one.error for one in made if one.error is not None]
        failed = Counter(row.level for row in rows if row.evaluation.error)
        where = f" ({failures_in_words(failed, resource.name_of)})" if resource.name else ""
        if n and not any(one.error is None and one.has_value for one in made):
            last = errors[-1] if errors else "the scores are not finite"
            what = f"all {n} fits failed" if errors else f"none of {n} scores is finite"
            raise ValueError(
                f"{what}{where}, so there is nothing to compare; mend the estimator, the data, the "
                f"scoring or the parameters, or set error_score='raise' to see where. The last "
                f"error: {last!r}"
            ) from (errors[-1] if errors else None)
        if errors:
            warnings.warn(
                f"{len(errors)} of {n} fits failed{where}; the last error: {errors[-1]!r}",
                FitFailedWarning,
                stacklevel=3,
            )

    def _keep(self, experiment: Experiment, task: Task, rows: Sequence[Row]) -> None:
        resource, runner = task.resource, experiment.runner
        arm = runner.leader()[0]
        if arm is None and any(row.evaluation.score is not None for row in rows):
            raise ValueError(
                "every setting left the search: its fits failed at a level, or a score was -inf, "
                "and so its mean; mend the scoring or the settings."
            )
        if arm is None or not rows:
            limits = {name: getattr(self, name, None) for name in ("budget", "seconds", "timeout")}
            given = [f"{name}={limit!r}" for name, limit in limits.items() if limit is not None]
            what = " or ".join(given) or "failures"
            raise ValueError(f"{what} ended the search before any fit gave a score; give more.")
        for earlier in ("best_estimator_", "refit_time_", "feature_names_in_"):
            self.__dict__.pop(earlier, None)
        target = len(resource.levels) - 1
        answer = experiment.answer()
        scores = scores_of(rows, arm, target)
        about_new_data = interval_for_new_data(scores, task.test_per_train(), answer.delta)
        self.certificate_ = replace(answer, new_data_interval=about_new_data)
        arms = self._rows(experiment, {row.arm for row in rows})
        self.best_index_ = arms.index(arm)
        self.cv_results_, self.n_splits_ = table_of(
            rows,
            arms,
            arm,
            lambda each, level: runner.configurations[each] | resource.settings(level),
            None if resource.name is None else resource.levels,
        )
        self.best_params_ = runner.configurations[arm] | resource.settings(target)
        self.best_score_ = self.certificate_.mean
        self.scorer_ = task.scorer
        self.multimetric_ = False


def own_setting(estimator: Any, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return what is given, and for other names what the estimator has itself."""
    own = estimator.get_params()
    if unknown := sorted(given.keys() - own.keys() - {*names}):
        raise ValueError(
            f"baseline={shown(dict(given))} has {unknown[0]!r}, which is no parameter of "
            f"{type(estimator).__name__}."
        )
    return {name: own[name] for name in sorted({*names, *given}) if name in own} | dict(given)


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
