"""What a user declares of a race, turned into a problem: the same for every policy."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.samplers import BaseSampler

from mfhpo import Policy, Problem
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike, check_options
from mfhpo_optuna.samplers.base import FidelitySampler
from mfhpo_optuna.study.arms import ArmsLike

__all__ = ["DeclaredSampler"]

# Options that are numbers, or None for what the policy makes of it.
_NUMBERS = {"budget", "delta", "epsilon", "ratio", "rho"}


class DeclaredSampler(FidelitySampler):
    """A race whose arms, costs, bias and noise are declared as `IISESampler` says.

    Values are maximised inside. What is declared of them is declared in the unit and the direction
    of the objective, and is mirrored for a study that minimises.

    Parameters
    ----------
    fidelity, arms, sigma, bias, arm_sampler, lease, progress, seed
        See `IISESampler`.
    kind
        How bounds given as numbers are meant.
    options
        Further arguments of the policy. They are tried at once, so that wrong ones raise here and
        not in the first trial.
    """

    def __init__(
        self,
        *,
        fidelity: str | Fidelity,
        arms: ArmsLike,
        sigma: SigmaLike,
        bias: BiasLike,
        arm_sampler: BaseSampler | None,
        lease: float | None,
        progress: bool | None,
        seed: int | None,
        options: Mapping[str, Any],
        kind: Kind = "max",
    ) -> None:
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            arm_sampler=arm_sampler,
            lease=lease,
            progress=progress,
            seed=seed,
        )
        self._declaration = Declaration.of(self._fidelity, sigma, bias, kind)
        self._options = dict(options)
        check_options(self._options)
        levels = self._fidelity.levels or ()
        for sign in (1.0, -1.0):
            # What is known already is checked now, not in the first trial.
            problem = self._declaration.rehearsal(levels, sign)
            self._policy_for(problem, sign, self._options | {"seed": 0})
        objection = self._declaration.objection_to(self._options["budget"], levels)
        if objection is not None:
            warnings.warn(objection, stacklevel=3)

    @abc.abstractmethod
    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Make the policy; `sign` is -1 for a study that minimises, whose values are mirrored."""

    def _make_policy(self, n_arms: int, levels: Sequence[Any], seed: int, sign: float) -> Policy:
        problem = self._declaration.problem(n_arms, levels, sign)
        return self._policy_for(problem, sign, self._options | {"seed": seed})
