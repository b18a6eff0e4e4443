"""Configurations that did well on other data sets: what to try first where nothing is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mfhpo._validation import check_choice, check_instance, check_name, shown
from mfhpo._validation.parameters import document

__all__ = ["MODELS", "portfolio"]

_FOLDER = Path(__file__).parent

MODELS = tuple(sorted(file.stem for file in _FOLDER.glob("*.json")))
"""Names of the models that have a portfolio."""


def portfolio(model: str, *, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return ten configurations of a model, in the order in which to try them.

    The first one is the library's default. Each next one helped most on other data sets where those
    before it did not. The JSON files beside this module name their sources and licences.

    Parameters
    ----------
    model
        ``"elastic_net"`` (scikit-learn's LogisticRegression with saga), ``"lightgbm"``, ``"mlp"``
        (the networks of LCBench), ``"random_forest"``, ``"svm"`` (SVC) or ``"xgboost"``. Elastic
        nets, networks and SVMs are for features that are scaled to variance 1.
    names
        Your names of parameters, by those of the portfolio, which are the library's. Parameters
        that it does not have keep theirs. None: all keep theirs.

    Raises
    ------
    TypeError, ValueError
        If there is no such portfolio or no such parameter, or if two have the same name in the end.

    Examples
    --------
    >>> portfolio("svm", names={"C": "svc__C", "gamma": "svc__gamma"})[0]
    {'svc__C': 1.0, 'svc__gamma': 'scale'}
    """
    check_choice("model", model, MODELS)
    text = (_FOLDER / f"{model}.json").read_text(encoding="utf-8")
    configurations: list[dict[str, Any]] = json.loads(text)["configurations"]
    names = {} if names is None else check_instance("names", names, Mapping, "a dictionary")
    new = {name: name for one in configurations for name in one}
    for name in names:
        check_choice("names", name, new)
        new[name] = check_name(f"names[{name!r}]", names[name])
    if len({*new.values()}) < len(new):
        raise ValueError(f"names must give each parameter a name of its own, got {shown(names)}.")
    return [{new[name]: value for name, value in one.items()} for one in configurations]


document(portfolio)
