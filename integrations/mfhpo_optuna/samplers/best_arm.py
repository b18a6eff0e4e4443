"""Samplers for the best arm that follow the values: LUCB, top-two sampling, MF-GRAD."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from optuna.samplers import BaseSampler

from mfhpo import Policy, Problem
from mfhpo._validation import check_number
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.identification.gradient import LearningRate, MFGrad
from mfhpo.identification.lucb import MFLUCB, Explore, Schedule
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike, mirrored_radius
from mfhpo_optuna.samplers.declared import DeclaredSampler
from mfhpo_optuna.study.arms import ArmsLike

__all__ = ["MFGradSampler", "MFLUCBSampler", "MFTopTwoSampler"]


class MFTopTwoSampler(DeclaredSampler):
    """Finds and certifies the best configuration by pulling the leader and its nearest rival.

    When to use it: for a certificate. All levels of two configurations are weighed together, and
    cost goes where the decision is open, so that it usually certifies sooner than `IISESampler`,
    which evaluates all that are left equally often. Use `IISESampler` for many workers, which need
    no single leader to gather around, or to repeat published results.

    What it guarantees: the same as `IISESampler`. With probability at least 1 - `delta` the
    certified configuration is at most `epsilon` worse than the best arm, provided that what was
    declared is true; what was estimated is named in the certificate. Everything about trials,
    ``study.best_trial``, workers and resuming is as described there, too.

    Parameters
    ----------
    fidelity, arms, delta, epsilon, sigma, bias, budget, arm_sampler, measure, max_failures
        See `IISESampler`.
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated by
        ``estimated_bias="eliminate"``. None: what `bias` declares; numbers are "max", and "order"
        is estimated.
    pilot_arms, pilot_pulls, estimated_bias, lease, progress, seed
        See `IISESampler`.

    Raises
    ------
    ValueError
        As `IISESampler` does.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import MFTopTwoSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return x**2 + 0.2 / epochs + 0.05 * rng.normal()
    >>> sampler = MFTopTwoSampler("epochs", arms=8, epsilon=0.05, seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective)
    >>> sampler.recommendation(study).certified, abs(study.best_params["x"]) < 0.3
    (True, True)
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        variant: Kind | None = None,
        arm_sampler: BaseSampler | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            sigma=sigma,
            bias=bias,
            kind=variant or "max",
            arm_sampler=arm_sampler,
            lease=lease,
            progress=progress,
            seed=seed,
            options={
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
        return MFTopTwo(problem, **options)


class MFGradSampler(DeclaredSampler):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. It learns the
    best split of the cost among all pairs of configuration and level, which is asymptotically
    optimal. It begins with one trial of every pair of those configurations that are left, and a
    step takes more computing than one of `MFTopTwoSampler`, which is the better choice elsewhere.

    What it guarantees: the same as `IISESampler`, which also describes trials,
    ``study.best_trial``, workers and resuming. With ``stop="published"`` delta is not proven.

    Parameters
    ----------
    fidelity, arms, delta, epsilon, sigma, bias, budget, arm_sampler, measure, max_failures
        See `IISESampler`.
    learning_rate
        "adaptive", which does not depend on the scale of values, noise or costs; "decreasing", or
        a positive number as published (0.25), which suit gradients of about 1.
    stop
        "mixture": keeps delta at all times, and drops arms on the way. "published": the heuristic
        of the method's own experiments.
    max_arms
        The gradient is followed once at most so many arms are left; before, the pulls are those of
        `MFTopTwoSampler`.
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated by
        ``estimated_bias="eliminate"``. None: what `bias` declares; numbers are "max", and "order"
        is estimated.
    pilot_arms, pilot_pulls, estimated_bias, lease, progress, seed
        See `IISESampler`.

    Raises
    ------
    ValueError
        As `IISESampler` does.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import MFGradSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return x**2 + 0.2 / epochs + 0.05 * rng.normal()
    >>> sampler = MFGradSampler("epochs", arms=8, epsilon=0.05, seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective)
    >>> sampler.recommendation(study).certified, abs(study.best_params["x"]) < 0.3
    (True, True)
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        learning_rate: LearningRate = "adaptive",
        stop: Literal["mixture", "published"] = "mixture",
        max_arms: int = 32,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        variant: Kind | None = None,
        arm_sampler: BaseSampler | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            sigma=sigma,
            bias=bias,
            kind=variant or "max",
            arm_sampler=arm_sampler,
            lease=lease,
            progress=progress,
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


class MFLUCBSampler(DeclaredSampler):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: for a certificate with confidence intervals that can be read off each
    configuration, when the two best means are roughly known beforehand (then ``explore="A"`` or
    "B" picks the levels that pay), or to repeat published results. Else `MFTopTwoSampler` usually
    needs less.

    What it guarantees: the same as `IISESampler`, which also describes trials,
    ``study.best_trial``, workers and resuming. What is said of the two best means only chooses
    levels: if it is wrong the race is dearer, and the certificate as good.

    Parameters
    ----------
    fidelity, arms, delta, epsilon, sigma, budget, arm_sampler, radius, measure, max_failures
        See `IISESampler`.
    explore
        How a level is chosen for a configuration: "A", by how much a unit of cost tells; "B", all
        levels in turn until one is surely good; "AB", both; "C", the cheapest level that still
        tells anything, which needs no idea of the means; "top", the target level only.
    best_no_better_than
        A value that the best arm's mean at the target does not beat, in the unit and direction of
        the objective: an upper bound on the largest mean of a study that maximises, a lower bound
        on the smallest mean of one that minimises. For "A", "B" and "AB". None: what the race has
        found so far.
    second_no_worse_than
        A value that the second-best arm's mean at the target is no worse than; it must be worse
        than `best_no_better_than`. For "A", "B" and "AB". None: what the race has found so far.
    ratio
        "B" settles for a level that is at least so good as this share of the best one, in (0, 1).
    safeguard
        Whether to leave a level that cannot tell the two leading arms apart; without it, as
        published, a race may never end.
    schedule
        None: the tightest radius for the noise. "pulls" or "rounds": the published radius, which
        grows with the number of pulls or rounds; it needs a declared `sigma`.
    bias
        Bounds xi_m on every arm's own bias at each level, the last one 0: numbers or
        `mfhpo.Bias.max`. None: see `estimated_bias`. With its default nothing is estimated: only
        values at the target are evidence, and `explore`, the bounds on the means, `ratio` and
        `safeguard` have no part.
    pilot_arms, pilot_pulls, estimated_bias, lease, progress, seed
        See `IISESampler`.

    Raises
    ------
    ValueError
        For bias bounds of kind "order", if a bound on the means is given for "C" or "top", and as
        `IISESampler` does. When the study's direction is
        known: if `second_no_worse_than` is not worse than `best_no_better_than`.

    Examples
    --------
    No loss is below 0, and a second arm below 0.3 is sure to be among these. After 1, 3 and 9
    epochs, losses are at most 0.2, 0.07 and 0.02 above those after 27:

    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import MFLUCBSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return x**2 + 0.2 / epochs + 0.05 * rng.normal()
    >>> sampler = MFLUCBSampler(
    ...     "epochs", arms=8, explore="A", best_no_better_than=0.0, second_no_worse_than=0.3,
    ...     bias=[0.2, 0.07, 0.02, 0.0], epsilon=0.05, seed=0,
    ... )
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective)
    >>> sampler.recommendation(study).certified, abs(study.best_params["x"]) < 0.3
    (True, True)
    """

    _best_no_better_than: float | None = None
    _second_no_worse_than: float | None = None

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        explore: Explore = "C",
        best_no_better_than: float | None = None,
        second_no_worse_than: float | None = None,
        ratio: float = 0.5,
        safeguard: bool = True,
        schedule: Schedule | None = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        arm_sampler: BaseSampler | None = None,
        radius: Radius | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        for name, value in (
            ("best_no_better_than", best_no_better_than),
            ("second_no_worse_than", second_no_worse_than),
        ):
            if value is None:
                continue
            if not math.isfinite(check_number(name, value, " or None")):
                raise ValueError(f"{name} must be finite or None, got {value!r}.")
            if explore in ("C", "top"):
                raise ValueError(
                    f"{name}={value!r} has no part in explore={explore!r}, which needs no idea of "
                    f"the means; leave it out, or take explore='A', 'B' or 'AB'."
                )
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            sigma=sigma,
            bias=bias,
            arm_sampler=arm_sampler,
            lease=lease,
            progress=progress,
            seed=seed,
            options={
                "explore": explore,
                "ratio": ratio,
                "safeguard": safeguard,
                "schedule": schedule,
                "delta": delta,
                "epsilon": epsilon,
                "radius": radius,
                "budget": budget,
                "measure": measure,
                "max_failures": max_failures,
                "pilot_arms": pilot_arms,
                "pilot_pulls": pilot_pulls,
                "estimated_bias": estimated_bias,
            },
        )
        # Only now: which of the two has to be the larger one depends on the study's direction,
        # which is not known when the arguments are tried.
        self._best_no_better_than = best_no_better_than
        self._second_no_worse_than = second_no_worse_than

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        best, second = self._best_no_better_than, self._second_no_worse_than
        if best is not None and second is not None and sign * best <= sign * second:
            raise ValueError(
                f"second_no_worse_than={second!r} must be worse than best_no_better_than={best!r}; "
                f"the study {'maximises' if sign > 0.0 else 'minimises'}."
            )
        radius = options["radius"]
        return MFLUCB(
            problem,
            best_at_most=None if best is None else sign * best,
            second_at_least=None if second is None else sign * second,
            **{**options, "radius": radius if sign > 0.0 else mirrored_radius(radius)},
        )
