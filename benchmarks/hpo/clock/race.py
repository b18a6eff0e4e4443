"""The virtual clock: several workers evaluate, and one optimiser serves them.

The optimiser's own time passes on the clock as well: a worker that is free waits while the
optimiser is busy. Before it proposes anything, it is told of all that has ended until then. What it
would recommend is looked at for free, at the times at which it is judged.
"""

import heapq
import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.hpo.ask_tell import Job, Make, Optimiser, Setting
from benchmarks.hpo.meter import Meter, Training
from benchmarks.hpo.scores import BUDGETS, along_the_way

_LOOKS = np.union1d(along_the_way(), BUDGETS)


def on_the_clock(make: Make, workers: int) -> Callable[[Meter, int], None]:
    """A method that several workers evaluate for, until the meter's budget of time has passed.

    Budget and recommendations are in the time in which the workers together make one evaluation at
    the target level. The meter's problem has its cost in seconds.
    """

    def optimise(meter: Meter, seed: int) -> None:
        Clock(make(Setting(meter.problem, meter.budget, workers, seed)), meter, workers).run()

    return optimise


class Clock:
    """Passes the time of an optimiser and its workers.

    Parameters
    ----------
    optimiser
        Is asked and told.
    meter
        Evaluates, and notes what is recommended when.
    workers
        How many evaluations can be under way.

    Attributes
    ----------
    now
        In the time in which all workers together make one evaluation at the target level.
    """

    def __init__(self, optimiser: Optimiser, meter: Meter, workers: int) -> None:
        self.now = 0.0
        self._optimiser = optimiser
        self._meter = meter
        self._workers = workers
        self._idle = workers
        self._numbers = itertools.count()  # of two that end at once, the one that began first
        self._under_way: list[tuple[float, int, Job, Training]] = []
        self._is_news = False  # whether anything was told since the last look
        self._looked_until = 0.0
        self._longest_tell = 0.0

    def run(self) -> None:
        """Let the optimiser work until the meter's budget of time has passed.

        Raises
        ------
        RuntimeError
            If nothing is proposed, though nothing is under way.
        """
        waits = False
        while self.now < self._meter.budget:
            if self._under_way and self._under_way[0][0] <= self.now:
                self._end_next()
                waits = False
            elif self._idle and not waits:
                waits = not self._begin_next()
            elif self._under_way:
                self._pass_until(self._under_way[0][0])
            else:
                raise RuntimeError("nothing is proposed, though nothing is under way.")

    def _begin_next(self) -> bool:
        """Whether there was something to begin."""
        began = self._meter.optimiser_seconds
        job = self._optimiser.ask()
        self._pass_until(self.now + self._own_time(began))
        if job is None:
            return False
        self._idle -= 1
        self._begin(job)
        return True

    def _begin(self, job: Job) -> None:
        training = self._meter.begin(job.configuration, job.level, job.limit)
        end = self.now + training.cost * self._workers
        heapq.heappush(self._under_way, (end, next(self._numbers), job, training))

    def _end_next(self) -> None:
        if self._is_due(self.now + self._longest_tell):
            self._look(self.now)  # or what is told now would be known too early, or nothing would
        _, _, job, training = heapq.heappop(self._under_way)
        value = self._meter.finish(training)
        began = self._meter.optimiser_seconds
        seconds = training.cost * self._meter.problem.full_cost
        if training.stopped and job.limit is not None:
            seconds = job.limit
        following = self._optimiser.tell(job, value, seconds)
        own = self._own_time(began)
        self.now += own
        self._longest_tell = max(self._longest_tell, own)
        self._is_news = True
        if following is None:
            self._idle += 1
        else:
            self._begin(following)

    def _own_time(self, began: float) -> float:
        seconds = self._meter.optimiser_seconds - began
        return seconds * self._workers / self._meter.problem.full_cost

    def _pass_until(self, time: float) -> None:
        """Pass time in which nothing is told."""
        if self._is_due(time):
            self._look(max(self.now, self._next_look()))
        self.now = time

    def _is_due(self, time: float) -> bool:
        return self._is_news and self._next_look() <= time

    def _next_look(self) -> float:
        place = np.searchsorted(_LOOKS, self._looked_until, side="right")
        return float(_LOOKS[place]) if place < len(_LOOKS) else np.inf

    def _look(self, time: float) -> None:
        with self._meter.apart():
            advice = self._optimiser.advice()
        if advice is not None:
            self._meter.recommend(*advice, at=time)
        self._is_news = False
        self._looked_until = time
