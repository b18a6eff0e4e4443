"""`MFGradSearch`: the race along the gradient of what a certificate needs, in Ray Tune."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ray.tune.search import Searcher

from mfhpo import Policy, Problem
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.identification.gradient import LearningRate, MFGrad
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.fidelity_search import FidelitySearch

__all__ = ["MFGradSearch"]


class MFGradSearch(FidelitySearch):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. It learns the
    best split of the cost among all pairs of configuration and level, which is asymptotically
    optimal. It begins with one trial of every pair of those configurations that are left, and a
    step takes more computing than one of the policy that `MFSearch` usually takes, which is the
    better choice elsewhere.

    What it guarantees: the same as `IISESearch`, which also describes trials, space, scheduler and
    restarts. With ``stop="published"`` delta is not proven.

    Parameters
    ----------
    fidelity, arms, metric, mode, space, arm_search
        See `IISESearch`.
    learning_rate
        "adaptive", which does not depend on the scale of values, noise or costs; "decreasing", or
        a positive number as published (0.25), which suit gradients of about 1.
    stop
        "mixture": keeps delta at all times, and drops arms on the way. "published": the heuristic
        of the method's own experiments.
    max_arms
        The gradient is followed once at most so many arms are left; before, the leader and its
        nearest rival are pulled.
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated with
        ``estimated_bias="eliminate"``. None: what `bias` declares; numbers are "max", and "order"
        is estimated.
    delta, epsilon, sigma, bias, budget, prices, measure, max_failures
        See `IISESearch`.
    pilot_arms, pilot_pulls, estimated_bias, seed_key, seed
        See `IISESearch`.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As `IISESearch` does.

    Examples
    --------
    >>> import numpy as np
    >>> from mfhpo_ray import MFGradSearch
    >>> from mfhpo import Fidelity
    >>> search = MFGradSearch(
    ...     Fidelity("epochs", levels=[1, 9]), [{"x": -0.5}, {"x": 0.1}, {"x": 0.8}],
    ...     metric="loss", mode="min", epsilon=0.05, seed=0,
    ... )
    >>> for number in range(2000):
    ...     config = search.suggest(f"trial_{number}")
    ...     if config == search.FINISHED:
    ...         break
    ...     noise = 0.05 * np.random.default_rng(config["seed"]).normal()
    ...     loss = config["x"] ** 2 + 0.2 / config["epochs"] + noise
    ...     search.on_trial_complete(f"trial_{number}", {"loss": loss})
    >>> search.recommendation().certified, search.recommendation().config
    (True, {'x': 0.1})
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        metric: str | None = None,
        mode: str | None = None,
        space: Mapping[str, Any] | None = None,
        arm_search: Searcher | None = None,
        learning_rate: LearningRate = "adaptive",
        stop: Literal["mixture", "published"] = "mixture",
        max_arms: int = 32,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        prices: Mapping[str, float] | None = None,
        variant: Kind | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        seed_key: str | None = "seed",
        seed: int | None = None,
    ) -> None:
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            metric=metric,
            mode=mode,
            space=space,
            arm_search=arm_search,
            sigma=sigma,
            bias=bias,
            kind=variant or "max",
            prices=prices,
            seed_key=seed_key,
            seed=seed,
            options={
                "learning_rate": learning_rate,
                "stop": stop,
                "max_arms": max_arms,
                "delta": delta,
                "epsilon": epsilon,
                "budget": budget,
                "variant": variant,
                "measure": measure,
                "max_failures": max_failures,
                "pilot_arms": pilot_arms,
                "pilot_pulls": pilot_pulls,
                "estimated_bias": estimated_bias,
            },
        )

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        return MFGrad(problem, **options)
