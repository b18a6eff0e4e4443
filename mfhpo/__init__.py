"""Hyperparameter optimisation that certifies its answer, built on multi-fidelity bandits."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from mfhpo._validation.parameters import document
from mfhpo._validation.renamed import renamed
from mfhpo.censored import RCUCB, LimitRecommendation, ZoomingRCUCB
from mfhpo.certification.choice import PolicyChoice, recommend_policy
from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.identification.bounds import CostPrediction, cost_lower_bound, predict_cost
from mfhpo.identification.elimination import IISE
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias, BiasContradictedWarning
from mfhpo.knowledge.confidence import (
    EmpiricalBernsteinRadius,
    HoeffdingRadius,
    MixtureRadius,
    Radius,
    StudentMixtureRadius,
)
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import (
    Bounded,
    EstimatedNoise,
    Gaussian,
    Noise,
    NoiseContradictedWarning,
    SubGaussian,
)
from mfhpo.problem import Labels, Observation, Policy, Problem, Pull, Recommendation
from mfhpo.racing.noise_evidence import NoNoiseWarning
from mfhpo.racing.race import ArmWithdrawnWarning, Race
from mfhpo.regret import MFUCB, MFElimination

__all__ = [
    "IISE",
    "MFLUCB",
    "MFUCB",
    "RCUCB",
    "ArmWithdrawnWarning",
    "Bias",
    "BiasContradictedWarning",
    "BlockElimination",
    "Bounded",
    "CostPrediction",
    "EmpiricalBernsteinRadius",
    "EstimatedNoise",
    "Fidelity",
    "Gaussian",
    "HoeffdingRadius",
    "Labels",
    "LimitRecommendation",
    "MFElimination",
    "MFGrad",
    "MFTopTwo",
    "MixtureRadius",
    "NoNoiseWarning",
    "Noise",
    "NoiseContradictedWarning",
    "Observation",
    "Policy",
    "PolicyChoice",
    "Problem",
    "Pull",
    "Race",
    "Radius",
    "Recommendation",
    "StudentMixtureRadius",
    "SubGaussian",
    "ZoomingRCUCB",
    "__version__",
    "cost_lower_bound",
    "predict_cost",
    "recommend_policy",
]

try:
    __version__ = version("mfhpo")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"

document(*map(globals().get, __all__))

if not TYPE_CHECKING:
    __getattr__ = renamed(__name__, {"BestArmPolicy": "Race"})
