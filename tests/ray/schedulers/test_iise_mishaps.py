"""IISEScheduler in virtual time: trials that crash, hang, diverge, or begin again."""

import math
import warnings
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ray.tune.experiment import Trial
from ray.tune.search import ConcurrencyLimiter

from benchmarks.tune_clock import simulate
from mfhpo import Bias
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_ray import IISEScheduler, MFEliminationScheduler
from tests.ray.schedulers.races import (
    BIAS,
    Spoiled,
    Suggesting,
    curves_of,
    declared,
    grid,
    race,
    started,
)


def test_a_crash_of_the_winner_does_not_cost_it_the_certificate():
    # Twelve replicates, all of which are to be measured at the end; one never comes there, and no
    # other arm is run in its place.
    crash = ({"arm": 3, "seed": 2}, 20)
    curves = Spoiled(curves_of(sigma=0.02), lambda *reached: reached == crash)
    scheduler = declared(sigma=0.02, measure=12, variant="se")
    run = race(scheduler, grid(5, 12), curves, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.finished) == (3, True, True)
    assert Counter(scheduler.pairs)[3, 3] == 12
    of_winner = [trial.trial_id for trial in run.trials if trial.config["arm"] == 3]
    assert sum(run.history(name)[-1].iteration == 27 for name in of_winner) == 11


def test_what_ray_tries_again_after_a_restart_goes_on(shared_journal):
    # Tuner.restore(resume_errored=True): some of arm 3's trials crash, and then do not any more.
    broken = Spoiled(curves_of(), lambda config, iteration: config["arm"] == 3 and iteration == 2)
    before, after = declared(), declared()
    with pytest.warns(ArmWithdrawnWarning):
        first = race(before, grid(5, 20), broken, slots=2, checkpoints=True)
    assert before.recommendation().arm == 2
    crashed = {trial.trial_id for trial in first.trials if trial.status == Trial.ERROR}
    assert len(crashed) >= 3
    records = shared_journal.read()
    # One that crashed when its arm had left is not written down.
    assert not any(records.get(name, {}).get("over") for name in crashed)
    second = race(after, grid(5, 20), curves_of(), slots=2, checkpoints=True)
    answer = after.recommendation()
    assert (answer.arm, answer.certified, answer.compared) == (3, True, 5)
    assert crashed & started(second)
    # What the crashed attempts have cost is paid.
    assert answer.cost >= before.recommendation().cost


@pytest.mark.parametrize("stopped_at", [5.0, 12.0, 20.0])
def test_what_ray_tried_again_has_not_failed_after_one_more_restart(shared_journal, stopped_at):
    broken = Spoiled(curves_of(), lambda config, iteration: config["arm"] == 3 and iteration == 1)
    options = {"slots": 4, "checkpoints": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmWithdrawnWarning)
        simulate(declared(), grid(5, 10), broken, time_budget=30.0, **options)
    simulate(declared(), grid(5, 10), curves_of(), time_budget=stopped_at, **options)
    scheduler = declared()
    race(scheduler, grid(5, 10), curves_of(), **options)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.failures) == (3, True, 0)


@st.composite
def races(draw):
    n_arms = draw(st.integers(1, 6))
    return {
        "finals": draw(st.lists(st.floats(-1, 1), min_size=n_arms, max_size=n_arms)),
        "n_replicates": draw(st.integers(1, 6)),
        "slots": draw(st.integers(1, 7)),
        "checkpoints": draw(st.booleans()),
        "max_failures": draw(st.sampled_from([0, 1, 3])),
        "failing": draw(st.sampled_from([0.0, 0.05, 0.5])),
        "diverging": draw(st.sampled_from([0.0, 0.05, 0.5])),
        "seed": draw(st.integers(0, 2**16)),
        "variant": draw(st.sampled_from([None, "order", "se", "mfe"])),
        "sigma": draw(st.sampled_from([0.02, 0.3])),
        "length": draw(st.sampled_from([2, 9, 27, 40])),
        "searcher": draw(st.sampled_from([None, 0, 2])),
        "most": draw(st.sampled_from([0, 2])),
    }


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(races())
@pytest.mark.filterwarnings("ignore")
def test_every_race_ends_and_tells_only_what_was_reported(drawn):
    rng = np.random.default_rng(drawn["seed"])
    chances = defaultdict(lambda: iter(rng.random(50)))

    def rule(config, iteration):
        if next(chances[config["arm"], config["seed"], iteration]) < drawn["failing"]:
            return True
        is_nan = hash((config["seed"], iteration)) % 100 < 100 * drawn["diverging"]
        return is_nan and "nan"

    n_arms = len(drawn["finals"])
    curves = Spoiled(curves_of(drawn["finals"], sigma=drawn["sigma"], length=drawn["length"]), rule)
    trials = grid(n_arms, drawn["n_replicates"])
    searcher = None
    if drawn["searcher"] is not None and n_arms > 1:
        searcher = trials = Suggesting(trials)
        if drawn["searcher"]:
            trials = ConcurrencyLimiter(searcher, drawn["searcher"])
    scheduler = declared(
        sigma=drawn["sigma"],
        variant=drawn["variant"],
        bias=None if drawn["variant"] in ("se", "mfe") and drawn["seed"] % 2 else BIAS,
        pilot_pulls=2,
    )
    known = scheduler._race.declaration
    if known.bias is None and drawn["n_replicates"] < 2:
        known = replace(known, bias=Bias.max(*BIAS))
        scheduler._race = replace(scheduler._race, declaration=known)
    run = race(
        scheduler,
        trials,
        curves,
        slots=drawn["slots"],
        checkpoints=drawn["checkpoints"],
        max_failures=drawn["max_failures"],
        max_concurrent_trials=drawn["most"],
        **({} if searcher is None else {"num_samples": n_arms * drawn["n_replicates"]}),
    )
    assert scheduler.most_busy <= drawn["slots"]
    answer = scheduler.recommendation()
    assert answer.finished
    if searcher is not None:
        assert not searcher.live
    for each, _, told in scheduler.told:
        if told.value is not None and not math.isnan(told.value):
            assert told.value in {event.value for event in run.history(each.trial.trial_id)}
    assert sum(told.cost or 0.0 for *_, told in scheduler.told) <= answer.cost + 1e-9


BOUNDS = {1: (0.0, 0.5), 3: (0.0, 0.2), 9: (0.0, 0.1)}


@pytest.mark.parametrize(
    ("make", "n_replicates"),
    [
        (declared, 20),
        (lambda: IISEScheduler(max_t=27), 1),
        (lambda: MFEliminationScheduler(max_t=27, bias=BOUNDS), 1),
    ],
    ids=["replicates", "promotion", "bounds"],
)
def test_values_that_a_stop_cuts_are_of_the_levels_that_were_reached(make, n_replicates):
    scheduler = make()
    with pytest.warns(UserWarning, match="has stopped trial") as caught:
        race(scheduler, grid(5, n_replicates), curves_of(), max_t=5)
    cuts = [str(each.message) for each in caught if "has stopped trial" in str(each.message)]
    assert len(cuts) == 1
    assert cuts[0].startswith("RunConfig(stop={'training_iteration': 5})")
    levels = {result.pull.fidelity for result in scheduler._course.experiment.history()}
    assert levels <= {0, 1}
    assert not scheduler.recommendation().certified
