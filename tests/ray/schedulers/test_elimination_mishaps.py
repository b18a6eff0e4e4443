"""MFEliminationScheduler in virtual time: trials that fail, search algorithms, and restarts."""

import math
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ray.tune.experiment import Trial

from benchmarks.tune_clock import ReplayedCurves, Step
from mfhpo import Bias, BiasContradictedWarning
from mfhpo.experiment import Begun, Ended
from mfhpo_ray import IISEScheduler, MFEliminationScheduler
from tests.ray.schedulers.races import Spoiled, Suggesting, events_of, part_of
from tests.ray.schedulers.test_elimination_scheduler import (
    BIAS,
    WORKED,
    arms,
    lengths,
    raced,
    table,
)


def scheduler_of(**options):
    return MFEliminationScheduler(**({"max_t": 9, "bias": BIAS} | options))


def answer_of(scheduler):
    answer = scheduler.recommendation()
    return answer.survivors, answer.certified


def third_fails(rule, rows=WORKED):
    return Spoiled(ReplayedCurves(rows), lambda config, at: config["arm"] == 2 and rule(at))


def test_a_trial_that_hangs_is_stopped_at_the_limit_and_has_failed():
    scheduler = scheduler_of(limit=20)
    hangs = third_fails(lambda at: at == 2 and "hang")
    run = raced(scheduler, hangs, max_failures=3, time_budget=500.0)
    # The third starts after 2 seconds, and is stopped 20 later; the first one takes 8 more.
    assert lengths(run) == [9, 1, 1]
    assert run.trials[2].last_result["mfhpo/censored_at"] == 20.0
    assert 30.0 < run.makespan < 31.0
    assert answer_of(scheduler) == ((0,), True)


def noting(cls, **options):
    class Noting(cls):
        def _note_answer(self, urgent=True):
            super()._note_answer(urgent)
            self.noted = self.recommendation()

    return Noting(max_t=9, **options)


KINDS = {
    "bounds": lambda: noting(MFEliminationScheduler, bias=BIAS),
    "promotion": lambda: noting(MFEliminationScheduler),
    "race": lambda: noting(IISEScheduler, sigma=0.1, bias=(0.2, 0.1, 0.0)),
    "race by differences": lambda: noting(IISEScheduler, sigma=0.1, bias=Bias.order(0.2, 0.1, 0)),
}


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**20),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([0, 1, -1]),
    st.sampled_from(["list", "limited list", "search", "limited search"]),
)
def test_whatever_fails_the_experiment_ends(seed, slots, checkpoints, kind, max_failures, source):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 1.0, (6, 9)).cumsum(axis=1) / 9
    fate = {
        (arm, r): rng.choice(["", "", "", "crash", "nan", "end"]) for arm, r in np.ndindex(6, 2)
    }
    when = rng.integers(1, 10, (6, 2))
    crashed = set()

    class Fates(ReplayedCurves):
        def step(self, config, iteration):
            key = config["arm"], config["seed"] % 2  # that of a finalist is a new one
            if iteration >= when[key] and fate[key] == "end" and iteration > 1:
                return None
            if iteration == when[key] and fate[key] == "crash" and key not in crashed:
                if max_failures:  # the second time it works
                    crashed.add(key)
                return Step(0.0, 1.0, failed=True)
            if iteration >= when[key] and fate[key] == "nan" and iteration <= 9:
                return Step(math.nan, 1.0)
            return super().step(config, iteration)

    configurations = arms(6, range(2))
    assume(kind != "promotion" or "list" in source)  # all trials are known
    scheduler = KINDS[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = raced(
            scheduler,
            Fates(rows),
            Suggesting(configurations) if "search" in source else configurations,
            slots=slots,
            checkpoints=checkpoints,
            num_samples=12,
            max_failures=max_failures,
            max_concurrent_trials=2 if "limited" in source else 0,
        )
    assert all(trial.is_finished() for trial in run.trials)
    started = Counter(event.trial_id for event in run.events if event.kind == "started")
    answer = scheduler.recommendation()
    assert answer.finished
    assert answer.trials <= len(started) or kind != "bounds"  # a trial counts at each level
    assert len(started) <= 12 or kind == "promotion"  # finalists are evaluated by new trials
    assert 0 < answer.cost <= run.iterations + 1e-9
    assert scheduler.noted.finished


@pytest.mark.parametrize(("checkpoints", "seconds"), [(True, 3.5), (False, 20.5)])
def test_after_a_restart_nothing_observed_is_lost(shared_journal, checkpoints, seconds):
    heights = np.linspace(0.2, 0.9, 12)
    curves = table(*[(h - 0.2, h - 0.05, h) for h in heights])
    first, second = scheduler_of(), scheduler_of()
    options = {"slots": 2, "checkpoints": checkpoints}
    run = raced(first, curves, arms(12), time_budget=seconds, **options)
    before = shared_journal.read()
    assert shared_journal.read_one("recommendation")
    reporting = sum(length > 0 for length in lengths(run))
    assert sum(bool(events_of(record)) for record in before.values()) == reporting

    again = raced(second, curves, arms(12), **options)
    arm_of = {trial.trial_id: trial.config["arm"] for trial in run.trials}
    for name, record in before.items():
        is_over = any(end.level == 2 for end in events_of(record))
        if is_over or arm_of.get(name) in first._course.out:
            assert not again.history(name)  # decided before, and not begun again
    after = shared_journal.read()
    for name, record in before.items():
        assert after[name]["events"][: len(record["events"])] == record["events"]
    answer = second.recommendation()
    assert (answer.config, answer.certified) == ({"arm": 11}, True)
    # What two trials were trained since their last levels is not known any more.
    assert 0 <= run.iterations + again.iterations - answer.cost <= 2 * 5


@pytest.mark.usefixtures("shared_journal")
def test_after_a_restart_contradictions_are_not_warned_of_again():
    curves = table((0.3, 0.9, 0.9), (0.2, 0.3, 0.35))
    with pytest.warns(BiasContradictedWarning, match=r"bias\[1\] is contradicted"):
        raced(scheduler_of(), curves, arms(2))
    restored = scheduler_of()
    with warnings.catch_warnings():
        warnings.simplefilter("error", BiasContradictedWarning)
        raced(restored, curves, arms(2))
    assert "contradicted by 1 of the arms" in restored.recommendation().reason


@pytest.mark.parametrize(
    ("observed", "best", "certified"),
    [
        # Against .95, the first (.8 at best) and the second (.5) leave at 1, the third (.9) too.
        ([0.8, 0.9, 0.95], 9, True),
        # It gets to .8 or 1 at best; the best of the others ends at .9.
        ([0.4], 2, True),
        ([0.6], 2, False),
    ],
)
def test_an_arm_that_ray_forgot_takes_part_with_what_it_has_shown(
    shared_journal, observed, best, certified
):
    events = []
    epochs = [1.0, 2.0, 6.0][: len(observed)]
    for level, (value, cost) in enumerate(zip(observed, epochs, strict=True)):
        id, order = f"forgotten:{level}", 2 * level
        events.append(Begun(id=id, order=order, configuration={"arm": 9}, levels=(level,)))
        events.append(Ended(id=id, order=order + 1, value=value, level=level, cost=cost))
    shared_journal.append([part_of("forgotten", *events)])
    scheduler = scheduler_of()
    run = raced(scheduler, WORKED, Suggesting(arms(3)), num_samples=3)
    assert lengths(run)[2] == (1 if best == 9 else 9)
    answer = scheduler.recommendation()
    assert (answer.config, answer.certified) == ({"arm": best}, certified)
    assert (answer.finished, answer.compared) == (True, 4)
    assert answer.cost == run.iterations + sum(epochs)


@pytest.mark.parametrize(
    ("ended", "certified"),
    [
        ((Trial.TERMINATED, {}), False),
        ((Trial.ERROR, {}), True),
        ((Trial.TERMINATED, {"mfhpo/censored_at": 5.0}), True),
    ],
)
@pytest.mark.usefixtures("shared_journal")
def test_after_a_restart_what_was_cut_short_has_not_failed(ended, certified):
    """A time budget ends trials; the others are no closer to a certificate for that."""

    class Restored(MFEliminationScheduler):
        def on_trial_add(self, tune_controller, trial):
            if trial.config["arm"] == 1:
                trial.set_status(ended[0])
                trial.run_metadata.last_result = ended[1]
            super().on_trial_add(tune_controller, trial)

    scheduler = Restored(max_t=9, bias=BIAS)
    run = raced(scheduler, WORKED)
    assert lengths(run)[2] == 9
    answer = scheduler.recommendation()
    assert (answer.config, answer.certified) == ({"arm": 2}, certified)
    assert answer.survivors == ((2,) if certified else (1, 2))
