"""What users call of mfhpo_sklearn, and what its arguments may be.

As scikit-learn wants it, constructors keep what they are given, and `fit` checks it.
"""

from collections.abc import Callable, Mapping
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
    named,
    never,
    nothing,
    number,
    one_of,
    optional,
    sequence_of,
    text,
)

_RNG = np.random.default_rng(0)
_X, _Y = _RNG.normal(size=(20, 2)), np.arange(20) % 2

KINDS: dict[str, Kind] = core_calls.KINDS | named(
    (never, "X estimator search"),
    (nothing, "bias groups levels param_distributions scoring y"),
    (optional(UNLIMITED), "budget seconds timeout"),
    (lambda value: isinstance(value, dict) and not value, "candidates"),
    (number(0, 1, to="[)"), "certify_share"),
    (either(nothing, count(2, 100_000)), "cv"),
    (lambda value: isinstance(value, (int, float, np.floating)), "error_score"),
    (optional(mapping_of(text, never)), "fit_params"),
    (optional(count(0)), "measure"),
    (lambda value: value is None or value == -1, "n_jobs"),
    (either(nothing, count(0, 2**32 - 1)), "random_state"),
    (FLAG, "refit"),
    (one_of(None, "n_samples"), "resource"),
    (optional(either(NONNEGATIVE, sequence_of(NONNEGATIVE, 1))), "sigma"),
    (count(2), "top"),
    (either(FLAG, count(0)), "verbose"),
)

NOT_CALLED = {"mfhpo_sklearn": {"SearchCertificate"}}


def _fitted(cls: Callable[..., Any], kinds: Mapping[str, Kind] | None = None, **valid: Any) -> Call:
    valid = {"estimator": DummyClassifier(), "budget": 5, "random_state": 0, **valid}
    return Call(
        lambda **given: cls(**given).fit(_X, _Y),
        lambda: dict(valid),
        lambda search: search.best_params_,
        signature_of=cls,
        kinds=kinds or {},
    )


@cache
def _grid() -> GridSearchCV:
    return GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, cv=3).fit(_X, _Y)


_GRID = {"strategy": ["uniform", "most_frequent"]}

# None is what the search without it takes.
_OF_SPACE = {
    "candidates": nothing,
    "certify_share": core_calls.KINDS["certify_share"],
    "top": core_calls.KINDS["top"],
}

CALLS: dict[str, Call] = core_calls._of(
    "mfhpo_sklearn",
    IISESearchCV=_fitted(mfhpo_sklearn.IISESearchCV, candidates=_GRID),
    MFSearchCV=_fitted(mfhpo_sklearn.MFSearchCV, candidates=_GRID),
    SpaceSearchCV=_fitted(mfhpo_sklearn.SpaceSearchCV, _OF_SPACE, param_distributions=_GRID, top=2),
    certify=Call(
        mfhpo_sklearn.certify,
        lambda: {"search": _grid(), "X": _X, "y": _Y, "budget": 6, "random_state": 0},
        kinds={"budget": optional(count(3)), "cv": nothing},
        apart=frozenset({"X", "y", "groups", "fit_params"}),  # which scikit-learn checks
    ),
)
