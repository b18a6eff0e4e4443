"""`MFSearch`: the policy that suits the problem, as a searcher of Ray Tune."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

from ray.tune.search import Searcher

from mfhpo import Policy, Problem
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.identification.choice import Aim, PolicyChoice, recommend_policy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.fidelity_search import FidelitySearch

__all__ = ["MFSearch"]

_logger = logging.getLogger("mfhpo_ray")

# Evaluations of the winner at the target, where nothing else is wanted.
_MEASURE = 10

# Aim -> arguments that have no part in it, and why.
_NO_MEASURE = "no winner is evaluated once more"
_NO_PART: dict[str, dict[str, str]] = {
    "reward per cost": {
        "epsilon": "no arms are told apart to a tolerance",
        "measure": _NO_MEASURE,
    },
    "reward per pull": {
        "bias": "arms are compared at the target only",
        "measure": _NO_MEASURE,
    },
}


class MFSearch(FidelitySearch):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. Which one is chosen depends on the
    aim, the number of arms and levels, and what is declared; it is made known in one line of the
    log "mfhpo_ray", and `choice` tells which and why.

    What it guarantees: what the chosen policy does. With ``aim="best arm"`` that is what
    `IISESearch` describes: with probability at least 1 - `delta` the certified configuration is at
    most `epsilon` worse than the best arm. With the other aims nothing is certified, and the run
    ends when the budget is spent.

    Parameters
    ----------
    fidelity, arms, metric, mode, space, arm_search
        See `IISESearch`.
    aim
        "best arm": find it and certify it. "reward per cost" and "reward per pull": the trials
        themselves count, each for its cost times its configuration's mean at the target, or each
        for that mean alone. Rewards are maximised, and a metric that is minimised is taken for the
        negative reward: "reward per pull" makes as many trials as the budget allows, also where
        each of them is a loss.
    delta, sigma, budget, prices, max_failures
        See `IISESearch`.
    bias
        See `IISESearch`; it has no part in "reward per pull", where that of a `Fidelity` is not
        used.
    epsilon
        See `IISESearch`; "reward per cost" has none.
    measure
        See `IISESearch`; None: 10. It has no part in the other aims.
    pilot_arms, pilot_pulls, estimated_bias, seed_key, seed
        See `IISESearch`.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        If the aim is none of these, if an argument is given that has no part in it, and as
        `IISESearch` does.

    Examples
    --------
    >>> import numpy as np
    >>> from ray import tune
    >>> from mfhpo_ray import MFSearch
    >>> space = {"x": tune.uniform(-1, 1), "epochs": tune.randint(1, 28)}
    >>> search = MFSearch(
    ...     "epochs", arms=8, metric="loss", mode="min", space=space, epsilon=0.05, seed=0
    ... )
    >>> for number in range(2000):
    ...     config = search.suggest(f"trial_{number}")
    ...     if config == search.FINISHED:
    ...         break
    ...     noise = 0.05 * np.random.default_rng(config["seed"]).normal()
    ...     loss = config["x"] ** 2 + 0.2 / config["epochs"] + noise
    ...     search.on_trial_complete(f"trial_{number}", {"loss": loss})
    >>> search.choice.policy.__name__, search.recommendation().certified
    ('MFTopTwo', True)
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
        aim: Aim = "best arm",
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        prices: Mapping[str, float] | None = None,
        measure: int | None = None,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        seed_key: str | None = "seed",
        seed: int | None = None,
    ) -> None:
        given = {"epsilon": epsilon, "bias": bias, "measure": measure}
        for name, why in _NO_PART.get(aim, {}).items():
            if given[name] is not None:
                raise ValueError(
                    f"{name}={given[name]!r} has no part in aim={aim!r}: {why}; leave it out."
                )
        self._aim: Aim = aim
        self._choice: PolicyChoice | None = None
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
                "delta": delta,
                "epsilon": epsilon,
                "budget": budget,
                "measure": measure,
                "max_failures": max_failures,
                "pilot_arms": pilot_arms,
                "pilot_pulls": pilot_pulls,
                "estimated_bias": estimated_bias,
            },
        )

    @property
    def choice(self) -> PolicyChoice:
        """Which policy was chosen, and why.

        Raises
        ------
        ValueError
            If nothing is chosen yet, because no trial was suggested.
        """
        if self._choice is None:
            raise ValueError(
                "no policy is chosen yet: it is, with the number of arms and levels, in the first "
                "suggestion."
            )
        return self._choice

    def _make_policy(self, n_arms: int, sign: float) -> Policy:
        choice = recommend_policy(self._declaration.problem(n_arms, self._levels, sign), self._aim)
        if self._choice is None:
            _logger.info("%s is chosen: %s.", choice.policy.__name__, choice.reason.rstrip("."))
            if self._aim == "reward per pull" and sign < 0.0:
                warnings.warn(
                    f"aim='reward per pull' maximises what the trials earn, and {self._metric} is "
                    f"minimised: as many trials are made as the budget allows, each a loss if "
                    f"values are positive. That is right if only the comparison with the best arm "
                    f"counts; else maximise a reward, or find the best arm with MFSearch().",
                    stacklevel=4,
                )
        self._choice = choice
        return super()._make_policy(n_arms, sign)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        choice = recommend_policy(problem, self._aim)
        without_part = _NO_PART.get(self._aim, {})
        used = {name: value for name, value in options.items() if name not in without_part}
        if self._aim != "best arm":
            del used["estimated_bias"]
        if "measure" in used and used["measure"] is None:
            used["measure"] = _MEASURE
        return choice.make(problem, **used)
