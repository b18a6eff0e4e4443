"""Hyperparameter optimisation that certifies its answer, built on multi-fidelity bandits."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mfhpo.bias import Bias, BiasContradictedWarning
from mfhpo.confidence import (
    EmpiricalBernsteinRadius,
    HoeffdingRadius,
    MixtureRadius,
    Radius,
    StitchedRadius,
    StudentMixtureRadius,
    TightestRadius,
)
from mfhpo.evidence import NoNoiseWarning
from mfhpo.identification import (
    IISE,
    ArmWithdrawnWarning,
    CostPrediction,
    Elimination,
    MaximumFidelityExploit,
    SuccessiveElimination,
    cost_lower_bound,
    predict_cost,
)
from mfhpo.labels import Labels
from mfhpo.noise import Bounded, EstimatedNoise, Gaussian, Noise, SubGaussian
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Problem, Pull, Recommendation

__all__ = [
    "IISE",
    "ArmWithdrawnWarning",
    "Bias",
    "BiasContradictedWarning",
    "Bounded",
    "CostPrediction",
    "Elimination",
    "EmpiricalBernsteinRadius",
    "EstimatedNoise",
    "Gaussian",
    "HoeffdingRadius",
    "Labels",
    "MaximumFidelityExploit",
    "MixtureRadius",
    "NoNoiseWarning",
    "Noise",
    "Observation",
    "Policy",
    "Problem",
    "Pull",
    "Radius",
    "Recommendation",
    "StitchedRadius",
    "StudentMixtureRadius",
    "SubGaussian",
    "SuccessiveElimination",
    "TightestRadius",
    "__version__",
    "cost_lower_bound",
    "predict_cost",
]

try:
    __version__ = version("mfhpo")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"
