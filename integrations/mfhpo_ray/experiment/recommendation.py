"""The answer of an experiment in the terms of Ray Tune, and the trial that looks best."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ray.tune import ResultGrid
from ray.tune.utils import flatten_dict

from mfhpo._validation import shown as in_words
from mfhpo.experiment import Answer
from mfhpo.racing.text import params_in_words
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.space import Config, picked

# The journal's record that has the answer.
RECOMMENDATION = "recommendation"

TuneRecommendation: TypeAlias = Answer
TuneSearchRecommendation: TypeAlias = Answer
TuneLimitRecommendation: TypeAlias = Answer


@dataclass(frozen=True)
class Luckiest:
    """The trial that ``ResultGrid.get_best_result`` hands over, with its single noisy value.

    Parameters
    ----------
    metric, value
        The metric, and the trial's last reported value, at whatever level the trial was run.
    config
        Its configuration with what the search has set, but for the seed; see `config` of an answer.
    """

    metric: str
    value: float
    config: Config

    def __str__(self) -> str:
        config = params_in_words(self.config, is_nested=True)
        return f"{self.metric}={self.value:.5g} of {config}; a single noisy value"


def in_terms_of_tune(answer: Answer, shown: Callable[[Config], Config]) -> Answer:
    """Return an experiment's answer, with nested configurations, as they are `shown`."""
    certificate = answer.certificate
    if certificate is not None:
        found = (replace(each, params=shown(each.params)) for each in certificate.candidates)
        certificate = replace(certificate, candidates=tuple(found), is_nested=True)
    return replace(answer, params=shown(answer.params), certificate=certificate, is_nested=True)


def recommendation(what: Any) -> Answer:
    """Return the answer of a race; ValueError if there is none yet, or none in the storage.

    Parameters
    ----------
    what
        A searcher or a scheduler of this package; or the results of ``Tuner.fit``, or of
        ``Tuner.restore(...).get_results()`` on another machine. Our schedulers, as
        ``search.scheduler()``, write the answer to the experiment's storage. While the race runs,
        it is at most five seconds old.

    Returns
    -------
    mfhpo.experiment.Answer
        The answer; from results, beside the trial that ``get_best_result`` hands over.
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


def to_record(answer: Answer, metric: str, mode: str, names: Collection[str]) -> dict[str, Any]:
    """Return an answer's record for the journal, with the `names` that `Luckiest` shows."""
    return {"answer": encode(answer), "metric": metric, "mode": mode, "names": list(names)}


def from_record(record: Mapping[str, Any]) -> Answer:
    """Return the answer of a record."""
    answer: Answer = decode(record["answer"])
    return answer


def _of_results(results: ResultGrid) -> Answer:
    journal = _journal_of(results)
    record = None if journal is None else journal.read_one(RECOMMENDATION)
    if record is None:
        raise ValueError(
            f"no answer is stored in {results.experiment_path}: nothing was observed yet, or "
            f"TuneConfig(scheduler=search.scheduler()) was missing. Then ask the searcher itself."
        )
    with of_this_version(f"the answer in {results.experiment_path}"):
        answer = from_record(record)
    return replace(answer, luckiest=_luckiest(results, answer, record))


def _journal_of(results: ResultGrid) -> Journal | None:
    """Return the journal of the run that gave these results; several may share its name."""
    analysis = getattr(results, "_experiment_analysis", None)
    for trial in analysis.trials if analysis is not None else ():
        if trial.storage is not None:
            return Journal.of(trial)
    runs = Journal.of_runs(results.filesystem, results.experiment_path)
    return runs[-1] if runs else None


def _luckiest(results: ResultGrid, answer: Answer, record: Mapping[str, Any]) -> Luckiest | None:
    metric = record["metric"]
    try:
        best = results.get_best_result(metric, record["mode"])
    except RuntimeError:  # no trial has a finite value
        return None
    value = flatten_dict(best.metrics or {}).get(metric)
    if value is None or best.config is None:
        return None
    names = [*flatten_dict(answer.params), *record["names"]]
    return Luckiest(metric, float(value), picked(best.config, names))
