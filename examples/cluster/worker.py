"""A study on a cluster. Each command is a process of its own, on any machine.

    python worker.py create STORAGE     once, before the workers begin
    python worker.py work STORAGE       a worker, as often as it is started
    python worker.py answer STORAGE     at any time

STORAGE is a file on a disk that all machines share, or the URL of a database.
A worker exits with 0 once the study has ended, and with another status if it
has to be started again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

import numpy as np
import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from mfhpo_optuna import SearchSampler, seed_of

STUDY = "on the cluster"
BUDGET = 1500.0  # epochs, of all workers together
LEASE = 120.0  # seconds; a trial that takes longer has lost its worker
LOCK = 30  # seconds; an older lock on the journal is a dead worker's
SECONDS_PER_EPOCH = 0.05


def objective(trial: optuna.Trial) -> float:
    """Return the loss of one training. Put yours here."""
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    epochs = trial.suggest_int("epochs", 1, 27)
    noise = np.random.default_rng(seed_of(trial)).normal(scale=0.02)
    time.sleep(SECONDS_PER_EPOCH * epochs)
    return float(np.log10(rate / 0.03) ** 2 / 4 + 0.2 / epochs + noise)


def sampler() -> SearchSampler:
    """Return the sampler, which has the same arguments in all workers."""
    return SearchSampler(
        "epochs",
        budget=BUDGET,
        certify_share=0.3,
        epsilon=0.05,
        lease=LEASE,
    )


def storage_of(place: str) -> str | BaseStorage:
    """Return the storage that a path or URL names."""
    if "://" in place:
        return place
    lock = JournalFileOpenLock(place, LOCK)
    return JournalStorage(JournalFileBackend(place, lock))


def work(study: optuna.Study) -> int:
    """Run trials until the study ends, or SIGTERM makes one the last."""
    was_told = False

    def leave(*_: object) -> None:
        nonlocal was_told
        was_told = True
        study.stop()

    signal.signal(signal.SIGTERM, leave)
    study.optimize(objective)
    return 128 + signal.SIGTERM if was_told else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=("create", "work", "answer"))
    parser.add_argument("storage")
    options = parser.parse_args(arguments)
    storage = storage_of(options.storage)
    if options.command == "create":
        optuna.create_study(
            storage=storage,
            study_name=STUDY,
            load_if_exists=True,
        )
        return 0
    study = optuna.load_study(
        storage=storage,
        study_name=STUDY,
        sampler=sampler(),
    )
    if options.command == "work":
        return work(study)
    print(sampler().recommendation(study))
    return 0


if __name__ == "__main__":
    sys.exit(main())
