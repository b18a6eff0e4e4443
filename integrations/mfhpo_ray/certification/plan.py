"""A certificate as a search: each trial evaluates a candidate again, from scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mfhpo.certification.candidates import Shortlist
from mfhpo.experiment import ShortlistSettings
from mfhpo.search.declared import ONE_LEVEL
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.recommendation import RECOMMENDATION, TuneSearchRecommendation
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials

_N_SEEDS = 2**31


@dataclass(frozen=True)
class _Contest:
    """What a user declares: see `mfhpo_ray.searchers.trials.Plan`."""

    shortlist: Shortlist
    options: Mapping[str, Any]

    def settings(
        self, levels: tuple[Any, ...], source: Source, seed: int, sign: float
    ) -> ShortlistSettings:
        return ShortlistSettings(
            shortlist=self.shortlist, options=self.options, seed=seed, sign=sign
        )

    def objection(self, levels: Sequence[Any]) -> None:
        return None

    def in_words(self, levels: Sequence[Any], n_arms: int) -> str:
        return ""

    def digest(self, levels: Sequence[Any]) -> dict[str, Any]:
        return {}


class _NewTrials(Trials):
    def look_up(self, space: Mapping[str, Any]) -> None:
        """Find nothing: a replicate is any seed."""
        self.replicates = range(_N_SEEDS)


class ShortlistSearch(ExperimentSearch[TuneSearchRecommendation]):
    """Evaluates the candidates of a shortlist until the best of them is known.

    Parameters
    ----------
    shortlist
        The candidates.
    options
        Of `mfhpo.certification.certification.Certification`.
    replicate
        The key that evaluations of a block share, or None.
    seed_key
        The key that gets a new seed in each evaluation, or None.
    **host
        See `mfhpo_ray.searchers.options.SearchOptions`.
    """

    def __init__(
        self,
        shortlist: Shortlist,
        options: Mapping[str, Any],
        replicate: str | None,
        seed_key: str | None,
        **host: Any,
    ) -> None:
        contest = _Contest(shortlist, {**options, "blocks": replicate is not None})
        contest.settings((), [], 0, 1.0).runner()  # raises for wrong options
        own = None if seed_key == replicate else seed_key
        trials = _NewTrials(contest, ONE_LEVEL, replicate=replicate, seed_key=own)
        configs = [candidate.params for candidate in shortlist.candidates]
        super().__init__(trials, configs, space=None, **host)

    def go_on(self, journals: Sequence[Journal]) -> None:
        """Begin, with what earlier runs have recorded; each had taken over what was before it."""
        records: dict[str, dict[str, Any]] = {}
        for journal in journals:
            records |= journal.read()  # of the last one, killed at once, there may be a part
        records.pop(RECOMMENDATION, None)
        if records:
            self._begin(records, journals[-1].run)
        else:
            self._begin()

    def _announce(self, settings: Any) -> None:
        """Log nothing: all is declared."""
