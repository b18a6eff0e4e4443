"""An experiment in a process of its own, to be killed (``python -m`` runs it)."""

import json
import os
import sys
import time

import ray
from ray import tune

from tests.ray.experiments import tuner_of
from tests.ray.searchers.searching import bowl, make

LOG = "evaluations.log"


def train(config):
    time.sleep(0.1)
    loss = bowl(config)
    line = json.dumps({"x": config["x"], "epochs": config["epochs"], "seed": config["seed"]})
    # Short lines that are appended are never mixed.
    log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{line}\n".encode())
    os.close(log)
    tune.report({"loss": loss})


def search():
    return make(sigma=0.05, bias=[0.1, 0.04, 0.0], seed=1)


def main(address, folder):
    ray.init(address=address, configure_logging=False, log_to_driver=False)
    space = {"log": os.path.join(folder, LOG)}
    options = {"search_alg": search(), "max_concurrent_trials": 3}
    tuner_of(train, folder, space=space, name="interrupted", **options).fit()


if __name__ == "__main__":
    main(*sys.argv[1:])
