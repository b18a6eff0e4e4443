"""Which runs a comparison needs, and how they are played, each optimiser in its environment."""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.hpo.identity import identity_of, valid_runs
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.record import Run, file_of, read
from benchmarks.hpo.tasks import label_of

_ROOT = Path(__file__).parents[2]
_PEERS = _ROOT / "benchmarks" / "peers"

_MOST_MINUTES = 480.0  # of a job; the slowest optimiser takes half of that for five runs


@dataclass(frozen=True)
class Environment:
    """A Python in which the methods of a module can be played."""

    peer: str
    python: Path
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What is to be played: all of it by every method.

    Parameters
    ----------
    tasks, seeds, budget
        The runs.
    records
        Folder that they are kept in.
    block
        Seeds that are played before the next task's turn comes.
    sigma
        Noise, if not the tasks' usual one.
    data
        Folder of the surrogates, if not the usual one.
    workers
        If given, how many evaluate on a virtual clock.
    """

    tasks: tuple[str, ...]
    seeds: range
    budget: float
    records: Path
    block: int = 5
    sigma: float | None = None
    data: Path | None = None
    workers: int | None = None

    def label_of(self, task: str) -> str:
        """The name under which records keep a task."""
        return label_of(task, self.sigma, self.workers)


@dataclass(frozen=True)
class Job:
    """What one process plays: some seeds of a task, by methods of one module."""

    environment: Environment
    methods: tuple[str, ...]
    task: str
    seeds: range
    plan: Plan

    @property
    def words(self) -> str:
        """What it is, for people."""
        seeds = f"seeds {self.seeds[0]} to {self.seeds[-1]}"
        return f"{self.environment.peer} on {self.plan.label_of(self.task)}, {seeds}"

    @property
    def command(self) -> list[str]:
        """The command line that plays it."""
        plan = self.plan
        return [
            *_play(self.environment.python, self.environment.peer),
            *(f"--method={name}" for name in self.methods),
            f"--problem={self.task}",
            f"--budget={plan.budget:g}",
            f"--seeds={self.seeds.start}:{self.seeds.stop}",
            f"--output={plan.records}",
            *([] if plan.sigma is None else [f"--sigma={plan.sigma:g}"]),
            *([] if plan.data is None else [f"--data={plan.data}"]),
            *([] if plan.workers is None else [f"--workers={plan.workers}"]),
        ]


def _play(python: Path, peer: str) -> list[str]:
    return [str(python), "-m", "benchmarks.hpo.play", f"--peer={peer}"]


def environments(
    only: Sequence[str] | None = None, root: Path = _ROOT, clocked: bool = False
) -> tuple[list[Environment], dict[str, str]]:
    """Find an environment for our own methods and for each peer.

    A peer whose requirements are pinned is played by .venvs/peer-NAME/bin/python and no other; ours
    and those without requirements by the Python that runs this.

    Parameters
    ----------
    only
        Names of modules; by default all of them.
    root
        Folder of the project.
    clocked
        Whether only methods that can be played on a virtual clock are wanted.

    Returns
    -------
    tuple
        The environments, and for each module without one the reason.

    Raises
    ------
    ValueError
        If there is no module of a name.
    """
    peers = sorted(file.stem for file in _PEERS.glob("[!_]*.py"))
    if unknown := set(only or ()) - {OURS, *peers}:
        raise ValueError(f"peers: {sorted(unknown)} not among {[OURS, *peers]}.")
    found: list[Environment] = []
    missing: dict[str, str] = {}
    for peer in (OURS, *peers):
        if only is not None and peer not in only:
            continue
        name = peer.replace("_", "-")
        python = Path(sys.executable)
        if (_PEERS / "requirements" / f"{name}.txt").exists():
            python = root / ".venvs" / f"peer-{name}" / "bin" / "python"
            if not python.exists():
                missing[peer] = f"make peer-{name} makes its environment"
                continue
        asked = subprocess.run(
            [*_play(python, peer), "--list", *(["--workers=1"] if clocked else [])],
            cwd=_ROOT,
            env=_surroundings(),
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0 and clocked and not asked.stdout.strip():
            missing[peer] = "it cannot be asked and told"
        elif asked.returncode == 0:
            found.append(Environment(peer, python, tuple(asked.stdout.splitlines())))
        else:
            missing[peer] = (asked.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return found, missing


def _surroundings() -> dict[str, str]:
    # Threads would be counted as time of the optimiser, and disturb what runs beside it.
    alone = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    # Some peers go through sets of names, whose order differs from process to process else.
    return {**os.environ, **alone, "PYTHONHASHSEED": "0"}


def jobs(
    plan: Plan, found: Sequence[Environment], only: Sequence[str] | None = None
) -> Iterator[Job]:
    """What is still to be played, in an order in which methods stay comparable on the way.

    That is also what our own methods have played with other code.

    Parameters
    ----------
    plan
        What is wanted.
    found
        Environments.
    only
        Names of methods; by default all of them.
    """
    there: set[Run] = set()
    for environment in found:
        identity = identity_of(OURS) if environment.peer == OURS else None
        for name, task in product(environment.methods, plan.tasks):
            file = file_of(name, plan.label_of(task), plan.records)
            there |= valid_runs(read([file] if file.exists() else []), identity)
    for start in range(plan.seeds.start, plan.seeds.stop, plan.block):
        seeds = range(start, min(start + plan.block, plan.seeds.stop))
        for task in plan.tasks:
            label = plan.label_of(task)
            for environment in found:
                methods = tuple(
                    name
                    for name in environment.methods
                    if (only is None or name in only)
                    and any((name, label, plan.budget, seed) not in there for seed in seeds)
                )
                if methods:
                    yield Job(environment, methods, task, seeds, plan)


def play_all(
    wanted: Sequence[Job], workers: int, tell: Callable[[str], None], minutes: float | None = None
) -> list[str]:
    """Play jobs on several processes.

    Parameters
    ----------
    wanted
        The jobs.
    workers
        Processes at a time.
    tell
        Called with a line when a job has ended.
    minutes
        After this time running jobs are stopped, and no other one begins; what they had finished
        is kept. A job is stopped after `_MOST_MINUTES` in any case, which
        is no failure: some runs of FLAML never end.

    Returns
    -------
    list of str
        What went wrong: a line for each job that failed.
    """
    began = time.monotonic()
    end = math.inf if minutes is None else began + 60 * minutes
    stopped = threading.Event()

    def play(job: Job) -> str | None:
        if stopped.is_set():
            return None
        log = job.plan.records / "logs" / f"{job.environment.peer}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            process = subprocess.Popen(
                job.command, cwd=_ROOT, env=_surroundings(), stdout=stream, stderr=stream
            )
            last = time.monotonic() + 60 * _MOST_MINUTES
            try:
                while True:
                    try:
                        status = process.wait(0.2)
                        break
                    except subprocess.TimeoutExpired:
                        if time.monotonic() > end:
                            stopped.set()
                        if stopped.is_set():
                            return None
                        if time.monotonic() > last:
                            tell(f"{job.words}: stopped after {_MOST_MINUTES:g} minutes")
                            return None
            finally:
                process.kill()
                process.wait()
        return None if status == 0 else f"{job.words}: ended with {status}; see {log}"

    failed = []
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(play, job): job for job in wanted}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                if stopped.is_set():
                    break
                if error := future.result():
                    failed.append(error)
                spent = (time.monotonic() - began) / 60
                left = spent / number * (len(wanted) - number)
                tell(
                    f"[{number}/{len(wanted)}] {spent:.1f} min, about {left:.0f} more: "
                    f"{futures[future].words}"
                )
        finally:
            stopped.set()
    if time.monotonic() > end:
        tell(f"stopped after {minutes:g} minutes; the same command goes on from here.")
    return failed
