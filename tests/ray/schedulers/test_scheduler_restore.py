"""Real runs that are restored: nothing observed is lost, and failed trials are tried again."""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import ray
from ray import tune

import mfhpo_ray
from mfhpo.experiment import Begun
from mfhpo_ray import IISEScheduler
from mfhpo_ray.experiment.journal import SHARED, Journal
from tests.ray.experiments import kill_driver, tuner_of
from tests.ray.schedulers.races import events_of

pytestmark = pytest.mark.cluster

LEVELS = (1, 3, 9)
ARMS, SEEDS, BEST = 8, 4, 5


def make_trainable(folder):
    def train(config):
        arm, seed = config["layers"][0], config["seed"]
        done = 0
        checkpoint = tune.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as saved:
                done = int(Path(saved, "iteration").read_text())
        for iteration in range(done + 1, LEVELS[-1] + 1):
            time.sleep(0.05)
            with Path(folder, f"{arm}_{seed}").open("a") as log:
                log.write(f"{iteration}\n")
            noise = np.random.default_rng((arm, seed, iteration)).normal(0.0, 0.01)
            value = 1.0 - 0.05 * abs(arm - BEST) - 0.02 / iteration + noise
            with TemporaryDirectory() as saved:
                Path(saved, "iteration").write_text(str(iteration))
                tune.report({"accuracy": value}, checkpoint=tune.Checkpoint.from_directory(saved))

    return train


def race_of(train, folder, space):
    scheduler = IISEScheduler(
        levels=LEVELS, sigma=0.01, bias=(0.02, 0.007, 0.0), epsilon=0.04, delta=0.1, measure=2
    )
    options = {"metric": "accuracy", "mode": "max", "scheduler": scheduler}
    return tuner_of(train, folder / "storage", space=space, name="race", **options)


def drive(address, folder):
    ray.init(address=address, configure_logging=False, log_to_driver=False)
    # JSON knows no tuples: an arm must be the same after it was written and read.
    space = {
        "layers": tune.grid_search([(arm, np.float64(0.5)) for arm in range(ARMS)]),
        "seed": tune.grid_search(list(range(SEEDS))),
    }
    race_of(make_trainable(Path(folder, "logs")), Path(folder), space).fit()


def journal_of(folder):
    import pyarrow.fs

    journals = Journal.of_runs(pyarrow.fs.LocalFileSystem(), str(folder / "storage/race"))
    records = journals[-1].read() if journals else {}
    records.pop(SHARED, None)
    return records


def told(records):
    return Counter(
        json.dumps([name, end.level, end.value])
        for name, record in records.items()
        for end in events_of(record)
    )


def final_lines(logs):
    """What trials have noted once they have ended: they outlive their driver for a moment."""
    lines = None
    deadline = time.monotonic() + 60.0
    while True:
        found = {log.name: log.read_text().split() for log in logs.iterdir()}
        if found == lines:
            return found
        assert time.monotonic() < deadline, "trials go on without their driver"
        lines = found
        time.sleep(2.0)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_a_killed_driver_loses_no_observation(tmp_path):
    (tmp_path / "logs").mkdir()
    address = ray.get_runtime_context().gcs_address
    kill_driver(
        [sys.executable, __file__, address, str(tmp_path)],
        lambda: sum(told(journal_of(tmp_path)).values()) >= 20,
    )
    before = journal_of(tmp_path)
    lines = final_lines(tmp_path / "logs")

    storage = str(tmp_path / "storage" / "race")
    tuner = tune.Tuner.restore(storage, make_trainable(tmp_path / "logs"))
    results = tuner.fit()

    after = journal_of(tmp_path)
    assert told(before) <= told(after), "an observation was lost"
    ends = {name: events_of(record) for name, record in after.items()}
    pairs = Counter((name, end.level) for name in ends for end in ends[name])
    assert set(pairs.values()) == {1}, "an observation was made twice"

    answer = mfhpo_ray.recommendation(results)
    assert (answer.arm, answer.compared, answer.certified) == (BEST, ARMS, True)
    assert answer.config["layers"][0] == BEST
    # All values count but those of arms that left while an earlier run held them back.
    of_survivors = {name: of for name, of in after.items() if arm_of(of) in answer.survivors}
    told_at_least = sum(told(of_survivors).values())
    assert told_at_least <= answer.trials <= sum(told(after).values())
    assert len(results) == ARMS * SEEDS
    assert not results.errors

    # Ray goes on from the checkpoints that it knows of; nothing else is trained again.
    for log in (tmp_path / "logs").iterdir():
        done, old = log.read_text().split(), lines.get(log.name, [])
        assert done[: len(old)] == old
        assert len(done) - len(set(done)) <= len(old)


def arm_of(record):
    return int(events_of(record, Begun)[0].configuration["layers"][0])


if __name__ == "__main__":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    drive(*sys.argv[1:])
