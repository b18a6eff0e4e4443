"""The interface of an optimiser that is asked and told, whoever evaluates for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.problem import Problem
from benchmarks.hpo.space import Configuration


@dataclass(frozen=True)
class Job:
    """An evaluation that an optimiser asks for.

    Parameters
    ----------
    configuration, level
        What to evaluate, and the index of the level.
    handle
        What the optimiser knows it by.
    limit
        The seconds after which it is to be stopped; None: never.
    """

    configuration: Configuration
    level: int
    handle: Any = None
    limit: float | None = None


class Advice(NamedTuple):
    """What an optimiser would hand over now, and the value that it promises, if it does."""

    configuration: Configuration
    claim: float | None


class Optimiser(Protocol):
    """Proposes evaluations; several may be under way."""

    def ask(self) -> Job | None:
        """The next evaluation for a worker that is free; None: wait until something is told."""
        ...

    def tell(self, job: Job, value: float, seconds: float) -> Job | None:
        """Take in the value of an evaluation, NaN if it was stopped, and the time that it took.

        Returns what the same worker goes on with, such as the next level of a training that is not
        stopped; None: the worker is free.
        """
        ...

    def advice(self) -> Advice | None:
        """The recommendation so far, if there is one.

        It leaves the optimiser as it was, and saves it no work.
        """
        ...


@dataclass(frozen=True)
class Setting:
    """What an optimiser is made for.

    Parameters
    ----------
    problem
        What it optimises.
    budget
        In evaluations at the target level.
    workers
        How many evaluate.
    seed
        Of the optimiser.
    """

    problem: Problem
    budget: float
    workers: int
    seed: int

    @property
    def target(self) -> int:
        """Index of the target level."""
        return len(self.problem.fidelity.levels) - 1


Make: TypeAlias = Callable[[Setting], Optimiser]
"""Makes an optimiser."""


def in_turn(make: Make) -> Callable[[Meter, int], None]:
    """A method that has one evaluation after the other made by a meter, which ends it."""

    def optimise(meter: Meter, seed: int) -> None:
        optimiser = make(Setting(meter.problem, meter.budget, 1, seed))
        while True:
            job = optimiser.ask()
            if job is None:
                raise RuntimeError("nothing is proposed, though nothing is under way.")
            while job is not None:
                before = meter.cost
                value = meter.evaluate(job.configuration, job.level)
                job = optimiser.tell(job, value, meter.cost - before)
                with meter.apart():
                    advice = optimiser.advice()
                if advice is not None:
                    meter.recommend(*advice)

    return optimise
