"""Simulated experiments that several tests of the schedulers share."""

import math

import numpy as np
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

from benchmarks.tune_clock import ReplayedCurves, Step, simulate
from mfhpo import Observation, Pull
from mfhpo.experiment import Ended
from mfhpo_ray import IISEScheduler
from mfhpo_ray.experiment.configurations import encode
from mfhpo_ray.experiment.journal import events_in
from mfhpo_ray.schedulers.runs import searchers_of

LEVELS = (1, 3, 9, 27)
BIAS = (0.3, 0.1, 0.03, 0.0)
# Differences of two arms' biases are at most twice as large as the biases, and zero at the end.
MEANS = np.array([0.2, 0.55, 0.6, 0.9, 0.1])


def curves_of(finals=tuple(MEANS), *, sigma=0.1, seconds=1.0, length=27, **options):
    """Curves that come to their final value from below, within the declared bias."""
    gap = 0.3 * (1.0 / np.arange(1, length + 1) - 1.0 / length)
    values = np.asarray(finals)[:, None] - gap[None, :]
    return ReplayedCurves(values, seconds, sigma=sigma, **options)


def grid(n_arms, n_replicates):
    return [{"arm": arm, "seed": seed} for seed in range(n_replicates) for arm in range(n_arms)]


def part_of(trial_id, *events):
    """A part of a journal's record, with these events."""
    return {"trial": trial_id, "events": [encode(event.to_dict()) for event in events]}


def events_of(record, kind=Ended):
    return [event for event in events_in(record) if isinstance(event, kind)]


class Spoiled:
    """Curves that crash, hang or report NaN where a rule of configuration and iteration says so."""

    def __init__(self, curves, rule):
        self.curves = curves
        self.rule = rule

    def step(self, config, iteration):
        step = self.curves.step(config, iteration)
        fate = self.rule(config, iteration)
        if step is None or not fate:
            return step
        if fate == "hang":
            return Step(0.0, math.inf)
        return Step(math.nan, step.seconds, failed=fate != "nan")


class Mirrored:
    def __init__(self, curves):
        self.curves = curves

    def step(self, config, iteration):
        step = self.curves.step(config, iteration)
        return None if step is None else Step(-step.value, step.seconds, step.failed)


class Suggesting(Searcher):
    def __init__(self, configs, *, ends=True):
        super().__init__(metric="value", mode="max")
        self.left = [dict(config) for config in configs]
        self.ends = ends
        self.live = set()

    def suggest(self, trial_id):
        if not self.left:
            return Searcher.FINISHED if self.ends else None
        self.live.add(trial_id)
        return self.left.pop(0)

    def on_trial_complete(self, trial_id, result=None, error=False):
        assert trial_id in self.live, "completed twice, or never begun"
        self.live.remove(trial_id)

    def save(self, checkpoint_path): ...

    def restore(self, checkpoint_path): ...


class Watched(IISEScheduler):
    """Notes, at every turn of the loop, who is in the race and how many trials are busy."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.most_busy = 0
        self.out_since = {}

    @property
    def told(self):
        """What runs have shown, in order: runs, pulls and observations."""
        ends = [event for event in self._course.experiment.events if isinstance(event, Ended)]
        runs = [self._runs.find(end.id.partition(":")[0]) for end in ends]
        return [
            (run, Pull(run.arm, end.level), Observation(end.value, end.cost, end.stopped_at))
            for run, end in zip(runs, ends, strict=True)
        ]

    @property
    def pairs(self):
        return [(run.arm, pull.fidelity) for run, pull, _ in self.told]

    def choose_trial_to_run(self, tune_controller):
        chosen = super().choose_trial_to_run(tune_controller)
        busy = list(self._slots.busy.values())
        if any(searchers_of(tune_controller.search_alg)):
            # What a searcher has suggested waits in Ray's own queue.
            busy = [run for run in busy if run.trial.status != Trial.PENDING]
        self.most_busy = max(self.most_busy, len(busy))
        if self._course is not None:
            for arm in range(self._n_raced):
                if arm in self._out:
                    self.out_since.setdefault(arm, self._clock())
                else:
                    self.out_since.pop(arm, None)
        return chosen


def declared(**options):
    defaults = {"levels": LEVELS, "sigma": 0.1, "bias": BIAS, "epsilon": 0.05, "measure": 5}
    return Watched(**(defaults | options))


def race(scheduler, trials, curves, *, slots=4, **options):
    """Simulate, check what holds of every race, and return what became of it."""
    run = simulate(scheduler, trials, curves, slots=slots, **options)
    assert all(trial.is_finished() for trial in run.trials)
    assert not scheduler._slots.busy, "a slot leaks"
    assert all(doomed.trial.is_finished() for doomed in scheduler._slots.doomed)
    if isinstance(scheduler, Watched):
        seen = [(run.trial, pull) for run, pull, told in scheduler.told if told.value is not None]
        assert len(seen) == len(set(seen)), "a trial was told twice at a level"
    return run


def started(run):
    return {event.trial_id for event in run.events if event.kind == "started"}
