"""Searchers that maximise what the trials themselves earn, and certify nothing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED
from mfhpo.experiment.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import MFEliminationOptions, MFUCBOptions, runs
from mfhpo.regret import MFUCB, MFElimination
from mfhpo_ray.experiment.recommendation import TuneRecommendation
from mfhpo_ray.searchers.candidates import ArmsLike
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.options import FidelitySearchOptions
from mfhpo_ray.searchers.race import DeclaredRace

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _MFUCB(MFUCBOptions, FidelitySearchOptions):
    pass


class _MFElimination(MFEliminationOptions, FidelitySearchOptions):
    pass


@runs(MFUCB, _MFUCB, seed_key="seed")
class MFUCBSearch(ExperimentSearch[TuneRecommendation]):
    """Evaluates good configurations more and more often: for what the trials earn, per cost.

    When to use it: when the trials themselves count, not only the answer, and a dearer trial
    counts for more. Each is worth its configuration's mean at the target times its cost, such as
    the share of traffic that a variant is shown to. Bad configurations are left at cheap levels.
    To find a configuration, use `MFSearch`: it stops, and says how sure it is.

    What it guarantees: nothing at a given probability about the answer, which is never certified.
    What was missed in comparison with the best arm at the target grows with the logarithm of the
    cost only, if what was declared is true. The interval of `recommendation` holds with
    probability at least 1 - `delta`.

    Give a `budget`, or a number of samples: without either the run goes on for ever. Trials, space,
    scheduler, errors and restarts are as described for `IISESearch`. Bias bounds of kind "order"
    are refused.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFUCB]
    ) -> None:
        _, trials, host = DeclaredRace.of(self, fidelity, options)
        super().__init__(trials, arms, **host)


@runs(MFElimination, _MFElimination, seed_key="seed")
class MFEliminationSearch(ExperimentSearch[TuneRecommendation]):
    """Compares configurations at the target, then runs the best of them where it is cheap.

    When to use it: as `MFUCBSearch`, but where each trial counts the same, whatever it costs: it
    is worth its configuration's mean at the target. It is Algorithm 3 of "Multi-Fidelity
    Multi-Armed Bandits Revisited" (NeurIPS 2023).

    Rewards are to be maximised. A metric that is minimised is taken for the negative reward: the
    arm with the smallest loss is played as often as the budget allows, at the cheapest level. Where
    every trial *is* a loss, that is the opposite of what keeps the sum of the losses small, and a
    warning says so once.

    What it guarantees: nothing at a given probability about the answer, which is never certified.
    What was missed in comparison with the best arm grows as the budget to the power 2/3 at most,
    if what was declared is true. No bias has to be known. The interval of `recommendation` holds
    with probability at least 1 - `delta`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFElimination]
    ) -> None:
        _, trials, host = DeclaredRace.of(self, fidelity, options)
        super().__init__(trials, arms, **host)

    def _announce(self, settings: Settings) -> None:
        super()._announce(settings)
        if settings.sign < 0.0:
            warnings.warn(LOSSES_ARE_MAXIMISED.format(self._metric), stacklevel=5)
