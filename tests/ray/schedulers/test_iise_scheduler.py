"""IISEScheduler in virtual time: what it starts, goes on with and stops, and what it answers."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem
from ray.tune.experiment import Trial
from ray.tune.search import ConcurrencyLimiter, Repeater, Searcher
from scipy import stats

from mfhpo import (
    IISE,
    Bias,
    Bounded,
    MaximumFidelityExploit,
    Observation,
    Policy,
    Problem,
    Pull,
    SubGaussian,
    SuccessiveElimination,
)
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.schedulers.arm_scheduler import _suggests
from mfhpo_ray.schedulers.iise_scheduler import IISEScheduler
from mfhpo_ray.schedulers.runs import Run
from mfhpo_ray.simulation import Curves, ReplayedCurves, SimulatedRun, Step, simulate
from mfhpo_ray.simulation.trial import SimulatedTrial

LEVELS = (1, 3, 9, 27)
BIAS = (0.3, 0.1, 0.03, 0.0)
# Differences of two arms' biases are at most twice as large as the biases, and zero at the end.
MEANS = np.array([0.2, 0.55, 0.6, 0.9, 0.1])


def curves_of(
    finals: Sequence[float] = tuple(MEANS),
    *,
    sigma: float = 0.0,
    seconds: Any = 1.0,
    length: int = 27,
    seed: int = 0,
) -> ReplayedCurves:
    """Curves that come to their final value from below, within the declared bias."""
    iterations = np.arange(1, length + 1)
    gap = 0.3 * (1.0 / iterations - 1.0 / length)
    return ReplayedCurves(
        np.asarray(finals)[:, None] - gap[None, :], seconds, sigma=sigma, seed=seed
    )


def grid(n_arms: int, n_replicates: int) -> list[dict[str, int]]:
    return [{"arm": arm, "seed": seed} for seed in range(n_replicates) for arm in range(n_arms)]


class Watched(IISEScheduler):
    """Notes, at every turn of the loop, who is in the race and how many trials are busy."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.most_busy = 0
        self.out_since: dict[int, float] = {}
        self.told: list[tuple[str, Pull, Observation]] = []

    def _tell(self, run: Run, pull: Pull, *args: Any, **options: Any) -> None:
        self.told.append((run.trial.trial_id, pull, args[0]))
        super()._tell(run, pull, *args, **options)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        chosen = super().choose_trial_to_run(tune_controller)
        # What a searcher has suggested waits in Ray's own queue.
        waiting = [run for run in self._busy.values() if run.trial.status == Trial.PENDING]
        if _suggests(tune_controller.search_alg):
            self.most_busy = max(self.most_busy, len(self._busy) - len(waiting))
        else:
            self.most_busy = max(self.most_busy, len(self._busy))
        if self._policy is not None:
            for arm in range(self._policy.problem.n_arms):  # type: ignore[attr-defined]
                if arm in self._active:
                    self.out_since.pop(arm, None)
                else:
                    self.out_since.setdefault(arm, self._clock())
        return chosen


def race(
    scheduler: IISEScheduler,
    trials: Any,
    curves: Curves,
    *,
    slots: int = 4,
    **options: Any,
) -> SimulatedRun:
    """Simulate, check what holds of every race, and return what became of it."""
    run = simulate(scheduler, trials, curves, slots=slots, **options)
    assert all(trial.is_finished() for trial in run.trials)
    assert not scheduler._busy, "a slot leaks"
    assert all(doomed.trial.is_finished() for doomed in scheduler._doomed)
    for entries in scheduler._observed.values():
        with_value = [level for _, level, value, _ in entries if value is not None]
        assert len(with_value) == len(set(with_value)), "a trial was told twice at a level"
    return run


def declared(**options: Any) -> Watched:
    defaults: dict[str, Any] = {
        "levels": LEVELS,
        "sigma": 0.1,
        "bias": BIAS,
        "epsilon": 0.05,
        "measure": 5,
    }
    return Watched(**(defaults | options))


def pairs(scheduler: IISEScheduler) -> list[tuple[int, int]]:
    """Arms and levels in the order in which the policy was told of them."""
    entries = [
        (number, name, level)
        for name, observed in scheduler._observed.items()
        for number, level, _, _ in observed
    ]
    arms = {run.trial.trial_id: run.arm for run in scheduler._runs}
    return [(arms[name], level) for _, name, level in sorted(entries)]


def started(run: SimulatedRun) -> set[str]:
    return {event.trial_id for event in run.events if event.kind == "started"}


# The same race as the bare policy's.


def bare_policy(variant: str | None, n_arms: int, **options: Any) -> Policy:
    options = {"delta": 0.05, "epsilon": 0.05, "measure": 5} | options
    kind = Bias.order if variant == "order" else Bias.max
    problem = Problem(n_arms, LEVELS, bias=kind(*BIAS), noise=SubGaussian(0.1))
    if variant == "se":
        return SuccessiveElimination(problem, **options)
    if variant == "mfe":
        return MaximumFidelityExploit(problem, **options)
    return IISE(problem, **options)


class Replicates:
    """Values for a bare policy: of the replicate that has come furthest of those below a level."""

    def __init__(self, curves: ReplayedCurves, n_arms: int, n_replicates: int) -> None:
        self.curves = curves
        self.reached = [[-1] * n_replicates for _ in range(n_arms)]

    def value(self, pull: Pull) -> float:
        below = [level if level < pull.fidelity else -2 for level in self.reached[pull.arm]]
        replicate = below.index(max(below))
        assert below[replicate] > -2, "replicates do not suffice"
        self.reached[pull.arm][replicate] = pull.fidelity
        step = self.curves.step({"arm": pull.arm, "seed": replicate}, LEVELS[pull.fidelity])
        assert step is not None
        return step.value


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("variant", [None, "order", "se", "mfe"])
@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_with_one_slot_it_pulls_what_the_bare_policy_pulls(
    variant: str | None, checkpoints: bool, sigma: float
) -> None:
    n_replicates = 100
    # MFE goes on for very long; of it we look at the beginning.
    options: dict[str, Any] = {"budget": 300.0} if variant == "mfe" else {}
    curves = curves_of(sigma=sigma)
    scheduler = declared(variant=variant, **options)
    race(
        scheduler,
        grid(len(MEANS), n_replicates),
        curves,
        slots=1,
        checkpoints=checkpoints,
    )
    policy = bare_policy(variant, len(MEANS), **options)
    replicates = Replicates(curves, len(MEANS), n_replicates)
    expected = []
    while not policy.finished:
        [pull] = policy.ask()
        policy.tell(pull, Observation(replicates.value(pull)))
        expected.append((pull.arm, pull.fidelity))
    assert pairs(scheduler) == expected
    answer, bare = scheduler.recommendation(), policy.recommend()
    assert (answer.arm, answer.certified) == (bare.arm, bare.certified) == (3, variant != "mfe")
    assert (answer.mean, answer.interval) == (bare.mean, bare.interval)
    assert answer.trials == len(expected)


def test_more_slots_overshoot_by_what_was_under_way() -> None:
    trials, curves = grid(len(MEANS), 150), curves_of()
    alone, together = declared(), declared()
    race(alone, trials, curves, slots=1)
    race(together, trials, curves, slots=8)
    assert together.most_busy == 8
    assert together.recommendation().arm == alone.recommendation().arm == 3
    extra = Counter(pairs(together)) - Counter(pairs(alone))
    missing = Counter(pairs(alone)) - Counter(pairs(together))
    assert extra.total() <= 8 * (len(MEANS) + len(LEVELS))
    assert missing.total() <= 8


# Who is stopped, and when.


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("slots", [1, 3, 16])
def test_trials_of_an_eliminated_arm_stop_at_once(slots: int, checkpoints: bool) -> None:
    scheduler = declared()
    run = race(
        scheduler,
        grid(5, 60),
        curves_of(sigma=0.1),
        slots=slots,
        checkpoints=checkpoints,
    )
    assert scheduler.out_since  # some arm was eliminated
    ids = {run.trial.trial_id: run.arm for run in scheduler._runs}
    for event in run.events:
        since = scheduler.out_since.get(ids[event.trial_id], math.inf)
        # What runs has a second to end its step by itself, and is stopped with that.
        assert event.kind == "terminated" or event.seconds <= since + 1.0
        assert event.kind != "started" or event.seconds <= since
    # What waited never started, and was there until the end.
    first_out = min(scheduler.out_since, key=lambda arm: scheduler.out_since[arm])
    of_arm = [name for name, arm in ids.items() if arm == first_out]
    never_started = set(of_arm) - started(run)
    assert never_started
    ends = {e.trial_id: e.seconds for e in run.events if e.kind == "terminated"}
    assert min(ends[name] for name in never_started) >= run.makespan - 1.0


def test_an_arm_that_is_put_back_has_trials_to_go_on_with() -> None:
    # The bias is as declared up to the second level, and far from it at the last: the arm that
    # leads first is the worst. Arm 2 is out by then, and is the best.
    early, late = [0.9, 0.5, 0.6, 0.4], [0.3, 0.55, 0.62, 0.5]
    values = np.column_stack([early] * 2 + [late] * 7)
    scheduler = declared(levels=(1, 3, 9), sigma=0.01, bias=(0.02, 0.01, 0.0), epsilon=0.03)
    curves = ReplayedCurves(np.array(values), sigma=0.01)
    with pytest.warns(BiasContradictedWarning):
        run = race(scheduler, grid(4, 20), curves, slots=2, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified) == (2, True)
    lengths = [event.iteration for event in run.events if event.kind == "result"]
    assert max(lengths) == 9
    # Even its only trial is there if it has just come to a level.
    alone = declared(levels=(1, 3, 9), sigma=0.01, bias=(0.02, 0.01, 0.0), epsilon=0.03)
    with pytest.warns(BiasContradictedWarning):
        race(alone, grid(4, 1), curves, slots=2, checkpoints=True)
    assert alone.recommendation().arm == 2


SHAPES = {
    "more slots than trials": {"n_arms": 3, "n_replicates": 2, "slots": 50},
    "one slot": {"n_arms": 3, "n_replicates": 4, "slots": 1},
    "two arms": {"n_arms": 2, "n_replicates": 4, "slots": 3},
    "one replicate": {"n_arms": 5, "n_replicates": 1, "slots": 2},
    "one trial each, one slot": {"n_arms": 2, "n_replicates": 1, "slots": 1},
    "one arm": {"n_arms": 1, "n_replicates": 4, "slots": 2},
    "one trial": {"n_arms": 1, "n_replicates": 1, "slots": 2},
}


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("reuse_actors", [True, False])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_of_race_ends(
    shape: dict[str, int], reuse_actors: bool, checkpoints: bool
) -> None:
    n_arms = shape["n_arms"]
    scheduler = declared(measure=1)
    run = race(
        scheduler,
        grid(n_arms, shape["n_replicates"]),
        curves_of(MEANS[:n_arms], sigma=0.1),
        slots=shape["slots"],
        reuse_actors=reuse_actors,
        checkpoints=checkpoints,
        start_seconds=2.0,
    )
    assert scheduler.most_busy <= shape["slots"]
    answer = scheduler.recommendation()
    assert answer.finished
    assert answer.arm is not None
    assert len(started(run)) >= 1


@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_more_than_max_concurrent_trials_run(most: int) -> None:
    scheduler = declared()
    race(
        scheduler,
        grid(5, 30),
        curves_of(sigma=0.1),
        slots=4,
        max_concurrent_trials=most,
        checkpoints=True,
    )
    assert scheduler.most_busy == min(4, most)
    assert scheduler.recommendation().certified


@pytest.mark.parametrize("variant", [None, "se"])
def test_others_are_pulled_when_an_arm_has_no_replicates_left(variant: str | None) -> None:
    # To tell a tenth from noise of a tenth, arm 0 has just enough replicates if arm 1 has more.
    scheduler = declared(
        levels=(1, 3, 9), bias=(0.02, 0.01, 0.0), epsilon=0.0, measure=1, variant=variant
    )
    trials = grid(2, 30) + [{"arm": 1, "seed": seed} for seed in range(30, 200)]
    race(scheduler, trials, ReplayedCurves([[0.8] * 9, [0.7] * 9], sigma=0.1), slots=1)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified) == (0, True)


def test_replicates_that_run_out_are_not_pulled_twice() -> None:
    scheduler = declared(epsilon=0.0)
    run = race(scheduler, grid(2, 3), curves_of([0.5, 0.5], sigma=0.1), slots=2, checkpoints=True)
    answer = scheduler.recommendation()
    assert answer.finished
    assert not answer.certified
    assert "no replicates are left" in answer.reason
    assert Counter(level for _, level in pairs(scheduler))[3] == 6
    assert run.iterations == 6 * 27


@pytest.mark.parametrize("slots", [1, 4])
def test_nothing_is_certified_before_enough_replicates_were_seen(slots: int) -> None:
    """The winner is told apart by few; where the noise is estimated, a certificate takes more."""
    answers = []
    for n_replicates in (3, 17):
        scheduler = declared(measure=None, sigma=None, bias=None)
        curves = curves_of([0.1, 0.9], sigma=0.02)
        race(scheduler, grid(2, n_replicates), curves, slots=slots, checkpoints=True)
        answers.append(scheduler.recommendation())
    few, many = answers
    assert (few.arm, few.finished, few.certified) == (1, True, False)
    assert "no replicates are left to tell" in few.reason
    assert (many.arm, many.finished, many.certified) == (1, True, True)


@pytest.mark.parametrize(("n_replicates", "is_noticed"), [(3, True), (10, False)])
def test_replicates_too_few_to_check_sigma_are_noticed(n_replicates: int, is_noticed: bool) -> None:
    scheduler = declared(measure=None, sigma=0.02, variant="se")
    curves = curves_of([0.1, 0.9], sigma=0.02)
    race(scheduler, grid(2, n_replicates), curves, slots=2, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.finished, answer.certified) == (1, True, True)
    assert any("too few repeats" in notice for notice in answer.notices) == is_noticed


def test_choosing_again_changes_nothing() -> None:
    class Twice(Watched):
        """Asks at every turn what it would do at the next one, though nothing has happened."""

        def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
            chosen = super().choose_trial_to_run(tune_controller)
            if chosen is None and self._policy is not None:
                before = self._policy.state_dict()
                granted = [run.granted for run in self._runs]
                assert super().choose_trial_to_run(tune_controller) is None
                assert self._policy.state_dict() == before
                assert [run.granted for run in self._runs] == granted
            return chosen

    once = declared()
    twice = Twice(levels=LEVELS, sigma=0.1, bias=BIAS, epsilon=0.05, measure=5)
    for scheduler in (once, twice):
        race(scheduler, grid(5, 30), curves_of(sigma=0.1), slots=3, checkpoints=True)
    assert pairs(once) == pairs(twice)


def test_a_trial_that_hangs_ends_at_the_limit() -> None:
    class Hanging:
        def __init__(self) -> None:
            self.curves = curves_of(sigma=0.1)

        def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
            step = self.curves.step(config, iteration)
            hangs = (config["arm"], config["seed"]) == (3, 0) and iteration == 2
            return Step(0.0, math.inf) if hangs else step

    scheduler = declared(limit=60.0)
    run = race(scheduler, grid(5, 60), Hanging(), slots=4, checkpoints=True, time_budget=10_000.0)
    assert run.makespan < 10_000.0
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified) == (3, True)
    [hung] = [name for name, _, told in scheduler.told if told.value is None]
    [trial] = [trial for trial in run.trials if trial.trial_id == hung]
    assert trial.config == {"arm": 3, "seed": 0}
    assert trial.status == Trial.TERMINATED


# Searchers.


class Suggesting(Searcher):
    """Suggests the configurations of a list, and remembers what it was told."""

    def __init__(self, configs: Sequence[Mapping[str, Any]], *, ends: bool = True) -> None:
        super().__init__(metric="value", mode="max")
        self.left = [dict(config) for config in configs]
        self.ends = ends
        self.live: set[str] = set()
        self.most_live = 0
        self.completed: dict[str, Any] = {}

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        if not self.left:
            return Searcher.FINISHED if self.ends else None
        self.live.add(trial_id)
        self.most_live = max(self.most_live, len(self.live))
        return self.left.pop(0)

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        assert trial_id in self.live, "completed twice, or never begun"
        self.live.remove(trial_id)
        self.completed[trial_id] = result

    def save(self, checkpoint_path: str) -> None: ...

    def restore(self, checkpoint_path: str) -> None: ...


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("limit", [None, 1, 3, 100])
@pytest.mark.parametrize("num_samples", [-1, 60])
def test_a_searcher_suggests_the_trials(
    num_samples: int, limit: int | None, checkpoints: bool
) -> None:
    searcher = Suggesting(grid(5, 12))
    scheduler = declared(arms=5)
    run = race(
        scheduler,
        searcher if limit is None else ConcurrencyLimiter(searcher, limit),
        curves_of(sigma=0.1),
        slots=4,
        num_samples=num_samples,
        checkpoints=checkpoints,
    )
    assert scheduler.recommendation().certified
    assert scheduler.recommendation().arm == 3
    assert not searcher.live
    assert scheduler.most_busy <= min(limit or 4, 4)
    assert len(run.trials) <= 60


def test_a_searcher_with_fewer_different_arms_than_samples() -> None:
    # Repeater's five repeats of each suggestion are one arm, numbered under its own key.
    searcher = Suggesting([{"arm": arm} for arm in range(4)])
    scheduler = declared(measure=2)

    class ByRepeat(ReplayedCurves):
        def __init__(self) -> None:
            inner = curves_of(MEANS[:4], sigma=0.1)
            super().__init__(inner.values, sigma=0.1, seed_key="__trial_index__")

    run = race(scheduler, Repeater(searcher, repeat=20), ByRepeat(), slots=4, num_samples=80)
    answer = scheduler.recommendation()
    assert answer.compared == 4
    assert answer.arm == 3
    assert answer.certified
    assert len(run.trials) <= 80


def test_a_searcher_that_repeats_itself_has_fewer_arms() -> None:
    searcher = Suggesting([{"arm": k % 2, "seed": k} for k in range(40)], ends=True)
    scheduler = declared(measure=2)
    race(scheduler, searcher, curves_of(sigma=0.1), slots=3, num_samples=40, checkpoints=True)
    answer = scheduler.recommendation()
    assert answer.arm == 1
    assert answer.compared == 2
    assert answer.certified


class LateEnd(Suggesting):
    """Ends only when it was asked many times for more."""

    asked = 0

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        if not self.left:
            self.asked += 1
            return Searcher.FINISHED if self.asked > 5_000 else None
        return super().suggest(trial_id)


def test_a_search_that_ends_when_all_has_come_to_rest() -> None:
    # One replicate of each arm, five wanted of the winner, and trials of the others wait.
    searcher = LateEnd(grid(5, 1))
    scheduler = declared(arms=5, sigma=0.01)
    curves = curves_of(sigma=0.01)
    run = race(scheduler, searcher, curves, slots=2, checkpoints=True, time_budget=100_000.0)
    assert searcher.asked == 5_001
    assert run.makespan < 100_000.0
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.finished) == (3, True, True)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_searcher_without_replicates_cannot_estimate(checkpoints: bool) -> None:
    searcher = Suggesting([{"arm": arm} for arm in range(20)])
    scheduler = IISEScheduler(levels=LEVELS, bias=BIAS)
    curves = ReplayedCurves(np.linspace(0, 1, 20)[:, None].repeat(27, axis=1))
    with (
        pytest.warns(UserWarning, match=r"^sigma will be estimated.*Repeater.*sigma=\.\.\."),
        pytest.raises(ValueError, match=r"sigma cannot be estimated.*20.*only 1 replicate.*Repeat"),
    ):
        race(scheduler, searcher, curves, num_samples=20, checkpoints=checkpoints)


def test_a_searcher_with_replicates_estimates(recwarn: pytest.WarningsRecorder) -> None:
    searcher = Suggesting([{"arm": arm} for arm in range(4)])
    curves = curves_of(MEANS[:4], sigma=0.02)
    by_repeat = ReplayedCurves(curves.values, sigma=0.02, seed_key="__trial_index__")
    scheduler = IISEScheduler(levels=LEVELS, bias=BIAS, epsilon=0.05)
    race(scheduler, Repeater(searcher, repeat=10), by_repeat, num_samples=40, checkpoints=True)
    assert scheduler.recommendation().certified
    # An arm too many, with which the search ends, is not in the race and needs no replicates.
    scheduler = IISEScheduler(levels=LEVELS, bias=BIAS, epsilon=0.05, arms=4)
    searcher = Suggesting([*grid(4, 10), {"arm": 4, "seed": 0}])
    race(scheduler, searcher, curves_of(sigma=0.02), slots=50)
    assert scheduler.recommendation().certified
    assert not [warning for warning in recwarn if "estimated from" in str(warning.message)]


def test_trials_come_in_another_order_than_they_were_made() -> None:
    # As after a restart, where arms are numbered anew when the race begins.
    search = SimpleNamespace(
        searcher=object(), total_samples=2, is_finished=lambda: False, max_concurrent=0
    )
    controller: Any = SimpleNamespace(search_alg=search, get_live_trials=list)
    scheduler = declared(metric="value", mode="max")
    for number in (2, 1):
        scheduler.on_trial_add(
            controller,
            SimulatedTrial(
                "simulated",
                config={"arm": number, "seed": 0},
                trial_id=f"t{number}",
                experiment_tag=str(number),
                stub=True,
            ),
        )
    scheduler.choose_trial_to_run(controller)
    for run in scheduler._runs:
        assert scheduler._ladder.furthest_below(run.arm, 3, run) is run
        assert scheduler._ladder.furthest_below(1 - run.arm, 3, run) is None


def test_the_search_ends_with_the_first_suggestion_beyond_the_arms() -> None:
    configs = [{"arm": arm, "seed": seed} for arm in range(5) for seed in range(200)]
    searcher = Suggesting(configs)
    scheduler = declared(arms=3)
    run = race(scheduler, searcher, curves_of(sigma=0.1), slots=3, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.compared, answer.certified) == (2, 3, True)
    ran = started(run)
    assert {trial.config["arm"] for trial in run.trials if trial.trial_id in ran} == {0, 1, 2}
    assert sum(trial.config["arm"] > 2 for trial in run.trials) <= 1


def test_an_endless_search_of_new_arms_ends() -> None:
    class Endless(Searcher):
        suggested = 0

        def suggest(self, trial_id: str) -> dict[str, Any]:
            self.suggested += 1
            return {"arm": self.suggested % 5, "lr": self.suggested, "seed": 0}

        def on_trial_complete(self, *args: Any, **options: Any) -> None: ...

        def save(self, checkpoint_path: str) -> None: ...

        def restore(self, checkpoint_path: str) -> None: ...

    searcher = Endless(metric="value", mode="max")
    scheduler = declared(arms=10, measure=1)
    race(scheduler, searcher, curves_of(sigma=0.01), slots=3, num_samples=-1, checkpoints=True)
    assert searcher.suggested == 11
    assert scheduler.recommendation().compared == 10


def test_a_searcher_without_end_needs_the_number_of_arms() -> None:
    searcher = Suggesting(grid(3, 2), ends=False)
    with pytest.raises(ValueError, match=r"give arms=\.\.\."):
        race(declared(), searcher, curves_of(), slots=1, num_samples=-1)


# What trials report.


def test_levels_of_another_attribute() -> None:
    # Seconds stand for epochs that are reported in steps of five.
    scheduler = declared(time_attr="time_total_s", levels=(5, 15, 45, 135))
    race(scheduler, grid(5, 60), curves_of(sigma=0.1, seconds=5.0), slots=3, checkpoints=True)
    plain = declared()
    race(plain, grid(5, 60), curves_of(sigma=0.1, seconds=5.0), slots=3, checkpoints=True)
    assert pairs(scheduler) == pairs(plain)
    assert scheduler.recommendation().cost == 5 * plain.recommendation().cost


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("slots", [1, 4])
def test_a_level_that_is_skipped_has_the_next_value(slots: int, checkpoints: bool) -> None:
    # Reported at 5, 10, 15, ...: the levels 1 and 3 both have the value at 5, and 9 the one at 10,
    # on whatever way a trial has come there.
    curves = curves_of(sigma=0.1, seconds=5.0, length=6)
    scheduler = declared(time_attr="time_total_s")
    race(scheduler, grid(5, 40), curves, slots=slots, checkpoints=checkpoints)
    iteration = {0: 1, 1: 1, 2: 2, 3: 6}
    seen = Counter[int]()
    configs = {run.trial.trial_id: run.trial.config for run in scheduler._runs}
    for name, entries in scheduler._observed.items():
        for _, level, value, _ in entries:
            step = curves.step(configs[name], iteration[level])
            assert step is not None
            assert value == step.value
            seen[level] += 1
    assert all(seen[level] for level in (0, 1, 3))


def test_trials_that_end_early_have_their_last_value() -> None:
    scheduler = declared()
    curves = curves_of(sigma=0.1, length=10)
    with pytest.warns(UserWarning, match=r"ended at training_iteration=10.*before the level 27"):
        race(scheduler, grid(5, 40), curves, slots=2, checkpoints=True)
    answer = scheduler.recommendation()
    assert answer.arm == 3
    assert answer.certified
    configs = {run.trial.trial_id: run.trial.config for run in scheduler._runs}
    for name, entries in scheduler._observed.items():
        for _, level, value, _ in entries:
            step = curves.step(configs[name], min(10, LEVELS[level]))
            assert step is not None
            assert value == step.value


def test_the_stop_of_the_run_config_at_the_last_level_is_told() -> None:
    # As in Tune, the result that ends a trial comes with its end only.
    stopped, alone = declared(), declared()
    for scheduler, max_t in ((stopped, 27), (alone, None)):
        race(
            scheduler,
            grid(5, 40),
            curves_of(sigma=0.1, length=40),
            slots=2,
            max_t=max_t,
            checkpoints=True,
        )
    assert pairs(stopped) == pairs(alone)
    assert stopped.recommendation() == alone.recommendation()


class Spoiled:
    """Curves that fail, or report NaN, where a rule says so."""

    def __init__(
        self,
        curves: ReplayedCurves,
        fails: Callable[[Mapping[str, Any], int], bool] = lambda config, iteration: False,
        is_nan: Callable[[Mapping[str, Any], int], bool] = lambda config, iteration: False,
    ) -> None:
        self.curves = curves
        self.fails = fails
        self.is_nan = is_nan

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        step = self.curves.step(config, iteration)
        if step is None:
            return None
        if self.fails(config, iteration):
            return Step(step.value, step.seconds, failed=True)
        return Step(math.nan, step.seconds) if self.is_nan(config, iteration) else step


@pytest.mark.parametrize("at", [1, 3, 27])
def test_a_trial_that_reports_nan_is_replaced_by_another(at: int) -> None:
    def is_nan(config: Mapping[str, Any], iteration: int) -> bool:
        return config["seed"] % 4 == 0 and iteration == at

    scheduler = declared()
    curves = Spoiled(curves_of(sigma=0.1), is_nan=is_nan)
    run = race(scheduler, grid(5, 60), curves, slots=3, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.compared) == (3, True, 5)
    spoiled = [
        trial
        for trial in run.trials
        if any(math.isnan(event.value or 0.0) for event in run.history(trial.trial_id))
    ]
    assert spoiled
    assert all(trial.status == Trial.TERMINATED for trial in spoiled)
    # It stops there, if it was looked at there.
    for name, _, observation in scheduler.told:
        if math.isnan(observation.value or 0.0):
            assert run.history(name)[-1].iteration == at


def test_nan_between_the_levels_is_nobodys_business() -> None:
    scheduler, plain = declared(), declared()
    curves = curves_of(sigma=0.1)
    spoiled = Spoiled(curves, is_nan=lambda config, iteration: iteration in (2, 4, 20))
    race(scheduler, grid(5, 40), spoiled, slots=3, checkpoints=True)
    race(plain, grid(5, 40), curves, slots=3, checkpoints=True)
    assert scheduler.recommendation() == plain.recommendation()


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_crashed_trial_is_replaced_by_another(checkpoints: bool) -> None:
    curves = Spoiled(
        curves_of(sigma=0.1),
        fails=lambda config, iteration: config["seed"] % 4 == 0 and iteration == 2,
    )
    scheduler = declared()
    run = race(scheduler, grid(5, 60), curves, slots=3, checkpoints=checkpoints)
    statuses = Counter(trial.status for trial in run.trials)
    assert statuses[Trial.ERROR] > 0
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.compared) == (3, True, 5)


class CrashesOnce:
    """Every third trial crashes at its fifth iteration, once."""

    def __init__(self, curves: ReplayedCurves) -> None:
        self.curves = curves
        self.crashed: set[tuple[int, int]] = set()

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        step = self.curves.step(config, iteration)
        key = (config["arm"], config["seed"])
        if step and config["seed"] % 3 == 0 and iteration == 5 and key not in self.crashed:
            self.crashed.add(key)
            return Step(step.value, step.seconds, failed=True)
        return step


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("reuse_actors", [True, False])
def test_a_trial_that_ray_tries_again_goes_on(reuse_actors: bool, checkpoints: bool) -> None:
    curves = CrashesOnce(curves_of(sigma=0.1))
    scheduler = declared()
    run = race(
        scheduler,
        grid(5, 20),
        curves,
        slots=3,
        checkpoints=checkpoints,
        reuse_actors=reuse_actors,
        max_failures=1,
    )
    assert curves.crashed
    assert all(trial.status == Trial.TERMINATED for trial in run.trials)
    tried_again = {event.trial_id for event in run.events if event.kind == "requeued"}
    levels = {name: [entry[1] for entry in scheduler._observed[name]] for name in tried_again}
    assert any(2 in reached for reached in levels.values())  # beyond where it had crashed
    assert scheduler.recommendation().certified


@pytest.mark.parametrize("max_failures", [0, 2])
def test_all_trials_crash(max_failures: int) -> None:
    curves = Spoiled(curves_of(), fails=lambda config, iteration: True)
    scheduler = declared()
    with pytest.warns(ArmWithdrawnWarning):
        run = race(scheduler, grid(3, 10), curves, slots=4, max_failures=max_failures)
    answer = scheduler.recommendation()
    assert answer.arm is None
    assert answer.finished
    assert not answer.certified
    assert answer.params == {}
    # Three failures take an arm out; what was under way then was for nothing.
    assert len(started(run)) < 30


def test_a_crash_of_the_winner_does_not_cost_it_the_certificate() -> None:
    # Twelve replicates, all of which are to be measured at the end; one never comes there, and no
    # other arm is run in its place.
    curves = Spoiled(
        curves_of(sigma=0.02),
        fails=lambda config, iteration: (config["arm"], config["seed"], iteration) == (3, 2, 20),
    )
    scheduler = declared(sigma=0.02, measure=12, variant="se")
    run = race(scheduler, grid(5, 12), curves, slots=4, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.finished) == (3, True, True)
    assert "within epsilon" in answer.reason or "eliminated" in answer.reason
    assert Counter(arm for arm, level in pairs(scheduler) if level == 3)[3] == 12
    of_winner = [trial.trial_id for trial in run.trials if trial.config["arm"] == 3]
    assert sum(run.history(name)[-1].iteration == 27 for name in of_winner) == 11


@pytest.mark.parametrize("slots", [1, 4])
def test_a_crash_does_not_cost_the_only_arm_its_certificate(slots: int) -> None:
    # Four replicates, all of which are to be measured; the end of the last one ends Ray's loop.
    curves = Spoiled(
        curves_of(sigma=0.02),
        fails=lambda config, iteration: (config["seed"], iteration) == (0, 20),
    )
    scheduler = declared(sigma=0.02, measure=None)
    race(scheduler, grid(1, 4), curves, slots=slots, checkpoints=True)
    answer = scheduler.recommendation()
    assert (answer.arm, answer.certified, answer.finished) == (0, True, True)


def test_what_ray_tries_again_after_a_restart_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Tuner.restore(resume_errored=True): some of arm 3's trials crash, and then do not any more.
    journal = Journal(LocalFileSystem(), str(tmp_path / "journal"))
    monkeypatch.setattr(Journal, "of", classmethod(lambda cls, trial: journal))
    curves = curves_of(sigma=0.1)
    broken = Spoiled(curves, fails=lambda config, iteration: config["arm"] == 3 and iteration == 2)
    before = declared()
    with pytest.warns(ArmWithdrawnWarning):
        first = race(before, grid(5, 30), broken, slots=2, checkpoints=True)
    assert before.recommendation().arm == 2
    crashed = [trial for trial in first.trials if trial.status == Trial.ERROR]
    assert len(crashed) >= 3
    records = journal.read()
    # One that crashed when its arm had left is not written down.
    assert not any(records.get(trial.trial_id, {}).get("over") for trial in crashed)
    after = declared()
    second = race(after, grid(5, 30), curves, slots=2, checkpoints=True)
    answer = after.recommendation()
    assert (answer.arm, answer.certified, answer.compared) == (3, True, 5)
    names = {trial.trial_id for trial in crashed}
    assert names & started(second)
    # What the crashed attempts have cost is paid.
    total = sum(entry[3] for entries in after._observed.values() for entry in entries)
    owed = sum(run.owed for run in after._runs)
    assert answer.cost == pytest.approx(total)
    assert answer.cost + owed >= before.recommendation().cost


def test_an_arm_whose_trials_crash_leaves_the_race() -> None:
    curves = Spoiled(curves_of(sigma=0.1), fails=lambda config, iteration: config["arm"] == 3)
    scheduler = declared()
    with pytest.warns(ArmWithdrawnWarning, match=r"arm 3 \{'arm': 3\} leaves.*iteration=1"):
        race(scheduler, grid(5, 60), curves, slots=4, checkpoints=True)
    answer = scheduler.recommendation()
    assert answer.arm == 2
    assert answer.compared == 4
    assert "'arm': 3" in answer.not_compared[0]


# The mirror.


@pytest.mark.parametrize(
    "sigma", [0.1, Bounded(-0.5, 1.5), None], ids=["scale", "bounds", "estimated"]
)
@pytest.mark.parametrize("bias", [BIAS, None], ids=["declared", "estimated"])
def test_minimising_mirrors_maximising(sigma: Any, bias: Any) -> None:
    curves = curves_of(sigma=0.05)
    noisy = {"max": curves, "min": Mirrored(curves)}
    answers = {}
    told = {}
    for mode in ("max", "min"):
        noise = Bounded(-1.5, 0.5) if isinstance(sigma, Bounded) and mode == "min" else sigma
        scheduler = declared(sigma=noise, bias=bias, epsilon=0.2)
        race(
            scheduler,
            grid(5, 12),
            noisy[mode],
            slots=3,
            mode=mode,
            checkpoints=True,
        )
        answers[mode], told[mode] = scheduler.recommendation(), pairs(scheduler)
    assert told["min"] == told["max"]
    high, low = answers["max"], answers["min"]
    assert (low.arm, low.certified, low.cost) == (high.arm, high.certified, high.cost)
    assert low.mean == -high.mean
    assert low.interval == (-high.interval[1], -high.interval[0])


class Mirrored:
    """The same curves with the opposite sign."""

    def __init__(self, curves: Curves) -> None:
        self.curves = curves

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        step = self.curves.step(config, iteration)
        return None if step is None else Step(-step.value, step.seconds, step.failed)


# Costs.


def test_a_trial_with_checkpoints_is_charged_with_the_increments() -> None:
    scheduler = declared(epsilon=0.0)
    run = race(scheduler, grid(2, 2), curves_of([0.5, 0.5]), slots=1, checkpoints=True)
    costs = [[cost for *_, cost in entries] for entries in scheduler._observed.values()]
    assert costs == [[1.0, 2.0, 6.0, 18.0]] * 4 or all(sum(paid) == 27.0 for paid in costs)
    assert scheduler.recommendation().cost == run.iterations == 4 * 27


def test_a_trial_without_checkpoints_is_charged_with_all_that_it_runs() -> None:
    scheduler = declared(epsilon=0.0)
    run = race(scheduler, grid(3, 4), curves_of([0.5, 0.5, 0.5]), slots=1, checkpoints=False)
    assert scheduler.recommendation().cost == run.iterations
    assert run.iterations > 12 * 27


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("slots", [1, 5])
def test_the_cost_is_what_the_iterations_cost(slots: int, checkpoints: bool) -> None:
    # Every iteration up to the last one told is paid once each time that it is run.
    scheduler = declared()
    run = race(
        scheduler,
        grid(5, 60),
        curves_of(sigma=0.1),
        slots=slots,
        checkpoints=checkpoints,
    )
    answer = scheduler.recommendation()
    under_way_at_the_end = run.iterations - answer.cost
    assert 0 <= under_way_at_the_end <= slots * 27 * 5
    if slots == 1:
        assert under_way_at_the_end == 0


@pytest.mark.parametrize("checkpoints", [True, False])
def test_measured_costs_are_seconds(checkpoints: bool) -> None:
    scheduler = declared(costs="measured")
    curves = curves_of(sigma=0.1, seconds=2.5)
    run = race(scheduler, grid(5, 60), curves, slots=1, checkpoints=checkpoints)
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.cost == pytest.approx(2.5 * run.iterations)
    assert answer.cost == pytest.approx(run.slot_seconds)


def test_prices_weigh_the_seconds() -> None:
    seconds, priced = (
        declared(costs="measured", prices=prices) for prices in (None, {"CPU": 1.0, "GPU": 20.0})
    )
    for scheduler in (seconds, priced):
        race(
            scheduler,
            grid(5, 60),
            curves_of(sigma=0.1, seconds=2.5),
            slots=1,
            checkpoints=True,
            resources={"CPU": 2.0, "GPU": 0.5},
        )
    assert priced.recommendation().cost == pytest.approx(12 * seconds.recommendation().cost)


def test_a_budget_ends_the_race() -> None:
    scheduler = declared(budget=100)
    race(scheduler, grid(5, 60), curves_of(sigma=0.1), slots=1, checkpoints=True)
    answer = scheduler.recommendation()
    assert 100 - 27 <= answer.cost <= 100
    assert answer.finished
    assert not answer.certified
    assert "budget" in answer.reason


# The answer.


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_the_answer_is_what_the_trials_reported(slots: int, checkpoints: bool) -> None:
    scheduler = declared()
    run = race(scheduler, grid(5, 60), curves_of(sigma=0.1), slots=slots, checkpoints=checkpoints)
    answer = scheduler.recommendation()
    assert answer.certified
    assert (answer.level, answer.params) == (27, {"arm": 3})
    at_the_end = [
        event.value
        for trial in run.trials
        if trial.config["arm"] == 3
        for event in run.history(trial.trial_id)
        if event.iteration == 27
    ]
    assert answer.mean == pytest.approx(np.mean(np.array(at_the_end, dtype=float)))
    assert len(at_the_end) >= 5  # measure=5
    assert answer.trials == len(pairs(scheduler)) == len(scheduler.told)


def test_arms_are_configurations_without_the_replicates_key() -> None:
    trials = [
        {"arm": arm, "net": {"width": 8, "seed": seed}, "seed": 0}
        for seed in range(40)
        for arm in range(3)
    ]

    class Nested:
        def __init__(self) -> None:
            self.curves = curves_of(sigma=0.1)

        def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
            flat = {"arm": config["arm"], "seed": config["net"]["seed"]}
            return self.curves.step(flat, iteration)

    scheduler = declared(replicate="net/seed")
    race(scheduler, trials, Nested(), slots=3, checkpoints=True)
    answer = scheduler.recommendation()
    assert answer.compared == 3
    assert answer.params == {"arm": 2, "net": {"width": 8}, "seed": 0}


def test_too_few_replicates_to_estimate_from() -> None:
    scheduler = IISEScheduler(levels=LEVELS, bias=BIAS)
    with pytest.raises(ValueError, match=r"sigma cannot be estimated.*only 1 replicate,.*'seed'"):
        race(scheduler, grid(4, 1), curves_of(), slots=2)


def test_an_answer_before_the_race_has_begun() -> None:
    with pytest.raises(ValueError, match="has not begun"):
        declared().recommendation()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_t": 27, "levels": (1, 27)}, "either max_t"),
        ({}, "either max_t"),
        ({"max_t": 27, "variant": "sh"}, "variant must be"),
        ({"max_t": 27, "delta": 1.5}, "delta"),
        ({"max_t": 27, "epsilon": -1.0}, "epsilon"),
        ({"max_t": 27, "bias": (0.1, 0.0)}, "bias"),
        ({"max_t": 27, "mode": "best"}, "mode must be"),
        ({"max_t": 27, "measure": 0}, "measure"),
        ({"max_t": 27, "budget": 0.0}, "budget"),
        ({"max_t": 27, "reduction_factor": 1.0}, "reduction_factor"),
        ({"max_t": 27, "grace_period": 28}, "grace_period"),
        ({"max_t": 27, "prices": {"CPU": 1.0}}, "measured"),
        ({"max_t": 27, "arms": 1}, "arms"),
        ({"max_t": 27, "limit": 0.0}, "limit"),
        ({"levels": (3, 1)}, "increase"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IISEScheduler(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"max_t": 27, "replicate": (1, 2)},
        {"max_t": 27, "sigma": "small"},
        {"max_t": "many"},
        {"max_t": 27, "budget": "all"},
        {"max_t": 27, "grace_period": 1.9},
        {"max_t": 27.5},
        {"max_t": 27, "limit": "short"},
    ],
)
def test_arguments_of_a_wrong_type(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        IISEScheduler(**options)


def test_metric_and_mode_have_to_be_known() -> None:
    nothing: Any = None
    with pytest.raises(ValueError, match=r"needs to know mode; give it to tune.TuneConfig"):
        declared(metric="value").on_trial_add(nothing, nothing)
    with pytest.raises(ValueError, match=r"needs to know metric; give it to tune.TuneConfig"):
        declared(mode="max").on_trial_add(nothing, nothing)


def test_a_metric_of_its_own() -> None:
    scheduler = declared(metric="loss", mode="min")
    assert not scheduler.set_search_properties("loss", None)
    assert not scheduler.set_search_properties(None, "min")
    assert scheduler.set_search_properties(None, None)
    assert (scheduler.metric, scheduler._sign) == ("loss", -1.0)


# At random.


@st.composite
def races(draw: st.DrawFn) -> dict[str, Any]:
    n_arms = draw(st.integers(1, 6))
    return {
        "finals": draw(st.lists(st.floats(-1, 1), min_size=n_arms, max_size=n_arms)),
        "n_replicates": draw(st.integers(1, 8)),
        "slots": draw(st.integers(1, 7)),
        "checkpoints": draw(st.booleans()),
        "reuse_actors": draw(st.booleans()),
        "max_failures": draw(st.sampled_from([0, 1, 3])),
        "failing": draw(st.sampled_from([0.0, 0.05, 0.5])),
        "diverging": draw(st.sampled_from([0.0, 0.05, 0.5])),
        "seed": draw(st.integers(0, 2**16)),
        "variant": draw(st.sampled_from([None, "order", "se", "mfe"])),
        "sigma": draw(st.sampled_from([0.02, 0.3])),
        "length": draw(st.sampled_from([2, 9, 27, 40])),
        "searcher": draw(st.sampled_from([None, 0, 2])),
        "most": draw(st.sampled_from([None, 2])),
        "seconds": draw(st.sampled_from([1.0, 4.0])),
    }


@pytest.mark.slow
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(races())
@pytest.mark.filterwarnings("ignore")
def test_every_race_ends_and_tells_only_what_was_reported(drawn: dict[str, Any]) -> None:
    rng = np.random.default_rng(drawn["seed"])
    failing, diverging = drawn["failing"], drawn["diverging"]
    spoils: dict[tuple[int, int, int], Iterator[float]] = {}

    def chance(config: Mapping[str, Any], iteration: int) -> float:
        key = (config["arm"], config["seed"], iteration)
        return next(spoils.setdefault(key, iter(rng.random(50))))

    n_arms = len(drawn["finals"])
    curves = Spoiled(
        curves_of(drawn["finals"], sigma=drawn["sigma"], length=drawn["length"]),
        fails=lambda config, iteration: chance(config, iteration) < failing,
        is_nan=lambda config, iteration: hash((config["seed"], iteration)) % 100 < 100 * diverging,
    )
    trials: Any = grid(n_arms, drawn["n_replicates"])
    searcher = None
    if drawn["searcher"] is not None and n_arms > 1:
        searcher = trials = Suggesting(trials)
        if drawn["searcher"]:
            trials = ConcurrencyLimiter(searcher, drawn["searcher"])
    scheduler = declared(
        sigma=drawn["sigma"],
        variant=drawn["variant"],
        bias=None if drawn["variant"] in ("se", "mfe") and drawn["seed"] % 2 else BIAS,
        arms=n_arms if n_arms > 1 else None,
        pilot_pulls=2,
    )
    if scheduler._declaration.bias is None and drawn["n_replicates"] < 2:
        scheduler._declaration = replace(scheduler._declaration, bias=Bias.max(*BIAS))
    run = race(
        scheduler,
        trials,
        curves,
        slots=drawn["slots"],
        checkpoints=drawn["checkpoints"],
        reuse_actors=drawn["reuse_actors"],
        max_failures=drawn["max_failures"],
        max_concurrent_trials=drawn["most"],
    )
    assert scheduler.most_busy <= drawn["slots"]
    assert scheduler.recommendation().finished
    if searcher is not None:
        assert not searcher.live
    reported = {
        trial.trial_id: {event.value for event in run.history(trial.trial_id)}
        for trial in run.trials
    }
    for name, _, observation in scheduler.told:
        if observation.value is not None and not math.isnan(observation.value):
            assert observation.value in reported[name]
    total = sum(observation.cost or 0.0 for _, _, observation in scheduler.told)
    assert total <= scheduler.recommendation().cost + 1e-9


# The error probability.


@pytest.mark.slow
def test_wrong_certificates_are_as_rare_as_promised() -> None:
    # All curves are within the declared bias and may cross: at the first level the best arm may
    # look worst. What decides is two standard deviations of the noise at most, and a third of one
    # at least.
    delta, n_races, sigma = 0.2, 120, 0.3
    wrong = certified = 0
    for seed in range(n_races):
        rng = np.random.default_rng(seed)
        finals = np.array([0.0, 0.0, rng.uniform(0.1, 0.6)])
        values = np.column_stack([finals + rng.uniform(-0.1, 0.1, 3), finals])
        curves = ReplayedCurves(values, sigma=sigma, seed=seed)
        scheduler = declared(
            levels=(1, 2), bias=(0.1, 0.0), sigma=sigma, delta=delta, epsilon=0.0, measure=1
        )
        race(scheduler, grid(3, 60), curves, slots=4, checkpoints=True)
        answer = scheduler.recommendation()
        certified += answer.certified
        wrong += answer.certified and answer.arm != 2
    assert certified > n_races / 2
    assert wrong <= stats.binom.ppf(0.999, n_races, delta)


# The work per result.


def _calls_per_result(
    n_replicates: int, finals: Sequence[float], sigma: float = 0.1, **options: Any
) -> float:
    """A scheduler's Python calls in each turn between the race's begin and its end, per result."""
    counts = [0]

    def count(frame: Any, event: str, argument: Any) -> None:
        counts[0] += event in ("call", "c_call")

    class Counted(IISEScheduler):
        results = 0

        def on_trial_result(self, *args: Any) -> str:
            self.results += 1
            sys.setprofile(count)
            try:
                return super().on_trial_result(*args)
            finally:
                sys.setprofile(None)

        def choose_trial_to_run(self, *args: Any) -> Trial | None:
            if not self._is_open or self._over:
                return super().choose_trial_to_run(*args)
            sys.setprofile(count)
            try:
                return super().choose_trial_to_run(*args)
            finally:
                sys.setprofile(None)

    scheduler = Counted(levels=LEVELS, sigma=sigma, bias=BIAS, measure=5, **options)
    race(
        scheduler,
        grid(len(finals), n_replicates),
        curves_of(finals, sigma=sigma),
        slots=4,
        checkpoints=True,
        poll_seconds=10.0,
    )
    return counts[0] / scheduler.results


@pytest.mark.parametrize("n_replicates", [1, 2])
def test_the_work_per_result_does_not_grow_with_the_arms(n_replicates: int) -> None:
    # Of ten arms or of a hundred, most stay until their trials have come to their end.
    few, many = (
        _calls_per_result(n_replicates, np.linspace(0.45, 0.5, n), epsilon=0.0) for n in (10, 100)
    )
    assert many < 1.3 * few


def test_the_work_per_result_does_not_grow_with_the_trials_that_wait() -> None:
    few, many = (_calls_per_result(n, MEANS, epsilon=0.05) for n in (60, 600))
    assert many == pytest.approx(few, rel=0.05)


def test_the_work_per_result_does_not_grow_with_the_trials_that_are_over() -> None:
    # All arms are alike, so that every trial runs to its end.
    few, many = (_calls_per_result(n, [0.5] * 4, epsilon=0.0) for n in (8, 64))
    assert many < 1.3 * few
