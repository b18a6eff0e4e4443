"""The race that a sampler's class `runs`, with the options that its user gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfhpo.experiment.settings import MakePolicy
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
    given = {name: value for name, value in options.items() if name not in host}
    kind = RaceKind(
        fidelity,
        arms,
        sampler._policy_class,
        own,
        given,
        make,
        looks=looks,
        draws=host["arm_sampler"] is not None,
    )
    return kind, host
