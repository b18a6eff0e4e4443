"""IISEScheduler in real runs of Ray Tune: trials pause and go on, crash and are tried again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from ray import tune

import mfhpo_ray
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_ray import IISEScheduler

pytestmark = pytest.mark.cluster

LEVELS = (1, 3, 9)
BEST = 7


def make_trainable(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Make a training function that notes each iteration in a file of its own trial."""

    def train(config: dict[str, Any]) -> None:
        arm, seed = config["arm"], config["seed"]
        done = 0
        checkpoint = tune.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as saved:
                done = int(Path(saved, "iteration").read_text())
        for iteration in range(done + 1, LEVELS[-1] + 1):
            with Path(folder, f"{arm}_{seed}").open("a") as log:
                log.write(f"{iteration}\n")
            noise = np.random.default_rng((arm, seed, iteration)).normal(0.0, 0.01)
            value = 1.0 - 0.05 * abs(arm - BEST) - 0.02 / iteration + noise
            metrics = {"accuracy": value, "note": "constant"}
            with TemporaryDirectory() as saved:
                Path(saved, "iteration").write_text(str(iteration))
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(saved))

    return train


def fit(
    trainable: Callable[[dict[str, Any]], None], storage: Path, n_arms: int, n_seeds: int
) -> tune.ResultGrid:
    scheduler = IISEScheduler(
        levels=LEVELS, sigma=0.01, bias=(0.02, 0.007, 0.0), epsilon=0.04, delta=0.1, measure=2
    )
    tuner = tune.Tuner(
        trainable,
        param_space={
            "arm": tune.grid_search(list(range(n_arms))),
            "seed": tune.grid_search(list(range(n_seeds))),
        },
        tune_config=tune.TuneConfig(
            metric="accuracy", mode="max", scheduler=scheduler, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            storage_path=str(storage),
            name="race",
            verbose=0,
            checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
        ),
    )
    return tuner.fit()


def trained(folder: Path) -> dict[tuple[int, int], list[int]]:
    """The iterations of each trial that has begun, in their order."""
    return {
        (int(log.name.split("_")[0]), int(log.name.split("_")[1])): [
            int(line) for line in log.read_text().split()
        ]
        for log in folder.iterdir()
    }


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_paused_trials_go_on_from_their_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    n_arms, n_seeds = 12, 4
    results = fit(make_trainable(folder), tmp_path / "storage", n_arms, n_seeds)
    assert len(results) == n_arms * n_seeds
    assert not results.errors
    answer = mfhpo_ray.recommendation(results)
    assert (answer.arm, answer.certified, answer.config) == (BEST, True, {"arm": BEST})
    iterations = trained(folder)
    for done in iterations.values():
        assert done == list(range(1, len(done) + 1)), "some iteration was trained twice"
    # Bad configurations stopped early, the best one was run to the end.
    lengths = {
        arm: max((len(d) for (a, _), d in iterations.items() if a == arm), default=0)
        for arm in range(n_arms)
    }
    assert lengths[BEST] == 9
    assert lengths[0] <= 3
    total = sum(len(done) for done in iterations.values())
    assert total < n_arms * n_seeds * 9 / 2
    # What was paid for is what was trained, but for what was stopped on its way.
    assert answer.cost <= total <= answer.cost + 4 * 9
    # What `get_best_result` hands over is shown beside the answer.
    assert answer.luckiest is not None
    assert answer.luckiest.metric == "accuracy"
    paused = [done for done in iterations.values() if len(done) in LEVELS[:-1]]
    assert len(iterations) > n_arms
    assert paused


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_errored_trials_are_resumed(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    best = 1

    def train(config: dict[str, Any]) -> None:
        for iteration in range(1, LEVELS[-1] + 1):
            if config["arm"] == best and broken.exists():
                raise RuntimeError("this configuration crashes")
            tune.report({"accuracy": 0.1 * config["arm"] - 0.02 / iteration})

    with pytest.warns(ArmWithdrawnWarning):
        first = fit(train, tmp_path / "storage", n_arms=2, n_seeds=12)
    assert len(first.errors) >= 3
    assert mfhpo_ray.recommendation(first).arm == best - 1
    broken.unlink()
    # The race goes on with all arms, though it had ended.
    results = tune.Tuner.restore(
        str(tmp_path / "storage" / "race"), train, resume_errored=True
    ).fit()
    assert not results.errors
    answer = mfhpo_ray.recommendation(results)
    assert (answer.arm, answer.compared, answer.certified) == (best, 2, True)
