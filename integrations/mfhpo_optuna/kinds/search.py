"""A search as a sampler declares it: a budget is spent on finding, then on certifying the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mfhpo.experiment import SearchSettings
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.search import DeclaredSearch, HalvingSearch, ModelSearch, has_levels
from mfhpo_optuna.kinds.fidelity import FidelityKind
from mfhpo_optuna.study.arms import Params

if TYPE_CHECKING:
    from mfhpo_optuna.study.study_experiment import StudyExperiment


class SearchKind(FidelityKind):
    """Searches with cheap and dear evaluations, and compares the best on new ones.

    Parameters
    ----------
    declared
        The search.
    is_proposed
        Whether another sampler draws the configurations.
    """

    arms_option = "candidates"
    purpose = "search"

    def __init__(self, declared: DeclaredSearch, is_proposed: bool) -> None:
        self._declared = declared
        self._kind = HalvingSearch if is_proposed else ModelSearch
        self.fidelity = declared.fidelity if has_levels(declared.fidelity) else None
        self.replicate = declared.replicate
        self.in_seconds = declared.fidelity.costs == "measured"

    def given(self, seed: int) -> int | list[Params]:
        """Return the candidates, or how many are drawn; 0 if there is no end of them."""
        candidates = self._declared.candidates or 0
        return candidates if isinstance(candidates, int) else list(map(dict, candidates))

    def of_levels(self, levels: Sequence[Any], common: Mapping[str, Any]) -> Settings:
        """Return the settings of the search."""
        candidates = self.given(common["seed"])
        return SearchSettings(
            declared=self._declared,
            levels=levels,
            candidates=() if isinstance(candidates, int) else candidates,
            kind=self._kind,
            **common,
        )

    def first_limit(self, seed: int, sign: float) -> float | None:
        """Return the limit of evaluations before the levels are known, in seconds."""
        first = self._declared.race((), seed=seed, sign=sign, kind=self._kind).ask()
        return first[0].limit if first else None

    def is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer, as recorded, says all that this one says."""
        same = bool(earlier["arm"] == now["arm"] and earlier["trials"] == now["trials"])
        return same or super().is_repeat(now, earlier)

    def _most_without(self, known: StudyExperiment) -> int:
        return 1
