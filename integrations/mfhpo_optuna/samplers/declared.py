"""The sampler of a policy whose problem is declared: arms, costs, bias and noise."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna

from mfhpo import Policy, Problem
from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import Declaration
from mfhpo.racing.options import with_defaults
from mfhpo.regret import MFElimination
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.samplers.options import SamplerOptions
from mfhpo_optuna.study.arms import ArmsLike
from mfhpo_optuna.study.fidelity_race import FidelityRace

__all__ = ["DeclaredSampler"]


class DeclaredSampler(FidelitySampler):
    """Runs the policy that `mfhpo.racing.options.runs` names.

    Values are maximised inside. What is declared of them is declared in the unit and the direction
    of the objective, and is mirrored for a study that minimises. Options are tried at once, so that
    wrong ones raise here and not in the first trial.
    """

    _policy_class: Callable[..., Policy]

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike, options: Mapping[str, Any]
    ) -> None:
        own = with_defaults(type(self), options)
        host = {name: own.pop(name) for name in SamplerOptions.__annotations__}
        super().__init__(fidelity, arms, **host)
        kind: Kind = "order" if own.get("variant") == "order" else "max"
        self._declaration = Declaration.of(
            self._fidelity, own.pop("sigma"), own.pop("bias", None), kind
        )
        self._options = own
        self._warned_of_losses = False
        levels = self._fidelity.levels or ()
        self._declaration.rehearse(self._policy_for, own, levels, (1.0, -1.0))
        objection = self._declaration.objection_to(own["budget"], levels)
        if objection is not None:
            warnings.warn(objection, stacklevel=3)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Make the policy; `sign` is -1 for a study that minimises, whose values are mirrored."""
        return self._policy_class(problem, **options)

    def _new(self, study: optuna.Study) -> FidelityRace:
        seed = self._seed_of(study)

        def make_policy(n_arms: int, levels: Sequence[Any], sign: float) -> Policy:
            problem = self._declaration.problem(n_arms, levels, sign)
            policy = self._policy_for(problem, sign, self._options | {"seed": seed})
            if sign < 0.0 and isinstance(policy, MFElimination) and not self._warned_of_losses:
                self._warned_of_losses = True
                warnings.warn(LOSSES_ARE_MAXIMISED.format("the objective"), stacklevel=4)
            return policy

        self._note_fidelity(study)
        return FidelityRace(study, self._new_arms(study), self._fidelity, make_policy, self._lease)
