"""Trials that hold too much memory: told by samples that the tests make, and once in real ones."""

import gc
import math
import subprocess
import sys
import time

import pytest
import ray
from ray import cloudpickle, tune
from ray.tune.experiment import Trial

from mfhpo.censored import memory
from mfhpo.experiment import Ended
from mfhpo_ray import RCUCBSearch, SpaceSearch
from mfhpo_ray.experiment.processes import CENSORED_KEY, MEMORY_KEY, Limits
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from tests.ray.experiments import tuner_of
from tests.ray.schedulers.test_pull_scheduler import Run, Search
from tests.ray.searchers.searching import ARMS, SPACE, make
from tests.ray.searchers.searching import limited as limits_of

LIMIT = 1_000
MEGABYTE = 2**20


class Samples(dict):
    """What every look sees, by the trial's name."""

    def __call__(self, processes):
        return {name: self[name] for name in processes if name in self}


def limited(folder, limit=None, search=None, **samples):
    run = Run(folder, PullScheduler(limit=limit, memory_limit=LIMIT), search)
    run.samples = Samples(samples)
    run.scheduler._limits = Limits(lambda: run.now, LIMIT, lambda limit: run.samples)
    return run


def test_a_trial_beyond_the_limit_ends_with_what_was_seen(tmp_path):
    search = Search()
    run = limited(tmp_path, search=search, small=LIMIT)
    large, small, unknown = run.add("large"), run.add("small"), run.add("unknown")
    for trial in (large, small, unknown):
        run.start(trial)
    large.update_last_result({"acc": 0.5})
    run.samples["large"] = LIMIT + 1
    search.heard.clear()
    run.turn()
    assert run.statuses() == {"large": "TERMINATED", "small": "RUNNING", "unknown": "RUNNING"}
    assert (large.last_result["acc"], large.last_result[MEMORY_KEY]) == (0.5, LIMIT + 1)
    assert CENSORED_KEY not in large.last_result
    assert search.heard[0][:2] == ("complete", "large")
    assert (large.num_failures, run.controller.get_live_trials()) == (0, {small, unknown})


def test_where_time_is_limited_it_counts_as_stopped_there(tmp_path):
    run = limited(tmp_path, limit=60.0, a=LIMIT + 1)
    trial = run.add("a")
    run.start(trial)
    assert trial.last_result[CENSORED_KEY] == 60.0


@pytest.mark.parametrize("ending", ["is over", "is saved"])
def test_a_trial_that_ends_or_is_saved_is_let_alone(tmp_path, ending):
    run = limited(tmp_path)
    trial = run.add("a")
    run.start(trial)
    if ending == "is over":
        trial.update_last_result({"acc": 0.5, "done": True})
    else:
        trial.temporary_state.saving_to = "a future"
    run.samples["a"] = LIMIT + 1
    run.turn()
    assert trial.status == Trial.RUNNING


@pytest.mark.parametrize(
    ("search", "observed"),
    [
        (make(), (None, None)),
        (
            SpaceSearch("epochs", budget=30, metric="loss", mode="min", space=SPACE),
            (None, math.inf),
        ),
        (limits_of(ARMS), (None, 2.0)),
    ],
    ids=["race", "search", "limits"],
)
def test_to_a_search_it_is_a_failure_or_what_a_larger_limit_would_not_change(search, observed):
    if not isinstance(search, RCUCBSearch):
        search.set_search_properties(None, None, SPACE)
    config = search.suggest("a")
    limit = {CENSORED_KEY: config["time_limit_s"]} if "time_limit_s" in config else {}
    result = {"loss": 1.0, MEMORY_KEY: 2_000, "done": False, "time_total_s": 0.5, **limit}
    search.on_trial_complete("a", result)
    events = search.evaluations.log.experiment.events
    [ended] = [event for event in events if isinstance(event, Ended)]
    assert (ended.value, ended.stopped_at) == observed


def test_without_a_limit_nothing_is_measured(tmp_path):
    for limit in (None, float("inf")):
        limits = Limits(memory_limit=limit, make_look=lambda limit: pytest.fail("it measures"))
        limits.enforce(Run(tmp_path).controller)


def test_what_measures_needs_none_of_our_packages():
    cloudpickle.register_pickle_by_value(memory)
    pickled = cloudpickle.dumps(memory.memory_of)
    cloudpickle.unregister_pickle_by_value(memory)
    code = "import os, pickle, sys; sys.modules.update(mfhpo=None, mfhpo_ray=None);"
    code += "print(pickle.load(sys.stdin.buffer)(os.getpid()))"
    ran = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True)
    assert int(ran.stdout) > MEGABYTE


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_children_count_and_others_take_the_place(ray_cluster, tmp_path):
    def train(config):
        if config["kind"] == "hoards":
            hoard = f"import time; held = b'1' * {300 * MEGABYTE}; time.sleep(99)"
            tune.report({"acc": 0.5})
            subprocess.run([sys.executable, "-c", hoard])
        time.sleep(1.0)  # long enough to be measured
        tune.report({"acc": 0.7})

    space = {"kind": tune.grid_search(["hoards", "is modest", "is modest"])}
    scheduler = PullScheduler(memory_limit=300 * MEGABYTE)
    options = {"scheduler": scheduler, "max_concurrent_trials": 1}
    results = tuner_of(train, tmp_path, space=space, **options).fit()
    assert (results.num_errors, results.num_terminated) == (0, 3)
    used = [result.metrics.get(MEMORY_KEY) for result in results]
    assert used[0] > 300 * MEGABYTE
    assert used[1:] == [None, None]
    assert [result.metrics["acc"] for result in results] == [0.5, 0.7, 0.7]
    # Nothing that measures is left.
    gc.collect()
    deadline = time.monotonic() + 30.0
    while samplers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not samplers()


def samplers():
    actors = ray._private.state.actors(actor_state_name="ALIVE").values()
    return [actor for actor in actors if "Sampler" in actor["ActorClassName"]]
