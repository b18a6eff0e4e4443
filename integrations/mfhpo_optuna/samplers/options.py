"""What every sampler that runs a policy takes by name, besides the policy's own options."""

from __future__ import annotations

from typing import TypedDict

from optuna.samplers import BaseSampler

from mfhpo_optuna.study.loop.report import ProgressLike


class SamplerOptions(TypedDict, total=False):
    """Options of every sampler that runs a policy.

    Parameters
    ----------
    arm_sampler
        An Optuna sampler that draws the arms; it sees one trial per arm. None: a Latin hypercube.
    lease
        Seconds after which a running trial is given up and left out; the certificate assumes that
        its worker is dead. None: a race waits for it, for ten times as long as the slowest trial so
        far would have taken at its level, and at least a minute; then the study stops, not
        certified. A trial with a time limit is waited for a minute and twice the limit.
    progress
        Where to show how the study gets on: phase, configurations, leader, what was spent, when it
        ends. None: a line on standard error, if that is a terminal. True: elsewhere, too, as lines
        of Optuna's log at level INFO. False: nowhere.
    seed
        Makes arms and pilot repeatable. None: derived from the study's name, so that all workers
        of a study agree.
    """

    arm_sampler: BaseSampler | None
    lease: float | None
    progress: ProgressLike
    seed: int | None
