"""MFEliminationScheduler: whom it stops by bounds, and what it answers."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ray.tune.experiment import Trial

from benchmarks.tune_clock import ReplayedCurves, Step, simulate
from mfhpo import BiasContradictedWarning
from mfhpo_ray import MFEliminationScheduler

# Accuracies that gain at most .4 after iteration 1 and .1 after 3, and end at 9.
BIAS = {1: (0.0, 0.4), 3: (0.0, 0.1)}


def table(*rows):
    return [[first] * 2 + [second] * 6 + [last] for first, second, last in rows]


# The best one is the third; by its bounds the first is hopeless at 3 and the second at 1.
WORKED = table((0.4, 0.5, 0.6), (0.1, 0.2, 0.3), (0.5, 0.8, 0.9))


def arms(number, seeds=None):
    if seeds is None:
        return [{"arm": arm} for arm in range(number)]
    return [{"arm": arm, "seed": seed} for arm, seed in itertools.product(range(number), seeds)]


def lengths(run):
    return [trial.last_result.get("training_iteration", 0) for trial in run.trials]


def raced(scheduler, curves, trials=None, **options):
    """One after the other, with checkpoints, unless options say otherwise."""
    curves = ReplayedCurves(curves) if isinstance(curves, list) else curves
    options = {"slots": 1, "checkpoints": True, **options}
    return simulate(scheduler, trials or arms(3), curves, **options)


class Values:
    def __init__(self, value):
        self._value = value

    def step(self, config, iteration):
        return Step(self._value(config, iteration), 1.0) if iteration <= 9 else None


@pytest.mark.parametrize(("mode", "sign"), [("max", 1.0), ("min", -1.0)])
def test_worked_example_with_checkpoints(mode, sign):
    bias = BIAS if sign > 0 else {level: (-high, 0.0) for level, (_, high) in BIAS.items()}
    scheduler = MFEliminationScheduler(max_t=9, bias=bias)
    run = raced(scheduler, ReplayedCurves(sign * np.array(WORKED)), mode=mode)
    # All come to 1; the third (to .9 at best) goes on to its end; the first (to .8) does not.
    assert lengths(run) == [1, 1, 9]
    assert run.iterations == 11
    answer = scheduler.recommendation()
    assert (answer.config, answer.certified, answer.finished) == ({"arm": 2}, True, True)
    assert answer.mean == pytest.approx(sign * 0.9)
    assert answer.interval == pytest.approx((sign * 0.9, sign * 0.9))
    assert (answer.delta, answer.epsilon, answer.level) == (0.0, 0.0, 9)
    assert (answer.cost, answer.trials, answer.compared) == (11.0, 3, 3)
    assert answer.survivors == (2,)


@st.composite
def races(draw):
    n_arms = draw(st.integers(2, 8))
    n_replicates = draw(st.integers(1, 3))
    noise = draw(st.sampled_from([0.0, 0.05]))
    number = st.floats(-1.0, 1.0)
    finals = draw(st.lists(st.integers(0, 50), min_size=n_arms, max_size=n_arms))
    shapes = draw(st.lists(st.tuples(number, number), min_size=n_arms, max_size=n_arms))
    seed = draw(st.integers(0, 2**20))
    errors = np.random.default_rng(seed).uniform(-noise, noise, (n_arms, n_replicates, 9))
    return np.array(finals) / 50.0, shapes, errors, noise, n_replicates


@settings(max_examples=40, deadline=None)
@given(
    races(),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from(["max", "min"]),
)
@example(  # a tie that rounding would break
    (np.array([0.02, 0.02]), [(0.0, 0.0), (0.0, 1.0)], np.zeros((2, 1, 9)), 0.0, 1),
    1,
    False,
    "max",
)
def test_the_best_arm_is_never_stopped_while_the_bounds_hold(race, slots, checkpoints, mode):
    finals, shapes, errors, noise, n_replicates = race
    sign = 1.0 if mode == "max" else -1.0

    def value(config, iteration):
        arm = config["arm"]
        first, second = shapes[arm]
        early = 0.3 * first if iteration < 3 else 0.1 * second if iteration < 9 else 0.0
        return sign * (finals[arm] + early + errors[arm, config["seed"], iteration - 1])

    scheduler = MFEliminationScheduler(max_t=9, bias={1: 0.3, 3: 0.1}, noise=noise)
    run = simulate(
        scheduler,
        arms(len(finals), range(n_replicates)),
        Values(value),
        slots=slots,
        mode=mode,
        checkpoints=checkpoints,
    )
    assert all(trial.status == Trial.TERMINATED for trial in run.trials)
    ended = {
        t.config["arm"] for t, length in zip(run.trials, lengths(run), strict=True) if length == 9
    }
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


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=2, max_size=10))
def test_one_at_a_time_no_level_is_trained_in_vain(rows):
    """Whoever went on from a level could still have ended above the best one."""
    rows = [(last - first, last - min(first, second / 4), last) for first, second, last in rows]
    curves = np.array(table(*rows)) / 100.0
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    run = raced(scheduler, ReplayedCurves(curves), arms(len(rows)))
    best = curves[:, -1].max()
    for length, curve in zip(lengths(run), curves, strict=True):
        assert length <= 1 or curve[0] + 0.4 >= best - 1e-12
        assert length <= 3 or curve[2] + 0.1 >= best - 1e-12


def test_an_arm_loses_all_its_trials_and_those_that_wait_never_start():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, noise=0.01)
    run = raced(scheduler, WORKED, arms(3, range(5)))
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
    run = raced(scheduler, Values(value), arms(2, range(2)))
    # After .52 and .51: [.5, .54] and [.49, .53]. Of the first, .48 more: [.5, .5]. Then the other.
    assert lengths(run)[0] == lengths(run)[2] == 9
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.config == {"arm": 1}
    assert answer.interval == pytest.approx((0.53, 0.53))


def test_what_bounds_leave_open_is_not_certified():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS, noise=0.05)
    run = raced(scheduler, table((0.5, 0.7, 0.8), (0.5, 0.7, 0.82)), arms(2), slots=2)
    assert lengths(run) == [9, 9]
    answer = scheduler.recommendation()
    assert (answer.config, answer.certified, answer.finished) == ({"arm": 1}, False, True)
    assert answer.interval == pytest.approx((0.77, 0.85))  # at 3 it had .7
    assert "by at most 0.08" in answer.reason  # .85 against .77
    assert answer.survivors == (0, 1)


def test_declared_noise_that_replicates_contradict_is_warned_of_and_nothing_is_certified():
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    curves = Values(lambda config, iteration: 0.5 + 0.1 * config["seed"])
    with pytest.warns(BiasContradictedWarning, match="what was declared is contradicted by trial"):
        raced(scheduler, curves, arms(2, range(2)))
    answer = scheduler.recommendation()
    assert not answer.certified
    assert "contradicted by 1 of the arms" in answer.reason
    assert answer.survivors == (0,)  # what it showed speaks neither for nor against it


def test_bounds_that_are_contradicted_are_widened_with_one_warning_each():
    rows = table((0.1, 0.55, 0.6), (0.0, 0.55, 0.6), (0.3, 0.5, 0.55), (0.3, 0.45, 0.5))
    scheduler = MFEliminationScheduler(max_t=9, bias=BIAS)
    with pytest.warns(BiasContradictedWarning) as caught:
        simulate(scheduler, arms(4), ReplayedCurves(rows), slots=4)
    early, late = [str(w.message) for w in caught if w.category is BiasContradictedWarning]
    # It had to end at .5 at best, and has .55 at 3.
    assert (
        "what was declared is contradicted by trial simulated_00001 (0.1 at 1, 0.55 at 3)" in early
    )
    assert "bias[1] is contradicted by trial simulated_00001 (0.1 at 1, 0.55 at 3, " in late
    answer = scheduler.recommendation()
    assert not answer.certified
    assert "may have been stopped in error" in answer.reason
