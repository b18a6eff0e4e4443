import math
from dataclasses import replace

import numpy as np
import pytest
from optuna.trial import TrialState

from benchmarks.hpo.ask_tell import Advice, Job, Setting
from benchmarks.hpo.clock.in_seconds import InSeconds
from benchmarks.hpo.clock.limits import Runaways, time_ratios
from benchmarks.hpo.clock.race import Clock, on_the_clock
from benchmarks.hpo.clock.report import ClockReport
from benchmarks.hpo.meter import Meter
from benchmarks.hpo.ours import Search
from benchmarks.hpo.play import play
from benchmarks.hpo.problem import Evaluation, FidelitySpace, Problem
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.space import ConfigurationSpace, Float
from benchmarks.peers.optuna import CLOCKED, Study
from tests.benchmarks.hpo.made_up import record


class Slow(Problem):
    """A training takes x seconds, a third of them at the lower level; ten at the median."""

    name = "slow"
    space = ConfigurationSpace({"x": Float(1.0, 100.0)})
    full_cost = seconds = 10.0

    def __init__(self, continues=True):
        self.fidelity = FidelitySpace("epochs", (1.0, 3.0), continues)

    def objective_function(self, configuration, fidelity, seed):
        return Evaluation(-configuration["x"], fidelity)

    def seconds_of(self, configuration, fidelity):
        return configuration["x"] * fidelity / 3.0

    def true_value(self, configuration):
        return -configuration["x"]


class VerySlow(Slow):
    """The same in units of a thousand seconds, beside which no optimiser's own time counts."""

    full_cost = seconds = 1e4

    def seconds_of(self, configuration, fidelity):
        return 1e3 * super().seconds_of(configuration, fidelity)


class Scripted:
    """Asks for trainings of given seconds, and notes what happens when.

    Parameters
    ----------
    seconds
        Of the trainings; None: it has nothing to propose until something is told.
    upwards
        Trainings that begin at the lower level and go on to the target; others begin there.
    stopped
        Trainings that end at the lower level.
    asking, telling, advising
        CPU seconds that it takes itself.
    """

    def __init__(self, seconds, upwards=(), stopped=(), asking=0.0, telling=0.0, advising=0.0):
        self.seconds = iter(seconds)
        self.upwards, self.stopped = {*upwards, *stopped}, stopped
        self.asking, self.telling, self.advising = asking, telling, advising
        self.cpu = 0.0
        self.story = []
        self.best = None

    def ask(self):
        self.story.append(("ask", round(self.clock.now, 9)))
        self.cpu += self.asking
        x = next(self.seconds, 1000.0)
        return None if x is None else Job({"x": x}, 0 if x in self.upwards else 1)

    def tell(self, job, value, seconds):
        x = job.configuration["x"]
        self.story.append((x, round(self.clock.now, 9)))
        self.cpu += self.telling
        self.best = Advice(job.configuration, value)
        return Job(job.configuration, 1) if job.level == 0 and x not in self.stopped else None

    def advice(self):
        self.cpu += self.advising
        return self.best


def told(optimiser, workers=2, budget=20.0, continues=True):
    """When what was told; times in that of a median training by all workers together."""
    meter = Meter(InSeconds(Slow(continues)), budget, seed=0, timer=lambda: optimiser.cpu)
    optimiser.clock = Clock(optimiser, meter, workers)
    optimiser.clock.run()
    optimiser.steps = [(round(step.cost, 9), step.configuration["x"]) for step in meter.steps]
    optimiser.claims = [step.claim for step in meter.steps]
    return [(what, when) for what, when in optimiser.story if what != "ask"]


def test_two_workers_side_by_side():
    # Ten seconds are two units. One worker makes 10 and 20, then 40; the other 30, then 5.
    optimiser = Scripted([10.0, 30.0, 20.0, 5.0, 40.0])
    assert told(optimiser) == [(10, 2), (30, 6), (20, 6), (5, 7), (40, 14)]
    asked = [when for what, when in optimiser.story if what == "ask"]
    assert asked == [0, 0, 2, 6, 6, 7, 14]


def test_the_optimisers_own_time_passes_for_all():
    # A second of its own is .2 units: the second worker begins at .4, and the first one's end is
    # told at 2.2, after which it is told of nothing else until it has proposed something.
    optimiser = Scripted([10.0, 10.0, 20.0, 30.0], asking=1.0, telling=0.5)
    assert told(optimiser)[:2] == [(10, 2.2), (10, 2.5)]
    assert told(Scripted([10.0, 9.0], asking=1.0, telling=0.5))[:2] == [(10, 2.2), (9, 2.3)]
    assert [when for what, when in optimiser.story if what == "ask"][:4] == [0, 0.2, 2.3, 2.6]


def test_what_is_recommended_is_known_at_the_time_it_is_judged_at():
    optimiser = Scripted([50.0, 100.0], telling=5.0)
    told(optimiser, budget=50.0)
    # Told from 10 to 11: at 10 it is not known yet, but at the next point at which anybody looks.
    assert [x for when, x in optimiser.steps if when <= 10.0] == []
    assert optimiser.steps[0][1] == 50.0
    assert 11.0 <= optimiser.steps[0][0] < 11.9


def test_what_is_stopped_costs_what_it_ran():
    assert told(Scripted([30.0, 60.0, 90.0], stopped=[30.0, 60.0]), workers=1) == [
        (30, 1),
        (60, 3),
        (90, 12),
    ]


def test_what_is_beyond_its_limit_ends_there_without_a_value():
    optimiser = Scripted([30.0, 60.0], upwards=[60.0])
    ask = optimiser.ask
    optimiser.ask = lambda: replace(ask(), limit=20.0)
    # The lower level of the second takes 20 seconds.
    assert told(optimiser, workers=1, budget=6.0) == [(30, 2), (60, 4)]
    assert math.isnan(optimiser.claims[0])


def test_a_tenth_takes_twenty_times_as_long():
    problem, slow = InSeconds(Slow()), Runaways(Slow())
    times = []
    for number in range(1000):
        configuration = {"x": 1.0 + 0.01 * number}
        ours, theirs = (p.objective_function(configuration, 3.0, 0) for p in (slow, problem))
        assert ours.value == theirs.value
        times.append(round(ours.cost / theirs.cost, 6))
    assert set(times) == {1.0, 20.0}
    assert 70 <= times.count(20.0) <= 130


def test_the_time_to_the_same_regret():
    """The grid is 1, 1.5, ... 100; the regret without limits is 100 less the time."""
    time = np.linspace(1.0, 100.0, 199)
    without = np.array([100.0 - time, 100.0 - time])
    in_half = 100.0 - np.minimum(2.0 * time, 80.0)
    assert time_ratios(without, without) == [1.0, 1.0]
    assert time_ratios(without, np.array([in_half])) == [0.5, 1.0]  # it never comes to 0
    late = np.where(time == 40.0, 100.0, in_half)
    assert time_ratios(without, np.array([late]))[0] == 40.5 / 50.0  # from then on for good


@pytest.mark.parametrize("limited", [True, False])
def test_our_search_keeps_the_limits_that_it_sets(limited):
    search = Search(Setting(InSeconds(Slow()), 10.0, 1, 0), limited)
    for _ in range(12):
        search.tell(search.ask(), 1.0, 3.0)
    job = search.ask()
    assert (job.limit is not None) == limited
    if limited:
        search.tell(job, math.nan, job.limit)
        assert search._sampler.recommendation(search._study).stopped == 1


@pytest.mark.parametrize(("continues", "end"), [(True, 3.0), (False, 4.0)])
def test_going_on_takes_the_difference_with_checkpoints(continues, end):
    optimiser = Scripted([30.0], upwards=[30.0])
    assert told(optimiser, 1, continues=continues) == [(30, 1), (30, end)]


def test_who_has_nothing_to_propose_waits_for_news():
    optimiser = Scripted([10.0, None, 20.0, 20.0])
    assert told(optimiser, budget=7.0) == [(10, 2), (20, 6), (20, 6)]
    with pytest.raises(RuntimeError, match="nothing is under way"):
        told(Scripted([None]))


class Watched:
    """Another optimiser whose study is looked at before each question."""

    def __init__(self, inner, study):
        self.inner, self.study = inner, study
        self.under_way = []
        self.tell, self.advice = inner.tell, inner.advice

    def ask(self):
        self.under_way.append(len(self.study.get_trials(states=[TrialState.RUNNING])))
        return self.inner.ask()


@pytest.mark.parametrize("name", ["optuna tpe", "optuna tpe + hyperband", "mfhpo search"])
def test_trials_under_way_are_running(name):
    watched = []

    def make(setting):
        inner = (CLOCKED | {"mfhpo search": Search})[name](setting)
        study = inner.study if isinstance(inner, Study) else inner._study
        watched.append(Watched(inner, study))
        return watched[0]

    done = play(name, on_the_clock(make, 3), InSeconds(VerySlow()), budget=60.0, seed=0)
    assert done.crash is None
    [optimiser] = watched
    assert optimiser.under_way[:3] == [0, 1, 2]
    assert set(optimiser.under_way[3:]) == {2}
    assert 40.0 < done.total_cost <= 60.0  # of the work, what has ended
    assert done.cost[-1] <= 60.0
    assert done.value[-1] > -50.0


def test_our_search_is_told_the_seconds_of_the_clock():
    search = Search(Setting(InSeconds(Slow()), 10.0, 2, 0))
    first, second = search.ask(), search.ask()
    search.tell(first, 1.0, 70.0)
    search.tell(second, 1.0, 50.0)
    assert search._sampler.recommendation(search._study).cost == 120.0
    assert search._reader.recommendation(search._study).cost == 120.0


class TestReport:
    def report(self):
        # With one worker a is best throughout; with four b is, from a budget of 50 on.
        values = {("a", 1): (2, 2), ("b", 1): (1, 1), ("a", 4): (1, 1), ("b", 4): (0, 2)}
        records = [
            record(name, f"lcbench 1, workers {workers}", seed, steps(*given), best_tried=3.0)
            for (name, workers), given in values.items()
            for seed in range(3)
        ]
        records.append(record("a", "lcbench 1", 0, steps(9, 9)))
        references = {"lcbench 1": Reference(2.5, 0.0)}
        return ClockReport.of(records, references, [1, 4, 16], ["a"])

    def test_mean_ranks_by_workers(self):
        lines = self.report().markdown().splitlines()
        assert lines[0] == "| mean rank at 10 / 20 / 50 / 100 | 1 worker | 4 workers |"
        best, worst = "**1.0** / **1.0** / **1.0** / **1.0**", "2.0 / 2.0 / 2.0 / 2.0"
        assert lines[2:] == [
            f"| **a** | {best} | **1.0** / **1.0** / 2.0 / 2.0 |",
            f"| b | {worst} | 2.0 / 2.0 / **1.0** / **1.0** |",
        ]

    def test_the_best_known_is_one_for_all_numbers_of_workers(self):
        found = self.report().figures()["workers"]
        best = [task["best"] for part in found.values() for task in part["tasks"].values()]
        assert best == [3.0, 3.0]


def steps(early, late):
    return [(5.0, float(early), None), (40.0, float(late), None)]
