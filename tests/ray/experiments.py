"""Real experiments, as the tests run them."""

import signal
import subprocess
import time

from ray import tune


def tuner_of(trainable, folder, *, space=None, name=None, **options):
    """A Tuner that stores in a folder, and uses processes again; options are of ``TuneConfig``."""
    run_options = {key: options.pop(key) for key in ("stop", "failure_config") if key in options}
    if "search_alg" in options:
        options = {"scheduler": options["search_alg"].scheduler(), "num_samples": -1, **options}
    return tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(**{"reuse_actors": True, **options}),
        run_config=tune.RunConfig(name=name, storage_path=str(folder), verbose=0, **run_options),
    )


def kill_driver(command, is_far_enough, **options):
    """Start a driver in a process of its own, and kill it once it is far enough."""
    driver = subprocess.Popen(command, **options)
    deadline = time.monotonic() + 120.0
    while not is_far_enough():
        assert driver.poll() is None, "the race was over before it was killed"
        assert time.monotonic() < deadline, "too slow"
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
