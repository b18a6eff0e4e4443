"""RCUCB over trials that are given: who starts, with which limit, and what is learned from it."""

import math

import numpy as np
import pytest

from benchmarks.tune_clock import Step, simulate
from mfhpo import RCUCB, Observation
from mfhpo.censored import Linear
from mfhpo_ray import RCUCBScheduler
from tests.ray.schedulers.races import Mirrored, Spoiled, Suggesting


class Services:
    def __init__(self, seconds, scores, hangs):
        self._seconds, self._scores, self._hangs = seconds, scores, hangs

    def step(self, config, iteration):
        if iteration > 1:
            return None
        model = config["model"]
        rng = np.random.default_rng([model, config["seed"]])
        seconds = self._seconds[model] * rng.uniform(0.5, 1.5)
        if rng.random() < self._hangs[model]:
            seconds = math.inf
        return Step(self._scores[model] + 0.1 * rng.uniform(-1, 1), seconds)


SERVICES = Services(seconds=(4.0, 18.0, 8.0), scores=(0.3, 0.6, 0.8), hangs=(0.0, 0.0, 0.2))


def trials(n_seeds, models=3):
    return [{"model": model, "seed": seed} for model in range(models) for seed in range(n_seeds)]


def scheduler(limits=(6.0, 15.0, 30.0), **options):
    return RCUCBScheduler(
        limits, cost=Linear(0.01), reward_range=options.pop("reward_range", (0, 1)), **options
    )


def test_one_slot_plays_what_the_bare_policy_plays():
    ours = scheduler(horizon=60)
    run = simulate(ours, trials(60), SERVICES, slots=1, max_concurrent_trials=1)
    policy = RCUCB(3, [6.0, 15.0, 30.0], cost=Linear(0.01), reward_range=(0, 1), horizon=60)
    used = [0, 0, 0]
    while not policy.finished:
        [pull] = policy.ask()
        step = SERVICES.step({"model": pull.arm, "seed": used[pull.arm]}, 1)
        used[pull.arm] += 1
        if step.seconds > pull.limit:
            policy.tell(pull, Observation(None, pull.limit, censored_at=pull.limit))
        else:
            policy.tell(pull, Observation(step.value, step.seconds))
    answer, expected = ours.recommendation(), policy.recommend()
    assert ours._course.experiment.runner.policy.plays.tolist() == policy.plays.tolist()
    assert (answer.arm, answer.limit, answer.trials) == (expected.arm, expected.limit, 60)
    assert answer.gain == pytest.approx(expected.mean)
    assert answer.censored == pytest.approx(expected.censored)
    assert answer.finished
    assert all(trial.status == "TERMINATED" for trial in run.trials)


def test_a_minimised_metric_is_mirrored():
    up, down = scheduler(horizon=50), scheduler(horizon=50, reward_range=(-1, 0))
    simulate(up, trials(50), SERVICES, slots=3)
    simulate(down, trials(50), Mirrored(SERVICES), slots=3, mode="min")
    one, other = up.recommendation(), down.recommendation()
    assert (one.config, one.limit, one.trials) == (other.config, other.limit, other.trials)
    assert other.gain == pytest.approx(-one.gain)
    assert other.interval == pytest.approx(tuple(-bound for bound in reversed(one.interval)))


def test_crashes_and_values_that_are_none_are_no_observations():
    services = Services((4.0, 4.0, 8.0), (0.3, 0.6, 0.8), (0.0, 0.0, 0.0))
    fates = {0: "crash", 1: "nan", 2: None}
    broken = Spoiled(services, lambda config, iteration: fates[config["model"]])
    ours = scheduler(horizon=30)
    with pytest.warns(UserWarning, match="leaves the race"):
        run = simulate(ours, trials(40), broken, slots=2)
    answer = ours.recommendation()
    assert (answer.config, answer.survivors) == ({"model": 2}, (2,))
    assert 30 <= answer.trials < 32
    # Their other trials were never started: three in a row, and one that ran beside them.
    began = [t for t in run.trials if t.config["model"] != 2 and t.status == "ERROR"]
    assert 3 <= len(began) <= 4


class QuickOrSlow:
    """Half of the trials take four seconds or so, the others 24."""

    def step(self, config, iteration):
        if iteration > 1:
            return None
        rng = np.random.default_rng([config["model"], config["seed"]])
        seconds = rng.exponential(4.0) if rng.random() < 0.5 else rng.uniform(20, 28)
        return Step(0.6 if config["model"] else 0.5, float(seconds))


def test_the_slow_trials_at_the_horizon_count():
    gains = []
    for first in range(10):
        ours = scheduler(limits=[30.0], horizon=20)
        listed = [{"model": m, "seed": 100 * first + k} for k in range(20) for m in (0, 1)]
        simulate(ours, listed, QuickOrSlow(), slots=8)
        gains.append(ours.recommendation().gain)
    # 0.6 - 0.01 * (4 + 24) / 2; where they are dropped, it seems to be 0.50.
    assert np.mean(gains) == pytest.approx(0.46, abs=0.02)


@pytest.mark.parametrize("limits", [[20.0], 2])
def test_trials_that_hang_at_the_horizon_do_not_keep_it_from_ending(limits):
    hanging = Services((4.0, 4.0, 4.0), (0.3, 0.6, 0.8), (0.0, 0.0, 0.3))
    ours = scheduler(limits=limits, horizon=3)
    run = simulate(ours, trials(20), hanging, slots=3, time_budget=1000.0)
    assert run.makespan < 100.0
    assert ours.recommendation().finished


def test_limits_are_derived_and_longest_ends_what_hangs_before():
    ours = scheduler(limits=4, longest=40.0, horizon=80)
    run = simulate(ours, trials(80), SERVICES, slots=4)
    answer = ours.recommendation()
    limits = ours._course.experiment.runner.policy.limits
    assert len(limits) == 4
    assert all(0.0 < limit < 40.0 for limit in limits)
    assert answer.limit in limits
    assert run.makespan < math.inf


def test_a_searchers_trial_that_ray_tries_again_is_run_again():
    # It fails when the trials of its model that came before are over.
    attempts = []

    def fails_once(config, iteration):
        if config["seed"] != 6:
            return False
        attempts.append(config)
        return len(attempts) == 1 and "crash"

    ours = scheduler()
    configs = [{"model": number % 2, "seed": number} for number in range(12)]
    curves = Spoiled(SERVICES, fails_once)
    simulate(ours, Suggesting(configs), curves, slots=1, num_samples=12, max_failures=1)
    assert len(attempts) > 1
    assert ours.recommendation().trials == 12
