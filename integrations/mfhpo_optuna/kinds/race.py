"""A race as a kind of experiment on a study, in which cheap levels may choose finalists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mfhpo import Problem
from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED
from mfhpo.experiment import RaceSettings
from mfhpo.experiment.kinds.race import DeclaredRace
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.regret import MFElimination
from mfhpo_optuna.kinds.fidelity import FidelityKind
from mfhpo_optuna.study.arms import ArmsLike, Params, given_arms

if TYPE_CHECKING:
    from mfhpo_optuna.study.study_experiment import StudyExperiment


class RaceKind(FidelityKind):
    """Compares configurations; what is declared has the unit and direction of the objective.

    Options are tried at once, so that wrong ones raise here and not in the first trial.

    Parameters
    ----------
    declared
        The race.
    arms
        See `IISESampler`.
    races
        Whether all configurations are compared, as another sampler draws them.
    """

    def __init__(self, declared: DeclaredRace, arms: ArmsLike, *, races: bool) -> None:
        self.declared = declared
        self.fidelity = declared.fidelity
        self.replicate = declared.replicate
        self._arms, self._races = arms, races
        self._warned_of_losses = False
        # Adds to what the log is to say, given these words.
        self.announces: Callable[[StudyExperiment, str], str] | None = None
        self.in_seconds = declared.fidelity.costs == "measured"
        self._listed = given_arms(arms, self.owned, 0)  # raises for bad ones before any study
        objection = declared.rehearse(declared.fidelity.levels or (), (1.0, -1.0))
        if objection is not None:
            warnings.warn(objection, stacklevel=4)

    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn."""
        is_drawn = isinstance(self._arms, Mapping)
        return given_arms(self._arms, self.owned, seed) if is_drawn else self._listed

    def of_levels(self, levels: Sequence[Any], common: Mapping[str, Any]) -> Settings:
        """Return the settings of the race, or of the search for its finalists."""
        candidates = self.given(common["seed"])
        settings = self.declared.settings(candidates, levels, races=self._races, **common)
        self._warn_of_losses(settings)
        return settings

    def _warn_of_losses(self, settings: Settings) -> None:
        if self._warned_of_losses or settings.sign > 0.0 or not isinstance(settings, RaceSettings):
            return
        if isinstance(settings.runner().policy, MFElimination):
            self._warned_of_losses = True
            warnings.warn(LOSSES_ARE_MAXIMISED.format("the objective"), stacklevel=4)

    def announcement(self, known: StudyExperiment) -> str:
        """Return what the log is to say once about how a study is run; empty for nothing."""
        words = self.cheap_levels_in_words(known)
        return words if self.announces is None else self.announces(known, words)

    def cheap_levels_in_words(self, known: StudyExperiment) -> str:
        """Say what cheap levels are used for; empty where users have declared that."""
        n_arms = len(known.experiment.runner.configurations)
        return "" if self._races else self.declared.in_words(n_arms, known.trials.levels)

    def problem(self, known: StudyExperiment) -> Problem:
        """Return the problem of a study's race."""
        n_arms = len(known.experiment.runner.configurations)
        return self.declared.declaration.problem(n_arms, known.trials.levels, known.sign)
