"""IISEScheduler in virtual time: what it starts, goes on with and stops, and what it answers."""

import math
from collections import Counter

import numpy as np
import pytest
from ray.tune.search import ConcurrencyLimiter

from benchmarks.tune_clock import ReplayedCurves
from mfhpo import (
    IISE,
    Bias,
    Bounded,
    Observation,
    Problem,
    SubGaussian,
)
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo_ray import IISEScheduler, MFEliminationScheduler
from tests.ray.schedulers.races import (
    BIAS,
    LEVELS,
    MEANS,
    Mirrored,
    Suggesting,
    curves_of,
    declared,
    grid,
    race,
    started,
)


def bare_policy(variant, n_arms, **options):
    options = {"delta": 0.05, "epsilon": 0.05, "measure": 5} | options
    kind = Bias.order if variant == "order" else Bias.max
    problem = Problem(n_arms, LEVELS, bias=kind(*BIAS), noise=SubGaussian(0.1))
    return IISE(problem, variant=variant, **options)


class Replicates:
    def __init__(self, curves, n_arms, n_replicates):
        self.curves = curves
        self.reached = [[-1] * n_replicates for _ in range(n_arms)]

    def value(self, pull):
        below = [level if level < pull.fidelity else -2 for level in self.reached[pull.arm]]
        replicate = below.index(max(below))
        assert below[replicate] > -2, "replicates do not suffice"
        self.reached[pull.arm][replicate] = pull.fidelity
        step = self.curves.step({"arm": pull.arm, "seed": replicate}, LEVELS[pull.fidelity])
        return step.value


@pytest.mark.parametrize(
    ("variant", "checkpoints"), [(None, True), ("order", False), ("se", True), ("mfe", False)]
)
def test_with_one_slot_it_pulls_what_the_bare_policy_pulls(variant, checkpoints):
    n_replicates = 200
    # MFE goes on for very long; of it we look at the beginning.
    options = {"budget": 300.0} if variant == "mfe" else {}
    curves = curves_of()
    scheduler = declared(variant=variant, **options)
    race(scheduler, grid(len(MEANS), n_replicates), curves, slots=1, checkpoints=checkpoints)
    policy = bare_policy(variant, len(MEANS), **options)
    replicates = Replicates(curves, len(MEANS), n_replicates)
    expected = []
    while not policy.finished:
        [pull] = policy.ask()
        policy.tell(pull, Observation(replicates.value(pull)))
        expected.append((pull.arm, pull.fidelity))
    assert scheduler.pairs == expected
    answer, bare = scheduler.recommendation(), policy.recommend()
    assert (answer.arm, answer.certified) == (bare.arm, bare.certified) == (3, variant != "mfe")
    assert (answer.mean, answer.interval) == (bare.mean, bare.interval)
    assert answer.trials == len(expected)


@pytest.mark.parametrize(("slots", "checkpoints"), [(1, True), (16, False)])
def test_trials_of_an_eliminated_arm_stop_at_once(slots, checkpoints):
    scheduler = declared()
    run = race(scheduler, grid(5, 40), curves_of(), slots=slots, checkpoints=checkpoints)
    assert scheduler.out_since  # some arm was eliminated
    ids = {run.trial.trial_id: run.arm for run in scheduler._runs}
    for event in run.events:
        since = scheduler.out_since.get(ids[event.trial_id], math.inf)
        # What runs has a second to end its step by itself, and is stopped with that.
        assert event.kind == "terminated" or event.seconds <= since + 1.0
        assert event.kind != "started" or event.seconds <= since
    # What waited never started, and was there until the end.
    first_out = min(scheduler.out_since, key=lambda arm: scheduler.out_since[arm])
    never_started = {name for name, arm in ids.items() if arm == first_out} - started(run)
    ends = {e.trial_id: e.seconds for e in run.events if e.kind == "terminated"}
    assert min(ends[name] for name in never_started) >= run.makespan - 1.0


def test_an_arm_that_is_put_back_has_trials_to_go_on_with():
    # The bias is as declared up to the second level, and far from it at the last: the arm that
    # leads first is the worst. Arm 2 is out by then, and is the best.
    early, late = [0.9, 0.5, 0.6, 0.4], [0.3, 0.55, 0.62, 0.5]
    curves = ReplayedCurves(np.column_stack([early] * 2 + [late] * 7), sigma=0.01)
    # Even its only trial is there if it has just come to a level.
    for n_replicates in (20, 1):
        scheduler = declared(levels=(1, 3, 9), sigma=0.01, bias=(0.02, 0.01, 0.0), epsilon=0.03)
        with pytest.warns(BiasContradictedWarning):
            race(scheduler, grid(4, n_replicates), curves, slots=2, checkpoints=True)
        answer = scheduler.recommendation()
        assert (answer.arm, answer.certified) == (2, True)


def test_replicates_that_run_out_are_not_pulled_twice():
    scheduler = declared(epsilon=0.0)
    run = race(scheduler, grid(2, 3), curves_of([0.5, 0.5]), slots=2, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.finished, answer.certified) == (True, False)
    assert "nothing is left to evaluate" in answer.reason
    assert Counter(level for _, level in scheduler.pairs)[3] == 6
    assert run.iterations == 6 * 27


@pytest.mark.parametrize(("limit", "checkpoints"), [(None, True), (1, False), (3, True)])
def test_a_searcher_suggests_the_trials(limit, checkpoints):
    searcher = Suggesting(grid(5, 12))
    limited = searcher if limit is None else ConcurrencyLimiter(searcher, limit)
    scheduler = declared()
    run = race(scheduler, limited, curves_of(), num_samples=60, checkpoints=checkpoints)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified) == (3, True)
    assert not searcher.live
    assert scheduler.most_busy <= (limit or 4)
    assert len(run.trials) <= 60


def check_told(scheduler, curves, iterations):
    for run, pull, told in scheduler.told:
        assert told.value == curves.step(run.trial.config, iterations[pull.fidelity]).value


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_level_that_is_skipped_has_the_next_value(checkpoints):
    # Reported at 5, 10, 15, ...: the levels 1 and 3 both have the value at 5, and 9 the one at 10,
    # on whatever way a trial has come there.
    curves = curves_of(seconds=5.0, length=6)
    scheduler = declared(time_attr="time_total_s")
    race(scheduler, grid(5, 20), curves, checkpoints=checkpoints)
    check_told(scheduler, curves, (1, 1, 2, 6))
    assert {0, 1, 3} <= {level for _, level in scheduler.pairs}


def test_trials_that_end_early_have_their_last_value():
    scheduler = declared()
    curves = curves_of(length=10)
    with pytest.warns(UserWarning, match="ended at training_iteration=10"):
        race(scheduler, grid(5, 20), curves, slots=2, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified) == (3, True)
    check_told(scheduler, curves, (1, 3, 9, 10))


@pytest.mark.parametrize(("sigma", "bias"), [(Bounded(-0.5, 1.5), BIAS), (None, None)])
def test_minimising_mirrors_maximising(sigma, bias):
    high = declared(sigma=sigma, bias=bias, epsilon=0.3)
    curves = curves_of(sigma=0.05)
    race(high, grid(5, 8), curves, slots=3, checkpoints=True)
    mirrored = sigma and Bounded(-1.5, 0.5)
    low = declared(sigma=mirrored, bias=bias, epsilon=0.3)
    race(low, grid(5, 8), Mirrored(curves), slots=3, mode="min", checkpoints=True)
    assert low.pairs == high.pairs
    one, other = high.recommendation(), low.recommendation()
    assert (one.arm, one.certified, one.cost) == (other.arm, other.certified, other.cost)
    assert one.mean == -other.mean
    assert one.interval == (-other.interval[1], -other.interval[0])


def test_a_trial_is_charged_with_the_increments_or_with_all_that_it_runs_again():
    for checkpoints in (True, False):
        scheduler = declared(epsilon=0.0)
        curves = curves_of([0.5, 0.5], sigma=0.0)
        run = race(scheduler, grid(2, 2), curves, slots=1, checkpoints=checkpoints)
        assert scheduler.recommendation().cost == run.iterations
        assert (run.iterations == 4 * 27) == checkpoints
        paid = Counter()
        for each, _, told in scheduler.told:
            paid[each.trial.trial_id] += told.cost
        assert (set(paid.values()) == {27.0}) == checkpoints


def test_a_trial_that_returns_when_it_is_resumed_is_not_charged_again():
    # It ends at 9, pauses there, and has nothing left to do for the last level.
    levels = {"levels": LEVELS, "epsilon": 0.0}
    eliminating = MFEliminationScheduler(levels=LEVELS, bias=lambda level: 1.0)
    for scheduler in (declared(**levels), declared(**levels, costs="measured"), eliminating):
        curves = curves_of([0.5, 0.5], sigma=0.0, length=9)
        run = race(scheduler, grid(2, 2), curves, slots=1, checkpoints=True)
        assert scheduler.recommendation().cost == run.iterations == 4 * 9


def test_measured_costs_are_seconds():
    scheduler = declared(costs="measured")
    options = {"slots": 1, "checkpoints": True, "max_t": 27}
    run = race(scheduler, grid(5, 20), curves_of(seconds=2.5), **options)
    cost = scheduler.recommendation().cost
    assert cost == pytest.approx(2.5 * run.iterations) == pytest.approx(run.slot_seconds)


def test_levels_are_geometric_from_the_grace_period_on():
    """As in Ray's ASHA and HyperBand."""
    geometric = {"grace_period": 2, "reduction_factor": 4}
    assert list(IISEScheduler(max_t=81, **geometric)._meter.levels) == [5, 20, 81]
    assert MFEliminationScheduler(max_t=81, **geometric)._levels == [5, 20, 81]
    for name, value in geometric.items():
        for given in ({"levels": (1, 9)}, {"max_t": 9, "bias": {1: 0.5}}):
            with pytest.raises(ValueError, match=f"{name}={value} has no part beside"):
                MFEliminationScheduler(**given, **{name: value})
    with pytest.raises(ValueError, match="grace_period must be at most 9, got 10"):
        IISEScheduler(max_t=9, grace_period=10)
