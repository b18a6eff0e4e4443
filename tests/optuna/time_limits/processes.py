"""What the tests of limits share: studies, what is seen of processes, and objectives."""

import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import time
from pathlib import Path

import optuna

from mfhpo.censored.memory import descendants
from mfhpo_optuna import time_limited

MEGABYTE = 1_000_000
LIMIT = 0.25
# Seconds; some hundredths where nothing else runs.
SOON = 20.0


def run(objective, n_trials=1, limit=LIMIT, study=None, catch=(), n_jobs=1, **options):
    own = {"memory_limit", "start_method"}
    of_limits = {name: options.pop(name) for name in own & set(options)}
    study = study or optuna.create_study(**options)
    with time_limited(objective, limit, **of_limits) as limited:
        study.optimize(limited, n_trials=n_trials, catch=catch, n_jobs=n_jobs)
    return study


class SharedClock:
    """Goes on when it is told to, in this process and those that are forked from it."""

    def __init__(self):
        self._now = multiprocessing.RawValue("d", 0.0)

    def monotonic(self):
        return self._now.value

    def sleep(self, seconds):
        self._now.value += seconds

    def hang(self, trial):
        """Go beyond the limit and hang, once the study's process counts the trial's seconds."""
        trial.set_user_attr("hangs", True)
        self.sleep(60.0)
        time.sleep(3600.0)


class SlowSampler(optuna.samplers.RandomSampler):
    def __init__(self, sleep):
        super().__init__()
        self._sleep = sleep

    def sample_independent(self, *arguments):
        self._sleep(0.2)
        return super().sample_independent(*arguments)

    def sample_relative(self, *arguments):
        self._sleep(0.5)
        return {}


def only(study):
    (trial,) = study.trials
    return trial


def until(condition, seconds=60.0, pause=0.005):
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(pause)
    return True


def alive(pid):
    """Whether a process runs; one that only waits to be taken in by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def below():
    """All processes below this one, those that have ended included."""
    return set(descendants(os.getpid()))


def open_files():
    return len(os.listdir("/proc/self/fd"))


def hangs_if_odd(trial):
    value = trial.suggest_float("x", 0.0, 1.0)
    if trial.number % 2:
        time.sleep(3600.0)
    return value


def fails(trial):
    raise LookupError(f"trial {trial.number}")


def sleeps(trial):
    time.sleep(3600.0)
    return 0.0


class Notes:
    """Numbers that processes leave in a file, since a child cannot use the trial."""

    def __init__(self, path):
        self.path = path

    def write(self, number):
        with self.path.open("a") as file:
            file.write(f"{number}\n")

    def read(self):
        return [int(line) for line in self.path.read_text().split()] if self.path.exists() else []


def process_number(trial):
    return float(os.getpid())


def end_helpers():
    """Python's own helpers stay until the interpreter exits."""
    multiprocessing.forkserver._forkserver._stop()
    multiprocessing.resource_tracker._resource_tracker._stop()
