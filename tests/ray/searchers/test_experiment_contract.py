"""Ray's searchers do what the engine says, on a simulated cluster."""

import itertools
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar
from unittest import mock

from pyarrow.fs import LocalFileSystem
from ray import tune

from benchmarks.tune_clock import Step, simulate
from mfhpo_ray import MFSearch, SpaceSearch
from mfhpo_ray.certification import ShortlistSearch
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.processes import CENSORED_KEY
from mfhpo_ray.searchers.candidates import Parameters
from tests.contract.experiment_contract import Host, conformance, settings_of_finalists

_LONGEST = 5000.0  # virtual seconds after which nothing but what hangs is left
_MOST = 2000  # trials of a run
_CUT = 2  # iterations after which a trial is stopped
_ID = "conformance_id"


class DriverDied(Exception):
    """The driver is killed."""


class Training:
    """A trial reports the outcome of its evaluation in a world, and returns.

    One that evaluates something else goes on until it is stopped behind the search's back.
    """

    def __init__(self, world):
        self.world = world

    def step(self, config, iteration):
        outcome = self.world.outcomes[config[_ID]]
        if iteration > 1 and outcome.instead is None:
            return None
        fails = outcome.value is None or outcome.dies
        return Step(math.nan if fails else outcome.value, outcome.seconds, fails)


class Searchers(Host):
    cuts = "RunConfig(stop={'training_iteration': 2}) stopped trials"
    cannot: ClassVar = {
        "equal entries": "a list of arms with equal ones is refused",
        "the worst value": "infinity is a failure, as Ray's users are told",
    }

    def run(self, task, world):
        with TemporaryDirectory() as folder:
            journal = Journal(LocalFileSystem(), f"{folder}/journal")
            with (
                mock.patch.object(Journal, "of", return_value=journal),
                mock.patch("mfhpo_ray.schedulers.pull_scheduler.was_lost", was_lost_in(world)),
            ):
                search, again = self.searcher(task), []
                while True:
                    try:
                        return self.answer(search, task, world, f"{folder}/search", again)
                    except DriverDied:
                        search, again = self.restarted(task, world, journal, f"{folder}/search")

    def restarted(self, task, world, journal, saved):
        """Return what goes on from what was saved and from the journal, and trials to run again.

        Tune runs unfinished trials again, or it knows nothing about them.
        """
        search = self.searcher(task)
        if Path(saved).exists():
            search.restore(saved)
        search.connect(journal)
        # The simulation hands its space over after this, but Tune does before.
        search.evaluations.leave_run = lambda: None
        if world.n_ended % 2:
            return search, world.open
        search.evaluations.lose_awaited()
        for id in sorted(world.open):
            world.lose(id)
        return search, []

    def answer(self, search, task, world, saved, again):
        options = {"slots": task.workers, "max_concurrent_trials": task.workers, "max_t": _CUT}
        options |= {"time_budget": _LONGEST, "poll_seconds": None if task.limit else 1000.0}
        watch(search, task, world, saved)
        new = (f"trial_{world.n_ended}_{number}" for number in itertools.count())
        names = dict(enumerate(itertools.chain(again, itertools.islice(new, _MOST)), start=1))
        with mock.patch("benchmarks.tune_clock.search._name", names.__getitem__):
            simulate(search.scheduler(task.limit), search, Training(world), **options)
        return search.recommendation()

    def searcher(self, task):
        tune_options = {"metric": "value", "mode": "max", "seed": task.seed}
        options = {"epsilon": task.epsilon, "budget": task.budget}
        options["max_failures"] = task.max_failures
        if task.certifies:
            tune_options["seed_key"] = "seed"
            return ShortlistSearch(task.shortlist, options, "split", **tune_options)
        options |= {"sigma": task.sigma, "replicate": "split" if task.shares else None}
        if task.space is not None:
            space = {name: tune.choice(values) for name, values in task.space.items()}
            options |= {"space": space, "certify_share": 0.5}
            return SpaceSearch(task.fidelity, **tune_options, **options)
        arms = list(task.candidates)
        return MFSearch(task.fidelity, arms, bias=task.bias, **tune_options, **options)

    def settings_of(self, task):
        return settings_of_finalists(task) or super().settings_of(task)

    def space_of(self, task):
        space = {name: tune.choice(values) for name, values in task.space.items()}
        return Parameters(space, {}, None)

    def configuration_of(self, answer):
        return {name: value for name, value in answer.params.items() if name == "x"}


def watch(search, task, world, saved):
    """Let a world know what is suggested and completed."""
    suggest, complete = search.suggest, search.on_trial_complete

    configs = {id: begun[0] | {"epochs": begun[1]} for id, begun in world.begun.items()}

    def suggested(trial_id):
        if trial_id in configs:
            return {**configs[trial_id], _ID: trial_id}
        config = suggest(trial_id)
        if not isinstance(config, dict):
            return config
        replicate = config["split" if task.shares else "seed"]
        world.begin(trial_id, {"x": config["x"]}, config.get("epochs", 1), replicate)
        return {**config, _ID: trial_id}

    def completed(trial_id, result=None, error=False):
        if error or (result is not None and ("value" in result or CENSORED_KEY in result)):
            if world.outcomes[trial_id].dies:
                world.lose(trial_id, None)
            else:
                world.end(trial_id)
        complete(trial_id=trial_id, result=result, error=error)
        if world.n_ended % 10 == 0:
            search.save(saved)
        if world.driver_dies:
            raise DriverDied

    search.suggest, search.on_trial_complete = suggested, completed


def was_lost_in(world):
    return lambda trial: world.outcomes[trial.trial_id].dies


TestSearchers = conformance(Searchers())
