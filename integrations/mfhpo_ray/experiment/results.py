"""The metric, the numbers that trials report, and the answers of experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, SupportsFloat, TypeAlias

import numpy as np
from ray.tune import ResultGrid
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_choice, check_name
from mfhpo._validation import shown as in_words
from mfhpo.experiment import Answer
from mfhpo.knowledge.earlier import EarlierResults
from mfhpo.knowledge.fidelity import native
from mfhpo_ray.experiment.configurations import Config, copied, decode
from mfhpo_ray.experiment.journal import RECOMMENDATION, Journal, of_this_version


def check_aim(metric: Any, mode: Any) -> None:
    """Raise TypeError or ValueError for what is no metric's name, or no direction."""
    if metric is not None:
        check_name("metric", metric, "the name of one metric or None")
    check_choice("mode", mode, (None, "max", "min"))


def aim_of(results: ResultGrid) -> tuple[str | None, str | None]:
    """Return the metric and the mode of an experiment, as far as its ``TuneConfig`` has them."""
    analysis = getattr(results, "_experiment_analysis", None)
    return getattr(analysis, "default_metric", None), getattr(analysis, "default_mode", None)


def value_in(result: Mapping[str, Any], metric: str) -> float | None:
    """Return a result's metric; NaN if it is no number, None if it is missing."""
    value = as_number(result.get(metric))
    return math.nan if value is None and metric in result else value


def as_number(value: Any) -> float | None:
    """Return a number, or an array or tensor of one element, as a float; None for anything else."""
    if type(value) is float:  # quickly
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsFloat):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):  # an array or a tensor of several elements
        return None


def as_results(source: Any) -> Any:
    """Return what an experiment has found as `EarlierResults`; anything else as it is."""
    if not isinstance(source, ResultGrid):
        return source
    metric, mode = aim_of(source)
    if not (metric and mode):
        raise ValueError(
            "earlier has results of an experiment whose TuneConfig names no metric and mode; give "
            "EarlierResults of its configurations and values."
        )
    rows, name = [], f"{metric} of the experiment"  # no key of a configuration
    for result in (source[number] for number in range(len(source))):
        value = as_number(flatten_dict(result.metrics or {}).get(metric))
        if not result.error:
            rows.append({**copied(result.config or {}), name: value})
    return EarlierResults(rows, value=name, direction="maximize" if mode == "max" else "minimize")


def scalars(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and texts of a flat result, without the configuration."""
    plain = {name: native(result[name]) for name in result if not name.startswith("config/")}
    return {name: plain[name] for name in plain if isinstance(plain[name], (int, float, str))}


TuneRecommendation: TypeAlias = Answer
TuneSearchRecommendation: TypeAlias = Answer
TuneLimitRecommendation: TypeAlias = Answer


def in_terms_of_tune(answer: Answer, shown: Callable[[Config], Config]) -> Answer:
    """Return an experiment's answer, with nested configurations, as they are `shown`."""
    certificate = answer.certificate
    if certificate is not None:
        found = (replace(each, params=shown(each.params)) for each in certificate.candidates)
        certificate = replace(certificate, candidates=tuple(found), is_nested=True)
    return replace(answer, params=shown(answer.params), certificate=certificate, is_nested=True)


def recommendation(what: Any) -> Answer:
    """Return the answer, a `mfhpo.experiment.Answer`; ValueError if there is none yet.

    Parameters
    ----------
    what
        A searcher or a scheduler of this package; or the results of ``Tuner.fit``, or of
        ``Tuner.restore(...).get_results()`` on another machine. Our schedulers, as
        ``search.scheduler()``, write the answer to the experiment's storage. While the race runs,
        it may be some seconds old.
    """
    if isinstance(what, ResultGrid):
        return _of_results(what)
    searcher = what
    while searcher is not None:
        if callable(answer := getattr(searcher, "recommendation", None)):
            found: Answer = answer()
            return found
        searcher = getattr(searcher, "searcher", None)  # what Tune wraps searchers in
    raise TypeError(
        f"what must be a searcher or a scheduler of mfhpo_ray, or a ResultGrid, got "
        f"{in_words(what)}."
    )


def _of_results(results: ResultGrid) -> Answer:
    path = results.experiment_path
    # Several runs may share a name: that of the trials, or else the newest.
    trials = getattr(getattr(results, "_experiment_analysis", None), "trials", ())
    journal = next(filter(None, map(Journal.of, trials)), None)
    journal = journal or next(reversed(Journal.of_runs(results.filesystem, path)), None)
    record = None if journal is None else journal.read_one(RECOMMENDATION)
    if record is None:
        raise ValueError(
            f"no answer is stored in {path}: nothing was observed yet, or "
            f"TuneConfig(scheduler=search.scheduler()) was missing. Then ask the searcher itself."
        )
    with of_this_version(f"the answer in {path}"):
        answer: Answer = decode(record["answer"])
    return answer
