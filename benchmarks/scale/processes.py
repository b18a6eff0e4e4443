"""Worker processes that share a study on PostgreSQL: trials per second."""

import multiprocessing
import os
import time
import warnings
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState

from benchmarks.overhead import objective
from benchmarks.postgres import Postgres
from benchmarks.scale.contestants import LONG
from benchmarks.scale.storages import STUDY, opened
from mfhpo_optuna.study.trials.attributes import CERTIFICATE_KEY

# Seconds that an evaluation takes, at random between these.
SHORTEST, LONGEST = 0.05, 0.2

# Workers are forked from a process that has imported everything.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])

_START = 300.0  # seconds that all workers together take to open the study at most


@dataclass(frozen=True)
class Crew:
    """What several workers did.

    Parameters
    ----------
    sampler, workers
        Its name, and how many processes ran it.
    seconds
        How long they ran.
    start_seconds
        Until all of them had opened the study and evaluated one trial, imports not included.
    trials_per_second
        Trials that were completed after that.
    possible
        What there would have been if nothing but the evaluations took any time.
    worker_cpu_ms, database_cpu_ms
        Processor time per trial, of the workers and of the database; that of the database with
        what opening the study took.
    cores
        How many processors there are for all of them.
    processor_busy
        Share of these that workers and database have used.
    """

    sampler: str
    workers: int
    seconds: float
    start_seconds: float
    trials_per_second: float
    possible: float
    worker_cpu_ms: float
    database_cpu_ms: float
    cores: int
    processor_busy: float


def crew(server: Postgres, name: str, workers: int, seconds: float, seed: int) -> Crew:
    """Have so many workers run trials for so many seconds, in a database of their own."""
    url = server.url()
    optuna.create_study(study_name=STUDY, storage=opened(url))
    database = server.cpu_seconds()
    began = time.perf_counter()
    ready = _CONTEXT.Barrier(workers + 1)
    reports: Any = _CONTEXT.SimpleQueue()
    crew = [
        _CONTEXT.Process(target=_work, args=(url, name, seed, seconds, ready, reports))
        for _ in range(workers)
    ]
    for worker in crew:
        worker.start()
    ready.wait(_START)
    started, since = time.perf_counter(), datetime.now()
    used = [reports.get() for _ in crew]
    for worker in crew:
        worker.join()
    took = time.perf_counter() - started
    database = server.cpu_seconds() - database
    study = optuna.load_study(study_name=STUDY, storage=opened(url))
    done = [
        trial
        for trial in study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        if CERTIFICATE_KEY not in trial.user_attrs
        and trial.datetime_complete is not None
        and trial.datetime_complete > since
    ]
    cores = len(os.sched_getaffinity(0))
    return Crew(
        name,
        workers,
        seconds=took,
        start_seconds=started - began,
        trials_per_second=len(done) / took,
        possible=workers / ((SHORTEST + LONGEST) / 2.0),
        worker_cpu_ms=1e3 * sum(used) / len(done),
        database_cpu_ms=1e3 * database / len(done),
        cores=cores,
        processor_busy=(sum(used) + database) / took / cores,
    )


def _work(url: str, name: str, seed: int, seconds: float, ready: Barrier, reports: Any) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    study = optuna.load_study(study_name=STUDY, storage=opened(url), sampler=LONG[name](seed))
    study.optimize(_evaluate, n_trials=1)  # the first one in a process is slower
    ready.wait(_START)
    began = time.process_time()
    study.optimize(_evaluate, timeout=seconds)
    reports.put(time.process_time() - began)


def _evaluate(trial: optuna.Trial) -> float:
    value = objective(trial)
    time.sleep(np.random.default_rng([trial.number, 1]).uniform(SHORTEST, LONGEST))
    return value
