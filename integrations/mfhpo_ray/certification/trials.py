"""The trials of a certificate: new evaluations of a shortlist, each from scratch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfhpo.experiment import Assignment, Begun, ShortlistSettings
from mfhpo_ray.certification.shortlist import GridShortlist
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.pulls import replicate_seed
from mfhpo_ray.experiment.recommendation import RECOMMENDATION, TuneSearchRecommendation
from mfhpo_ray.experiment.space import Config
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Outcome, Source, Trials

_N_SEEDS = 2**31


class TrialsOfShortlist(Trials):
    """Each trial evaluates a candidate under a new seed, or that of its replicate.

    Parameters
    ----------
    shortlist
        The candidates.
    options
        See `mfhpo.experiment.ShortlistSettings`.
    replicate
        The key that evaluations of a block share, or None.
    """

    owned = None

    def __init__(
        self, shortlist: GridShortlist, options: Mapping[str, Any], replicate: str | None
    ) -> None:
        self.replicate = replicate
        self.replicates = range(_N_SEEDS)
        self.others = () if replicate is None else (replicate,)
        self._shortlist = shortlist
        self._options = {**options, "blocks": replicate is not None}

    def settings(self, source: Source, seed: int, sign: float) -> ShortlistSettings:
        """Return what kind of experiment it is."""
        shortlist = self._shortlist
        return ShortlistSettings(shortlist=shortlist, options=self._options, seed=seed, sign=sign)

    def assign(self, config: Config, wanted: Assignment, arm: int) -> None:
        """Set nothing: a candidate is evaluated as it is."""

    def seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        """Return the seed of a trial."""
        return replicate_seed(seed, arm, 0, wanted.repeat, n_arms=n_arms, n_fidelities=1)

    def outcome(
        self,
        begun: Begun,
        value: float | None,
        seconds: float,
        stopped_at: float | None,
        resources: Mapping[str, float],
    ) -> Outcome:
        """Return what a trial gave; none that was stopped gives a value."""
        return Outcome(value if stopped_at is None else None, None, stopped_at)

    def cost(self, seconds: float, resources: Mapping[str, float]) -> None:
        """Return nothing: evaluations are counted."""


class ShortlistSearch(ExperimentSearch[TuneSearchRecommendation]):
    """Evaluates the candidates of a shortlist until the best of them is known."""

    def go_on(self, journal: Journal | None) -> None:
        """Go on with what an earlier run has recorded, if there is one."""
        records = {} if journal is None else journal.read()
        records.pop(RECOMMENDATION, None)
        if journal is not None and records:
            self._begin(records, journal.run)

    def _announce(self, settings: Any) -> None:
        """Log nothing: all is declared."""
