"""Which policy for which problem, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.elimination import IISE
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.noise import EstimatedNoise, SubGaussian
from mfhpo.policy import Policy
from mfhpo.problem import Problem
from mfhpo.regret.elimination import MFElimination
from mfhpo.regret.mf_ucb import MFUCB
from mfhpo.regret.reward import RewardPolicy

__all__ = ["Aim", "PolicyChoice", "recommend_policy"]

Aim = Literal["best arm", "reward per cost", "reward per pull"]


@dataclass(frozen=True)
class PolicyChoice:
    """A policy for a problem, and why this one, in words."""

    policy: type[BestArmPolicy] | type[RewardPolicy]
    reason: str

    def make(self, problem: Problem, **options: Any) -> Policy:
        """Make the policy, or raise TypeError where its class has no such option."""
        try:
            return self.policy(problem, **options)
        except TypeError as error:
            raise TypeError(
                f"{self.policy.__name__} was chosen, and cannot be made with "
                f"{', '.join(sorted(options)) or 'no options'}: {error}"
            ) from error


def recommend_policy(problem: Problem, aim: Aim = "best arm") -> PolicyChoice:
    """Choose the policy that is known to be cheapest for what is known.

    Parameters
    ----------
    problem
        Arms, costs, bias and noise, as far as they are known.
    aim
        "best arm": the best arm, or one within epsilon of it, with a certificate.
        "reward per cost": as much reward as a capital can buy, a play at any fidelity earning its
        cost times the arm's target mean (paper 000, Eq. 1).
        "reward per pull": every play earns the arm's target mean, whatever it costs (paper 002,
        Eq. 9), so that plays should be cheap once the best arm is known.

    Raises
    ------
    ValueError
        If the aim is none of these, or rewards are wanted with bias bounds of kind "order".

    Examples
    --------
    >>> from mfhpo import Bias, SubGaussian
    >>> problem = Problem(8, costs=(1, 10), bias=Bias.max(0.1, 0.0), noise=SubGaussian(0.1))
    >>> recommend_policy(problem).policy.__name__
    'MFTopTwo'
    >>> recommend_policy(problem, aim="reward per cost").policy.__name__
    'MFUCB'
    """
    if aim not in get_args(Aim):
        raise ValueError(f"aim must be one of {', '.join(get_args(Aim))}, got {aim!r}.")
    if aim == "reward per pull":
        return PolicyChoice(
            MFElimination,
            "every play earns the same whatever it costs, so that it pays to compare arms at the "
            "target fidelity first and then to play the best of them at the cheapest",
        )
    if aim == "reward per cost":
        if problem.bias is not None and problem.bias.kind != "max":
            raise ValueError(
                f"bias={problem.bias!r}: aim='reward per cost' needs bounds on every arm's own "
                f"bias; declare Bias.max(...), or take aim='reward per pull', which needs none."
            )
        return PolicyChoice(
            MFUCB,
            "plays earn in proportion to their cost, so that arms are dropped at the cheapest "
            "fidelity that can tell them from the best, while the best are played on",
        )
    return _for_the_best_arm(problem)


def _for_the_best_arm(problem: Problem) -> PolicyChoice:
    """The policy for a certificate.

    The first branch is what benchmarks/papers/mf_grad.py measures. The others are for values whose
    spread is far below what their bounds allow, or differs from arm to arm: there confidence bounds
    that see the spread won the races on recorded evaluations.
    """
    if isinstance(problem.noise, (SubGaussian, EstimatedNoise)):
        return PolicyChoice(
            MFTopTwo,
            "likelihood ratios of pairs of arms need the fewest pulls where the noise's scale is "
            "declared, or one scale is estimated for all arms",
        )
    spread = (
        "no scale of the noise is declared or shared by the arms, and confidence bounds see how "
        "little each arm's values spread"
    )
    if problem.bias is not None and problem.bias.kind == "max":
        return PolicyChoice(MFLUCB, f"{spread}; with bounds on every arm's own bias LUCB uses them")
    return PolicyChoice(
        IISE, f"{spread}; IISE takes order bounds, and estimates them where none are given"
    )
