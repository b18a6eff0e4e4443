"""What an optimiser pays and recommends while it runs: the same account for all of them."""

import math
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benchmarks.hpo.problem import Problem
from benchmarks.hpo.space import Configuration, same_configuration


class BudgetSpent(Exception):
    """The next evaluation would cost more than is left; the optimiser ends here."""


@dataclass(frozen=True)
class Step:
    """A recommendation, and when it was made.

    Parameters
    ----------
    cost
        Paid until then, in evaluations at the target level.
    seconds
        CPU seconds that the optimiser itself had taken.
    configuration
        What it recommends.
    claim
        The value that it promises, or None if it promises nothing.
    """

    cost: float
    seconds: float
    configuration: Configuration
    claim: float | None


@dataclass
class _Run:
    """One training of one configuration, as far as it has come."""

    seed: int
    level: int = -1
    cost: float = 0.0
    under_way: bool = False


@dataclass(frozen=True)
class Training:
    """An evaluation that has begun.

    Parameters
    ----------
    value
        What it will give.
    cost
        What it takes, in evaluations at the target level.
    """

    value: float
    cost: float
    level: int
    run: _Run
    run_cost: float  # of the run once the evaluation has ended, in the problem's unit
    stopped: bool = False  # at a limit


class Meter:
    """Evaluates for one optimiser, keeps account, and ends it when the budget is spent.

    An evaluation goes on from a cheaper one of the same configuration, if there is one and the
    problem allows it; else it is another run, with noise of its own, from scratch.

    Parameters
    ----------
    problem
        What is optimised.
    budget
        In evaluations at the target level.
    seed
        Pairs the optimisers: run r of a configuration has the same noise for all of them.
    timer
        Tells CPU seconds.

    Attributes
    ----------
    cost
        Paid so far, in evaluations at the target level.
    evaluations
        Their number at each level.
    failures
        Number of evaluations without a finite value.
    steps
        Recommendations in their order.

    Examples
    --------
    >>> from benchmarks.hpo.problems import problem_named
    >>> meter = Meter(problem_named("branin"), budget=10, seed=0)
    >>> value = meter.evaluate({"x1": 0.0, "x2": 5.0}, level=0)
    >>> meter.recommend({"x1": 0.0, "x2": 5.0}, claim=value)
    >>> len(meter.steps)
    1
    """

    def __init__(
        self,
        problem: Problem,
        budget: float,
        seed: int,
        timer: Callable[[], float] = time.process_time,
    ) -> None:
        self.problem = problem
        self.budget = budget
        self.seed = seed
        self.cost = 0.0
        self.evaluations = [0] * len(problem.fidelity.levels)
        self.failures = 0
        self.steps: list[Step] = []
        self._runs: dict[tuple[tuple[str, object], ...], list[_Run]] = {}
        self._timer = timer
        self._apart = 0.0
        self._began = timer()

    @property
    def optimiser_seconds(self) -> float:
        """CPU seconds taken by the optimiser itself, without the evaluations."""
        return self._timer() - self._began - self._apart

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is done in it takes no time of the optimiser."""
        began = self._timer()
        try:
            yield
        finally:
            self._apart += self._timer() - began

    @property
    def tried(self) -> list[Configuration]:
        """Every configuration that was evaluated, at whatever level, in order, each once."""
        return [dict(key) for key in self._runs]

    def cost_of(self, configuration: Configuration, level: int) -> float:
        """What evaluating a configuration at a level would cost now, as far as levels tell."""
        levels = self.problem.fidelity.levels
        run = self._to_go_on_from(configuration, level)
        done = 0.0 if run is None else levels[run.level]
        return (levels[level] - done) / levels[-1]

    def evaluate(self, configuration: Configuration, level: int) -> float:
        """Evaluate a configuration and pay for it.

        Parameters
        ----------
        configuration
            Values of the parameters; those that do not apply are dropped.
        level
            Index of the level.

        Returns
        -------
        float
            The value, larger being better.

        Raises
        ------
        BudgetSpent
            If less than its cost is left; nothing is paid then.
        """
        with self.apart():
            active = self.problem.space.active(configuration)
            if self.cost + self.cost_of(active, level) > self.budget + 1e-9:
                raise BudgetSpent
        return self.finish(self.begin(configuration, level))

    def begin(
        self, configuration: Configuration, level: int, limit: float | None = None
    ) -> Training:
        """Begin an evaluation, whatever is left; it is paid for by `finish`.

        No other one goes on from it before. At `limit`, in the problem's unit, it is stopped, and
        has no value.
        """
        with self.apart():
            configuration = self.problem.space.active(configuration)
            key = same_configuration(configuration)
            started = self._to_go_on_from(configuration, level)
            run = started or _Run(self._seed_of(key, len(self._runs.get(key, ()))))
            fidelity = self.problem.fidelity.levels[level]
            result = self.problem.objective_function(configuration, fidelity, run.seed)
            if started is None:  # and not before: a configuration out of range was not tried
                self._runs.setdefault(key, []).append(run)
            run.under_way = True
            cost, full_cost = max(0.0, result.cost - run.cost), self.problem.full_cost
            if limit is not None and cost > limit:
                return Training(math.nan, limit / full_cost, level, run, run.cost, stopped=True)
            return Training(result.value, cost / full_cost, level, run, result.cost)

    def finish(self, training: Training) -> float:
        """End an evaluation that has begun, pay for it, and return its value."""
        run = training.run
        run.cost, run.under_way = training.run_cost, False
        run.level = run.level if training.stopped else training.level
        self.cost += training.cost
        self.evaluations[training.level] += 1
        self.failures += not np.isfinite(training.value)
        return training.value

    def recommend(
        self, configuration: Configuration, claim: float | None, at: float | None = None
    ) -> None:
        """Note what the optimiser would hand over now, and the value that it promises.

        On a clock, `at` is the time in the budget's unit; else it is what was paid so far.
        """
        kept = self.problem.space.active(configuration)
        when = self.cost if at is None else at
        self.steps.append(Step(when, self.optimiser_seconds, kept, claim))

    def _to_go_on_from(self, configuration: Configuration, level: int) -> _Run | None:
        if not self.problem.fidelity.continues:
            return None
        runs = self._runs.get(same_configuration(configuration), ())
        ready = (run for run in runs if run.level < level and not run.under_way)
        return max(ready, key=_level, default=None)

    def _seed_of(self, key: tuple[tuple[str, object], ...], number: int) -> int:
        words = [self.seed, number, zlib.crc32(repr(key).encode())]
        return int(np.random.SeedSequence(words).generate_state(1)[0])


def _level(run: _Run) -> int:
    return run.level
