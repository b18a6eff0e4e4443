"""What every sampler that runs a policy takes by name, besides the policy's own options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from mfhpo.certification.choice import make_best_policy
from mfhpo.experiment.kinds.race import DeclaredRace, MakePolicy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import own_and_host
from mfhpo_optuna.samplers.fidelity_kinds import RaceKind
from mfhpo_optuna.study.arms import ArmsLike
from mfhpo_optuna.study.loop.report import ProgressLike


class SamplerOptions(TypedDict, total=False):
    """Options of every sampler that runs a policy.

    Parameters
    ----------
    lease
        Seconds after which a running trial is given up and left out; the certificate assumes that
        its worker is dead. None: a race waits for it, for ten times as long as the slowest trial so
        far would have taken at its level, and at least a minute; then the study stops, not
        certified. A trial with a time limit is waited for a minute and twice the limit.
    progress
        Where to show how the study gets on: phase, configurations, leader, what was spent. None: a
        line on standard error, if that is a terminal. True: elsewhere, too, as lines of Optuna's
        log at level INFO. False: nowhere.
    seed
        Makes arms and pilot repeatable. None: derived from the study's name, so that all workers
        of a study agree.
    """

    lease: float | None
    progress: ProgressLike
    seed: int | None


def race(
    sampler: Any,
    fidelity: str | Fidelity,
    arms: ArmsLike,
    options: Mapping[str, Any],
    make: MakePolicy | None = None,
) -> dict[str, Any]:
    """Return what a sampler of races gives to `StudySampler`; a function may `make` its policy."""
    own, host = own_and_host(type(sampler), options, SamplerOptions)
    policy = sampler._policy_class
    given = {name: value for name, value in options.items() if name not in host}
    compares = "" if make is make_best_policy else policy.__name__
    declared = DeclaredRace.of(fidelity, own, given, make or policy, compares)
    kind = RaceKind(declared, arms)
    return {"kind": kind, "arguments": {"fidelity": fidelity, "arms": arms, **options}, **host}
