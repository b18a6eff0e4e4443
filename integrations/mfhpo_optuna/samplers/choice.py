"""`MFSampler`: the policy that suits the problem, as an Optuna sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import optuna
from optuna.samplers import BaseSampler

from mfhpo import Policy, Problem
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.identification.choice import Aim, PolicyChoice, recommend_policy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike
from mfhpo_optuna.samplers.declared import DeclaredSampler
from mfhpo_optuna.samplers.reward import warn_of_losses
from mfhpo_optuna.study.arms import ArmsLike
from mfhpo_optuna.study.race import Race

__all__ = ["MFSampler"]

# Below "optuna.", so that optuna.logging.set_verbosity governs it.
_logger = optuna.logging.get_logger(f"optuna.{__name__}")

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


class MFSampler(DeclaredSampler):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. Which one is chosen depends on the
    aim, the number of arms and levels, and what is declared; it is made known in one line of
    Optuna's log, and `choice` tells which and why. All workers of a study choose the same, and a
    study that is resumed goes on with the same, as long as the arguments are the same.

    What it guarantees: what the chosen policy does. With ``aim="best arm"`` that is what
    `IISESampler` describes: with probability at least 1 - `delta` the certified configuration is at
    most `epsilon` worse than the best arm. With the other aims nothing is certified; see
    `MFUCBSampler` and `MFEliminationSampler`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    aim
        "best arm": find it and certify it. "reward per cost" and "reward per pull": the trials
        themselves count, each for its cost times its configuration's mean at the target, or each
        for that mean alone. Rewards are maximised, and a study that minimises is taken for one that
        maximises the negative values: "reward per pull" makes as many trials as the budget allows,
        also where each of them is a loss. See `MFEliminationSampler`.
    delta, sigma, budget, arm_sampler, max_failures
        See `IISESampler`.
    bias
        See `IISESampler`; it has no part in "reward per pull", where that of a `Fidelity` is not
        used.
    epsilon
        See `IISESampler`; with "reward per pull" see `MFEliminationSampler`; "reward per cost" has
        none.
    measure
        See `IISESampler`; None: 10. It has no part in the other aims.
    pilot_arms, pilot_pulls, estimated_bias, lease, progress, seed
        See `IISESampler`.

    Raises
    ------
    ValueError
        If the aim is none of these, if an argument is given that has no part in it, and as
        `IISESampler` does.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import MFSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return x**2 + 0.2 / epochs + 0.05 * rng.normal()
    >>> sampler = MFSampler("epochs", arms=8, epsilon=0.05, seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective)
    >>> sampler.choice(study).policy.__name__
    'MFTopTwo'
    >>> sampler.recommendation(study).certified, abs(study.best_params["x"]) < 0.3
    (True, True)
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        aim: Aim = "best arm",
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        arm_sampler: BaseSampler | None = None,
        measure: int | None = None,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        given = {"epsilon": epsilon, "bias": bias, "measure": measure}
        for name, why in _NO_PART.get(aim, {}).items():
            if given[name] is not None:
                raise ValueError(
                    f"{name}={given[name]!r} has no part in aim={aim!r}: {why}; leave it out."
                )
        self._aim: Aim = aim
        self._warned_of_direction = False
        self._choices: WeakKeyDictionary[Policy, PolicyChoice] = WeakKeyDictionary()
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

    def choice(self, study: optuna.Study) -> PolicyChoice:
        """Which policy was chosen for a study, and why.

        Parameters
        ----------
        study
            The study that was run with this sampler, or with one made with the same arguments.

        Raises
        ------
        ValueError
            If no trial has told the levels of the fidelity yet, so that nothing is chosen.
        """
        with self._lock:
            race = self._read(study)
            if race.policy is None:
                raise ValueError(
                    f"study {study.study_name!r} has no finished trial that asked for the fidelity "
                    f"{self._fidelity.name!r}, so no policy is chosen yet; declare the levels in a "
                    f"Fidelity to have it chosen before the first trial."
                )
            return self._choices[race.policy]

    def _make_policy(self, n_arms: int, levels: Sequence[Any], seed: int, sign: float) -> Policy:
        if self._aim == "reward per pull" and sign < 0.0 and not self._warned_of_direction:
            self._warned_of_direction = True
            warn_of_losses("aim='reward per pull'")
        return super()._make_policy(n_arms, levels, seed, sign)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        choice = recommend_policy(problem, self._aim)
        without_part = _NO_PART.get(self._aim, {})
        used = {name: value for name, value in options.items() if name not in without_part}
        if self._aim != "best arm":
            del used["estimated_bias"]
        if "measure" in used and used["measure"] is None:
            used["measure"] = _MEASURE
        policy = choice.make(problem, **used)
        self._choices[policy] = choice
        return policy

    def _read(self, study: optuna.Study, ending: int | None = None) -> Race:
        race = super()._read(study, ending)
        if race.policy is not None and not race.announced:
            race.announced = True
            choice = self._choices[race.policy]
            _logger.info(
                "%s is chosen for study %r: %s.",
                choice.policy.__name__,
                study.study_name,
                choice.reason.rstrip("."),
            )
        return race

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_choices": None}  # of races that are not copied either

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._choices = WeakKeyDictionary()
