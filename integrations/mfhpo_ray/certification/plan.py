"""A certificate as a search: each trial evaluates a candidate again, from scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mfhpo.certification.candidates import Shortlist
from mfhpo.experiment import ShortlistSettings
from mfhpo.search.declared import ONE_LEVEL
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.recommendation import RECOMMENDATION, TuneSearchRecommendation
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials

_N_SEEDS = 2**31


class _ContestTrials(Trials):
    """Trials of a contest; `options` are those of `Certification`."""

    def __init__(self, shortlist: Shortlist, options: Mapping[str, Any], **keys: Any) -> None:
        super().__init__(ONE_LEVEL, **keys)
        self._shortlist = shortlist
        self._options = {**options, "blocks": self.replicate is not None}
        self.settings([], 0, 1.0).runner()  # raises for wrong options

    def settings(self, source: Source, seed: int, sign: float) -> ShortlistSettings:
        return ShortlistSettings(
            shortlist=self._shortlist, options=self._options, seed=seed, sign=sign
        )

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
        own = None if seed_key == replicate else seed_key
        trials = _ContestTrials(shortlist, options, replicate=replicate, seed_key=own)
        trials.host = {"space": None, **host}
        super().__init__(trials, [candidate.params for candidate in shortlist.candidates])

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
