"""Is a handwritten digit odd? Tune LightGBM on a cluster until the best configuration is certified.

Each trial boosts on a random half of the digits, by its seed, and is scored on the other half, so
that its value is noisy. Checkpoints are saved every 30 trees; a trial whose machine is lost goes on
from the last one. There are two ways to run the race:

* `MFSearch`: each trial is one evaluation, whose configuration, number of trees (the fidelity) and
  seed it chooses. With fewer trees than the 90 of the target, a trial learns in larger steps so
  that it comes out much the same.
* `IISEScheduler`, with `--scheduler`: each trial is one of a grid of configurations and seeds. It
  pauses at 30 trees, and goes on from its checkpoint only if more of it is wanted.

The search is the simpler way: nobody has to guess beforehand how many seeds it takes. In four
races between the same 16 configurations, the search took 11,600 trees in 180 trials on average, and
the scheduler 12,400 in 139: there is little between them here, where after 30 trees those that
learn slowly are too far from where they end to tell much, so that most trials run on.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

# Ray reads these when it is imported: no statistics of its usage are sent, and it is quieter.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")

import lightgbm
import numpy as np
import ray
from ray import tune
from ray.tune.search import BasicVariantGenerator
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mfhpo_ray import IISEScheduler, MFSearch, recommendation

TARGET, STEP = 90, 30  # trees of a model; trees from one checkpoint to the next
SPACE = {
    "learning": tune.loguniform(2.0, 12.0),
    "num_leaves": tune.lograndint(3, 32),
    "min_child_samples": tune.lograndint(1, 31),
    "feature_fraction": tune.uniform(0.1, 1.0),
    "lambda_l2": tune.loguniform(0.01, 10.0),
}
pixels, digit = load_digits(return_X_y=True)


def boost(
    model: lightgbm.Booster | None, n: int, seed: int, trees: int, learning: float, **settings: Any
) -> tuple[lightgbm.Booster, float]:
    """Add n trees to a model; its log-loss on the half of the data that it has not seen."""
    x_train, x_test, y_train, y_test = train_test_split(
        pixels, digit % 2, test_size=0.5, random_state=seed
    )
    model = lightgbm.train(
        {"objective": "binary", "learning_rate": learning / trees, "num_threads": 1, "verbose": -1}
        | {"seed": (seed + (model.current_iteration() if model else 0)) % 2**31}
        | settings,
        lightgbm.Dataset(x_train, y_train),
        num_boost_round=n,
        init_model=model,
    )
    return model, float(log_loss(y_test, model.predict(x_test)))


def train(config: dict[str, Any]) -> None:
    """A trial: boost from the last checkpoint, if there is one, to the number of trees."""
    model, checkpoint = None, tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            model = lightgbm.Booster(model_file=Path(folder, "model.txt"))
    while (done := model.current_iteration() if model else 0) < config["trees"]:
        model, loss = boost(model, min(STEP, config["trees"] - done), **config)
        with tempfile.TemporaryDirectory() as folder:
            model.save_model(Path(folder, "model.txt"))
            tune.report({"loss": loss}, checkpoint=tune.Checkpoint.from_directory(folder))


@ray.remote
def fresh_loss(config: dict[str, Any], i: int) -> float:
    return boost(None, TARGET, **config | {"trees": TARGET, "seed": 2**31 - 1 - i})[1]


def compare(promise: str, config: dict[str, Any], n: int) -> None:
    """Print what was promised of a configuration, and what it is worth on splits not yet seen."""
    losses = ray.get([fresh_loss.remote(config, i) for i in range(n)])
    mean, error = np.mean(losses), np.std(losses) / n**0.5
    print(f"  {promise}: {n} fresh splits with {TARGET} trees give {mean:.4f} ± {error:.4f}")


def by_search(arms: int, epsilon: float) -> tuple[dict[str, Any], tune.TuneConfig]:
    search = MFSearch("trees", arms=arms, epsilon=epsilon, metric="loss", mode="min", seed=0)
    return SPACE | {"trees": tune.randint(10, TARGET + 1)}, tune.TuneConfig(
        search_alg=search,
        scheduler=search.scheduler(),
        num_samples=-1,  # until the search says that it is over
        reuse_actors=True,  # a new process for each trial would take longer than the trial
    )


def by_scheduler(arms: int, epsilon: float) -> tuple[dict[str, Any], tune.TuneConfig]:
    seeds = tune.grid_search(list(range(60)))  # more than will be needed: most never start
    return SPACE | {"trees": TARGET, "seed": seeds}, tune.TuneConfig(
        metric="loss",
        mode="min",
        # One iteration is one report: these levels are of 30 and of 90 trees.
        scheduler=IISEScheduler(levels=[1, 3], costs=[30, 90], epsilon=epsilon),
        # A configuration is to stay the same for all seeds of the grid.
        search_alg=BasicVariantGenerator(constant_grid_search=True, random_state=0),
        num_samples=arms,
        reuse_actors=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few configurations, large tolerance")
    parser.add_argument("--scheduler", action="store_true", help="race by IISEScheduler instead")
    parser.add_argument("--storage", help="folder or URI for the results, else a temporary one")
    options = parser.parse_args()
    # Losses that differ by less than epsilon are as good as equal here.
    arms, epsilon, fresh = (4, 0.06, 10) if options.quick else (16, 0.02, 50)

    # A cluster of this machine alone, unless another one's address is in RAY_ADDRESS.
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address, include_dashboard=False, log_to_driver=False)
    space, tune_config = (by_scheduler if options.scheduler else by_search)(arms, epsilon)
    run_config = tune.RunConfig(
        storage_path=options.storage or tempfile.mkdtemp(),
        failure_config=tune.FailureConfig(max_failures=3),  # on another machine, if one is lost
        verbose=0,
    )
    tuner = tune.Tuner(train, param_space=space, tune_config=tune_config, run_config=run_config)
    results = tuner.fit()  # the race stops by itself
    answer = recommendation(results)

    print(f"\n{answer}\n\nWhat is promised, and what is true:")
    best = results.get_best_result("loss", "min")
    if best.metrics and best.config:
        compare(f"get_best_result, {best.metrics['loss']:.4f}", best.config, fresh)
    low, high = answer.interval
    compare(f"the certificate, {low:.4f} to {high:.4f}", answer.config, fresh)


if __name__ == "__main__":
    main()
