"""The companion of the searchers, below Tune's own controller, with trials that have no process."""

import math
from unittest.mock import patch

import pytest
from ray import cloudpickle
from ray.air.constants import EXPR_ERROR_PICKLE_FILE
from ray.exceptions import RayActorError
from ray.train._internal.storage import StorageContext
from ray.tune.execution.placement_groups import PlacementGroupFactory
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.search import ConcurrencyLimiter, Repeater, Searcher, SearchGenerator
from ray.tune.stopper import (
    CombinedStopper,
    FunctionStopper,
    MaximumIterationStopper,
    NoopStopper,
    TimeoutStopper,
)

from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.processes import CENSORED_KEY
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler


def noting(what, kept=lambda told: told):
    def note(self, *told, **named):
        self.heard.append((what, *map(kept, told), *map(kept, named.values())))

    return note


class Search(Searcher):
    def __init__(self):
        super().__init__(metric="acc", mode="max")
        self.heard = []
        self.results, self.limits, self.failed, self.asked = {}, {}, set(), []
        self.finished, self.stops_surplus = False, True
        self.n_steps = 0

    def suggest(self, trial_id):
        return {"lr": 0.1}

    @property
    def evaluations(self):
        return self

    def repeats(self, trial):
        self.asked.append(trial.trial_id)
        return trial.trial_id in self.failed

    def completed(self, trial_id):
        return self.results.get(trial_id)

    def limit_of(self, trial_id):
        return self.limits.get(trial_id)

    def lose_awaited(self):
        self.n_steps += 1

    connect = noting("connect", type)
    watch, note_seconds = noting("watch"), noting("seconds")
    owe, warn_of_stop = noting("owe"), noting("stop")
    on_trial_complete, lose, discard = noting("complete"), noting("lose"), noting("discard")


class Run:
    """An experiment whose trials are set running by hand, and a clock that is moved by hand."""

    def __init__(self, folder, scheduler=None, search=None, stopper=None):
        self.now = 0.0
        self.scheduler = scheduler or PullScheduler()
        self.scheduler._clock = lambda: self.now
        self.storage = StorageContext(str(folder), "experiment")
        self.controller = TuneController(
            search_alg=SearchGenerator(search or Search()),
            scheduler=self.scheduler,
            storage=self.storage,
            stopper=stopper,
        )

    def add(self, name, status=Trial.PENDING, **config):
        trial = Trial(
            "stub",
            stub=True,
            trial_id=name,
            config=config,
            storage=self.storage,
            placement_group_factory=PlacementGroupFactory([{"CPU": 2}, {"CPU": 1, "GPU": 0.5}]),
        )
        trial.set_status(status)
        self.controller.add_trial(trial)
        return trial

    def start(self, trial):
        self.controller._set_trial_status(trial, Trial.RUNNING)
        trial._default_result_or_future = {"pid": 17}
        self.turn()

    def turn(self, seconds=0.0):
        self.now += seconds
        assert self.scheduler.choose_trial_to_run(self.controller._wrapped()) is None

    def report(self, trial, **result):
        return self.scheduler.on_trial_result(self.controller._wrapped(), trial, result)

    def statuses(self):
        return {trial.trial_id: trial.status for trial in self.controller.get_trials()}


def test_limits_come_from_the_configuration_or_else_the_scheduler(tmp_path):
    run = Run(tmp_path, PullScheduler(limit=10))
    for name, limit in (("own", 5), ("none", None), ("infinite", math.inf)):
        run.start(run.add(name, time_limit_s=limit))
    run.start(run.add("given"))
    for expected in ({"none", "infinite", "given"}, {"none", "infinite"}):
        run.turn(7.0)
        statuses = run.statuses().items()
        assert {name for name, status in statuses if status == "RUNNING"} == expected


def test_of_the_limits_of_search_and_scheduler_the_smaller_counts(tmp_path):
    search = Search()
    search.limits = {"small": 5.0, "large": 20.0}
    run = Run(tmp_path, PullScheduler(limit=10), search)
    for name in ("small", "large", "none"):
        run.start(run.add(name, lr=0.1))
    for expected in ({"large", "none"}, set()):
        run.turn(7.0)
        statuses = run.statuses().items()
        assert {name for name, status in statuses if status == "RUNNING"} == expected


def test_the_searcher_hears_that_a_trial_is_censored(tmp_path):
    search = Search()
    run = Run(tmp_path, PullScheduler(limit=3), search)
    trial = run.add("a", lr=0.1)
    run.start(trial)
    search.heard.clear()
    run.turn(3.1)
    expected = {"trial_id": "a", "pid": 17, "config/lr": 0.1, CENSORED_KEY: 3.0}
    assert search.heard == [("complete", "a", expected, False)]
    assert run.controller.get_live_trials() == set()
    assert trial.num_failures == 0


def test_a_searcher_is_connected_once_and_hears_of_its_trials(tmp_path):
    search = Search()
    run = Run(tmp_path, search=ConcurrencyLimiter(Repeater(search, repeat=1), 2))
    run.add("a")
    run.add("b")
    run.turn()
    run.turn()
    assert search.n_steps == 2  # what no trial shows is lost
    assert search.heard == [("connect", Journal), ("watch", "a"), ("watch", "b")]


TIMEOUT, THREE_EPOCHS = TimeoutStopper(60), MaximumIterationStopper(3)
FUNCTION = FunctionStopper(lambda trial_id, result: False)


@pytest.mark.parametrize(
    ("stopper", "warnings"),
    [
        (None, []),
        (TIMEOUT, []),
        (THREE_EPOCHS, [("stop", "RunConfig(stop=MaximumIterationStopper)")]),
        (FUNCTION, [("stop", "RunConfig(stop=FunctionStopper)")]),
        (CombinedStopper(FUNCTION, TIMEOUT), [("stop", "RunConfig(stop=FunctionStopper)")]),
        (CombinedStopper(TIMEOUT, NoopStopper()), []),
    ],
)
def test_a_stopper_of_the_run_config_is_warned_of_once(tmp_path, stopper, warnings):
    search = Search()
    run = Run(tmp_path, search=search, stopper=stopper)
    run.add("a")
    run.add("b")
    assert [heard for heard in search.heard if heard[0] == "stop"] == warnings


def test_what_had_ended_before_a_restart_is_no_pull_under_way(tmp_path):
    search = Search()
    run = Run(tmp_path, search=search)
    for status in (Trial.TERMINATED, Trial.ERROR, Trial.PENDING):
        run.add(status, status)
    run.turn()
    assert search.heard == [
        ("connect", Journal),
        ("discard", "TERMINATED"),
        ("discard", "ERROR"),
        ("watch", "PENDING"),
    ]


def test_a_pull_that_the_journal_has_is_not_run_again(tmp_path):
    search = Search()
    search.results["a"] = {"acc": 0.7, "training_iteration": 4, "trial_id": "elsewhere"}
    run = Run(tmp_path, search=search)
    trial = run.add("a", lr=0.1)
    assert trial.status == Trial.TERMINATED
    expected = {"acc": 0.7, "training_iteration": 4, "trial_id": "a", "config": {"lr": 0.1}}
    assert trial.last_result == expected
    flat = {"acc": 0.7, "training_iteration": 4, "trial_id": "a", "config/lr": 0.1}
    assert search.heard == [("connect", Journal), ("complete", "a", flat, False)]
    controller = run.controller
    assert not controller.get_live_trials()
    assert not [*controller._pending_trials, *controller._pending_trials_list]
    assert controller._stopped_trials == {trial}
    controller.search_alg._finished = True
    assert controller.is_finished()


@pytest.mark.parametrize("known", [{"a": {}}, {}])
def test_a_pull_that_failed_is_run_again_if_tune_is_told_to(known, tmp_path):
    """The journal knows nothing about it where it has another name now (restart_errored)."""
    search = Search()
    search.results, search.failed = known, {"a"}
    run = Run(tmp_path, search=search)
    assert run.add("a").status == Trial.PENDING
    assert search.asked == ["a"]
    assert [heard[0] for heard in search.heard] == ["connect", "watch"]


def test_a_pull_that_was_restored_as_complete_makes_room_for_another(tmp_path):
    search = Search()
    limiter = ConcurrencyLimiter(search, max_concurrent=1)
    assert limiter.suggest("a") is not None  # in the state that Ray saved
    search.results["a"] = {"acc": 0.7}
    Run(tmp_path, search=limiter).add("a")
    assert limiter.suggest("b") is not None


def test_when_the_race_is_over_surplus_pulls_are_given_up(tmp_path):
    search = Search()
    run = Run(tmp_path, PullScheduler(limit=9), search)
    running, waiting = run.add("running"), run.add("waiting", lr=0.1)
    run.start(running)
    search.heard.clear()
    run.turn()
    assert search.heard == []
    search.finished = True
    run.turn(8.0)
    assert {trial.status for trial in (running, waiting)} == {Trial.TERMINATED}
    for name in ("running", "waiting"):
        assert [what[0] for what in search.heard if what[1] == name] == ["discard", "complete"]
    assert CENSORED_KEY not in running.last_result
    assert waiting.last_result == {"trial_id": "waiting", "config": {"lr": 0.1}}
    heard = len(search.heard)
    run.turn()
    assert len(search.heard) == heard
    # They are run to their ends where the searcher wants it.
    search.stops_surplus = False
    run = Run(tmp_path / "on", PullScheduler(limit=9), search)
    running = run.add("running")
    run.start(running)
    run.turn(8.0)
    assert running.status == Trial.RUNNING


LOST, RAISED = RayActorError(), ValueError("x")


@pytest.mark.parametrize(
    ("error", "status", "max_failures", "heard"),
    [
        (LOST, Trial.RUNNING, 0, [("seconds", "a", 3.0), ("lose", "a")]),
        (RAISED, Trial.RUNNING, 0, [("seconds", "a", 3.0)]),
        # Ray sets it to ERROR before it queues it again.
        (LOST, Trial.ERROR, 5, [("owe", "a", 3.0)]),
        # It does not queue it again if it is waiting, as while its process is reset.
        (LOST, Trial.PENDING, 5, [("seconds", "a", 3.0), ("lose", "a")]),
    ],
)
def test_a_trial_whose_process_was_gone_is_lost_and_has_not_failed(
    tmp_path, error, status, max_failures, heard
):
    search = Search()
    run = Run(tmp_path, search=search)
    trial = run.add("a")
    run.start(trial)
    trial.max_failures = max_failures
    folder = tmp_path / "trial"
    folder.mkdir()
    (folder / EXPR_ERROR_PICKLE_FILE).write_bytes(cloudpickle.dumps(error))
    trial.run_metadata.pickled_error_filename = EXPR_ERROR_PICKLE_FILE
    trial.run_metadata.num_failures = 1
    trial.storage.trial_dir_name = "trial"
    run.now += 3.0
    search.heard.clear()
    trial.set_status(status)
    with patch.object(Trial, "local_path", property(lambda self: str(folder))):
        run.scheduler.on_trial_error(run.controller, trial)
    assert search.heard == heard
