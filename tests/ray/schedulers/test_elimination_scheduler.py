"""MFEliminationScheduler: what becomes of trials, in virtual time and in a real run."""

from __future__ import annotations

import itertools
import math
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

from mfhpo import BiasContradictedWarning
from mfhpo_ray import MFEliminationScheduler, recommendation
from mfhpo_ray.experiment.encoding import encode
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.simulation import ReplayedCurves, Step, simulate

# Accuracies that gain at most .4 after iteration 1 and .1 after 3, and end at 9.
BIAS = {1: (0.0, 0.4), 3: (0.0, 0.1)}


def table(*rows):
    """Curves of nine iterations from their values at 1, 3 and 9."""
    return [[first] * 2 + [second] * 6 + [last] for first, second, last in rows]


# The best one is the third; by its bounds the first is hopeless at 3 and the second at 1.
WORKED = table((0.4, 0.5, 0.6), (0.1, 0.2, 0.3), (0.5, 0.8, 0.9))


def arms(number, seeds=None):
    if seeds is None:
        return [{"arm": arm} for arm in range(number)]
    return [{"arm": arm, "seed": seed} for arm, seed in itertools.product(range(number), seeds)]


def lengths(run):
    return [trial.last_result.get("training_iteration", 0) for trial in run.trials]


def kinds(run):
    return Counter(event.kind for event in run.events)


class Values:
    """Curves from a function of the configuration and the iteration; what it raises, crashes."""

    def __init__(self, value, last=9):
        self._value = value
        self._last = last

    def step(self, config, iteration):
        if iteration > self._last:
            return None
        try:
            return Step(self._value(config, iteration), 1.0)
        except ZeroDivisionError:
            return Step(0.0, 1.0, failed=True)


# By bounds.


@pytest.mark.parametrize(("mode", "sign"), [("max", 1.0), ("min", -1.0)])
def test_worked_example_with_checkpoints(mode, sign):
    bias = BIAS if sign > 0 else {level: (-high, 0.0) for level, (_, high) in BIAS.items()}
    scheduler = MFEliminationScheduler(max_t=9, bias=bias)
    curves = ReplayedCurves(sign * np.array(WORKED))
    run = simulate(scheduler, arms(3), curves, slots=1, mode=mode, checkpoints=True)
    # All come to 1; the third (to .9 at best) goes on to its end; the first (to .8) does not.
    assert lengths(run) == [1, 1, 9]
    assert run.iterations == 11
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 2}
    assert answer.certified
    assert answer.finished
    assert answer.mean == pytest.approx(sign * 0.9)
    assert answer.interval == pytest.approx((sign * 0.9, sign * 0.9))
    assert (answer.delta, answer.epsilon, answer.level) == (0.0, 0.0, 9)
    assert (answer.cost, answer.trials, answer.compared) == (11.0, 3, 3)
    assert answer.survivors == (2,)


def test_worked_example_without_checkpoints():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = simulate(scheduler, arms(3), ReplayedCurves(WORKED), slots=1)
    # The first one pauses to show whether it is saved. The second is hopeless at 3, .3 against .4,
    # and the third's .9 lets the first one go, which was not begun again.
    assert lengths(run) == [1, 3, 9]
    assert kinds(run)["paused"] == 1
    assert scheduler.recommendation().certified


@pytest.mark.parametrize(("breadth_first", "trained"), [(True, 11), (False, 13)])
def test_the_order_can_be_chosen(breadth_first, trained):
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, breadth_first=breadth_first)
    curves = ReplayedCurves([WORKED[0], WORKED[2], WORKED[1]])
    run = simulate(scheduler, arms(3), curves, slots=1, checkpoints=True)
    # Depth first the first one runs to its end, the others until they are hopeless.
    assert run.iterations == (trained if breadth_first else 9 + 9 + 1)
    assert bool(kinds(run)["paused"]) == breadth_first
    assert scheduler.recommendation().config == {"arm": 1}


@st.composite
def races(draw):
    """Final means, and curves and noise that respect the bounds."""
    n_arms = draw(st.integers(2, 8))
    n_replicates = draw(st.integers(1, 3))
    noise = draw(st.sampled_from([0.0, 0.05]))
    number = st.floats(-1.0, 1.0)
    finals = draw(st.lists(st.integers(0, 50), min_size=n_arms, max_size=n_arms))
    shapes = draw(st.lists(st.tuples(number, number), min_size=n_arms, max_size=n_arms))
    seed = draw(st.integers(0, 2**20))
    errors = np.random.default_rng(seed).uniform(-noise, noise, (n_arms, n_replicates, 9))
    return np.array(finals) / 50.0, shapes, errors, noise, n_replicates


@settings(max_examples=60, deadline=None)
@given(
    races(),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from(["max", "min"]),
    st.sampled_from([None, True, False]),
)
def test_the_best_arm_is_never_stopped_while_the_bounds_hold(
    race, slots, checkpoints, mode, breadth_first
):
    finals, shapes, errors, noise, n_replicates = race
    sign = 1.0 if mode == "max" else -1.0

    def value(config, iteration):
        arm = config["arm"]
        first, second = shapes[arm]
        early = 0.3 * first if iteration < 3 else 0.1 * second if iteration < 9 else 0.0
        return sign * (finals[arm] + early + errors[arm, config["seed"], iteration - 1])

    scheduler = MFEliminationScheduler(
        max_t=9, bias={1: 0.3, 3: 0.1}, noise=noise, breadth_first=breadth_first
    )
    run = simulate(
        scheduler,
        arms(len(finals), range(n_replicates)),
        Values(value),
        slots=slots,
        mode=mode,
        checkpoints=checkpoints,
    )
    assert all(trial.status == Trial.TERMINATED for trial in run.trials)
    ended = {trial.config["arm"] for trial in run.trials if length(trial) == 9}
    best = {arm for arm, final in enumerate(finals) if final == finals.max()}
    answer = scheduler.recommendation()
    assert best <= set(answer.survivors)
    assert answer.survivors[0] in ended or len(answer.survivors) > 1
    assert best & ended
    low, high = answer.interval
    assert low - 1e-9 <= sign * answer.mean or low - 1e-9 <= answer.mean <= high + 1e-9
    if answer.certified:
        assert answer.arm in best
        assert low - 1e-9 <= sign * finals[answer.arm] <= high + 1e-9
    elif noise == 0.0:
        assert len(best) > 1


def length(trial):
    return trial.last_result.get("training_iteration", 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=2, max_size=10))
def test_one_at_a_time_no_level_is_trained_in_vain(rows):
    """Whoever went on from a level could still have ended above the best one."""
    rows = [(last - first, last - min(first, second / 4), last) for first, second, last in rows]
    curves = np.array(table(*rows)) / 100.0
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, breadth_first=True)
    run = simulate(scheduler, arms(len(rows)), ReplayedCurves(curves), slots=1, checkpoints=True)
    best = curves[:, -1].max()
    for trial, curve in zip(run.trials, curves, strict=True):
        if length(trial) > 1:
            assert curve[0] + 0.4 >= best - 1e-12
        if length(trial) > 3:
            assert curve[2] + 0.1 >= best - 1e-12


def test_an_arm_loses_all_its_trials_and_those_that_wait_never_start():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, noise=0.01)
    curves = ReplayedCurves(WORKED)
    run = simulate(scheduler, arms(3, range(5)), curves, slots=1, checkpoints=True)
    # One trial of each arm says it all.
    assert lengths(run) == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0]
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.interval == pytest.approx((0.89, 0.91))
    assert any("within 0.01" in condition for condition in answer.conditions)


def test_replicates_settle_what_the_first_trials_leave_open():
    """Arms end at .5 and .52 with noise .02: single values cannot tell them, several can."""
    off = {(0, 0): 0.02, (1, 0): -0.02, (0, 1): -0.02, (1, 1): 0.02}

    def value(config, iteration):
        return (0.5, 0.53)[config["arm"]] + off[config["arm"], config["seed"]]

    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, noise=0.02)
    run = simulate(scheduler, arms(2, range(2)), Values(value), slots=1, checkpoints=True)
    # After .52 and .51: [.5, .54] and [.49, .53]. Of the first, .48 more: [.5, .5]. Then the other.
    assert lengths(run)[0] == lengths(run)[2] == 9
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.config == {"arm": 1}
    assert answer.interval == pytest.approx((0.53, 0.53))


def test_what_bounds_leave_open_is_not_certified():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, noise=0.05)
    curves = ReplayedCurves(table((0.5, 0.7, 0.8), (0.5, 0.7, 0.82)))
    run = simulate(scheduler, arms(2), curves, slots=2, checkpoints=True)
    assert lengths(run) == [9, 9]
    answer = scheduler.recommendation()
    assert answer.finished
    assert not answer.certified
    assert answer.config == {"arm": 1}
    assert answer.interval == pytest.approx((0.77, 0.85))  # at 3 it had .7
    assert "by at most 0.08" in answer.reason  # .85 against .77
    assert answer.survivors == (0, 1)


def test_an_arm_is_never_stopped_by_its_own_replicates():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, noise=0.3)
    value = {0: 0.1, 1: 0.6}
    run = simulate(
        scheduler,
        [{"arm": 0, "seed": 0}, {"arm": 0, "seed": 1}],
        Values(lambda config, iteration: value[config["seed"]]),
        slots=2,
    )
    # There is but one arm: once one of its trials has ended, nothing is left to tell.
    assert 9 in lengths(run)
    assert scheduler.recommendation().certified


def test_declared_noise_that_replicates_contradict_is_warned_of_and_nothing_is_certified():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    curves = Values(lambda config, iteration: 0.5 + 0.1 * config["seed"])
    with pytest.warns(BiasContradictedWarning, match="no final value agrees with what"):
        simulate(scheduler, arms(2, range(2)), curves, slots=1, checkpoints=True)
    answer = scheduler.recommendation()
    assert not answer.certified
    assert "contradicted by 1 of the arms" in answer.reason
    assert answer.survivors == (0,)  # what it showed speaks neither for nor against it


def test_bounds_that_are_contradicted_are_widened_with_one_warning_each():
    rows = table((0.1, 0.55, 0.6), (0.0, 0.55, 0.6), (0.3, 0.5, 0.55), (0.3, 0.45, 0.5))
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, breadth_first=False)
    with pytest.warns(BiasContradictedWarning) as caught:
        simulate(scheduler, arms(4), ReplayedCurves(rows), slots=4)
    early, late = [str(w.message) for w in caught if w.category is BiasContradictedWarning]
    # It had to end at .5 at best, and has .55 at 3.
    assert "with what trial simulated_00001 (0.1 at 1, 0.55 at 3)" in early
    assert "bias[1] is contradicted by trial simulated_00001: it had 0.1 there" in late
    assert "gains in [0, 0.5]" in late
    answer = scheduler.recommendation()
    assert not answer.certified
    assert "may have been stopped in error" in answer.reason


@pytest.mark.parametrize("checkpoints", [True, False])
def test_nothing_is_stopped_before_enough_trials_have_begun(checkpoints):
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, n_startup_trials=3)
    run = simulate(scheduler, arms(3), ReplayedCurves(WORKED), slots=1, checkpoints=checkpoints)
    assert lengths(run)[2] == 9
    with_less = MFEliminationScheduler(max_t=9, bias=BIAS, n_startup_trials=4)
    run = simulate(with_less, arms(3), ReplayedCurves(WORKED), slots=1, checkpoints=checkpoints)
    assert lengths(run) == [9, 9, 9]


# What goes wrong.


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_trial_without_a_finite_value_is_stopped_and_its_arm_goes_on(bad):
    def value(config, iteration):
        if (config["arm"], config["seed"]) == (0, 0) and iteration >= 3:
            return bad
        return WORKED[2 - config["arm"]][iteration - 1]

    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = simulate(scheduler, arms(2, range(2)), Values(value), slots=1, checkpoints=True)
    assert lengths(run) == [3, 9, 1, 0]
    assert scheduler.recommendation().config == {"arm": 0}
    assert scheduler.recommendation().certified


@pytest.mark.parametrize("max_failures", [0, 1])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_an_arm_whose_trials_all_crash_leaves(max_failures, checkpoints):
    def value(config, iteration):
        if config["arm"] == 2 and iteration >= 3:
            raise ZeroDivisionError
        return WORKED[config["arm"]][iteration - 1]

    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = simulate(
        scheduler,
        arms(3),
        Values(value),
        slots=2,
        checkpoints=checkpoints,
        max_failures=max_failures,
    )
    assert [trial.status for trial in run.trials] == ["TERMINATED", "TERMINATED", "ERROR"]
    assert kinds(run)["requeued"] == max_failures
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 0}
    assert answer.survivors == (0,)
    assert answer.compared == 2
    # It had stopped the second one, which stays below the first one all the same.
    assert answer.certified


@pytest.mark.parametrize("max_failures", [0, 1])
def test_a_trial_that_ray_gives_up_without_a_word_has_failed(max_failures):
    """As where a process cannot be used again: the trial is ERROR, and no hook is called."""

    class Aborting(MFEliminationScheduler):
        def choose_trial_to_run(self, tune_controller):
            chosen = super().choose_trial_to_run(tune_controller)
            if chosen is None or chosen.config["arm"] != 2:
                return chosen
            chosen.handle_error()
            tune_controller._set_trial_status(chosen, Trial.ERROR)
            return None

    scheduler = Aborting(max_t=9, bias=BIAS)
    run = simulate(
        scheduler,
        arms(3),
        ReplayedCurves(WORKED),
        slots=1,
        checkpoints=True,
        max_failures=max_failures,
    )
    assert lengths(run) == [9, 1, 0]  # .5 at best at 1, against .6
    answer = scheduler.recommendation()
    assert answer.survivors == (0,)
    assert answer.certified


def test_an_arm_that_is_lost_with_its_node_and_not_begun_again_has_failed(monkeypatch):
    monkeypatch.setattr("mfhpo_ray.schedulers.arm_scheduler.was_lost", lambda trial: True)

    def value(config, iteration):
        if config["arm"] == 2:
            raise ZeroDivisionError
        return WORKED[config["arm"]][iteration - 1]

    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    simulate(scheduler, arms(3), Values(value), slots=1, checkpoints=True)
    answer = scheduler.recommendation()
    assert answer.survivors == (0,)
    assert answer.certified


@pytest.mark.parametrize("max_failures", [0, 3])
def test_a_trial_that_hangs_is_stopped_at_the_limit_and_has_failed(max_failures):
    class Hanging(ReplayedCurves):
        def step(self, config, iteration):
            if config["arm"] == 2 and iteration == 2:
                return Step(0.0, math.inf)
            return super().step(config, iteration)

    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, limit=20)
    run = simulate(
        scheduler,
        arms(3),
        Hanging(WORKED),
        slots=1,
        checkpoints=True,
        max_failures=max_failures,
        time_budget=500.0,
    )
    # The third starts after 2 seconds, and is stopped 20 later; the first one takes 8 more.
    assert lengths(run) == [9, 1, 1]
    assert run.trials[2].last_result["mfhpo/censored_at"] == 20.0
    assert 30.0 < run.makespan < 31.0
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 0}
    assert answer.survivors == (0,)
    assert answer.certified


def test_what_an_arm_stopped_that_then_failed_is_not_forgotten():
    rows = [(0.1, 0.2, 0.3), (0.3, 0.5, 0.6), (0.8, 0.8, 0.8)]

    def value(config, iteration):
        if config["arm"] == 2 and iteration == 2:
            raise ZeroDivisionError
        return table(*rows)[config["arm"]][iteration - 1]

    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, breadth_first=True)
    run = simulate(scheduler, arms(3), Values(value), slots=1, checkpoints=True)
    # The third came to .8 at 1, which stopped both others (.5 and .7 at best), and crashed.
    assert lengths(run) == [1, 1, 1]
    answer = scheduler.recommendation()
    assert answer.arm is None
    assert not answer.certified


def test_when_all_fail_there_is_no_answer():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = simulate(scheduler, arms(3), Values(lambda config, iteration: 1 / 0), slots=2)
    assert {trial.status for trial in run.trials} == {"ERROR"}
    answer = scheduler.recommendation()
    assert answer.config == {}
    assert answer.reason == "every arm has failed"
    assert "every arm has failed" in str(answer)


def test_trials_that_end_early_count_by_their_last_value_with_one_warning():
    scheduler = MFEliminationScheduler(max_t=27, bias={1: 0.4, 3: 0.1})
    with pytest.warns(UserWarning, match="ended at training_iteration=9") as caught:
        run = simulate(scheduler, arms(3), ReplayedCurves(WORKED), slots=1, checkpoints=True)
    assert len([w for w in caught if "ended at" in str(w.message)]) == 1
    assert lengths(run)[2] == 9
    assert scheduler.recommendation().certified
    assert scheduler.recommendation().mean == pytest.approx(0.9)


def test_results_that_skip_levels_count_at_the_last_one_passed():
    """Epochs come in fives: 5, 10, ...; the levels are 1, 3 and 20."""
    scheduler = MFEliminationScheduler("epochs", 20, bias=BIAS)
    heights = (0.9, 0.7)

    class Fives:
        def step(self, config, iteration):
            return Step(heights[config["arm"]], 1.0)

    class WithEpochs(MFEliminationScheduler):
        def on_trial_result(self, tune_controller, trial, result):
            result["epochs"] = 5 * result["training_iteration"]
            return super().on_trial_result(tune_controller, trial, result)

    scheduler = WithEpochs("epochs", 20, bias=BIAS)
    run = simulate(scheduler, arms(2), Fives(), slots=1, checkpoints=True)
    # At 5 the bound of 3 holds, .1: the second one ends at .8 at best.
    assert lengths(run) == [4, 1]
    assert scheduler.recommendation().cost == 25.0


def test_a_result_without_the_time_is_refused():
    scheduler = MFEliminationScheduler("epochs", 9, bias=BIAS)
    with pytest.raises(ValueError, match="time_attr='epochs' is not in a trial's result"):
        simulate(scheduler, arms(2), ReplayedCurves(WORKED), slots=1)


# The heuristic.


def test_without_bounds_the_tolerance_halves_and_nothing_is_certified():
    """First values spread evenly from 0 to 1: W = .8, and the tolerances are 1.6, .8 and .4."""
    rows = [(i / 10, i / 10, i / 10) for i in range(11)]
    scheduler = MFEliminationScheduler(max_t=9, breadth_first=True)
    run = simulate(scheduler, arms(11), ReplayedCurves(table(*rows)), slots=1, checkpoints=True)
    # At 3, up to .2 lies .8 behind; at 9, all that have come there have ended.
    assert lengths(run) == [3, 3, 3] + 8 * [9]
    answer = scheduler.recommendation()
    assert answer.finished
    assert not answer.certified
    assert not answer.certifies
    assert answer.config == {"arm": 10}
    assert answer.interval == (-math.inf, math.inf)
    assert "heuristic" in answer.reason
    assert "the best of" in answer.reason


def test_without_bounds_nothing_is_stopped_before_ten_trials():
    rows = [(i / 8, i / 8, i / 8) for i in range(9)]
    scheduler = MFEliminationScheduler(max_t=9)
    run = simulate(scheduler, arms(9), ReplayedCurves(table(*rows)), slots=3, checkpoints=True)
    assert lengths(run) == 9 * [9]


def test_without_bounds_replicates_are_averaged():
    """The first arm is best by its mean, .85; the second has the best single value, .9."""
    value = {0: (0.8, 0.9, 0.85), 1: (0.95, 0.5, 0.5)}
    scheduler = MFEliminationScheduler(max_t=9)
    run = simulate(
        scheduler,
        arms(2, range(3)),
        Values(lambda config, iteration: value[config["arm"]][config["seed"]]),
        slots=2,
        checkpoints=True,
    )
    assert lengths(run) == 6 * [9]
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 0}
    assert answer.mean == pytest.approx(0.85)
    assert run.best()[0].config["arm"] == 1  # what looks best is only lucky


@pytest.mark.parametrize("bias", [BIAS, None])
def test_maximising_and_minimising_are_mirror_images(bias):
    rng = np.random.default_rng(0)
    last = rng.uniform(0.4, 1.0, (30, 1))
    curves = np.sort(last - rng.uniform(0.0, 0.1, (30, 9)) * np.linspace(4, 0, 9), axis=1)
    mirrored = bias and {level: (-high, -low) for level, (low, high) in bias.items()}
    runs = []
    for sign, bounds, mode in ((1.0, bias, "max"), (-1.0, mirrored, "min")):
        scheduler = MFEliminationScheduler(max_t=9, bias=bounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BiasContradictedWarning)
            run = simulate(
                scheduler,
                arms(30),
                ReplayedCurves(sign * curves),
                slots=4,
                mode=mode,
                checkpoints=True,
            )
        answer = scheduler.recommendation()
        runs.append((lengths(run), run.makespan, answer.config, sign * answer.mean, answer.reason))
    assert runs[0] == runs[1]
    assert sum(runs[0][0]) < 270


# Search algorithms, restarts, the work per result.


class Listed(Searcher):
    """Suggests configurations of a list."""

    def __init__(self, configurations):
        super().__init__(metric="value", mode="max")
        self._left = list(configurations)

    def suggest(self, trial_id):
        return self._left.pop(0) if self._left else Searcher.FINISHED

    def on_trial_complete(self, trial_id, result=None, error=False):
        pass


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("max_concurrent_trials", [None, 2])
def test_a_search_algorithm_suggests_the_trials(checkpoints, max_concurrent_trials):
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = simulate(
        scheduler,
        Listed(arms(3)),
        ReplayedCurves(WORKED),
        slots=2,
        num_samples=3,
        checkpoints=checkpoints,
        max_concurrent_trials=max_concurrent_trials,
    )
    assert len(run.trials) == 3
    assert lengths(run)[2] == 9
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 2}
    assert answer.certified
    assert answer.compared == 3


def test_configurations_that_are_suggested_twice_are_replicates():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, arms=6)
    run = simulate(scheduler, Listed(arms(3) + arms(3)), ReplayedCurves(WORKED), slots=2)
    assert all(trial.status == Trial.TERMINATED for trial in run.trials)
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.finished
    assert answer.compared == 3


class Endless(Searcher):
    """Suggests one new arm after the other."""

    def __init__(self):
        super().__init__(metric="value", mode="max")
        self.n_suggested = 0

    def suggest(self, trial_id):
        self.n_suggested += 1
        return {"arm": self.n_suggested - 1}

    def on_trial_complete(self, trial_id, result=None, error=False):
        pass


@pytest.mark.parametrize("bias", [BIAS, None])
def test_a_search_without_end_ends_with_the_last_arm_of_the_race(bias):
    search = Endless()
    scheduler = MFEliminationScheduler(max_t=9, bias=bias, arms=4)
    curves = Values(lambda config, iteration: 0.5 + config["arm"] / 100)
    run = simulate(scheduler, search, curves, slots=2, checkpoints=True, time_budget=1000.0)
    # The fifth is suggested, and never started.
    assert search.n_suggested == 5
    assert lengths(run)[4] == 0
    assert run.makespan < 50.0
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 3}
    assert answer.compared == 4
    assert answer.certified == (bias is not None)


class Noting(MFEliminationScheduler):
    """Keeps the last answer that it would have written to the experiment's storage."""

    def _note_answer(self):
        super()._note_answer()
        self.noted = self.recommendation()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**20),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([BIAS, None]),
    st.sampled_from([0, 1, -1]),
    st.sampled_from(["list", "limited list", "search", "limited search"]),
)
def test_whatever_fails_the_experiment_ends(seed, slots, checkpoints, bias, max_failures, source):
    """Trials crash, end early, or have no number, and all that is left comes to its end."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 1.0, (6, 9)).cumsum(axis=1) / 9
    fate = {
        (arm, r): rng.choice(["", "", "", "crash", "nan", "end"]) for arm, r in np.ndindex(6, 2)
    }
    when = rng.integers(1, 10, (6, 2))
    crashed = set()

    class Fates:
        def step(self, config, iteration):
            key = config["arm"], config["seed"]
            if iteration > 9:
                return None
            if iteration >= when[key] and fate[key] == "end" and iteration > 1:
                return None
            if iteration == when[key] and fate[key] == "crash" and key not in crashed:
                if max_failures:  # the second time it works
                    crashed.add(key)
                return Step(0.0, 1.0, failed=True)
            if iteration >= when[key] and fate[key] == "nan":
                return Step(math.nan, 1.0)
            return Step(float(rows[key[0], iteration - 1]), 1.0)

    configurations = arms(6, range(2))
    scheduler = Noting(max_t=9, bias=bias, n_startup_trials=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = simulate(
            scheduler,
            Listed(configurations) if "search" in source else configurations,
            Fates(),
            slots=slots,
            checkpoints=checkpoints,
            num_samples=12,
            max_failures=max_failures,
            max_concurrent_trials=2 if "limited" in source else None,
        )
    assert all(trial.is_finished() for trial in run.trials)
    started = Counter(event.trial_id for event in run.events if event.kind == "started")
    answer = scheduler.recommendation()
    assert answer.finished
    assert answer.trials <= len(started) <= 12
    assert 0 < answer.cost <= run.iterations + 1e-9
    assert scheduler.noted.finished


def test_a_trial_of_an_arm_that_was_let_go_is_not_started():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, breadth_first=False)
    suggested = [{"arm": 2}, {"arm": 1}, {"arm": 1, "seed": 1}, {"arm": 0}]
    run = simulate(scheduler, Listed(suggested), ReplayedCurves(WORKED), slots=1, num_samples=4)
    assert lengths(run) == [9, 1, 0, 1]


@pytest.fixture
def journal(tmp_path, monkeypatch):
    journal = Journal(LocalFileSystem(), str(tmp_path))
    monkeypatch.setattr(Journal, "of", lambda trial: journal)
    return journal


@pytest.mark.parametrize("bias", [BIAS, None])
@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("seconds", [3.5, 11.5, 20.5])
def test_after_a_restart_nothing_observed_is_lost(journal, bias, checkpoints, seconds):
    heights = np.linspace(0.2, 0.9, 12)
    curves = ReplayedCurves(table(*[(h - 0.2, h - 0.05, h) for h in heights]))
    first = MFEliminationScheduler(max_t=9, bias=bias)
    options = {"slots": 2, "checkpoints": checkpoints}
    run = simulate(first, arms(12), curves, time_budget=seconds, **options)
    before = journal.read()
    assert before.pop("recommendation", None)
    before.pop("race")
    seen = {trial.trial_id: length(trial) for trial in run.trials}
    assert len([name for name in before if before[name]["observed"]]) == sum(
        length > 0 for length in seen.values()
    )

    second = MFEliminationScheduler(max_t=9, bias=bias)
    again = simulate(second, arms(12), curves, **options)
    for trial in again.trials:
        record = before.get(trial.trial_id, {"over": False, "out": False, "observed": []})
        if record["over"] or record["out"]:
            assert not again.history(trial.trial_id)  # decided before, and not begun again
    after = journal.read()
    for name, record in before.items():
        assert after[name]["observed"][: len(record["observed"])] == record["observed"]
    answer = second.recommendation()
    assert answer.config == {"arm": 11}
    assert answer.certified == (bias is not None)
    # What two trials were trained since their last levels is not known any more.
    assert 0 <= run.iterations + again.iterations - answer.cost <= 2 * 5
    assert first._race.out <= second._race.out


def written(arm, observed, *, over=False):
    """What is in the journal of a trial; observed: number, index of the level, value."""
    epochs = (1, 3, 9)[observed[-1][1]]
    return {
        "config": encode({"arm": arm}),
        "observed": observed,
        "reached": observed[-1][1],
        "shown": float(epochs),
        "cost": float(epochs),
        "over": over,
        "out": False,
    }


def test_an_arm_that_ray_forgot_after_it_ended_can_win(journal):
    journal.write("forgotten", written(9, [[1, 0, 0.8], [2, 1, 0.9], [3, 2, 0.95]], over=True))
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    curves = ReplayedCurves(WORKED)
    run = simulate(scheduler, Listed(arms(3)), curves, slots=1, num_samples=3, checkpoints=True)
    # Against .95, the first (.8 at best) and the second (.5) leave at 1, the third (.9) as well.
    assert lengths(run) == [1, 1, 1]
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 9}
    assert answer.certified
    assert answer.compared == 4
    assert answer.cost == 12.0


@pytest.mark.parametrize(("first", "certified"), [(0.4, True), (0.6, False)])
def test_an_arm_that_ray_forgot_on_its_way_is_in_the_way_of_a_certificate(
    journal, first, certified
):
    """It gets to .8 or 1 at best; the best of the others ends at .9."""
    journal.write("forgotten", written(9, [[1, 0, first]]))
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    curves = ReplayedCurves(WORKED)
    run = simulate(scheduler, Listed(arms(3)), curves, slots=1, num_samples=3, checkpoints=True)
    assert lengths(run)[2] == 9
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 2}
    assert answer.certified == certified
    assert answer.finished


class Restored(MFEliminationScheduler):
    """Some trials have ended before a restart, in one way or another."""

    ended: ClassVar = {}

    def on_trial_add(self, tune_controller, trial):
        if trial.config["arm"] in self.ended:
            status, last_result = self.ended[trial.config["arm"]]
            trial.set_status(status)
            trial.run_metadata.last_result = last_result
        super().on_trial_add(tune_controller, trial)


@pytest.mark.parametrize(
    ("ended", "certified"),
    [
        ((Trial.TERMINATED, {}), False),
        ((Trial.ERROR, {}), True),
        ((Trial.TERMINATED, {"mfhpo/censored_at": 5.0}), True),
    ],
)
@pytest.mark.usefixtures("journal")
def test_after_a_restart_what_was_cut_short_has_not_failed(monkeypatch, ended, certified):
    """A time budget ends trials; the others are no closer to a certificate for that."""
    monkeypatch.setattr(Restored, "ended", {1: ended})
    scheduler = Restored(max_t=9, bias=BIAS)
    run = simulate(scheduler, arms(3), ReplayedCurves(WORKED), slots=1, checkpoints=True)
    assert lengths(run)[2] == 9
    answer = scheduler.recommendation()
    assert answer.config == {"arm": 2}
    assert answer.certified == certified
    assert answer.survivors == ((2,) if certified else (1, 2))


def test_trials_beyond_the_arms_of_the_race_are_not_begun_after_a_restart(journal):
    journal.write("race", {"n_arms": 2})
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = simulate(scheduler, arms(3), ReplayedCurves(WORKED), slots=1, checkpoints=True)
    assert lengths(run) == [9, 1, 0]
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.compared == 2


def test_the_work_for_a_result_does_not_grow_with_the_number_of_trials(monkeypatch):
    """Counted: how often the scheduler looks at an arm, for each result."""
    looks = []
    for n_arms in (50, 400):
        scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
        count = itertools.count()
        turn = MFEliminationScheduler._turn

        def counting(self, arm, at_rest=None, count=count, turn=turn):
            next(count)
            return turn(self, arm, at_rest)

        monkeypatch.setattr(MFEliminationScheduler, "_turn", counting)
        last = np.random.default_rng(1).uniform(0.4, 1.0, n_arms)
        curves = ReplayedCurves(table(*[(end - 0.3, end - 0.05, end) for end in last]))
        run = simulate(scheduler, arms(n_arms), curves, slots=4, checkpoints=True)
        monkeypatch.undo()
        assert scheduler.recommendation().certified
        looks.append(next(count) / run.iterations)
    assert looks[1] < 1.3 * looks[0] < 12


# Arguments.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give either max_t"),
        ({"max_t": 9, "levels": [1, 9]}, "give either max_t"),
        ({"bias": BIAS}, "give max_t, the time at which a trial is complete"),
        ({"bias": BIAS, "levels": [1, 3, 9]}, "and not levels"),
        ({"bias": {9: 0.1}, "max_t": 9}, "is not before max_t=9"),
        ({"bias": {}, "max_t": 9}, "at least one step"),
        ({"bias": {1: 0.1, 3: 0.2}, "max_t": 9}, "must not grow"),
        ({"bias": lambda level: level, "max_t": 9}, "must not grow"),
        ({"bias": {1: -0.1}, "max_t": 9}, "at least 0"),
        ({"bias": {0: 0.1}, "max_t": 9}, "must be above 0"),
        ({"levels": [3, 1]}, "increase strictly"),
        ({"levels": [3]}, "nothing would ever be stopped"),
        ({"max_t": 1}, "nothing would ever be stopped"),
        ({"max_t": 9, "grace_period": 10}, "grace_period=10"),
        ({"max_t": 9, "noise": -1.0}, "noise"),
        ({"max_t": 9, "n_startup_trials": -1}, "n_startup_trials"),
        ({"max_t": 9, "mode": "maximize"}, "mode must be"),
        ({"max_t": 9, "arms": 1}, "arms"),
        ({"max_t": 9, "limit": 0.0}, "limit must be a positive number of seconds"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        MFEliminationScheduler(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_t": 9, "noise": "small"}, "noise must be a number"),
        ({"max_t": 9, "bias": {1: "small"}}, r"bias\[1"),
        ({"max_t": 9, "bias": {"one": 0.1}}, "bias: level"),
        ({"max_t": 9, "breadth_first": "yes"}, "breadth_first must be"),
        ({"max_t": 9, "time_attr": 1}, "time_attr must be"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(options, words):
    with pytest.raises(TypeError, match=words):
        MFEliminationScheduler(**options)


def test_bounds_as_a_function_are_asked_at_the_levels():
    asked = []

    def bias(level):
        asked.append(level)
        return 1.0 / level

    scheduler = MFEliminationScheduler(max_t=27, bias=bias, reduction_factor=3, grace_period=3)
    assert asked == [3, 9]
    with pytest.raises(ValueError, match="the race has not begun"):
        scheduler.recommendation()


# Real runs.


@pytest.mark.slow
@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.usefixtures("ray_cluster")
def test_a_real_run(tmp_path, saves):
    """Eight configurations: those that are saved go on from where they were, others run on."""
    log = tmp_path / "log"
    log.mkdir()

    def train(config):
        begin = 1
        checkpoint = tune.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as folder:
                begin = int(Path(folder, "epoch").read_text()) + 1
        for epoch in range(begin, 10):
            with open(log / str(config["height"]), "a") as file:
                file.write(f"{epoch} ")
            metrics = {"accuracy": config["height"] * (1 - 0.3 * (epoch < 9) / epoch)}
            if not saves:
                tune.report(metrics)
                continue
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "epoch").write_text(str(epoch))
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))

    heights = [0.2, 0.9, 0.3, 0.8, 0.4, 0.5, 0.6, 0.7]
    scheduler = MFEliminationScheduler(max_t=9, bias={1: (0.0, 0.3), 3: (0.0, 0.1)})
    tuner = tune.Tuner(
        train,
        param_space={"height": tune.grid_search(heights)},
        tune_config=tune.TuneConfig(
            metric="accuracy", mode="max", scheduler=scheduler, reuse_actors=True
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path / "results"), verbose=0),
    )
    results = tuner.fit()
    assert not results.errors
    answer = recommendation(results)
    assert answer.certified
    assert answer.config == {"height": 0.9}
    assert answer.mean == pytest.approx(0.9)
    trained = {float(path.name): path.read_text().split() for path in log.iterdir()}
    assert trained[0.9] == [str(epoch) for epoch in range(1, 10)]
    for epochs in trained.values():  # none was trained twice
        assert epochs == [str(epoch) for epoch in range(1, len(epochs) + 1)]
    if saves:
        # By 0.2, 0.3, ... at the first level and 0.3 more, five never get to 0.9.
        assert len(trained[0.2]) <= 2
        assert sum(map(len, trained.values())) <= 45
