"""The answer of a race in the terms of Ray Tune, beside the trial that looks best."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

from ray.tune import ResultGrid
from ray.tune.utils import flatten_dict

from mfhpo import experiment
from mfhpo._validation import shown as in_words
from mfhpo.censored.recommendation import UserLimitRecommendation
from mfhpo.certification.certificate import Certificate
from mfhpo.racing.recommendation import UserRecommendation, params_in_words
from mfhpo.search.recommendation import UserSearchRecommendation
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.space import Config, picked

# The journal's record that has the answer.
RECOMMENDATION = "recommendation"


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
        config = params_in_words(_flat(self.config))
        return f"{self.metric}={self.value:.5g} of {config}; a single noisy value"


@dataclass(frozen=True)
class _BesideLuckiest:
    """An answer beside what Tune would hand over.

    Parameters
    ----------
    luckiest
        What ``ResultGrid.get_best_result`` hands over, for comparison; None unless it was asked
        for with the results.
    """

    params: dict[str, Any]
    luckiest: Luckiest | None = None

    @property
    def config(self) -> Config:
        """Configuration without the constants of ``param_space`` and what the search sets.

        That of a scheduler is without the replicate's key alone.
        """
        return self.params

    def __str__(self) -> str:
        shown: Any = replace(self, params=_flat(self.params))
        certificate = getattr(self, "certificate", None)
        if certificate is not None:
            shown = replace(shown, certificate=with_flat_candidates(certificate))
        text = super(_BesideLuckiest, shown).__str__()
        words = "best result" if hasattr(self, "certificate") else "luckiest"
        return text if self.luckiest is None else f"{text}\n  {words:12}{self.luckiest}"


@dataclass(frozen=True)
class TuneRecommendation(_BesideLuckiest, UserRecommendation):
    """Which configuration to be content with, and how sure that is.

    The fields are those of `mfhpo.racing.recommendation.UserRecommendation`, and `luckiest`.
    """


@dataclass(frozen=True)
class TuneSearchRecommendation(TuneRecommendation, UserSearchRecommendation):
    """Which of the configurations that a search has tried to be content with, and how sure that is.

    The fields are those of `mfhpo.search.recommendation.UserSearchRecommendation`, and `luckiest`.
    """


@dataclass(frozen=True)
class TuneLimitRecommendation(_BesideLuckiest, UserLimitRecommendation):
    """Which configuration to run, for how long, and the gain of that.

    The fields are those of `mfhpo.censored.recommendation.UserLimitRecommendation`, and `luckiest`.
    """


CertificateT = TypeVar("CertificateT", bound=Certificate)
Answer: TypeAlias = TuneRecommendation | TuneLimitRecommendation


def _flat(config: Mapping[str, Any]) -> Config:
    flat: Config = flatten_dict(dict(config))
    return flat


def with_flat_candidates(
    certificate: CertificateT, shown: Callable[[Config], Config] = _flat
) -> CertificateT:
    """Return a certificate whose candidates' configurations are `shown`, else without nesting."""
    found = (replace(each, params=shown(each.params)) for each in certificate.candidates)
    return replace(certificate, candidates=tuple(found))


def in_terms_of_tune(answer: experiment.Answer, shown: Callable[[Config], Config]) -> Answer:
    """Return an experiment's answer, with configurations as they are `shown`."""
    if answer.time_limit is not None:
        limit = vars(answer.time_limit) | {"finished": answer.finished, "reason": answer.reason}
        return TuneLimitRecommendation(**{**limit, "params": shown(limit["params"])})
    kind = TuneSearchRecommendation if answer.searched else TuneRecommendation
    content: dict[str, Any] = {each.name: getattr(answer, each.name, None) for each in fields(kind)}
    content["params"] = shown(answer.params)
    if answer.searched and answer.certificate is not None:
        content["certificate"] = with_flat_candidates(answer.certificate, shown)
    return kind(**content)


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
    TuneRecommendation or TuneSearchRecommendation or TuneLimitRecommendation
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
    value = _flat(best.metrics or {}).get(metric)
    if value is None or best.config is None:
        return None
    names = [*_flat(answer.params), *record["names"]]
    return Luckiest(metric, float(value), picked(best.config, names))
