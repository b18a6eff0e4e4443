"""Races on problems whose true values are known, beside the same search without a certificate."""

from __future__ import annotations

import math
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.certificate_outcomes import Outcome, statement
from benchmarks.hpo.problems import problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.space import Categorical, Float, Parameter
from mfhpo.problem import Observation, Pull
from mfhpo.search import BudgetedSearch, ModelSearch, Numeric, OneOf, Point, Replicate, SearchSpace

_MOST_REPEATS = 100  # in a row, before it is said that there is nothing new


@dataclass(frozen=True)
class Job:
    """One run.

    Parameters
    ----------
    task
        Name of the problem.
    sigma
        Standard deviation of its noise.
    seed
        Of the search, the certificate and the noise.
    budget
        In full evaluations.
    share
        Of the budget, kept for the certificate.
    declared
        Whether the certificate is told sigma; else it estimates the noise.
    data
        YAHPO's folder.
    """

    task: str
    sigma: float
    seed: int
    budget: float = 100.0
    share: float = 0.1
    declared: bool = False
    data: Path | None = None

    @property
    def key(self) -> tuple[str, float, int]:
        """What tells it from other runs of the same command."""
        return self.task, self.sigma, self.seed


def kind_of(parameter: Parameter) -> Numeric | OneOf:
    """What a parameter is to a model."""
    if isinstance(parameter, Categorical):
        return OneOf(len(parameter.choices))
    if isinstance(parameter, Float):
        return Numeric()
    return Numeric.stepwise(parameter.at, lambda value: place_of(value, parameter))


def place_of(value: Any, parameter: Parameter) -> float:
    """Where a value lies in its range, from 0 to 1, or the index of a choice.

    Examples
    --------
    >>> place_of(10.0, Float(1.0, 100.0, log=True))
    0.5
    """
    if isinstance(parameter, Categorical):
        return float(parameter.choices.index(value))
    half = 0.0 if isinstance(parameter, Float) else 0.5
    low, high = parameter.low - half, parameter.high + half
    if parameter.log:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def _value_at(place: float, parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return parameter.choices[int(place)]
    return parameter.at(place)


class Play:
    """One worker that does what a race asks for.

    Parameters
    ----------
    problem
        What is searched.
    seed
        Of everything.
    budget
        In full evaluations.
    share
        Of the budget, kept for the certificate.
    declared
        Whether the certificate is told the standard deviation of the noise.

    Attributes
    ----------
    race
        What asks.
    configurations
        Of the arms; one that was begun as a repeat of another is withdrawn, and not evaluated.
    replicates
        Number of the evaluations for the certificate, by arm.
    """

    def __init__(
        self,
        problem: NoisyProblem,
        seed: int,
        budget: float,
        share: float,
        declared: bool = False,
    ) -> None:
        fidelity, parameters = problem.fidelity, problem.space.parameters
        costs = [problem.cost(level) / problem.full_cost for level in fidelity.levels]
        search = ModelSearch(costs, continues=fidelity.continues, seed=seed)
        search.space = SearchSpace({name: kind_of(given) for name, given in parameters.items()})
        self.problem = problem
        self.seed = seed
        self.budget = budget
        self.race = BudgetedSearch(
            search,
            budget=budget,
            certify_share=share,
            sigma=problem.sigma if declared else None,
        )
        self.configurations: list[dict[str, Any]] = []
        self.told: list[tuple[Pull, Observation]] = []
        self.replicates: dict[int, int] = {}
        self._repeats = 0

    def search(self) -> None:
        """Search until the certificate begins, or the budget is spent.

        Raises
        ------
        ValueError
            If there are no configurations left to spend the budget on.
        """
        while (pulls := self.race.ask()) and not isinstance(pulls[0], Replicate):
            self._evaluate(pulls[0])

    def certify(self) -> None:
        """Go on until the race is over."""
        while pulls := self.race.ask():
            self._evaluate(pulls[0])

    def without_certificate(self) -> Play:
        """A search that has seen the same so far, and has all of the budget to itself."""
        alone = Play(self.problem, self.seed, self.budget, 0.0)
        for configuration in self.configurations:
            alone._take(configuration)
        for pull, observation in self.told:
            alone.race.tell(pull, observation)
        return alone

    def answer(self) -> tuple[float, float]:
        """True value of what would be handed over now, and the mean that is promised for it.

        Raises
        ------
        ValueError
            If nothing was evaluated at the target.
        """
        arm, mean, _, fidelity = self.race.leader()
        if arm is None or fidelity < self.race.search.target:
            raise ValueError(f"budget={self.budget!r} does not do for one full evaluation.")
        return self.truth(arm), mean

    def truth(self, arm: int) -> float:
        """The true value of an arm at the target."""
        return self.problem.true_value(self.configurations[arm])

    def _evaluate(self, pull: Pull) -> None:
        run = 0  # an arm's levels are of one training, each replicate is another one
        if isinstance(pull, Replicate):
            run = self.replicates[pull.arm] = self.replicates.get(pull.arm, 0) + 1
        elif pull.arm == len(self.configurations) and not self._begin(pull.arm):
            return
        words = [self.seed, zlib.crc32(self.problem.name.encode()), pull.arm, run]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        level = self.problem.fidelity.levels[pull.fidelity]
        found = self.problem.objective_function(self.configurations[pull.arm], level, seed)
        self.told.append((pull, Observation(found.value)))
        self.race.tell(*self.told[-1])

    def _begin(self, arm: int) -> bool:
        """Say what a new arm is; whether it is not the same as an earlier one."""
        space = self.problem.space
        point = self.race.point_of(arm)
        if point is None:
            configuration = space.draw(np.random.default_rng([self.seed, arm]))
        else:
            configuration = space.active(
                {name: _value_at(point[name], given) for name, given in space.parameters.items()}
            )
        return self._take(configuration)

    def _take(self, configuration: dict[str, Any]) -> bool:
        arm = len(self.configurations)
        self.configurations.append(configuration)
        first = self.configurations.index(configuration)
        if first < arm:
            self._repeats += 1
            if self._repeats == _MOST_REPEATS:
                raise ValueError(
                    f"budget={self.budget!r} is too large for {self.problem.name!r}: nothing new "
                    f"is left after {len(self.race.search.finished_arms())} full evaluations."
                )
            self.race.withdraw(arm, duplicate_of=first)
            return False
        self._repeats = 0
        parameters = self.problem.space.parameters
        described: Point = {
            name: place_of(value, parameters[name]) for name, value in configuration.items()
        }
        self.race.search.describe(arm, described)
        return True


def play(job: Job) -> Outcome:
    """Play one run, with and without a certificate.

    Raises
    ------
    ValueError
        If the problem has noise of its own, or the budget does not do for a full evaluation.
    """
    problem = problem_named(job.task, job.data, sigma=job.sigma)
    if not isinstance(problem, NoisyProblem):
        raise ValueError(f"task={job.task!r} has no known true values; take one that has.")
    began = time.process_time()
    race = Play(problem, job.seed, job.budget, job.share, job.declared)
    race.search()
    before, _ = race.answer()
    alone = race.without_certificate()
    race.certify()
    alone.search()
    value, _ = race.answer()
    value_alone, promised = alone.answer()
    certificate = race.race.certificate()
    said = None
    if certificate is not None:
        said = statement(certificate, [race.truth(arm) for arm in race.race.shortlist])
    return Outcome(
        task=job.task,
        sigma=job.sigma,
        seed=job.seed,
        value=value,
        value_before=before,
        value_alone=value_alone,
        alone_gap=promised - value_alone,
        cost=race.race.cost,
        cost_alone=alone.race.cost,
        certificate=said,
        seconds=round(time.process_time() - began, 2),
    )
