"""A stand-in for a queue such as Slurm's: it starts workers, kills them, and starts them again.

    python -m tests.examples.cluster.job_queue --kills 60 --every 2 --output FILE

The workers are those of `examples/cluster/worker.py`. Each one says that it is on a machine of its
own, so that nobody can tell whether it is dead: its lease has to end first. They write what Optuna
says into a log, as tasks of a queue do. The values there are what the storage has acknowledged.
"""

import argparse
import multiprocessing
import os
import platform
import random
import re
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import optuna
from optuna.trial import TrialState

from benchmarks.postgres import Postgres
from benchmarks.provenance import provenance
from benchmarks.report import as_json, write
from examples.cluster import worker

# Workers are forked from a process that has imported everything, has no threads and opens nothing.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])

_LONGEST = 3600.0  # seconds until a study has to have ended
_LOGGED = re.compile(r"Trial (\d+) finished with value: (\S+)")


@dataclass(frozen=True)
class Plan:
    """The run of a queue: `kills` of its `workers`, one about `every` so many seconds.

    Two of three are killed at once, as by a lost node. The third is told first, as at a time limit,
    and killed after `grace` seconds. A task that has ended with an error begins again after
    `requeue` seconds. `settings` change constants of the worker.
    """

    workers: int
    kills: int
    every: float
    grace: float
    requeue: float
    settings: dict[str, float]
    seed: int = 0


class Queue:
    """Runs tasks until each has ended with 0."""

    def __init__(self, plan, storage, folder):
        self._plan, self._storage, self._folder = plan, storage, folder
        self._numbers, self._random = count(), random.Random(plan.seed)
        self._running, self._waiting = {}, {}  # processes by task; moments of their next beginning
        self._told = {}  # by task: when it is killed
        self.begun = self.killed = self.left = 0

    def run(self):
        """Start, kill and start again; return the seconds that all of it took."""
        began = time.monotonic()
        kill_at = began + self._plan.every
        self._waiting = dict.fromkeys(range(self._plan.workers), began)
        try:
            while self._running or self._waiting:
                now = time.monotonic()
                if now - began > _LONGEST:
                    raise TimeoutError(f"the study has not ended within {_LONGEST:.0f} seconds")
                self._begin(now)
                self._collect(now)
                if self.killed < self._plan.kills and now > kill_at and self._running:
                    self._end_one(now)
                    kill_at = now + self._random.uniform(0.0, 2.0 * self._plan.every)
                time.sleep(0.02)
        finally:
            for process in self._running.values():
                process.kill()
        return time.monotonic() - began

    def _begin(self, now):
        for task in [task for task, moment in self._waiting.items() if moment <= now]:
            del self._waiting[task]
            log = self._folder / f"worker-{task}.log"
            given = self._storage, f"node-{next(self._numbers)}", log, self._plan.settings
            self._running[task] = CONTEXT.Process(target=_work, args=given)
            self._running[task].start()
            self.begun += 1

    def _collect(self, now):
        for task, moment in list(self._told.items()):
            if now > moment and task in self._running:
                self._running[task].kill()
        for task, process in list(self._running.items()):
            if process.exitcode is not None:
                del self._running[task]
                self._told.pop(task, None)
                self.left += process.exitcode == 128 + signal.SIGTERM
                if process.exitcode != 0:
                    self._waiting[task] = now + self._plan.requeue

    def _end_one(self, now):
        task = self._random.choice([*self._running])
        self.killed += 1
        if self.killed % 3:
            self._running[task].kill()
        else:
            self._running[task].terminate()
            self._told.setdefault(task, now + self._plan.grace)


def _work(storage, node, log, settings):
    """Be a worker on a machine of this name."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 2)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    platform.node = lambda: node
    vars(worker).update(settings)
    sys.exit(worker.main(["work", storage]))


def evaluated(study):
    """The number of evaluations that gave a value; answers are trials as well."""
    ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sum("mfhpo:certificate" not in trial.user_attrs for trial in ended)


def play(plan, storage, folder):
    """Return the figures of a study that a queue has run."""
    worker.main(["create", storage])
    queue = Queue(plan, storage, folder)
    seconds = queue.run()
    study = optuna.load_study(
        storage=worker.storage_of(storage), study_name=worker.STUDY, sampler=worker.sampler()
    )
    trials = study.get_trials(deepcopy=False)
    complete = {t.number: t.value for t in trials if t.state == TrialState.COMPLETE}
    logged = {
        int(number): float(value)
        for log in folder.glob("worker-*.log")
        for number, value in _LOGGED.findall(log.read_text(encoding="utf-8"))
    }
    answer = worker.sampler().recommendation(study)
    return {
        "begun": queue.begun,
        "killed": queue.killed,
        "left": queue.left,
        "values": evaluated(study),
        "logged": len(logged),
        "lost": sum(complete.get(number) != value for number, value in logged.items()),
        "unfinished": sum(trial.state == TrialState.RUNNING for trial in trials),
        "finished": answer.finished,
        "certified": answer.certified,
        "params": answer.params,
        "seconds": round(seconds, 1),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    settings = {"LEASE": 60.0, "SECONDS_PER_EPOCH": 0.1}
    plan = Plan(16, options.kills, options.every, grace=5.0, requeue=5.0, settings=settings)
    vars(worker).update(settings)
    given = ["--kills", str(options.kills), "--every", f"{options.every:g}"]
    played = {}
    with ExitStack() as opened:
        server = Postgres()
        opened.callback(server.close)
        for name, storage in (("journal file", None), ("PostgreSQL", server.url())):
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="mfhpo-queue-")))
            played[name] = play(plan, storage or str(folder / "search.log"), folder)
            print(name, played[name])
    made = provenance("tests.examples.cluster.job_queue", given, "optuna", "sqlalchemy", "psycopg")
    write(options.output, as_json({**made, "plan": asdict(plan), "studies": played}))


if __name__ == "__main__":
    main()
