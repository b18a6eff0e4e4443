"""What a user declares of a race, turned into a problem: the same for every policy."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.samplers import BaseSampler

from mfhpo import Policy, Problem
from mfhpo._validation import check_number
from mfhpo.bias import Kind
from mfhpo.declared import BiasLike, SigmaLike, as_bias, as_noise, mirrored_noise
from mfhpo.fidelity import Fidelity
from mfhpo_optuna._arms import ArmsLike
from mfhpo_optuna._base import RaceSampler

__all__ = ["DeclaredSampler"]

# Options that are numbers, or None for what the policy makes of it.
_NUMBERS = {"budget", "delta", "epsilon", "ratio", "rho"}


class DeclaredSampler(RaceSampler):
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
        if bias is not None and self._fidelity.bias is not None:
            raise ValueError(
                f"bias={bias!r} and fidelity.bias={self._fidelity.bias!r} are both given; "
                f"leave one out."
            )
        self._bias = as_bias(self._fidelity.bias if bias is None else bias, kind)
        self._noise = as_noise(sigma)
        self._options = dict(options)
        for name in _NUMBERS & self._options.keys():
            if self._options[name] is not None:
                check_number(name, self._options[name])
        self._rehearse()
        self._check_budget()

    @abc.abstractmethod
    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Make the policy; `sign` is -1 for a study that minimises, whose values are mirrored."""

    def _make_policy(self, n_arms: int, levels: Sequence[Any], seed: int, sign: float) -> Policy:
        problem = self._problem(n_arms, levels, sign)
        return self._policy_for(problem, sign, self._options | {"seed": seed})

    def _problem(self, n_arms: int, levels: Sequence[Any], sign: float) -> Problem:
        """What is known of the race, in values that are maximised."""
        return Problem(
            n_arms,
            self._fidelity.costs_of(levels),
            bias=self._bias,
            noise=mirrored_noise(self._noise) if sign < 0.0 else self._noise,
            n_fidelities=len(levels),
        )

    def _rehearse(self) -> None:
        """Check now what is known already, not in the first trial."""
        if self._fidelity.levels is not None:
            problems = {sign: self._problem(2, self._fidelity.levels, sign) for sign in (1.0, -1.0)}
        else:
            declared = self._bias.bounds if self._bias else getattr(self._noise, "sigma", 1.0)
            number = len(declared) if isinstance(declared, Sequence) else 1
            problem = Problem(2, None, bias=self._bias, noise=self._noise, n_fidelities=number)
            problems = {1.0: problem, -1.0: problem}
        for sign, problem in problems.items():
            self._policy_for(problem, sign, self._options | {"seed": 0})

    def _check_budget(self) -> None:
        """Warn of a budget that pays for nothing, if the levels tell."""
        budget, levels = self._options["budget"], self._fidelity.levels
        costs = None if levels is None else self._fidelity.costs_of(levels)
        if budget is not None and costs is not None and budget < costs[0]:
            warnings.warn(
                f"budget={budget!r} is less than the {costs[0]:g} that one evaluation costs at the "
                f"cheapest level, {self._fidelity.name}={levels[0] if levels else None!r}: nothing "
                f"will be evaluated. Give a larger budget.",
                stacklevel=4,
            )
