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
from tests.contract.arguments import wrong_values as may
from tests.contract.arguments.calls import Call
from tests.contract.arguments.wrong_values import Kind

_RNG = np.random.default_rng(0)
_X, _Y = _RNG.normal(size=(20, 2)), np.arange(20) % 2

KINDS: dict[str, Kind] = core_calls.KINDS | may.named(
    (may.never, "X estimator search"),
    (may.nothing, "bias groups levels param_distributions scoring y"),
    (may.INDEXED_BASELINE, "baseline"),
    (may.optional(may.UNLIMITED), "budget seconds timeout"),
    (lambda value: isinstance(value, dict) and not value, "candidates"),
    (may.number(0, 1, to="[)"), "certify_share"),
    (may.either(may.nothing, may.count(2, 100_000)), "cv"),
    (lambda value: isinstance(value, (int, float, np.floating)), "error_score"),
    (may.optional(may.mapping_of(may.text, may.never)), "fit_params"),
    (may.optional(may.count(0)), "measure"),
    (lambda value: value is None or value == -1, "n_jobs"),
    (may.either(may.nothing, may.count(0, 2**32 - 1)), "random_state"),
    (may.FLAG, "plan refit"),
    (may.one_of(None, "n_samples"), "resource"),
    (may.optional(may.either(may.NONNEGATIVE, may.sequence_of(may.NONNEGATIVE, 1))), "sigma"),
    (may.count(2), "top"),
    (may.either(may.FLAG, may.count(0)), "verbose"),
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
    "candidates": may.nothing,
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
        kinds={
            "budget": may.optional(may.count(3)),
            "cv": may.nothing,
            "top": may.optional(may.count(2)),
        },
        apart=frozenset({"X", "y", "groups", "fit_params"}),  # which scikit-learn checks
    ),
)
