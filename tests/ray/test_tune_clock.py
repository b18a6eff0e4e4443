"""The benchmarks' virtual Tune: what schedulers and searchers see and when, and what it costs."""

from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler, HyperBandScheduler

from benchmarks.tune_clock import ReplayedCurves, Step, simulate
from tests.ray.experiments import tuner_of


class Script:
    def __init__(self, step):
        self._step = step

    def step(self, config, iteration):
        return self._step(config["arm"], iteration)


class Logged:
    """Schedulers that note what Tune tells them, in a list that copies of them share."""

    log: ClassVar = []

    def note(self, what, trial, *told):
        self.log.append((what, trial.config["arm"], trial.status, *told))

    def on_trial_add(self, tune_controller, trial):
        self.note("add", trial)
        super().on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller, trial, result):
        told = (result["training_iteration"], result["value"], result["iterations_since_restore"])
        decision = super().on_trial_result(tune_controller, trial, result)
        self.note("result", trial, *told, decision)
        return decision

    def on_trial_complete(self, tune_controller, trial, result):
        self.note("complete", trial, result.get("training_iteration"), result.get("value"))
        super().on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller, trial):
        self.note("remove", trial)
        super().on_trial_remove(tune_controller, trial)

    def on_trial_error(self, tune_controller, trial):
        self.note("error", trial)
        super().on_trial_error(tune_controller, trial)


class Recorder(Logged, FIFOScheduler):
    """Pauses each trial after `pause_at`, and resumes when all have paused."""

    def __init__(self, pause_at=None):
        super().__init__()
        self.log = []
        self.pause_at = pause_at
        self.added = []

    def calls(self):
        return [(what, arm, *rest[1:2]) for what, arm, *rest in self.log]

    def on_trial_add(self, tune_controller, trial):
        self.added.append(trial)
        super().on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller, trial, result):
        super().on_trial_result(tune_controller, trial, result)
        return self.PAUSE if result["training_iteration"] == self.pause_at else self.CONTINUE

    def choose_trial_to_run(self, tune_controller):
        if all(trial.status in (Trial.PAUSED, Trial.TERMINATED) for trial in self.added):
            self.pause_at = None
        paused = [trial for trial in self.added if trial.status == Trial.PAUSED]
        return paused[0] if paused and self.pause_at is None else None


class Scripted(FIFOScheduler):
    def __init__(self, on_result=None, choose=None):
        super().__init__()
        self._on_result = on_result
        self._choose = choose

    def on_trial_result(self, tune_controller, trial, result):
        decision = self._on_result and self._on_result(tune_controller, trial)
        return decision or self.CONTINUE

    def choose_trial_to_run(self, tune_controller):
        choose = self._choose or super().choose_trial_to_run
        return choose(tune_controller)


def arms(count):
    return [{"arm": arm} for arm in range(count)]


def reached(run):
    return [trial.last_result.get("training_iteration", 0) for trial in run.trials]


TABLE = [
    [0.50, 0.60, 0.70, 0.80],  # the first: nothing to compare with
    [0.40, 0.90, 0.90, 0.90],  # below the median of {.5}
    [0.45, 0.55, 0.90, 0.90],  # the median of {.5, .4}; then below that of {.6}
    [0.90, 0.95, 0.96, 0.97],
]


def test_asha_stops_at_its_rungs():
    scheduler = AsyncHyperBandScheduler(max_t=4, grace_period=1, reduction_factor=2)
    run = simulate(scheduler, arms(4), ReplayedCurves(TABLE, seconds=10.0), slots=1)
    assert reached(run) == [4, 1, 2, 4]
    assert {trial.status for trial in run.trials} == {Trial.TERMINATED}
    assert (run.iterations, run.slot_seconds, run.makespan) == (11, 110.0, 110.0)
    rungs = [dict(rung) for _, rung in scheduler._brackets[0]._rungs]
    first, second, third, fourth = (trial.trial_id for trial in run.trials)
    assert rungs[:2] == [{first: 0.8, fourth: 0.97}, {first: 0.6, third: 0.55, fourth: 0.95}]
    assert rungs[2:] == [{first: 0.5, second: 0.4, third: 0.45, fourth: 0.9}]


def test_asha_sees_results_in_the_order_of_time():
    # Two slots, the first arm slow: arm 1 reports first, and is not compared with arm 0.
    curves = ReplayedCurves(TABLE, seconds=[[30.0], [10.0], [10.0], [10.0]])
    scheduler = AsyncHyperBandScheduler(max_t=4, grace_period=1, reduction_factor=2)
    run = simulate(scheduler, arms(4), curves, slots=2)
    # Until 60, arm 0 (.6 at iteration 2) and then arm 2 (.55) fall below the .9 of arm 1.
    assert reached(run) == [2, 4, 2, 4]
    assert [(event.seconds, event.kind) for event in run.events if event.kind != "result"] == [
        *((0.0, "added"),) * 4,
        *((0.0, "started"),) * 2,
        (40.0, "terminated"),
        (40.0, "started"),
        (60.0, "terminated"),
        (60.0, "terminated"),
        (60.0, "started"),
        (100.0, "terminated"),
    ]
    assert run.slot_seconds == 60.0 + 40.0 + 20.0 + 40.0


@pytest.mark.parametrize(
    ("checkpoints", "iterations", "seconds"),
    [(True, [1, 2, 3, 4], 40.0), (False, [1, 2, 1, 2, 3, 4], 60.0)],
)
def test_a_paused_trial_goes_on_from_its_checkpoint_or_anew(checkpoints, iterations, seconds):
    curves = ReplayedCurves(TABLE, seconds=10.0)
    run = simulate(Recorder(pause_at=2), arms(2), curves, slots=1, checkpoints=checkpoints)
    for trial in run.trials:
        assert [event.iteration for event in run.history(trial.trial_id)] == iterations
        assert trial.last_result["time_total_s"] == 40.0
        assert trial.last_result["time_since_restore"] == (20.0 if checkpoints else 40.0)
        assert trial.has_checkpoint() is checkpoints
    assert run.slot_seconds == 2 * seconds
    # Paused trials hold no slot.
    started = [event.seconds for event in run.events if event.kind == "started"]
    assert started == [0.0, 20.0, 40.0, 40.0 + seconds - 20.0]


def test_a_process_that_is_killed_is_an_error_unless_its_trial_is_stopped():
    def kill_second(stop, controller, trial):
        other = controller.get_trials()[1]
        if other.status == Trial.RUNNING:
            process = other.temporary_state.ray_actor
            if stop:
                controller.stop_trial(other)
            process.kill()

    steps = {0: 10.0, 1: 100.0, 2: 10.0}
    curves = Script(lambda arm, i: Step(0.0, steps[arm]) if i <= 2 else None)
    for stop, status in ((False, Trial.ERROR), (True, Trial.TERMINATED)):
        run = simulate(Scripted(partial(kill_second, stop)), arms(3), curves, slots=2)
        assert run.trials[1].status == status
        # The third trial has the slot at once.
        assert [event.seconds for event in run.events if event.kind == "started"] == [0, 0, 10.0]
        assert run.slot_seconds == 20.0 + 10.0 + 20.0


def test_the_stopping_criterion_skips_the_last_result_and_a_return_repeats_it():
    stopped, returned = Recorder(), Recorder()
    simulate(stopped, arms(1), ReplayedCurves(TABLE), max_t=2)
    assert stopped.calls() == [("add", 0), ("result", 0, 1), ("complete", 0, 2)]
    simulate(returned, arms(1), ReplayedCurves([[0.1, 0.2]]))
    assert returned.calls()[1:] == [("result", 0, 1), ("result", 0, 2), ("complete", 0, 2)]


class LoggedASHA(Logged, AsyncHyperBandScheduler):
    pass


class LoggedHyperBand(Logged, HyperBandScheduler):
    pass


def in_tune(scheduler, folder, max_t, fails):
    class Training(tune.Trainable):
        def setup(self, config):
            self.done = 0

        def step(self):
            self.done += 1
            if (self.config["arm"], self.done) == fails:
                raise RuntimeError("as told")
            return {"value": TABLE[self.config["arm"]][self.done - 1]}

        def save_checkpoint(self, checkpoint_dir):
            (Path(checkpoint_dir) / "done").write_text(str(self.done))

        def load_checkpoint(self, checkpoint_dir):
            self.done = int((Path(checkpoint_dir) / "done").read_text())

        def reset_config(self, new_config):
            self.done = 0
            return True

    return tuner_of(
        tune.with_resources(Training, {"CPU": 4}),
        folder,
        space={"arm": tune.grid_search([0, 1, 2, 3])},
        scheduler=scheduler,
        metric="value",
        mode="max",
        stop={"training_iteration": max_t},
        failure_config=tune.FailureConfig(max_failures=1),
    ).fit()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "fails"),
    [
        (lambda: LoggedASHA(max_t=9, reduction_factor=2), (0, 2)),
        (lambda: LoggedHyperBand(max_t=4, reduction_factor=3), None),
    ],
    ids=["ASHA and a failure", "HyperBand"],
)
def test_schedulers_are_told_the_same_by_tune_itself(ray_cluster, tmp_path, make, fails):
    Logged.log.clear()
    results = in_tune(make(), tmp_path, 4, fails)
    in_tune_itself = list(Logged.log)
    Logged.log.clear()

    def step(arm, iteration):
        if iteration > 4:
            return None
        return Step(TABLE[arm][iteration - 1], 1.0, failed=(arm, iteration) == fails)

    options = {"max_t": 4, "checkpoints": True, "max_failures": 1}
    run = simulate(make(), arms(4), Script(step), slots=1, **options)
    assert Logged.log == in_tune_itself
    assert len(in_tune_itself) > 15
    trials = {trial.config["arm"]: trial for trial in run.trials}
    for result in results:
        trial = trials[result.config["arm"]]
        assert result.metrics.get("value") == trial.last_result.get("value")
        assert (result.error is not None) is (trial.status == Trial.ERROR)
    best, value = run.best()
    found = results.get_best_result()
    assert (found.config["arm"], found.metrics["value"]) == (best.config["arm"], value)
