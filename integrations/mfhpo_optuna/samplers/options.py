"""What samplers take by name: the options of their policy, and their own.

The options of policies are documented in `mfhpo.racing.options` and `mfhpo.censored.options`.
"""

from __future__ import annotations

from typing import TypedDict

from optuna.samplers import BaseSampler

from mfhpo.censored.options import RCUCBOptions, ZoomingRCUCBOptions
from mfhpo.racing.options import (
    ChoiceOptions,
    IISEOptions,
    MFEliminationOptions,
    MFGradOptions,
    MFLUCBOptions,
    MFTopTwoOptions,
    MFUCBOptions,
)

__all__ = [
    "IISESamplerOptions",
    "MFEliminationSamplerOptions",
    "MFGradSamplerOptions",
    "MFLUCBSamplerOptions",
    "MFSamplerOptions",
    "MFTopTwoSamplerOptions",
    "MFUCBSamplerOptions",
    "RCUCBSamplerOptions",
    "SamplerOptions",
    "ZoomingRCUCBSamplerOptions",
]


class SamplerOptions(TypedDict, total=False):
    """Options of every sampler that runs a policy.

    Parameters
    ----------
    arm_sampler
        An Optuna sampler that draws the arms; it sees one trial per arm. None: a Latin hypercube.
    lease
        Seconds after which a running trial is not waited for. That its worker is dead then is a
        condition of the claim. None: ten times what the slowest trial so far would have taken at
        its level, and at least a minute; then nothing is certified until the trial ends or is told
        as failed. Samplers with time limits wait a minute and twice the limit, once limits are
        known.
    progress
        Whether to write a line of progress to standard error. None: if it is a terminal.
    seed
        Makes arms and pilot repeatable. None: derived from the study's name, so that all workers
        of a study agree.
    """

    arm_sampler: BaseSampler | None
    lease: float | None
    progress: bool | None
    seed: int | None


class IISESamplerOptions(IISEOptions, SamplerOptions):
    """Options of `IISESampler`."""


class MFTopTwoSamplerOptions(MFTopTwoOptions, SamplerOptions):
    """Options of `MFTopTwoSampler`."""


class MFGradSamplerOptions(MFGradOptions, SamplerOptions):
    """Options of `MFGradSampler`."""


class MFLUCBSamplerOptions(MFLUCBOptions, SamplerOptions):
    """Options of `MFLUCBSampler`."""


class MFSamplerOptions(ChoiceOptions, SamplerOptions):
    """Options of `MFSampler`."""


class MFUCBSamplerOptions(MFUCBOptions, SamplerOptions):
    """Options of `MFUCBSampler`."""


class MFEliminationSamplerOptions(MFEliminationOptions, SamplerOptions):
    """Options of `MFEliminationSampler`."""


class RCUCBSamplerOptions(RCUCBOptions, SamplerOptions):
    """Options of `RCUCBSampler`."""


class ZoomingRCUCBSamplerOptions(ZoomingRCUCBOptions, SamplerOptions):
    """Options of `ZoomingRCUCBSampler`."""
