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
    from tests.ray.experiments import tuner_of

    head = {"num_cpus": 2, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, configure_logging=False, log_to_driver=False)
    dying, killed = second.node_id, Path(folder).parent / "killed"
    assert dying in {node["NodeID"] for node in ray.nodes()}

    def train(config):
        here = ray.get_runtime_context().get_node_id()
        arm, seed = config["arm"], config["seed"]
        with Path(folder, f"{arm}_{seed}").open("a") as log:
            log.write(f"{here}\n")
        while here == dying or not killed.exists():
            # A trial on the dying node must not finish: its process may live for a second after
            # the node is gone. The others tell nothing before.
            time.sleep(0.05)
        for iteration in range(1, 10):
            time.sleep(0.15)
            noise = np.random.default_rng((arm, seed, iteration)).normal(0.0, 0.01)
            tune.report({"accuracy": 1.0 - 0.05 * abs(arm - BEST) - 0.02 / iteration + noise})

    def kill_when_it_is_in_use():
        while not any(dying in log.read_text() for log in Path(folder).iterdir()):
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)
        killed.touch()

    killer = threading.Thread(target=kill_when_it_is_in_use, daemon=True)
    killer.start()
    scheduler = IISEScheduler(
        levels=(1, 3, 9), sigma=0.01, bias=(0.02, 0.007, 0.0), epsilon=0.04, delta=0.1, measure=2
    )
    space = {
        "arm": tune.grid_search(list(range(ARMS))),
        "seed": tune.grid_search(list(range(SEEDS))),
    }
    options = {"metric": "accuracy", "mode": "max", "scheduler": scheduler}
    storage = Path(folder).parent / "storage"
    results = tuner_of(train, storage, space=space, name="race", **options).fit()
    answer = mfhpo_ray.recommendation(results)
    outcome = (answer.arm, answer.certified, answer.compared), len(results.errors), dying
    Path(folder).parent.joinpath("outcome").write_text(json.dumps(outcome))
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
def test_a_race_survives_the_death_of_a_node(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    # In a process of its own: only one cluster can be connected to from one.
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=150)
    answer, n_errors, dying = json.loads((tmp_path / "outcome").read_text())
    assert answer == [BEST, True, ARMS]
    assert any(dying in log.read_text().split() for log in folder.iterdir())
    # Other replicates take their place.
    assert 1 <= n_errors <= 2


if __name__ == "__main__":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    run_race(*sys.argv[1:])
