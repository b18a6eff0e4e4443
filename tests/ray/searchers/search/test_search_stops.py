"""Trials that somebody stops behind the search's back give neither values nor failures."""

import warnings

import numpy as np
import pytest
from ray import tune
from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler, HyperBandScheduler

from benchmarks.tune_clock import Step, simulate
from mfhpo import Fidelity
from mfhpo_ray import MFSearch, SpaceSearch
from tests.ray.experiments import tuner_of
from tests.ray.searchers.searching import experiment_of

SLOW, QUICK = 0.001, 0.01  # at 9 epochs the slow one is better, by .833 to .789
RATES = [{"lr": SLOW}, {"lr": QUICK}]


def accuracy(config, epoch):
    rng = np.random.default_rng([config["seed"], epoch])
    mean = 0.9 - 0.6 / epoch if config["lr"] == SLOW else 0.8 - 0.1 / epoch
    return mean + 0.01 * rng.standard_normal()


class Epochs:
    def step(self, config, iteration):
        return Step(accuracy(config, iteration), 1.0) if iteration <= config["epochs"] else None


def make():
    fidelity = Fidelity("epochs", levels=[1, 3, 9])
    return MFSearch(fidelity, RATES, metric="acc", mode="max", epsilon=0.02, seed=0)


ASHA = {"grace_period": 1, "reduction_factor": 2, "max_t": 100}
BAND = {"scheduler": HyperBandScheduler(max_t=9, reduction_factor=3), "checkpoints": True}
CUTS = {
    "ASHA": ({"scheduler": AsyncHyperBandScheduler(**ASHA)}, "AsyncHyperBandScheduler has"),
    "HyperBand": ({**BAND, "slots": 9, "max_concurrent_trials": 9}, "HyperBandScheduler has"),
    "a criterion": ({"max_t": 3}, "RunConfig(stop={'training_iteration': 3})"),
}


@pytest.mark.parametrize(("options", "who"), CUTS.values(), ids=CUTS.keys())
def test_a_trial_that_is_cut_gives_no_value_and_who_cuts_is_named_once(options, who):
    search = make()
    rules = {"scheduler": FIFOScheduler(), "slots": 2, "num_samples": 60, **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulate(rules.pop("scheduler"), search, Epochs(), metric="acc", **rules)
    [said] = [str(each.message) for each in caught if "search.scheduler(limit" in str(each.message)]
    assert said.startswith(who)
    assert has_whole_values(search)


def has_whole_values(search):
    """Whether only whole trials at the target gave values, and no certificate is wrong."""
    told = experiment_of(search).history()
    notes = [search.evaluations.log.notes(result.id)["result"] for result in told]
    answer = search.recommendation()
    return (
        {note["training_iteration"] for note in notes} <= {9}
        and answer.failures == 0
        and not (answer.certified and answer.config == {"lr": QUICK})
    )


def test_a_time_budget_leaves_evaluations_open():
    search = make()
    simulate(search.scheduler(), search, Epochs(), metric="acc", slots=2, time_budget=40.5)
    assert has_whole_values(search)
    assert len(experiment_of(search).open) >= 2
    assert not search.recommendation().finished


def test_without_levels_a_criterion_is_the_end_of_all_trials(recwarn):
    search = SpaceSearch(space={"x": tune.uniform(0, 1)}, metric="acc", mode="max", trials=5)
    stop = {"training_iteration": 3}
    search.set_search_properties("acc", "max", {"y": 1}, stop=stop)
    search.suggest("a")
    search.on_trial_complete("a", {"acc": 0.5, "training_iteration": 3, "done": True})
    assert [told.observation.value for told in experiment_of(search).history()] == [0.5]
    assert not recwarn


def test_trials_of_a_class_that_say_that_they_are_done_are_whole():
    search = make()
    config = search.suggest("a")
    result = {"acc": 0.5, "training_iteration": 9, "done": True}
    search.on_trial_result("a", {**result, "training_iteration": 8, "done": False})
    search.on_trial_complete("a", result)
    assert [told.id for told in experiment_of(search).history()] == ["a"]
    assert config["epochs"] == 9


def _train(config):
    for epoch in range(1, config["epochs"] + 1):
        tune.report({"acc": accuracy(config, epoch)})


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_asha_itself_cuts_trials_whose_values_do_not_count(ray_cluster, tmp_path):
    search = make()
    scheduler = AsyncHyperBandScheduler(**ASHA)
    options = {"search_alg": search, "scheduler": scheduler, "num_samples": 24}
    options |= {"metric": "acc", "mode": "max"}
    space = {"epochs": tune.choice([1, 3, 9]), "lr": tune.choice([SLOW, QUICK])}
    tuner = tuner_of(_train, tmp_path, space=space, max_concurrent_trials=2, **options)
    with pytest.warns(UserWarning, match="AsyncHyperBandScheduler has stopped trial"):
        tuner.fit()
    assert has_whole_values(search)
