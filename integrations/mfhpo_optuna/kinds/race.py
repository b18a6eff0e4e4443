"""A race as a sampler declares it, in which cheap levels may choose finalists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo import Problem
from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED
from mfhpo.experiment import LateSettings, SearchSettings
from mfhpo.experiment.race_settings import DeclaredRace
from mfhpo.experiment.settings import MakePolicy, Settings
from mfhpo.regret import MFElimination
from mfhpo_optuna.kinds.fidelity import FidelityKind
from mfhpo_optuna.study.arms import ArmsLike, Params, given_arms
from mfhpo_optuna.study.levels import described

if TYPE_CHECKING:
    from mfhpo.knowledge.fidelity import Fidelity
    from mfhpo_optuna.study.study_experiment import StudyExperiment


class RaceKind(FidelityKind):
    """Compares given configurations by a policy, or has cheap levels choose which are compared.

    Values are maximised inside. What is declared about them has the unit and the direction of the
    objective, and is mirrored for a study that minimises. Options are tried at once, so that
    wrong ones raise here and not in the first trial.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    policy, options, given, make, looks
        See `mfhpo.experiment.race_settings.DeclaredRace.of`.
    draws
        Whether another sampler draws the configurations.
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike,
        policy: type,
        options: Mapping[str, Any],
        given: Mapping[str, Any],
        make: MakePolicy | None,
        *,
        looks: bool,
        draws: bool,
    ) -> None:
        self.race = DeclaredRace.of(policy, fidelity, options, given, make, looks=looks)
        self.replicate = self.race.replicate
        self.fidelity = self.race.fidelity
        self._arms, self._draws = arms, draws
        self._warned_of_losses = False
        # Adds to what the log is to say, given these words.
        self.announces: Callable[[StudyExperiment, str], str] | None = None
        self.in_seconds = self.fidelity.costs == "measured"
        given_arms(arms, self.owned, 0)  # raises for bad arms before any study exists
        objection = self.race.objection(self.fidelity.levels or ())
        if objection is not None:
            warnings.warn(objection, stacklevel=4)

    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn."""
        return given_arms(self._arms, self.owned, seed)

    def settings(self, study: optuna.Study, seed: int, lease: float | None) -> Settings:
        """Return the settings of the race, or of the search for its finalists."""
        sign = 1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else -1.0
        candidates, fidelity = self.given(seed), self.race.fidelity
        common: dict[str, Any] = {"seed": seed, "sign": sign, "lease_seconds": lease}
        common["describe"], levels = described, tuple(fidelity.levels or ())
        if levels:
            return self._settings(candidates, levels, common)
        return LateSettings(
            fidelity=fidelity.name,
            make=lambda levels: self._settings(candidates, levels, common),
            candidates=candidates,
            in_blocks=self.replicate is not None,
            **common,
        )

    def _settings(
        self, candidates: int | list[Params], levels: Sequence[Any], common: dict[str, Any]
    ) -> Settings:
        settings = self.race.settings(candidates, levels, may_shortlist=not self._draws, **common)
        if isinstance(settings, SearchSettings):
            return settings
        is_loss = settings.sign < 0.0 and isinstance(settings.runner().policy, MFElimination)
        if is_loss and not self._warned_of_losses:
            self._warned_of_losses = True
            warnings.warn(LOSSES_ARE_MAXIMISED.format("the objective"), stacklevel=4)
        return settings

    def announcement(self, known: StudyExperiment) -> str:
        """Return what the log is to say once about how a study is run; empty for nothing."""
        words = self.cheap_levels_in_words(known)
        return words if self.announces is None else self.announces(known, words)

    def cheap_levels_in_words(self, known: StudyExperiment) -> str:
        """Say what cheap levels are used for; empty where users have declared that."""
        if self._draws:
            return ""
        n_arms = len(known.experiment.runner.configurations)
        return self.race.in_words(n_arms, known.trials.levels)

    def problem(self, known: StudyExperiment) -> Problem:
        """Return the problem of a study's race."""
        n_arms = len(known.experiment.runner.configurations)
        return self.race.declaration.problem(n_arms, known.trials.levels, known.sign)
