"""`MFSampler`: the policy that suits the problem, as an Optuna sampler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.samplers import BaseSampler

from mfhpo import Policy, Problem
from mfhpo.choice import Aim, PolicyChoice, recommend_policy
from mfhpo.regret.reward import RewardPolicy
from mfhpo_optuna._arms import ArmsLike
from mfhpo_optuna._declared import BiasLike, DeclaredSampler, SigmaLike
from mfhpo_optuna._fidelity import Fidelity
from mfhpo_optuna._race import Race

__all__ = ["MFSampler"]

# Below "optuna.", so that optuna.logging.set_verbosity governs it.
_logger = optuna.logging.get_logger(f"optuna.{__name__}")


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
        for that mean alone.
    delta, sigma, bias, budget, arm_sampler, max_failures
        See `IISESampler`.
    epsilon
        See `IISESampler`; with "reward per pull" see `MFEliminationSampler`; "reward per cost" has
        none.
    measure
        See `IISESampler`; it has no part in the other aims.
    pilot_arms, pilot_pulls, lease, progress, seed
        See `IISESampler`.

    Raises
    ------
    ValueError
        If the aim is none of these, if `epsilon` is given for "reward per cost", and as
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
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        if aim == "reward per cost" and epsilon is not None:
            raise ValueError(
                f"epsilon={epsilon!r} has no part in aim='reward per cost': no arms are told "
                f"apart to a tolerance; leave it out."
            )
        self._aim: Aim = aim
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
            return self._choose(race)

    def _choose(self, race: Race) -> PolicyChoice:
        return recommend_policy(self._problem(len(race.arms), race.levels, race.sign), self._aim)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        choice = recommend_policy(problem, self._aim)
        if issubclass(choice.policy, RewardPolicy):
            unused = {"measure"} | ({"epsilon"} if options["epsilon"] is None else set())
            options = {name: options[name] for name in options if name not in unused}
        return choice.make(problem, **options)

    def _read(self, study: optuna.Study) -> Race:
        race = super()._read(study)
        if race.policy is not None and not race.announced:
            race.announced = True
            choice = self._choose(race)
            _logger.info(
                "%s is chosen for study %r: %s.",
                choice.policy.__name__,
                study.study_name,
                choice.reason.rstrip("."),
            )
        return race
