"""What one worker of a study does, in a process of its own, and the studies that workers share."""

import contextlib
import json
import multiprocessing
import os
import select
import sys
import time
import warnings
from functools import partial

import numpy as np
import optuna
from optuna.storages import JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mfhpo_optuna import (
    IISESampler,
    MFSampler,
    NashSampler,
    RCUCBSampler,
    SearchSampler,
    time_limited,
)
from tests.optuna.games.nash_games import PLAYERS, tracking_by_level

# Workers are forked from a process that has imported everything, has no threads and opens nothing.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])

STUDY = "shared"
BEST = 0.1
ARMS = [{"x": x} for x in (-0.9, -0.5, BEST, 0.6)]
OPTUNA = "RandomSampler"
TRIALS = 60  # of Optuna alone
BUDGET = 120  # of the game

SAMPLERS = {
    "IISESampler": partial(IISESampler, "epochs", ARMS, epsilon=0.2, sigma=0.15),
    "MFSampler": partial(MFSampler, "epochs", ARMS, epsilon=0.2, replicate="split"),
    "SearchSampler": partial(SearchSampler, "epochs", budget=300, certify_share=0.3),
    "RCUCBSampler": partial(
        RCUCBSampler, ARMS, [20.0, 80.0], reward_range=(0.0, 1.0), horizon=TRIALS
    ),
    "NashSampler": partial(NashSampler, PLAYERS, "seconds", budget=BUDGET),
    OPTUNA: lambda **options: optuna.samplers.RandomSampler(),
}
MAXIMISING = ("RCUCBSampler",)


def open_storage(url):
    """The storage that a word names; called in the process that uses it."""
    kind, _, rest = url.partition(":")
    if kind == "heartbeat":
        return RDBStorage(
            rest,
            heartbeat_interval=1,
            grace_period=3,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
        )
    if kind == "journal":
        return JournalStorage(JournalFileBackend(rest))
    if kind == "redis":
        from optuna.storages.journal import JournalRedisBackend

        return JournalStorage(JournalRedisBackend(rest))
    if kind == "grpc":
        host, _, port = rest.removeprefix("//").partition(":")
        return optuna.storages.GrpcStorageProxy(host=host, port=int(port))
    return url


def open_study(storage, name, **options):
    directions = ["minimize"] * 2 if name == "NashSampler" else ["minimize"]
    if name in MAXIMISING:
        directions = ["maximize"]
    return optuna.create_study(
        storage=storage,
        study_name=STUDY,
        load_if_exists=True,
        directions=directions,
        sampler=SAMPLERS[name](**{"seed": 0} | options),
    )


def value_of(trial, name, pause, seed=0):
    """One noisy evaluation, whose noise depends on the trial's number or on its split."""
    if name == "NashSampler":
        values = tracking_by_level(trial)
        time.sleep(pause)
        return values
    x = trial.suggest_float("x", -1, 1)
    epochs = 9 if name == "RCUCBSampler" else trial.suggest_int("epochs", 1, 9)
    split = trial.suggest_int("split", 0, 2**31 - 1) if name == "MFSampler" else trial.number
    time.sleep(pause)
    noise = 0.15 * np.random.default_rng([split, int(1e6 * (x + 1)), seed]).normal()
    if name == "RCUCBSampler":
        return float(np.clip(0.9 - (x - BEST) ** 2 + 0.3 * noise, 0, 1))
    return (x - BEST) ** 2 + 0.1 / epochs + noise


def note(study, trial, file):
    """Keep a value that the storage has acknowledged, beside it, where nothing goes wrong."""
    if trial.state == TrialState.COMPLETE:
        with open(file, "ab", buffering=0) as notes:  # by one call, which no kill divides
            notes.write(f"{trial.number} {trial.values}\n".encode())


def work(url, name, pause, folder, options, limit):
    """Run trials until the sampler ends the study; what goes wrong is said in the folder."""
    errors = os.open(os.path.join(folder, "errors"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(errors, 2)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    run(open_storage(url), name, pause, folder, options=options, limit=limit)


def run(storage, name, pause, folder, *, jobs=1, options=None, limit=None):
    """Run trials until the sampler ends the study, each in a process of its own if it has a limit.

    The limit is in seconds.
    """
    options = options or {}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    study = open_study(storage, name, **options)
    callbacks = [partial(note, file=os.path.join(folder, "notes"))]
    if name == OPTUNA:
        enough = optuna.study.MaxTrialsCallback(TRIALS, states=(TrialState.COMPLETE,))
        callbacks.append(enough)
        if sum(t.state == TrialState.COMPLETE for t in study.get_trials(deepcopy=False)) >= TRIALS:
            return
    objective = partial(value_of, name=name, pause=pause, seed=options.get("seed", 0))
    with contextlib.ExitStack() as opened:
        if limit is not None:
            objective = opened.enter_context(time_limited(objective, limit))
        study.optimize(objective, n_jobs=jobs, callbacks=callbacks)


def serve(url, port):
    """Be a gRPC proxy for a storage."""
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.get_storage(url)
    optuna.storages.run_grpc_proxy_server(storage, host="127.0.0.1", port=port)


if __name__ == "__main__":  # for a worker whose clock is libfaketime's
    # It makes no sleep possible while the monotonic clock goes on as it should.
    time.sleep = partial(select.select, [], [], [])
    work(*json.loads(sys.argv[1]))
