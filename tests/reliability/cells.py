"""One cell: a race of several workers on one storage, what goes wrong, and what came of it."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from optuna.trial import TrialState

from tests.optuna.games.nash_games import EQUILIBRIUM
from tests.reliability.workers import (
    BEST,
    CONTEXT,
    MAXIMISING,
    OPTUNA,
    TRIALS,
    open_storage,
    open_study,
    run,
    work,
)

WORKERS = 8
_LONGEST = 150.0  # seconds
_MOST_AGAIN = 3  # times that a race is gone on with
_TOLERANCE = 0.2  # of the answer's true value, and of an equilibrium's actions


class Crew:
    """Workers; each is started again, as by a supervisor, until it ends without an error."""

    def __init__(self, arguments, n, environment=None):
        self._arguments, self._environment = arguments, environment
        self._random = random.Random(0)
        self.lost = 0  # workers that ended otherwise
        self._workers = [self._start() for _ in range(n)]

    def _start(self):
        if self._environment is None:
            worker = CONTEXT.Process(target=work, args=self._arguments)
            worker.start()
            return worker
        command = [sys.executable, "-m", "tests.reliability.workers", json.dumps(self._arguments)]
        path = os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))
        environment = {**os.environ, "PYTHONPATH": path, **self._environment}
        return subprocess.Popen(command, env=environment)

    def tend(self):
        """Start lost workers again; return whether any still runs."""
        for place, worker in enumerate(self._workers):
            status = _status(worker)
            if status is not None and status != 0:
                self.lost += 1
                self._workers[place] = self._start()
        return any(_status(worker) is None for worker in self._workers)

    def kill_one(self):
        running = [worker for worker in self._workers if _status(worker) is None]
        if running:
            self._random.choice(running).kill()

    def kill_all(self):
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            _wait(worker)

    def freeze_one(self):
        """Stop a worker that runs, if any; return what lets it go on."""
        worker = next((w for w in self._workers if _status(w) is None), None)
        if worker is not None:
            os.kill(worker.pid, signal.SIGSTOP)

        def go_on():
            if worker is not None and _status(worker) is None:
                os.kill(worker.pid, signal.SIGCONT)

        return go_on


def _status(worker):
    return worker.poll() if isinstance(worker, subprocess.Popen) else worker.exitcode


def _wait(worker):
    return worker.wait() if isinstance(worker, subprocess.Popen) else worker.join()


def play(
    url,
    name,
    folder,
    *,
    pause=0.02,
    limit=None,
    fault=None,
    environment=None,
    n=WORKERS,
    longest=_LONGEST,
    **options,
):
    """Run a cell, and return its figures.

    `fault` is called with the workers and yields the seconds until it goes on; it begins after the
    first values.
    """
    folder = str(folder)
    open_study(open_storage(url), name, **options)  # once, before the workers
    began = time.monotonic()
    crew = Crew((url, name, pause, folder, options, limit), n, environment)
    script, due, before = None, 0.0, None
    try:
        while crew.tend():
            now = time.monotonic()
            if now - began > longest:
                raise TimeoutError(f"the race did not end: {_text(folder, 'errors')[-2000:]}")
            if fault is not None and script is None and len(_noted(folder)) >= n:
                before, script = len(_noted(folder)), fault(crew)
            if script is not None and now >= due:
                due = now + next(script, longest)
            time.sleep(0.03)
        seconds = time.monotonic() - began
    finally:
        crew.kill_all()
        if script is not None:
            script.close()
    found = to_the_end(url, name, folder, **options)
    return found | {
        "workers": n,
        "workers_lost": crew.lost,
        "values_before": before,
        "seconds": round(seconds, 1),
    }


def figures(storage, name, folder, **options):
    """What became of the values, of the race and of its answer, as who comes later reads them."""
    storage = open_storage(storage) if isinstance(storage, str) else storage
    study = open_study(storage, name, **options)
    trials = study.get_trials(deepcopy=False)
    noted = _noted(folder)
    values = {t.number: str(t.values) for t in trials if t.state == TrialState.COMPLETE}
    evaluated = [t.number for t in trials if t.number in values and not _is_answer(t)]
    found = {
        "values_noted": len(noted),
        "values_lost": sum(values.get(number) != value for number, value in noted.items()),
        "values": len(evaluated),
        "left_running": sum(t.state == TrialState.RUNNING for t in trials),
        "made_anew": sum("failed_trial" in t.system_attrs for t in trials),
        "disagreements": _text(folder, "errors").count("does not count"),
    }
    if name == OPTUNA:
        return found | {"ended": len(evaluated) >= TRIALS}
    counted = _counted(study)
    ended, right, claim = _answer(study, name)
    return found | {
        "wasted": len(evaluated) - len(counted & set(evaluated)),
        "ended": ended,
        "right": right,
        "claim": claim,
    }


def to_the_end(storage, name, folder, **options):
    """The figures, after whoever comes later has gone on, if the race is open again.

    With replicates, values that were under way when it ended may have opened it.
    """
    found = figures(storage, name, folder, **options)
    again = 0
    while not found["ended"] and again < _MOST_AGAIN:
        again += 1
        opened = open_storage(storage) if isinstance(storage, str) else storage
        run(opened, name, 0.0, folder, options=options)
        found = figures(storage, name, folder, **options)
    return found | {"went_on": again}


def _is_answer(trial):
    return "mfhpo:certificate" in trial.user_attrs


def _counted(study):
    """Trials from whose values the experiment has learned, each evaluation of a block once."""
    counted, blocks = set(), set()
    for result in study.sampler.known(study).experiment.history():
        place = (result.pull.arm, result.pull.block)
        in_block = result.pull.block is not None and result.pull.block >= 0
        if result.observation.has_value and not (in_block and place in blocks):
            counted.add(int(result.id))
            blocks.add(place)
    return counted


def _answer(study, name):
    """Whether the race has ended, its answer is as good as it must be, and it is certified."""
    if name == "NashSampler":
        answer = study.sampler.equilibrium(study)
        off = max(abs(answer.params[key] - EQUILIBRIUM[key]) for key in EQUILIBRIUM)
        return answer.finished, off <= _TOLERANCE, None
    answer = study.sampler.recommendation(study)
    ended = answer.trials >= TRIALS if name in MAXIMISING else answer.finished
    right = (answer.params["x"] - BEST) ** 2 <= _TOLERANCE
    certifies = name not in MAXIMISING
    return ended, right, answer.certified if certifies else None


def _noted(folder):
    lines = [line.split(" ", 1) for line in _text(folder, "notes").splitlines()]
    return {int(number): value for number, value in lines}


def _text(folder, name):
    """Return what workers have written to a file, nothing if it is not there."""
    file = Path(folder, name)
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def complaints(found, name):
    """What must hold in every cell and does not, in words; a wrong answer is none."""
    broken = {
        "values were lost": found["values_lost"] > 0,
        "the race has not ended": not found["ended"],
    }
    if name != OPTUNA:
        too_many = found["wasted"] > 0.1 * found["values"]
        broken["more than a tenth of the values were wasted"] = too_many
        broken["the answer is not certified"] = found["claim"] is False and name != "SearchSampler"
    return [words for words, is_so in broken.items() if is_so]


def check(found, name):
    """What must hold in every cell."""
    assert complaints(found, name) == [], found
    assert name == OPTUNA or found["right"]
