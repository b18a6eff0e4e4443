"""A node of the cluster dies in the middle of a race: other replicates take over."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.cluster

ARMS, SEEDS, BEST = 5, 5, 3


def run_race(folder):
    import ray
    from ray import tune
    from ray.cluster_utils import Cluster

    import mfhpo_ray
    from mfhpo_ray import IISEScheduler

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    second = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, configure_logging=False, log_to_driver=False)
    nodes = {node["NodeID"]: node["NodeManagerPort"] for node in ray.nodes()}
    dying = second.node_id
    assert dying in nodes

    def train(config):
        here = ray.get_runtime_context().get_node_id()
        arm, seed = config["arm"], config["seed"]
        with Path(folder, f"{arm}_{seed}").open("a") as log:
            log.write(f"{here}\n")
        for iteration in range(1, 10):
            time.sleep(0.15)
            noise = np.random.default_rng((arm, seed, iteration)).normal(0.0, 0.01)
            tune.report({"accuracy": 1.0 - 0.05 * abs(arm - BEST) - 0.02 / iteration + noise})

    def kill_when_it_is_in_use():
        while not any(dying in log.read_text() for log in Path(folder).iterdir()):
            time.sleep(0.05)
        time.sleep(0.3)
        cluster.remove_node(second, allow_graceful=False)
        Path(folder).parent.joinpath("killed").write_text(str(time.time()))

    killer = threading.Thread(target=kill_when_it_is_in_use, daemon=True)
    killer.start()
    scheduler = IISEScheduler(
        levels=(1, 3, 9), sigma=0.01, bias=(0.02, 0.007, 0.0), epsilon=0.04, delta=0.1, measure=2
    )
    results = tune.Tuner(
        train,
        param_space={
            "arm": tune.grid_search(list(range(ARMS))),
            "seed": tune.grid_search(list(range(SEEDS))),
        },
        tune_config=tune.TuneConfig(
            metric="accuracy", mode="max", scheduler=scheduler, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            storage_path=str(Path(folder).parent / "storage"), name="race", verbose=0
        ),
    ).fit()
    answer = mfhpo_ray.recommendation(results)
    Path(folder).parent.joinpath("outcome").write_text(
        json.dumps(
            {
                "arm": answer.arm,
                "certified": answer.certified,
                "compared": answer.compared,
                "errors": [repr(error) for error in results.errors],
                "dying": dying,
            }
        )
    )
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
def test_a_race_survives_the_death_of_a_node(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    # In a process of its own: only one cluster can be connected to from one.
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=150)
    outcome = json.loads((tmp_path / "outcome").read_text())
    assert (tmp_path / "killed").exists()
    assert (outcome["arm"], outcome["certified"]) == (BEST, True)
    assert outcome["compared"] == ARMS
    begun = {log.name: log.read_text().split() for log in folder.iterdir()}
    hit = {name for name, nodes in begun.items() if outcome["dying"] in nodes}
    assert hit
    # Other replicates take their place.
    assert 1 <= len(outcome["errors"]) <= 2


if __name__ == "__main__":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    run_race(*sys.argv[1:])
