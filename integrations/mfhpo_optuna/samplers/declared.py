"""The race that a sampler's class `runs`, with the options that its user gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mfhpo import Policy, Problem
from mfhpo.experiment.kinds.race import DeclaredRace, MakePolicy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import with_defaults
from mfhpo_optuna.kinds.race import RaceKind
from mfhpo_optuna.samplers.options import SamplerOptions
from mfhpo_optuna.study.arms import ArmsLike


def race(
    sampler: Any,
    fidelity: str | Fidelity,
    arms: ArmsLike,
    options: Mapping[str, Any],
    make: MakePolicy | None = None,
    *,
    looks: bool = False,
) -> tuple[RaceKind, dict[str, Any]]:
    """Return the race of a sampler's arguments, and those that every sampler has.

    The policy takes its options as they are, unless a function is given to `make` it. Finalists are
    compared by it, or by a few planned `looks`.
    """
    own = with_defaults(type(sampler), options)
    host = {name: own.pop(name) for name in SamplerOptions.__annotations__}
    policy = sampler._policy_class
    given = {name: value for name, value in options.items() if name not in host}
    making, compares = make or partial(_as_given, policy), "" if looks else policy.__name__
    declared = DeclaredRace.of(fidelity, own, given, making, compares)
    return RaceKind(declared, arms, races=host["arm_sampler"] is not None), host


def _as_given(
    policy: Callable[..., Policy], problem: Problem, sign: float, options: Mapping[str, Any]
) -> Policy:
    return policy(problem, **options)
