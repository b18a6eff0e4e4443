"""This project's sampler, as a user of Optuna runs it: a trial is one evaluation at one level."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import TrialState

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting
from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import HEADLINE, Method
from benchmarks.hpo.problem import Problem
from benchmarks.hpo.problems.table import TableProblem
from benchmarks.hpo.space import Configuration
from benchmarks.peers.optuna import suggest, tell
from mfhpo_optuna import Fidelity, SearchSampler
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY, LIMIT_KEY, SECONDS_KEY

# Trials under way last for virtual time, which no lease in real seconds is to end.
_NO_LEASE = 1e12


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
    sampler = SearchSampler(
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


class Search:
    """The sampler in a study that is asked and told, with costs that it measures.

    Parameters
    ----------
    setting
        What it is made for.
    limited
        Whether the limits that it sets are kept.
    """

    def __init__(self, setting: Setting, limited: bool = True) -> None:
        self._limited = limited
        fidelity = setting.problem.fidelity
        self._space, self._levels = setting.problem.space, fidelity.levels
        # Who recommends reads the study as another process does: what it works out of the model
        # would be saved by the next proposal, off the clock.
        self._sampler, self._reader = (
            SearchSampler(
                Fidelity("level", levels=fidelity.levels, costs="measured"),
                certify_share=0.0,
                checkpoints=fidelity.continues,
                lease=_NO_LEASE,
                progress=False,
                seed=setting.seed,
            )
            for _ in range(2)
        )
        # The time that a trial has taken is what it is told, on a clock that is invented.
        self._sampler.kind.trusts_seconds = lambda trial: True  # type: ignore[method-assign]
        self._configurations: dict[int, Configuration] = {}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            direction="maximize", sampler=self._sampler, pruner=optuna.pruners.NopPruner()
        )

    def ask(self) -> Job:
        """A trial, which is one evaluation."""
        trial = self._study.ask()
        configuration = suggest(trial, self._space)
        level = trial.suggest_float("level", self._levels[0], self._levels[-1])
        self._configurations[trial.user_attrs["mfhpo:pull"]["arm"]] = configuration
        limit = trial.user_attrs.get(LIMIT_KEY) if self._limited else None
        return Job(configuration, self._levels.index(level), trial, limit)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Tell the study, and how long the trial has taken on the clock."""
        job.handle.set_user_attr(SECONDS_KEY, seconds)
        if seconds == job.limit:
            job.handle.set_user_attr(CENSORED_KEY, job.limit)
            self._study.tell(job.handle, state=TrialState.PRUNED)
        else:
            tell(self._study, job.handle, value)

    def advice(self) -> Advice | None:
        """The sampler's recommendation, which promises nothing before it is seen at the target."""
        answer = self._reader.recommendation(self._study)
        claim = answer.mean if answer.level == self._levels[-1] else None
        return None if answer.arm is None else Advice(self._configurations[answer.arm], claim)


CLOCKED: dict[str, Make] = {HEADLINE: Search}
METHODS: dict[str, Method] = {
    HEADLINE: optimise,
    "mfhpo search + certificate": functools.partial(optimise, certify_share=0.1),
    "mfhpo halving + tpe": functools.partial(optimise, proposer=_tpe),
}
