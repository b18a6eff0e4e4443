"""IISEScheduler in virtual time: trials that crash, hang, diverge, or begin again."""

import warnings
from collections import Counter

import pytest
from ray.tune.experiment import Trial

from benchmarks.tune_clock import simulate
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_ray import IISEScheduler, MFEliminationScheduler
from tests.ray.schedulers.races import (
    Spoiled,
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
