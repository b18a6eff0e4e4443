"""Small searches of mfhpo_sklearn, whose estimator's score is a formula."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV

from mfhpo_sklearn import IISESearchCV, MFSearchCV, SpaceSearchCV, certify

_X = np.arange(120.0)[:, None]
_GRID = [{"place": place, "kind": "abc"[place % 3]} for place in range(0, 21, 2)]
_SPACE = {"place": list(range(21)), "kind": ["a", "b", "c"]}


class _Formula(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Scores highest at place 13, kind b; more epochs are better, and splits differ."""

    def __init__(self, place: int = 0, kind: str = "a", epochs: int = 9) -> None:
        self.place = place
        self.kind = kind
        self.epochs = epochs

    def fit(self, X: Any, y: Any) -> "_Formula":
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        of_split = [int(number) for number in X[:6, 0]]
        noise = np.random.default_rng([*of_split, self.place]).normal(0.0, 0.05)
        kind = {"a": 0.3, "b": 0.0, "c": 0.1}[self.kind]
        value = -(((self.place - 13) / 10) ** 2) - kind - 0.1 / self.epochs + noise
        return float("nan") if (of_split[0] + 7 * self.place) % 29 == 3 else float(value)


def _record(results: Any, answer: object) -> dict[str, Any]:
    names = ("params", "n_fits", "n_resources", "mean_test_score")
    columns = {name: list(results[name]) for name in names if name in results}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"trials": rows, "answer": str(answer).splitlines()}


def _searched(make: Callable[..., Any], jobs: int, data: Path) -> dict[str, Any]:
    search = make(random_state=0, refit=False, n_jobs=jobs, error_score=np.nan)
    search.fit(_X, _X[:, 0])
    return _record(search.cv_results_, search.certificate_)


def _certified(jobs: int, data: Path) -> dict[str, Any]:
    grid = GridSearchCV(_Formula(), {"place": list(range(21))}, refit=False).fit(_X, _X[:, 0])
    options: dict[str, Any] = {"refit": False, "random_state": 0, "baseline": None}
    answer = certify(grid, _X, _X[:, 0], n_jobs=jobs, **options)
    return _record(
        {
            "params": [result.params for result in answer.candidates],
            "n_fits": [result.evaluations for result in answer.candidates],
        },
        answer,
    )


_EPOCHS: dict[str, Any] = {"resource": "epochs", "levels": [1, 3, 9]}
_MADE: dict[str, Callable[..., Any]] = {
    "MFSearchCV": partial(MFSearchCV, _Formula(), _GRID),
    "MFSearchCV, epochs": partial(MFSearchCV, _Formula(), _GRID, **_EPOCHS),
    "MFSearchCV, budget for a few": partial(MFSearchCV, _Formula(), _GRID, **_EPOCHS, budget=25),
    "IISESearchCV": partial(
        IISESearchCV, _Formula(), _GRID, **_EPOCHS, bias=[0.1, 0.04, 0.0], sigma=0.05
    ),
    "SpaceSearchCV": partial(SpaceSearchCV, _Formula(), _SPACE, **_EPOCHS, budget=30),
    "SpaceSearchCV, candidates": partial(
        SpaceSearchCV, _Formula(), candidates=_GRID, **_EPOCHS, budget=30
    ),
}


def fits(jobs: int) -> dict[str, Callable[[Path], Any]]:
    """Return by name what plays a search with so many fits at a time; no data are needed."""
    searched = {f"sklearn {name}": partial(_searched, make, jobs) for name, make in _MADE.items()}
    return searched | {"sklearn certify": partial(_certified, jobs)}
