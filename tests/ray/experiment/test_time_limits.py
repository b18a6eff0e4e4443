"""When a trial's time is up, told by a clock that the tests move."""

import pickle
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.tune.experiment import Trial

from mfhpo_ray.experiment.processes import CENSORED_KEY, Limits


class Process:
    killed = False

    def kill(self):
        self.killed = True


class Loop:
    """A controller's loop with its trials, and a clock: every turn lets some seconds pass."""

    def __init__(self):
        self.now = 1000.0
        self.limits = Limits(clock=lambda: self.now)
        self.trials = []
        self.stopped = {}

    def add(self, limit):
        trial = Trial("stub", stub=True, config={"lr": 0.1})
        trial._default_result_or_future = {"pid": 17, "config": trial.config}
        self.trials.append(trial)
        self.limits.set(trial, limit)
        return trial

    def start(self, trial):
        process = Process()
        trial.temporary_state.ray_actor = process
        trial.set_status(Trial.RUNNING)
        self.turn()
        return process

    def turn(self, seconds=0.0):
        self.now += seconds
        self.limits.enforce(self)

    def report(self, trial, trained, total=None):
        result = {"acc": 0.5, "time_since_restore": trained, "time_total_s": total or trained}
        stop = self.limits.exceeded(trial, result)
        trial.update_last_result({**result, "done": stop})
        return stop

    # What Limits asks of a controller.

    _trial_to_actor, _started_actors = {}, set()

    @property
    def _running_trials(self):
        return [trial for trial in self.trials if trial.status == Trial.RUNNING]

    def stop_trial(self, trial):
        self.limits.settle(trial)
        self.stopped[trial.trial_id] = dict(trial.last_result)
        trial.set_status(Trial.TERMINATED)


def begun(limit):
    loop = Loop()
    trial = loop.add(limit)
    return loop, trial, loop.start(trial)


def test_a_trial_that_reports_too_late_is_told_to_stop_and_keeps_its_process():
    loop, trial, process = begun(2.0)
    loop.now += 2.3
    assert loop.report(trial, 2.2, 7.0)
    loop.turn(0.1)  # its checkpoint is being saved
    loop.stop_trial(trial)
    assert not process.killed
    assert loop.stopped[trial.trial_id][CENSORED_KEY] == 2.0
    assert loop.limits.seconds(trial) == pytest.approx(2.2)


def test_trials_that_end_together_with_another_are_no_error():
    loop = Loop()
    first, second = loop.add(1.0), loop.add(1.0)
    loop.start(first)
    loop.start(second)
    stop = loop.stop_trial

    def stop_both(trial):
        for each in (first, second):
            stop(each)
            loop.limits.forget(each)

    loop.stop_trial = stop_both
    loop.turn(2.0)
    assert {first.status, second.status} == {Trial.TERMINATED}


@given(
    limit=st.floats(0.5, 3.0),
    steps=st.lists(
        st.tuples(st.sampled_from(["turn", "report", "pause"]), st.floats(0.0, 1.0)), max_size=30
    ),
)
def test_a_trial_runs_exactly_while_its_own_seconds_are_within_its_limit(limit, steps):
    loop, trial, _ = begun(limit)
    trained, unheard = 0.0, 0.0  # what it has reported, and what has passed since
    for what, seconds in steps:
        if abs(trained + unheard + seconds - limit) < 1e-6:
            return
        if what == "turn":
            unheard += seconds
            loop.turn(seconds)
            expected = trained + unheard <= limit
        elif what == "report":
            trained += unheard + seconds
            loop.now += 1.5 * seconds  # the way to the driver is slow
            unheard = 0.0
            expected = trained <= limit
            assert loop.report(trial, trained) is not expected
        else:
            trial.set_status(Trial.PAUSED)
            loop.turn(seconds)
            loop.start(trial)
            trained, unheard, expected = 0.0, 0.0, True
        if not expected:
            assert what == "report" or trial.status == Trial.TERMINATED
            return
        assert trial.status == Trial.RUNNING
        assert loop.limits.seconds(trial) == pytest.approx(trained + unheard)


def test_limits_can_be_pickled():
    trial = Trial("stub", stub=True)
    limits = Limits(memory_limit=1_000)
    limits.set(trial, 3.0)
    limits.enforce(Loop())
    copy = pickle.loads(pickle.dumps(limits))
    assert copy._memory_limit == 1_000
    assert not copy.exceeded(trial, {"time_since_restore": 2.9})
    assert copy.exceeded(trial, {"time_since_restore": 3.1})


def test_the_mark_reaches_the_state_that_ray_saves():
    loop, trial, _ = begun(2.0)
    loop.report(trial, 0.0, 0.1)
    assert CENSORED_KEY not in trial.run_metadata.get_json_state()  # and is kept from now on
    loop.turn(2.1)
    assert CENSORED_KEY in trial.run_metadata.get_json_state()


def test_a_failed_attempt_is_paid_but_for_what_its_checkpoint_holds():
    loop = Loop()
    with patch.object(Trial, "latest_checkpoint_result", None):
        trial = loop.add(60)
        loop.start(trial)
        loop.turn(12.0)
        assert loop.limits.seconds_of_failed_attempt(trial) == 12.0
    saved = SimpleNamespace(metrics={"time_total_s": 10.0})
    with patch.object(Trial, "latest_checkpoint_result", saved):
        assert loop.limits.seconds_of_failed_attempt(trial) == 2.0
        # The next run goes on from there.
        loop.limits.set(trial, 60)
        assert loop.limits.seconds_of_failed_attempt(trial) == 0.0
        trial.set_status(Trial.PENDING)
        loop.turn()
        loop.start(trial)
        loop.turn(5.0)
        assert loop.limits.seconds_of_failed_attempt(trial) == 5.0
        assert loop.limits.seconds(trial) == 15.0
        # Stopped at its limit, it has still run before.
        loop.turn(60.0)
        assert trial.status == Trial.TERMINATED
        assert loop.limits.seconds(trial) == 75.0
