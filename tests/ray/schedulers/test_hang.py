"""Trials that hang, in real processes: they end at their limits, and others take their places."""

import ctypes
import signal
import subprocess
import time

import pytest
from ray import tune

from mfhpo_ray.experiment.processes import CENSORED_KEY
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from tests.optuna.time_limits.processes import alive, until
from tests.ray.experiments import tuner_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

LIMIT = 1.0
LONG = 100  # seconds, and more than any of these tests may take


class Watched(PullScheduler):
    """Notes how long slots were held after the ends of their trials; may be away for a while.

    It is away once, from when a trial of this kind is timed, and says so in a file.
    """

    def __init__(self, away=None):
        super().__init__(limit=LIMIT)
        self.held = {}
        self._away = away
        self._is_timed = False
        self._leaving = {}

    def on_trial_complete(self, tune_controller, trial, result):
        super().on_trial_complete(tune_controller, trial, result)
        actor = tune_controller._trial_to_actor[trial]
        self._leaving[trial.config["kind"]] = actor, time.monotonic()

    def choose_trial_to_run(self, tune_controller):
        controller = tune_controller._tune_controller
        for kind, (actor, since) in list(self._leaving.items()):
            if actor not in controller._actor_manager.live_actors:
                self.held[kind] = time.monotonic() - since
                del self._leaving[kind]
        if self._is_timed and not self._away.exists():
            self._away.touch()
            time.sleep(2.0 * LIMIT)
        super().choose_trial_to_run(tune_controller)
        running = {trial.config["kind"] for trial in controller._running_trials}
        self._is_timed = "while_the_driver_is_away" in running


def steps():
    """A class whose steps hang; made in a function, so that other processes need not import it."""

    class Steps(tune.Trainable):
        def step(self):
            kind = self.config["kind"]
            if kind == "in_a_loop":
                while True:
                    pass
            if kind == "in_c_code":
                ctypes.PyDLL(None).sleep(LONG)  # which holds Python's lock meanwhile
            if kind == "deaf_to_signals":
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                time.sleep(LONG)
            if kind == "after_a_report" and self.iteration:
                time.sleep(LONG)
            if kind == "while_reporting":
                time.sleep(0.05)
            return {"acc": 0.5, "done": kind == "not_at_all"}

        def reset_config(self, new_config):
            return True

        def save_checkpoint(self, checkpoint_dir):
            pass

        def load_checkpoint(self, checkpoint):
            pass

    return Steps


KILLED = ["in_a_loop", "in_c_code", "deaf_to_signals", "after_a_report"]
KINDS = [*KILLED, "while_reporting", "not_at_all"]


def test_trials_that_hang_end_at_their_limits_and_others_take_their_places(ray_cluster, tmp_path):
    """One run of all kinds in four slots, whose actors are used again."""
    scheduler = Watched()
    space = {"kind": tune.grid_search(KINDS)}
    results = tuner_of(steps(), tmp_path, space=space, scheduler=scheduler).fit()
    assert (results.num_errors, results.num_terminated) == (0, len(KINDS))
    metrics = {result.config["kind"]: result.metrics for result in results}
    censored = {kind: metrics[kind].get(CENSORED_KEY) for kind in KINDS}
    assert censored == {**dict.fromkeys(KINDS, LIMIT), "not_at_all": None}
    # What was reported before is kept.
    reported = {kind for kind in KINDS if "acc" in metrics[kind]}
    assert reported == {"after_a_report", "while_reporting", "not_at_all"}
    assert metrics["while_reporting"]["time_total_s"] > LIMIT
    # Slots are free soon (in .02 s where nothing else runs); no killed process is left or used.
    assert max(scheduler.held[kind] for kind in KILLED) < 10.0
    killed = {metrics[kind]["pid"] for kind in KILLED}
    assert len(killed) == len(KILLED)
    assert metrics["not_at_all"]["pid"] not in killed
    assert not any(alive(process) for process in killed)
    # What Ray has saved says the same.
    restored = tune.Tuner.restore(results.experiment_path, trainable=steps()).get_results()
    assert restored.num_errors == 0
    for result in restored:
        assert result.metrics.get(CENSORED_KEY) == censored[result.config["kind"]]


def test_a_function_is_killed_with_its_children_and_a_busy_driver_is_not_charged(
    ray_cluster, tmp_path
):
    started, away = tmp_path / "started", tmp_path / "away"

    def train(config):
        if config["kind"] == "hangs":
            # A shell with a child of its own.
            shell = subprocess.Popen(["sh", "-c", f"sleep {LONG} & echo $!; wait"], stdout=-1)
            started.write_text(f"{shell.pid} {int(shell.stdout.readline())}")
            time.sleep(LONG)
        # The driver hears of it when more than the limit has passed.
        while not away.exists():
            time.sleep(0.01)
        tune.report({"acc": 0.5})

    scheduler = Watched(away)
    space = {"kind": tune.grid_search(["hangs", "while_the_driver_is_away"])}
    options = {"scheduler": scheduler, "reuse_actors": False}
    results = tuner_of(train, tmp_path, space=space, **options).fit()
    assert results.num_errors == 0
    assert away.exists()
    censored = {result.config["kind"]: result.metrics.get(CENSORED_KEY) for result in results}
    assert censored == {"hangs": LIMIT, "while_the_driver_is_away": None}
    children = [int(process) for process in started.read_text().split()]
    assert len(children) == 2
    assert until(lambda: not any(map(alive, children)))
