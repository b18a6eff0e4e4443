"""A race as a sampler declares it, in which cheap levels may choose finalists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mfhpo import Policy, Problem
from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED, check_blocks, make_block_elimination
from mfhpo.experiment import RaceSettings, SearchSettings
from mfhpo.experiment.settings import Settings
from mfhpo.knowledge.bias import Kind as BiasKind
from mfhpo.racing.declaration import Declaration, as_fidelity
from mfhpo.regret import MFElimination
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    declared_shortlist,
    makes_shortlist,
)
from mfhpo_optuna.kinds.fidelity import FidelityKind
from mfhpo_optuna.study.arms import ArmsLike, Params, given_arms

if TYPE_CHECKING:
    from mfhpo.knowledge.fidelity import Fidelity
    from mfhpo_optuna.study.study_experiment import StudyExperiment

MakePolicy = Callable[[Problem, float, Mapping[str, Any]], Policy]


class RaceKind(FidelityKind):
    """Compares given configurations by a policy, or has cheap levels choose which are compared.

    Values are maximised inside. What is declared about them has the unit and the direction of the
    objective, and is mirrored for a study that minimises. Options are tried at once, so that
    wrong ones raise here and not in the first trial.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    options
        All options of the policy; `given` are those that the user has given.
    make
        Makes the policy.
    compares
        Name of the policy that compares finalists; "" for a few planned looks.
    draws
        Whether another sampler draws the configurations.
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike,
        options: Mapping[str, Any],
        given: Mapping[str, Any],
        make: MakePolicy,
        *,
        compares: str,
        draws: bool,
    ) -> None:
        own = dict(options)
        self.replicate = own.pop("replicate", None)
        self.fidelity = as_fidelity(fidelity)
        if self.replicate is not None:
            check_blocks(self.replicate, self.fidelity.name, {"bias": self.fidelity.bias, **given})
        kind: BiasKind = "order" if own.get("variant") == "order" else "max"
        sigma, bias = own.pop("sigma"), own.pop("bias", None)
        self._declaration = Declaration.of(self.fidelity, sigma, bias, kind)
        self._arms, self._draws, self._make = arms, draws, make
        self.compares = compares
        self.options = own
        self._warned_of_losses = False
        # Adds to what the log is to say, given these words.
        self.announces: Callable[[StudyExperiment, str], str] | None = None
        self.in_seconds = self.fidelity.costs == "measured"
        self._listed = given_arms(arms, self.owned, 0)  # raises for bad ones before any study
        levels = self.fidelity.levels or ()
        self._declaration.rehearse(self._policy, own, levels, (1.0, -1.0))
        objection = self._declaration.objection_to(own["budget"], levels)
        if objection is not None:
            warnings.warn(objection, stacklevel=4)

    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn."""
        is_drawn = isinstance(self._arms, Mapping)
        return given_arms(self._arms, self.owned, seed) if is_drawn else self._listed

    def of_levels(self, levels: Sequence[Any], common: Mapping[str, Any]) -> Settings:
        """Return the settings of the race, or of the search for its finalists."""
        candidates, fidelity = self.given(common["seed"]), self._declaration.fidelity
        n_arms = candidates if isinstance(candidates, int) else len(candidates)
        sign, costs = common["sign"], fidelity.costs_of(levels)
        declaration, options = self._declaration, self.options
        if not self._draws and makes_shortlist(self._whole, n_arms, costs):
            return SearchSettings(
                declared=declared_shortlist(
                    declaration, options, candidates, levels, self.replicate
                ),
                levels=levels,
                candidates=() if isinstance(candidates, int) else candidates,
                make_certifier=certifier_of(self._make, options, sign) if self.compares else None,
                **common,
            )
        settings = RaceSettings(
            candidates=candidates,
            fidelity=replace(fidelity, levels=tuple(levels), bias=None),
            declaration=declaration,
            options={**options, "seed": common["seed"]},
            make=self._policy,
            in_blocks=self.replicate is not None,
            **common,
        )
        is_loss = sign < 0.0 and isinstance(settings.runner().policy, MFElimination)
        if is_loss and not self._warned_of_losses:
            self._warned_of_losses = True
            warnings.warn(LOSSES_ARE_MAXIMISED.format("the objective"), stacklevel=4)
        return settings

    def _policy(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        if self.replicate is None:
            return self._make(problem, sign, options)
        return make_block_elimination(problem, options)

    def announcement(self, known: StudyExperiment) -> str:
        """Return what the log is to say once about how a study is run; empty for nothing."""
        words = self.cheap_levels_in_words(known)
        return words if self.announces is None else self.announces(known, words)

    def cheap_levels_in_words(self, known: StudyExperiment) -> str:
        """Say what cheap levels are used for; empty where users have declared that."""
        if self._draws:
            return ""
        n_arms = len(known.experiment.runner.configurations)
        costs = self._declaration.fidelity.costs_of(known.trials.levels)
        compares = "" if self.replicate is not None else self.compares
        return cheap_levels_in_words(self._whole, n_arms, costs, compares)

    def problem(self, known: StudyExperiment) -> Problem:
        """Return the problem of a study's race."""
        n_arms = len(known.experiment.runner.configurations)
        return self._declaration.problem(n_arms, known.trials.levels, known.sign)

    @property
    def _whole(self) -> dict[str, Any]:
        return {**self.options, "bias": self._declaration.bias, "sigma": self._declaration.noise}
