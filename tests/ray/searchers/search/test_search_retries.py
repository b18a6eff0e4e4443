"""Attempts that fail and that Ray tries again are paid for."""

import json
from collections import Counter

import pytest
from ray import tune

from benchmarks.tune_clock import Step, simulate
from mfhpo import Fidelity
from mfhpo_ray import IISESearch, RCUCBScheduler, RCUCBSearch, SpaceSearch
from tests.ray.searchers.searching import make

ARMS = [{"x": 0.1}, {"x": 0.2}]
AIM = {"metric": "value", "mode": "max"}


class FirstAttemptFails:
    """A trial takes ten seconds, and its first attempt fails at their end."""

    def __init__(self):
        self.attempts = Counter()

    def step(self, config, iteration):
        if iteration > 1:
            return None
        key = config["x"], config["seed"]
        self.attempts[key] += 1
        return Step(config["x"], 10.0, failed=self.attempts[key] == 1)


def once(cls, *arguments, **options):
    return cls(*arguments, **AIM, **options)


LEVEL = Fidelity("epochs", levels=[1], costs="measured")
SEARCHES = {
    "a budget in seconds": lambda: once(
        SpaceSearch, space={"x": tune.uniform(0, 1)}, seconds=200, seed=0
    ),
    "measured costs": lambda: once(
        IISESearch, LEVEL, ARMS, sigma=1.0, epsilon=0.0, budget=200, seed=0
    ),
    "time limits": lambda: once(
        RCUCBSearch, ARMS, limits=[15.0], reward_range=(0, 1), horizon=10, seed=0
    ),
}


@pytest.mark.parametrize("make_search", SEARCHES.values(), ids=SEARCHES.keys())
def test_failed_attempts_are_part_of_the_cost(make_search):
    search = make_search()
    run = simulate(search.scheduler(), search, FirstAttemptFails(), slots=1, max_failures=1)
    answer = search.recommendation()
    assert answer.cost == pytest.approx(run.slot_seconds) == pytest.approx(20 * answer.trials)
    # The attempt that ended was within its limit.
    assert not answer.censored


def test_a_scheduler_with_limits_counts_them_after_a_restart_as_well(shared_journal):
    trials = [{**arm, "seed": seed} for seed in range(20) for arm in ARMS]
    curves = FirstAttemptFails()
    costs = []
    for horizon in (6, 10):
        scheduler = once(RCUCBScheduler, [15.0], reward_range=(0, 1), horizon=horizon)
        run = simulate(scheduler, trials, curves, slots=1, max_failures=1)
        costs.append((scheduler.recommendation().seconds, run.slot_seconds))
    (first, held), (both, held_then) = costs
    assert first == pytest.approx(held)
    assert both == pytest.approx(held + held_then)


def test_what_is_owed_outlasts_a_restart():
    search, again = (make(fidelity=LEVEL, budget=200) for _ in range(2))
    search.suggest("a")
    search.evaluations.owe("a", 7.0)
    state = json.loads(json.dumps(search.get_state()))
    again.set_state(state)
    again.on_trial_complete("a", {"loss": 0.1, "time_total_s": 5.0})
    assert again.recommendation().cost == 12.0
