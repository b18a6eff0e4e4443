"""Many workers on a virtual clock, served by one process: how long they wait for it.

One driver asks and tells, as in Ray. Evaluations pass on the clock alone. What the sampler and
Optuna take of the processor passes there as well, and meanwhile nobody else is served.
"""

import heapq
import time
import warnings
from dataclasses import dataclass

import numpy as np
import optuna

from benchmarks.overhead import Clock, objective
from benchmarks.scale.contestants import CLOCKED


@dataclass(frozen=True)
class Served:
    """How workers were served, once all of them had been busy.

    Parameters
    ----------
    sampler, workers
        Its name, and how many workers it served.
    evaluation_seconds
        What an evaluation takes on average: half as much to one and a half times as much.
    trials
        Evaluations that were told, and followed by another one.
    own_ms
        Processor time inside the sampler's methods for each: median and 99th percentile.
    driver_ms
        The same of the whole driver, with Optuna's part.
    waiting
        Share of their time in which the workers waited for the driver.
    """

    sampler: str
    workers: int
    evaluation_seconds: float
    trials: int
    own_ms: tuple[float, float]
    driver_ms: tuple[float, float]
    waiting: float


def serve(name: str, workers: int, evaluation_seconds: float, trials: int, seed: int = 0) -> Served:
    """Have one process serve so many workers, in memory, until so many trials were told.

    Those before and while all workers get their first one are not among them.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    sampler = CLOCKED[name](seed)
    clock = Clock(sampler)
    study = optuna.create_study(sampler=sampler)
    rng = np.random.default_rng(seed)
    now = 0.0  # until then the driver is busy, on the virtual clock
    under_way: list[tuple[float, int, optuna.Trial, float]] = []
    seen, waited = [], 0.0
    for served in range(workers + trials):
        own, started = clock.seconds, time.process_time()
        ended = now
        if served >= workers:
            ended, _, trial, value = heapq.heappop(under_way)
            study.tell(trial, value)
        trial = study.ask()
        value = objective(trial)
        took = time.process_time() - started
        now = max(now, ended) + took
        end = now + evaluation_seconds * rng.uniform(0.5, 1.5)
        heapq.heappush(under_way, (end, trial.number, trial, value))
        if served >= workers:
            seen.append((clock.seconds - own, took))
            waited += now - ended
    own_ms, driver_ms = 1e3 * np.quantile(seen, [0.5, 0.99], axis=0).T
    return Served(
        name,
        workers,
        evaluation_seconds,
        trials,
        own_ms=tuple(own_ms.tolist()),
        driver_ms=tuple(driver_ms.tolist()),
        waiting=waited / (waited + trials * evaluation_seconds),
    )
