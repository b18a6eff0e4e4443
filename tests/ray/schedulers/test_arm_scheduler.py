"""What all our schedulers share: restarts, storage that fails, trials stopped in mid-run."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from ray import tune
from ray.train._internal.storage import StorageContext
from ray.tune import PlacementGroupFactory
from ray.tune.experiment import Trial

import mfhpo_ray
from benchmarks.tune_clock import Step, simulate
from benchmarks.tune_clock.cluster import SimulatedTrial
from mfhpo.experiment import Begun, Ended
from mfhpo_ray import IISEScheduler, MFEliminationScheduler, RCUCBScheduler
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.processes import MEMORY_KEY, Limits
from tests.ray.experiments import tuner_of
from tests.ray.schedulers.races import events_of, grid, part_of


def make_trial(number, storage=None, **config):
    return SimulatedTrial(
        "simulated",
        config=config or {"arm": number},
        trial_id=f"trial_{number}",
        storage=storage,
        experiment_tag=f"{number}_",
        placement_group_factory=PlacementGroupFactory([{"CPU": 1}]),
        stub=True,
    )


def search_of():
    known = ["searcher", "total_samples", "is_finished", "set_finished", "on_trial_complete"]
    search = Mock(spec=known, searcher=SimpleNamespace(), total_samples=3)
    search.is_finished.return_value = False
    return search


def controller_of(search):
    return SimpleNamespace(
        search_alg=search,
        _running_trials=(),
        stop_trial=lambda trial: trial.set_status(Trial.TERMINATED),
    )


def gains(**options):
    scheduler = RCUCBScheduler([5.0], reward_range=(0, 1), metric="value", mode="max", **options)
    scheduler._slots.count = lambda trial: 8.0
    return scheduler


def test_a_scheduler_is_for_one_experiment(tmp_path):
    controller, scheduler = controller_of(search_of()), gains()
    scheduler.on_trial_add(controller, make_trial(1, StorageContext(str(tmp_path), "first")))
    with pytest.raises(ValueError, match="has run another experiment; make a new one"):
        scheduler.on_trial_add(controller, make_trial(2, StorageContext(str(tmp_path), "second")))


def test_restored_trials_count_for_their_own_arms_in_whatever_order_they_come():
    controller, scheduler = controller_of(search_of()), gains()
    trials = {number: make_trial(number) for number in (1, 2, 3)}
    for number in (3, 1, 2):
        scheduler.on_trial_add(controller, trials[number])
    scheduler.choose_trial_to_run(controller)
    trials[3].set_status(Trial.RUNNING)
    result = {"value": 0.9, "time_total_s": 0.5, "done": True, "trial_id": "trial_3"}
    trials[3].run_metadata.last_result = result
    scheduler.on_trial_complete(controller, trials[3], result)
    arms = scheduler._runs.configurations
    assert [arms[arm] for arm in range(3)] == [{"arm": 1}, {"arm": 2}, {"arm": 3}]
    assert scheduler._course.experiment.runner.policy.plays.sum(axis=1).tolist() == [0, 0, 1]
    assert scheduler.recommendation().config == {"arm": 3}


def test_restored_trials_that_had_begun_are_held_back_and_new_ones_are_not(tmp_path):
    storage = StorageContext(str(tmp_path), "experiment")
    over, begun, new = (make_trial(number, storage) for number in (1, 2, 3))
    claim = Begun(id="trial_1:1", order=1, configuration={"arm": 1}, levels=(0,), limit=5.0)
    end = Ended(id="trial_1:1", order=2, value=0.8, cost=0.3, level=0)
    Journal.of(over).append([part_of("trial_1", claim, end)])
    begun.run_metadata.start_time = 17.0
    search = search_of()
    controller, scheduler = controller_of(search), gains()
    for trial in (over, begun, new):
        scheduler.on_trial_add(controller, trial)
    assert [trial.status for trial in (over, begun, new)] == ["TERMINATED", "PAUSED", "PENDING"]
    # The searcher, and what limits it, do not wait for the one that is over.
    search.on_trial_complete.assert_called_once_with("trial_1", result=None)
    assert scheduler.choose_trial_to_run(controller) is begun
    assert scheduler._course.experiment.runner.policy.plays.sum(axis=1).tolist() == [1, 0, 0]


def test_a_restored_experiment_whose_trials_are_all_over_makes_a_step():
    controller, scheduler = controller_of(search_of()), gains()
    controller._set_trial_status = lambda trial, status: trial.set_status(status)
    trials = [make_trial(number) for number in (1, 2)]
    for trial in trials:
        trial.set_status(Trial.TERMINATED)
        scheduler.on_trial_add(controller, trial)
    assert not all(trial.is_finished() for trial in trials)  # else Ray returns at once
    assert scheduler.choose_trial_to_run(controller) not in trials
    assert all(trial.is_finished() for trial in trials)


def test_a_trial_that_ray_gives_up_before_it_runs_is_no_longer_waited_for():
    """Its process could not be reset; Ray does not run it again, whatever ``max_failures`` says."""
    search = search_of()
    search.searcher, search.is_finished.return_value = None, True
    controller, scheduler = controller_of(search), gains()
    trials = [make_trial(number) for number in (1, 2)]
    for trial in trials:
        trial.max_failures = 5
        scheduler.on_trial_add(controller, trial)
    first = scheduler.choose_trial_to_run(controller)
    first.set_status(Trial.PENDING)
    scheduler.on_trial_error(controller, first)
    first.set_status(Trial.ERROR)
    # Else the race would want nothing but its arm, and end without the other one.
    [other] = [trial for trial in trials if trial is not first]
    assert scheduler.choose_trial_to_run(controller) is other


@pytest.mark.parametrize(
    "make", [RCUCBScheduler, IISEScheduler, MFEliminationScheduler], ids=lambda cls: cls.__name__
)
def test_configurations_that_hold_too_much_memory_leave_the_race(make):
    options = {"limits": [5.0], "reward_range": (0, 1)} if make is RCUCBScheduler else {"max_t": 3}
    scheduler = make(memory_limit=1_000, metric="value", mode="max", **options)

    def look(limit):
        names = {run.trial.trial_id for run in scheduler._runs.of(2)}
        return lambda processes: dict.fromkeys(processes.keys() & names, 2_000)

    scheduler._slots.limits = Limits(scheduler._now, 1_000, look)
    run = simulate(scheduler, grid(3, 20), Ten(), slots=2)
    assert {trial.status for trial in run.trials} == {"TERMINATED"}
    over = {trial.config["arm"] for trial in run.trials if MEMORY_KEY in trial.last_result}
    assert over == {2}
    assert scheduler.recommendation().config != {"arm": 2}


class Ten:
    def step(self, config, iteration):
        return Step(0.1 * config["arm"], 1.0) if iteration <= 10 else None


def test_a_storage_that_fails_loses_nothing_but_time(tmp_path, monkeypatch, caplog):
    append = Journal.append
    broken = [True]

    def append_or_fail(self, parts):
        if broken[0]:
            raise RuntimeError("no such bucket")
        append(self, parts)

    monkeypatch.setattr(Journal, "append", append_or_fail)
    storage = StorageContext(str(tmp_path), "experiment")
    scheduler = RCUCBScheduler([20.0], reward_range=(0, 1), horizon=6)
    note = scheduler._note_answer

    def mended_at_the_end(urgent=True):
        broken[0] = not scheduler._closed
        note(urgent)

    scheduler._note_answer = mended_at_the_end
    simulate(scheduler, grid(2, 4), Ten(), slots=2, storage=storage)
    assert scheduler.recommendation().trials == 6
    assert "could not be written" in caplog.text
    [journal] = Journal.of_runs(storage.storage_filesystem, storage.experiment_fs_path)
    written = journal.read()
    trials = [record for name, record in written.items() if name.startswith("simulated")]
    assert sum(bool(events_of(record)) for record in trials) == 6


def test_a_running_trial_whose_arm_is_out_has_a_second_to_report():
    class Slow(Ten):
        def step(self, config, iteration):
            if config["arm"] == 0 and config["seed"] > 1 and iteration == 2:
                return Step(0.0, 1000.0)
            return super().step(config, iteration)

    scheduler = IISEScheduler(levels=(1, 9), sigma=0.001, bias=(0.0, 0.0), epsilon=0.01)
    run = simulate(scheduler, grid(3, 30), Slow(), slots=4)
    assert scheduler.recommendation().certified
    assert run.makespan < 100.0


class AfterThree(tune.Stopper):
    def __init__(self):
        self._n_results = 0

    def __call__(self, trial_id, result):
        self._n_results += 1
        return False

    def stop_all(self):
        return self._n_results >= 3


@pytest.mark.slow
def test_an_experiment_that_ray_ends_has_its_results(ray_cluster, tmp_path):
    def train(config):
        tune.report({"value": 0.1 * config["arm"]})

    space = {"arm": tune.grid_search([1, 2, 3]), "seed": tune.grid_search(list(range(9)))}
    scheduler = RCUCBScheduler([60.0], reward_range=(0, 1), metric="value", mode="max")
    options = {"scheduler": scheduler, "max_concurrent_trials": 2, "stop": AfterThree()}
    results = tuner_of(train, tmp_path, space=space, **options).fit()
    assert len(results) == 27
    ended = [result for result in results if result.metrics and "value" in result.metrics]
    assert 2 <= len(ended) <= 6
    assert mfhpo_ray.recommendation(results).config is not None
