"""Objectives that misbehave in one of four trials, and what is left of that below `time_limited`.

Each study runs in a process of its own, because without a limit it may hang or die.
"""

import ctypes
import faulthandler
import json
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from optuna.trial import TrialState

from mfhpo.censored.memory import descendants
from mfhpo_optuna import time_limited
from tests.optuna.time_limits.processes import Notes, alive, open_files, until
from tests.reliability.workers import CONTEXT, OPTUNA, STUDY, open_storage

BAD = 1  # the number of the trial that misbehaves
TRIALS = 4
_HANG = 1.0  # seconds of a trial after which it hangs
_ENOUGH = 30.0  # seconds of any other
_MEMORY_LIMIT = 300e6  # bytes
_GIVE_UP_AFTER = 3.0  # seconds without limits; the trials that are left take some hundredths
_LONGEST = 60.0  # seconds of a study with limits
_MIB = 2**20


def sleeps(notes):
    time.sleep(3600.0)


def computes_without_end(notes):
    while True:
        pass


def holds_the_interpreter_in_c(notes):
    ctypes.PyDLL(None).sleep(3600)  # unlike CDLL, it keeps the interpreter's lock


def ignores_all_signals(notes):
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600.0)


def stops_itself(notes):
    os.kill(os.getpid(), signal.SIGSTOP)


def waits_for_its_own_lock(notes):
    lock = threading.Lock()
    with lock, lock:
        pass


def reads_what_nobody_writes(notes):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.recv(1)


def waits_for_a_child(notes):
    pid = os.fork()
    if not pid:
        time.sleep(3600.0)
    notes.write(pid)
    os.waitpid(pid, 0)


def closes_the_standard_streams(notes):
    for number in range(3):
        os.close(number)


def closes_all_descriptors(notes):
    os.closerange(0, 4096)


def exits_at_once(notes):
    os._exit(3)


def exits(notes):
    sys.exit(3)


def reads_address_zero(notes):
    faulthandler.disable()
    ctypes.string_at(0)


def aborts(notes):
    faulthandler.disable()
    os.abort()


def kills_its_group(notes):
    os.killpg(0, signal.SIGKILL)


def takes_too_much_memory(notes):
    held = [np.ones(10_000_000) for _ in range(8)]  # 640 MB
    time.sleep(3600.0)
    del held


class _Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first, second, threading.Lock())

    def __str__(self):
        raise ValueError("cannot be shown")


def raises_what_cannot_be_pickled(notes):
    raise _Odd(1, 2)


def recurses_without_end(notes):
    recurses_without_end(notes)


def returns_80_megabytes(notes):
    return np.ones(10_000_000)


def returns_text(notes):
    return "0.5"


def returns_an_int_beyond_floats(notes):
    return 10**400


def returns_what_is_no_number(notes):
    return {"loss": 0.5}


def leaves_a_thread_behind(notes):
    threading.Thread(target=time.sleep, args=(3600.0,)).start()


def leaves_a_child_behind(notes):
    pid = os.fork()
    if not pid:
        time.sleep(3600.0)
    notes.write(pid)


def leaves_a_daemon_behind(notes):
    pid = os.fork()
    if not pid:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if not os.fork():
            notes.write(os.getpid())
            time.sleep(3600.0)
        os._exit(0)
    os.waitpid(pid, 0)
    until(notes.read)


def leaves_a_pool_behind(notes):
    pool = multiprocessing.get_context("fork").Pool(2)
    for process in pool._pool:
        notes.write(process.pid)
    multiprocessing.left = pool


def lets_a_child_return(notes):
    pid = os.fork()
    if pid:
        notes.write(pid)
        time.sleep(0.3)


def leaves_200_files_open(notes):
    sys.left_open = [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]


def leaves_80_megabytes(notes):
    sys.left_in_memory = np.ones(10_000_000)


def leaves_a_temporary_file(notes):
    os.close(tempfile.mkstemp()[0])


@dataclass(frozen=True)
class Case:
    """An objective, and what is to become of its trial; `files` are those that it itself leaves."""

    misbehave: Callable
    state: str
    limit: float = _ENOUGH
    files: int = 0

    @property
    def words(self):
        return self.misbehave.__name__.replace("_", " ")


_HANGING = (sleeps, computes_without_end, holds_the_interpreter_in_c, ignores_all_signals)
_HANGING += (stops_itself, waits_for_its_own_lock, reads_what_nobody_writes, waits_for_a_child)
_FAILING = (
    closes_all_descriptors,
    exits_at_once,
    exits,
    reads_address_zero,
    aborts,
    kills_its_group,
)
_FAILING += (raises_what_cannot_be_pickled, recurses_without_end, returns_80_megabytes)
_FAILING += (returns_text, returns_an_int_beyond_floats, returns_what_is_no_number)
_LEAVING = (leaves_a_thread_behind, leaves_a_child_behind, leaves_a_daemon_behind)
_LEAVING += (leaves_a_pool_behind, lets_a_child_return, leaves_200_files_open, leaves_80_megabytes)
CASES = [
    *(Case(each, "PRUNED", _HANG) for each in _HANGING),
    Case(takes_too_much_memory, "PRUNED"),
    Case(closes_the_standard_streams, "COMPLETE"),
    *(Case(each, "FAIL") for each in _FAILING),
    *(Case(each, "COMPLETE") for each in _LEAVING),
    Case(leaves_a_temporary_file, "COMPLETE", files=1),
]


def play(case, folder, limited):
    """Run a study, with limits or without, and return what became of it."""
    folder = Path(folder)
    (folder / "temporary").mkdir()
    storage = f"journal:{folder / 'study.log'}"
    optuna.create_study(storage=open_storage(storage), study_name=STUDY)
    process = CONTEXT.Process(target=_run, args=(case, str(folder), storage, limited))
    began = time.monotonic()
    process.start()
    begun = folder / "begun"
    until(lambda: begun.exists() or not process.is_alive(), _LONGEST)
    process.join(_LONGEST if limited else _GIVE_UP_AFTER)
    seconds = time.monotonic() - began
    hangs = process.exitcode is None
    # What is left of those that the objective has noted; a process takes a moment to end.
    noted = [pid for pid in _notes(folder).read() if pid != process.pid]
    until(lambda: not any(map(alive, noted)), 1.0)
    left = [pid for pid in noted if alive(pid)]
    for pid in [process.pid, *left] if hangs else left:
        os.kill(pid, signal.SIGKILL)
    process.join()
    figures = folder / "figures.json"
    found = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else {}
    trials = optuna.load_study(study_name=STUDY, storage=open_storage(storage)).trials
    return {
        "children": len(left),
        **found,
        "sampler": "time_limited" if limited else OPTUNA,
        "objective": case.words,
        "end": _end(hangs, process.exitcode, found),
        "states": [trial.state.name for trial in trials],
        "parameters": "x" in trials[BAD].params,
        "files": len(list((folder / "temporary").iterdir())),
        "seconds": round(seconds, 1),
    }


def _end(hangs, exitcode, found):
    if hangs:
        return "hangs"
    if found:
        return found["end"]
    return "dies" if exitcode < 0 else f"exits with {exitcode}"


def _notes(folder):
    return Notes(Path(folder) / "pids")


def _run(case, folder, storage, limited):
    """Be the process of the study."""
    os.setpgid(0, 0)
    os.environ["TMPDIR"] = os.path.join(folder, "temporary")
    tempfile.tempdir = None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    os.close(silence)
    notes = _notes(folder)

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number != BAD:
            return x
        Path(folder, "begun").touch()
        value = case.misbehave(notes)
        return x if value is None else value

    study = optuna.load_study(study_name=STUDY, storage=open_storage(storage))
    before = open_files(), _resident()
    own = os.getpid()
    end = "goes on"
    try:
        if limited:
            with time_limited(objective, case.limit, memory_limit=_MEMORY_LIMIT) as with_limits:
                study.optimize(with_limits, n_trials=TRIALS, catch=(Exception,))
        else:
            study.optimize(objective, n_trials=TRIALS, catch=(Exception,))
    except BaseException as error:
        end = f"stops: {type(error).__name__}"
    if os.getpid() != own:
        os._exit(0)  # a child that has come out of the study
    children = {*notes.read(), *descendants(own)} - {own}
    until(lambda: not any(map(alive, children)), 1.0)
    figures = {
        "end": end,
        "children": sum(map(alive, children)),
        "descriptors": open_files() - before[0],
        "mebibytes": round(_resident() - before[1]),
    }
    Path(folder, "figures.json").write_text(json.dumps(figures), encoding="utf-8")
    os._exit(0)  # what was left behind would hold up the interpreter's exit


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MIB


def check(found, case):
    """What must hold below `time_limited`."""
    others = [state for number, state in enumerate(found["states"]) if number != BAD]
    assert found["end"] == "goes on"
    assert found["states"][BAD] == case.state
    assert others == [TrialState.COMPLETE.name] * (TRIALS - 1)
    assert found["parameters"]
    assert found["children"] == 0
    assert found["descriptors"] <= 0
    assert found["mebibytes"] < 30
    assert found["files"] == case.files
