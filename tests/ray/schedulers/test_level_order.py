"""Schedulers: values count in the order in which trials were sent to a level, slow ones too."""

import math
from collections import defaultdict

import numpy as np
import pytest

from benchmarks.tune_clock import Step, simulate
from mfhpo import Pull
from mfhpo.experiment import Lost
from mfhpo_ray import IISEScheduler
from tests.ray.schedulers.races import Spoiled, events_of, grid


class Rival:
    """The mean of arm 0 is 0. Arm 1 has 1, or -5 in trials that take 300 times as long."""

    def __init__(self, seed, poor_share):
        self.seed = seed
        self.poor_share = poor_share

    def step(self, config, iteration):
        if iteration > 1:
            return None
        random = np.random.default_rng((self.seed, config["arm"], config["seed"]))
        if config["arm"] == 0:
            return Step(float(random.normal()), 1.0)
        return Step(-5.0, 300.0) if random.random() < self.poor_share else Step(1.0, 1.0)


class Told(IISEScheduler):
    @property
    def told(self):
        """The values that the race has learned, by arm and level."""
        told = defaultdict(list)
        for result in self._course.experiment.history():
            told[Pull(result.pull.arm, result.pull.fidelity)].append(result.observation.value)
        return told

    @property
    def waited_for(self):
        return self._course.experiment.ledger.waited_for


def _race(curves, *, n_replicates=400, levels=(1,), time_attr="training_iteration", **options):
    bias = [0.0] * len(levels)
    scheduler = Told(time_attr, levels=levels, epsilon=0.0, measure=1, bias=bias)
    simulate(scheduler, grid(2, n_replicates), curves, slots=16, checkpoints=True, **options)
    return scheduler


def _drawn(curves, n):
    steps = [curves.step({"arm": 1, "seed": seed}, 1) for seed in range(n)]
    return [step.value for step in steps if step is not None]


@pytest.mark.parametrize("seed", range(2))
def test_a_rival_whose_poor_values_take_long_is_not_certified(seed):
    curves = Rival(seed, poor_share=0.3)
    scheduler = _race(curves)
    told = scheduler.told[Pull(1, 0)]
    assert told == _drawn(curves, len(told))
    answer = scheduler.recommendation()
    assert not (answer.certified and answer.config == {"arm": 1})


class Jumping(Rival):
    """Its trials report once, when they are beyond both levels."""

    def step(self, config, iteration):
        step = super().step(config, iteration)
        return None if step is None else Step(step.value, 5.0 * step.seconds)


def test_results_that_jump_over_levels_wait_for_earlier_ones_there():
    curves = Jumping(0, poor_share=0.3)
    scheduler = _race(curves, time_attr="time_total_s", levels=(1, 5))
    for level in range(2):
        told = scheduler.told[Pull(1, level)]
        assert len(told) > 10
        assert told == _drawn(curves, len(told))
    answer = scheduler.recommendation()
    assert not (answer.certified and answer.config == {"arm": 1})


class FirstIsSlow:
    """Three arms that are alike; the first trial of the first takes for ever."""

    def step(self, config, iteration):
        if iteration > 1:
            return None
        random = np.random.default_rng((config["arm"], config["seed"]))
        is_slow = config["arm"] == config["seed"] == 0
        return Step(float(random.normal()), math.inf if is_slow else 1.0)


def test_a_slow_trial_leaves_the_slots_to_what_else_the_race_wants():
    scheduler = _race_of_three(FirstIsSlow(), measure=1)
    assert scheduler.waited_for[0].n_held == 10
    assert not scheduler.told[Pull(0, 0)]
    assert [len(scheduler.told[Pull(arm, 0)]) for arm in (1, 2)] == [15, 15]


def _losses(scheduler):
    conditions = scheduler.recommendation().conditions
    return [condition for condition in conditions if "left out" in condition]


def _race_of_three(curves, time_budget=200.0, **options):
    scheduler = Told(levels=(1,), epsilon=0.0, sigma=1.0, bias=[0.0], **options)
    simulate(scheduler, grid(3, 60), curves, slots=2, checkpoints=True, time_budget=time_budget)
    return scheduler


def test_the_answer_names_what_was_lost_also_after_a_restart(shared_journal, monkeypatch):
    monkeypatch.setattr("mfhpo_ray.schedulers.arm_scheduler.was_lost", lambda trial: True)
    crashes = [{"arm": 1, "seed": seed} for seed in (2, 5, 7)]
    lost = Spoiled(FirstIsSlow(), lambda config, at: config in crashes)
    [condition] = _losses(_race_of_three(lost))
    assert condition.startswith("the 3 evaluations that were left out")
    lost = [events_of(record, Lost) for record in shared_journal.read().values()]
    assert sum(map(len, lost)) == 3
    # These are evaluated again now.
    assert _losses(_race_of_three(FirstIsSlow())) == []


@pytest.mark.usefixtures("shared_journal")
def test_the_answer_names_what_was_lost_with_the_driver(tmp_path):
    before = _race_of_three(FirstIsSlow())
    assert _losses(before) == []
    [slow] = {waited.id.partition(":")[0] for waited in before.waited_for}
    [file] = (tmp_path / "journal").glob("events*")
    text = file.read_text()
    file.write_text(text.replace(f'"{slow}', '"forgotten'))
    assert file.read_text() != text
    after = _race_of_three(FirstIsSlow(), time_budget=1.0)
    assert len(after.told[Pull(0, 0)]) >= 10
    assert _losses(after)[0].startswith("the evaluation that was left out")


@pytest.mark.parametrize("stopped_at", [30.0, 250.0])
@pytest.mark.usefixtures("shared_journal")
def test_after_a_restart_slow_trials_keep_their_places(stopped_at):
    curves = Rival(1, poor_share=0.3)
    before = _race(curves, time_budget=stopped_at, n_replicates=150)
    assert before.waited_for
    n_before = len(before.told[Pull(1, 0)])
    after = _race(curves, n_replicates=150)
    told = after.told[Pull(1, 0)]
    assert len(told) > n_before
    assert told == _drawn(curves, len(told))
