"""This project's sampler, as a user of Optuna runs it: a trial is one evaluation at one level."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.samplers import BaseSampler, TPESampler

from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.problem import Problem
from benchmarks.hpo.problems.table import TableProblem
from benchmarks.peers.optuna import suggest
from mfhpo_optuna import Fidelity, RaceSampler


def optimise(
    meter: Meter,
    seed: int,
    certify_share: float = 0.0,
    proposer: Callable[[int], BaseSampler] | None = None,
) -> None:
    """Run a study until the meter ends it; the sampler's own recommendation counts.

    A sampler that keeps a share for its certificate is told the budget, and may end before the
    meter does. One that keeps none is not, for what it expects to pay may not be what is paid.

    Parameters
    ----------
    meter
        Evaluates.
    seed
        Of the sampler.
    certify_share
        Share of the budget that is kept for the certificate.
    proposer
        Makes the sampler that draws the configurations; None: the model does.
    """
    fidelity = meter.problem.fidelity
    levels = list(range(len(fidelity.levels)))
    sampler = RaceSampler(
        Fidelity("level", levels=levels, costs=_costs(meter.problem)),
        budget=meter.budget if certify_share > 0.0 else None,
        certify_share=certify_share,
        checkpoints=fidelity.continues,
        proposer=None if proposer is None else proposer(seed),
        progress=False,
        seed=seed,
    )

    def objective(trial: optuna.Trial) -> float:
        configuration = suggest(trial, meter.problem.space)
        trial.set_user_attr("configuration", configuration)
        return meter.evaluate(configuration, trial.suggest_int("level", 0, levels[-1]))

    configurations: dict[int, Mapping[str, Any]] = {}

    def recommend(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        configuration = trial.user_attrs["configuration"]
        configurations[trial.user_attrs["mfhpo:pull"]["arm"]] = configuration
        answer = sampler.recommendation(study)
        if answer.arm is not None and answer.level == levels[-1]:
            meter.recommend(configurations[answer.arm], claim=answer.mean)

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        direction="maximize", sampler=sampler, pruner=optuna.pruners.NopPruner()
    )
    study.optimize(objective, callbacks=[recommend])
    raise BudgetSpent


def _costs(problem: Problem) -> tuple[float, ...]:
    """What a user can say of the cost of each level, in full evaluations."""
    if isinstance(problem, TableProblem):
        return problem.mean_costs
    return tuple(level / problem.fidelity.target for level in problem.fidelity.levels)


def _tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed)


METHODS: dict[str, Method] = {
    "mfhpo search": optimise,
    "mfhpo search + certificate": functools.partial(optimise, certify_share=0.1),
    "mfhpo halving + tpe": functools.partial(optimise, proposer=_tpe),
}
