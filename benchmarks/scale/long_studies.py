"""A fresh process goes on with a study that has many finished trials: time and memory."""

import pickle
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import optuna

from benchmarks.overhead import Clock, objective
from benchmarks.scale.contestants import LONG
from benchmarks.scale.history import repeated
from benchmarks.scale.storages import STUDY, opened
from mfhpo.knowledge.arrays import FloatArray

# Trials that are measured, unless their seconds are over before.
_WINDOW, _LONGEST, _LEAST = 300, 45.0, 20


@dataclass(frozen=True)
class Case:
    """A sampler that goes on with a study.

    Parameters
    ----------
    sampler
        Its name.
    storage
        The kind of storage, in words.
    place
        Where the study is, see `benchmarks.scale.storages.opened`; in memory it is made there.
    trials
        Of its history.
    block
        The file with the trials that the history repeats.
    """

    sampler: str
    storage: str
    place: str
    trials: int
    block: Path


@dataclass(frozen=True)
class Resumed:
    """What it took to go on; `cpu` is processor time, the rest is what one waits for.

    Parameters
    ----------
    sampler, storage, trials
        Of the case.
    open_cpu_seconds
        To open the storage and the study; a journal file is read whole then.
    read_cpu_seconds
        Until Optuna has read the trials, as it does in a process before its first trial.
    first_cpu_seconds
        From then on until the first trial has all of its parameters.
    window
        Trials that were measured then, one after the other.
    own_cpu_ms, trial_wall_ms
        Median and 99th percentile: inside the sampler's methods, and of the whole trial.
    mib_before, mib_read, mib_first, mib_after, mib_peak
        Memory of the process: before the study was opened, when Optuna had read it, after the first
        trial, after the last one, and the most that there was.
    """

    sampler: str
    storage: str
    trials: int
    open_cpu_seconds: float
    read_cpu_seconds: float
    first_cpu_seconds: float
    window: int
    own_cpu_ms: tuple[float, float]
    trial_wall_ms: tuple[float, float]
    mib_before: float
    mib_read: float
    mib_first: float
    mib_after: float
    mib_peak: float


def resumed(case: Case) -> Resumed:
    """Measure a case in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, case).result()


def measure(case: Case, window: int = _WINDOW, longest: float = _LONGEST) -> Resumed:
    """Measure a case here; of the memory only what is before it is wrong then."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    sampler = LONG[case.sampler](0)
    clock = Clock(sampler)
    before, _ = _mib()
    began = time.process_time()
    if case.place:
        study = optuna.load_study(study_name=STUDY, storage=opened(case.place), sampler=sampler)
    else:
        study = optuna.create_study(study_name=STUDY, sampler=sampler)
        trials = pickle.loads(case.block.read_bytes())
        study.add_trials(repeated(trials, case.trials, case.sampler == "SearchSampler"))
        began = time.process_time()
    opened_at = time.process_time()
    found = len(study.get_trials(deepcopy=False))
    if found != case.trials:
        raise RuntimeError(f"the study has {found} trials instead of {case.trials}.")
    read_at = time.process_time()
    read, _ = _mib()
    trial = study.ask()
    value = objective(trial)
    first_at = time.process_time()
    study.tell(trial, value)
    first, _ = _mib()
    seen = _trials(study, window, longest, clock)
    after, peak = _mib()
    return Resumed(
        case.sampler,
        case.storage,
        case.trials,
        open_cpu_seconds=opened_at - began,
        read_cpu_seconds=read_at - opened_at,
        first_cpu_seconds=first_at - read_at,
        window=len(seen),
        own_cpu_ms=_spread(seen[:, 0]),
        trial_wall_ms=_spread(seen[:, 1]),
        mib_before=before,
        mib_read=read,
        mib_first=first,
        mib_after=after,
        mib_peak=peak,
    )


def _trials(study: optuna.Study, window: int, longest: float, clock: Clock) -> FloatArray:
    """Milliseconds of trials: the sampler's own of the processor, and of the whole trial."""
    seen: list[tuple[float, float]] = []
    until = time.perf_counter() + longest
    while len(seen) < window and (len(seen) < _LEAST or time.perf_counter() < until):
        own, began = clock.seconds, time.perf_counter()
        trial = study.ask()
        study.tell(trial, objective(trial))
        seen.append((clock.seconds - own, time.perf_counter() - began))
    return 1e3 * np.array(seen)


def _spread(values: FloatArray) -> tuple[float, float]:
    return float(np.median(values)), float(np.quantile(values, 0.99))


def _mib() -> tuple[float, float]:
    """Resident memory of this process, now and at most, as Linux says."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = dict(line.split(":", 1) for line in lines)
    now, most = (int(kilobytes[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most
