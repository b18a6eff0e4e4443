"""What users call of mfhpo_sklearn, and what its arguments may be.

As scikit-learn wants it, constructors keep what they are given, and `fit` checks it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import mfhpo_sklearn
from tests.contract.arguments import core_calls
from tests.contract.arguments.calls import Call
from tests.contract.arguments.wrong_values import (
    FLAG,
    NONNEGATIVE,
    UNLIMITED,
    Kind,
    count,
    either,
    mapping_of,
    never,
    nothing,
    number,
    one_of,
    optional,
    sequence_of,
    text,
)

_RNG = np.random.default_rng(0)
_X, _Y = _RNG.normal(size=(40, 2)), np.arange(40) % 2

KINDS: dict[str, Kind] = core_calls.KINDS | {
    "X": never,
    "bias": nothing,
    "budget": optional(UNLIMITED),
    "candidates": lambda value: isinstance(value, dict) and not value,
    "certify_share": number(0, 1, to="[)"),
    "cv": either(nothing, count(2, 100_000)),
    "error_score": lambda value: isinstance(value, (int, float, np.floating)),
    "estimator": never,
    "fit_params": optional(mapping_of(text, never)),
    "groups": nothing,
    "levels": nothing,
    "measure": optional(count(0)),
    "n_jobs": lambda value: value is None or value == -1,
    "param_distributions": nothing,
    "random_state": either(nothing, count(0, 2**32 - 1)),
    "refit": FLAG,
    "resource": one_of(None, "n_samples"),
    "scoring": nothing,
    "search": never,
    "seconds": optional(UNLIMITED),
    "sigma": optional(either(NONNEGATIVE, sequence_of(NONNEGATIVE, 1))),
    "timeout": optional(UNLIMITED),
    "top": count(2),
    "verbose": either(FLAG, count(0)),
    "y": nothing,
}

NOT_CALLED = {"mfhpo_sklearn": {"SearchCertificate"}}


def _fitted(cls: Callable[..., Any], **valid: Any) -> Call:
    valid = {"estimator": DummyClassifier(), "budget": 8, "random_state": 0, **valid}
    return Call(
        lambda **given: cls(**given).fit(_X, _Y),
        lambda: dict(valid),
        lambda search: search.best_params_,
        signature_of=cls,
    )


@cache
def _grid() -> GridSearchCV:
    return GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, cv=3).fit(_X, _Y)


_GRID = {"strategy": ["uniform", "most_frequent"]}

CALLS: dict[str, Call] = core_calls._of(
    "mfhpo_sklearn",
    IISESearchCV=_fitted(mfhpo_sklearn.IISESearchCV, candidates=_GRID),
    MFSearchCV=_fitted(mfhpo_sklearn.MFSearchCV, candidates=_GRID),
    SpaceSearchCV=_fitted(mfhpo_sklearn.SpaceSearchCV, param_distributions=_GRID, top=2),
    certify=Call(
        mfhpo_sklearn.certify,
        lambda: {"search": _grid(), "X": _X, "y": _Y, "budget": 6, "random_state": 0},
        kinds={"budget": optional(count(3)), "cv": nothing},
        apart=frozenset({"X", "y", "groups"}),  # which scikit-learn checks
    ),
)
