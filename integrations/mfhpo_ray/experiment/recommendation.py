"""The answer of an experiment in the terms of Ray Tune."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from ray.tune import ResultGrid

from mfhpo._validation import shown as in_words
from mfhpo.experiment import Answer
from mfhpo_ray.experiment.encoding import decode
from mfhpo_ray.experiment.journal import RECOMMENDATION, Journal, of_this_version
from mfhpo_ray.experiment.space import Config

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
        The answer, which says how sure it is.
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
