"""`MFLUCBSearch`: the race that tells the two leading configurations apart, in Ray Tune."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.search import Searcher

from mfhpo import Policy, Problem
from mfhpo._validation import check_number
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.identification.lucb import MFLUCB, Explore, Schedule
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike, mirrored_radius
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.fidelity_search import FidelitySearch

__all__ = ["MFLUCBSearch"]


class MFLUCBSearch(FidelitySearch):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: for a certificate with confidence intervals that can be read off each
    configuration, when the two best means are roughly known beforehand (then ``explore="A"`` or
    "B" picks the levels that pay), or to repeat published results. Else `MFSearch` usually needs
    less.

    What it guarantees: the same as `IISESearch`, which also describes trials, space, scheduler and
    restarts. What is said of the two best means only chooses levels: if it is wrong the race is
    dearer, and the certificate as good.

    Parameters
    ----------
    fidelity, arms, metric, mode, space, arm_search
        See `IISESearch`.
    explore
        How a level is chosen for a configuration: "A", by how much a unit of cost tells; "B", all
        levels in turn until one is surely good; "AB", both; "C", the cheapest level that still
        tells anything, which needs no idea of the means; "top", the target level only.
    best_no_better_than
        A value that the best arm's mean at the target does not beat, in the unit and direction of
        the metric: an upper bound on the largest mean if it is maximised, a lower bound on the
        smallest mean if it is minimised. For "A", "B" and "AB". None: what the race has found so
        far.
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
        `mfhpo.Bias.max`. None: nothing is known of it, and all is evaluated at the target alone, so
        that `explore` has no part, unless ``estimated_bias="eliminate"``.
    delta, epsilon, sigma, budget, prices, radius, measure, max_failures
        See `IISESearch`.
    pilot_arms, pilot_pulls, estimated_bias, seed_key, seed
        See `IISESearch`.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        For bias bounds of kind "order", if a bound on the means is given for "C" or "top", if
        `second_no_worse_than` is not worse than `best_no_better_than`, and as `IISESearch` does.

    Examples
    --------
    No loss is below 0, and a second arm below 0.3 is sure to be among these. One epoch's loss is
    within 0.2 of that of nine:

    >>> import numpy as np
    >>> from mfhpo_ray import MFLUCBSearch
    >>> from mfhpo import Fidelity
    >>> search = MFLUCBSearch(
    ...     Fidelity("epochs", levels=[1, 9]), [{"x": -0.5}, {"x": 0.1}, {"x": 0.8}],
    ...     metric="loss", mode="min", explore="A", best_no_better_than=0.0,
    ...     second_no_worse_than=0.3, bias=[0.2, 0.0], epsilon=0.05, seed=0,
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
        prices: Mapping[str, float] | None = None,
        radius: Radius | Sequence[Radius] | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        seed_key: str | None = "seed",
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
        self._best_no_better_than = best_no_better_than
        self._second_no_worse_than = second_no_worse_than
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            metric=metric,
            mode=mode,
            space=space,
            arm_search=arm_search,
            sigma=sigma,
            bias=bias,
            prices=prices,
            seed_key=seed_key,
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

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        # Which of the two has to be the larger one is only known with the direction.
        known = self._mode is not None
        best = self._best_no_better_than if known else None
        second = self._second_no_worse_than if known else None
        if best is not None and second is not None and sign * best <= sign * second:
            raise ValueError(
                f"second_no_worse_than={second!r} must be worse than best_no_better_than={best!r}; "
                f"the metric is {'maximised' if sign > 0.0 else 'minimised'}."
            )
        radius = options["radius"]
        return MFLUCB(
            problem,
            best_at_most=None if best is None else sign * best,
            second_at_least=None if second is None else sign * second,
            **{**options, "radius": radius if sign > 0.0 else mirrored_radius(radius)},
        )
