"""`MFSearchCV` and `IISESearchCV`: find the best of given settings, and certify it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from sklearn.model_selection import ParameterGrid

from mfhpo import IISE
from mfhpo._validation import check_choice, check_dictionaries
from mfhpo.experiment import Experiment, RaceSettings, SearchSettings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike
from mfhpo.racing.options import EstimatedBias
from mfhpo_sklearn.policy_search import PolicySearchCV, described
from mfhpo_sklearn.resources import Resource

_ONE_LEVEL = Fidelity("level", levels=("full fit",), costs=(1.0,))


class MFSearchCV(PolicySearchCV):
    """Finds the best of given settings and certifies it, by the policy that suits what is known.

    When to use it: as you would use ``GridSearchCV`` or ``HalvingGridSearchCV``, for two to some
    hundred settings. Settings that cannot be the best any more are not fitted again. The search
    ends by itself, when one is left or the best is within `epsilon` of all others.

    All settings are evaluated on the same fresh splits, and compared by their differences on these
    (`mfhpo.BlockElimination`); every fit is a full one. Where `bias` or `sigma` is declared, or
    with ``estimated_bias="eliminate"``, the policy is the one that `mfhpo.recommend_policy` names.
    It takes all scores as independent, so each fit has a split of its own. Only then are cheap
    levels of the resource evidence.

    With a `resource` and a `budget` below four full fits of each of five settings or more, half of
    the budget chooses finalists with cheap levels, as `SpaceSearchCV` does. The other half
    evaluates these on fresh splits, and the guarantee is about them alone: a setting that was left
    at a cheap level may be better with all samples.

    What it guarantees, on average over random splits of these data: with probability at least 1 -
    `delta`, no setting is better than the certified one by more than `epsilon`. For new data of the
    same kind there is an approximate interval beside it.

    Parameters
    ----------
    candidates
        The settings: a list of dictionaries of parameters, or a grid ``{name: values}``, of which
        all combinations are compared. For several grids give ``list(ParameterGrid([...]))``.
    resource
        See `SpaceSearchCV`. Where cheap levels are not used, it only sets what a full fit is.
    bias
        Bounds on what a level's mean scores are off by: one number for each level, the last one 0,
        or a `mfhpo.Bias`. None: see `estimated_bias`.
    estimated_bias
        "steer": cheap levels are no evidence where no bias is declared; at most they choose
        finalists. "eliminate": a pilot estimates bounds, and settings that are unlike the pilot's
        may be lost.
    sigma
        Noise of a score over splits: a sub-Gaussian scale, `mfhpo.Bounded` or `mfhpo.Gaussian`.
        None: estimated. With a sigma, finalists share no splits.
    baseline
        See `mfhpo.racing.options.BlockOptions`.
    budget
        What may be paid, in full fits. When it is spent, the answer is not certified, but says what
        holds. With finalists, there are no fresh scores if half of it does not pay for four full
        fits. ``best_score_`` is then the search's own, a lucky one, at ``certificate_.level``.
        None: no limit.
    timeout
        Seconds after which nothing is begun; the certificate says so. None: no limit.
    measure
        Least number of full fits of the winner. Finalists that share splits are compared after
        planned numbers of fits instead.
    max_failures
        A setting without any score leaves the race, with a warning, after so many failed fits. On
        shared splits, a failed fit is repeated.

    Attributes
    ----------
    certificate_, best_params_, best_score_, best_index_, best_estimator_, cv_results_, n_splits_
        As of `SpaceSearchCV`, where a row is a candidate. All scores are fresh. With finalists only
        theirs are: other rows have the search's scores at the level in ``n_resources``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from mfhpo_sklearn import MFSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.01, 1, 100], "gamma": [0.01, 1]}
    >>> search = MFSearchCV(SVC(), grid, random_state=0).fit(X, y)
    >>> search.certificate_.certified, search.best_score_ > 0.9
    (True, True)
    """

    # Whether levels that are evidence are explored by elimination, whatever suits the problem.
    _eliminates = False

    def __init__(
        self,
        estimator: Any,
        candidates: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
        *,
        resource: str | None = None,
        levels: Sequence[Any] | None = None,
        bias: BiasLike = None,
        estimated_bias: EstimatedBias = "steer",
        sigma: SigmaLike = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        baseline: Mapping[str, Any] | int | None = None,
        budget: float | None = None,
        timeout: float | None = None,
        measure: int = 10,
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
        return {name for candidate in _listed(self.candidates) for name in candidate}

    def _settings(self, resource: Resource, seed: int) -> RaceSettings | SearchSettings:
        check_choice("estimated_bias", self.estimated_bias, get_args(EstimatedBias))
        settings = RaceSettings.of(
            _listed(self.candidates),
            fidelity=resource.fidelity or _ONE_LEVEL,
            bias=self.bias,
            estimated_bias=self.estimated_bias,
            sigma=self.sigma,
            delta=self.delta,
            epsilon=self.epsilon,
            baseline=self.baseline,
            budget=self.budget,
            measure=self.measure,
            max_failures=self.max_failures,
            seed=seed,
            shares_replicates=True,
            make=IISE if self._eliminates else None,
            describe=described,
        )
        assert isinstance(settings, RaceSettings | SearchSettings)  # a resource has levels
        return settings

    def _rows(self, experiment: Experiment, evaluated: Collection[int]) -> list[int]:
        return experiment.runner.configurations.entries


class IISESearchCV(MFSearchCV):
    """Finds the best of given settings and certifies it, by elimination over levels (IISE).

    When to use it: where bounds on the bias of cheap levels are known, and many workers are to
    share the fits of a level. `MFSearchCV` usually needs fewer where they are known, and makes the
    same choices where nothing is declared. A bias given as numbers, or as ``Bias.max``, bounds each
    setting's own; ``Bias.order`` bounds the differences (IISE-gamma).

    Guarantee, arguments, attributes and errors are those of `MFSearchCV`.

    Examples
    --------
    Half as many training samples cost a setting at most 0.05 of accuracy, give or take::

        search = IISESearchCV(
            SVC(), {"C": [0.001, 1, 100]}, resource="n_samples", levels=[60, 120], bias=[0.05, 0],
            sigma=Gaussian(), epsilon=0.05,
        )
    """

    _eliminates = True


def _listed(candidates: Any) -> list[dict[str, Any]]:
    """Return the settings that a user gives; ValueError or TypeError for anything else."""
    right = "a list of dictionaries of parameters, or a grid {name: values}"
    if isinstance(candidates, Mapping):
        try:
            candidates = list(ParameterGrid(candidates))
        except (TypeError, ValueError) as error:
            raise TypeError(f"candidates must be {right}: {error}") from error
    listed = check_dictionaries("candidates", candidates, right)
    if not listed:
        raise ValueError(f"candidates must be {right}, and not be empty, got {candidates!r}.")
    return [dict(candidate) for candidate in listed]
