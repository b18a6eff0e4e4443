"""Schedulers: values count in the order in which trials were sent to a level, slow ones too."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow.fs import LocalFileSystem

from mfhpo import Observation, Pull
from mfhpo_ray import IISEScheduler
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.simulation import Step, simulate


class Rival:
    """The mean of arm 0 is 0. Arm 1 has 1, or -5 in trials that take 300 times as long."""

    def __init__(self, seed: int, poor_share: float) -> None:
        self.seed = seed
        self.poor_share = poor_share

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        if iteration > 1:
            return None
        random = np.random.default_rng((self.seed, config["arm"], config["seed"]))
        if config["arm"] == 0:
            return Step(float(random.normal()), 1.0)
        return Step(-5.0, 300.0) if random.random() < self.poor_share else Step(1.0, 1.0)


class Ragged:
    """Two arms whose iterations take any time, longer for low values; some fail."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        if iteration > 9:
            return None
        random = np.random.default_rng((self.seed, config["arm"], config["seed"], iteration))
        value = float(random.normal(-0.1 * config["arm"]))
        return Step(value, math.exp(-2.0 * value), failed=random.random() < 0.01)


class Told(IISEScheduler):
    """Notes what the policy was told of each arm and level, and which trials were sent there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(replicate="seed", **options)
        self.told: defaultdict[Pull, list[float | None]] = defaultdict(list)

    def _learn(self, pull: Pull, observation: Observation) -> None:
        self.told[Pull(pull.arm, pull.fidelity)].append(observation.value)
        super()._learn(pull, observation)


def _race(curves: Any, *, n_replicates: int = 400, levels: Any = (1,), **options: Any) -> Told:
    scheduler = Told(levels=levels, epsilon=0.0, measure=1, bias=[0.0] * len(levels))
    trials = [{"arm": arm, "seed": seed} for seed in range(n_replicates) for arm in range(2)]
    simulate(scheduler, trials, curves, slots=16, checkpoints=True, **options)
    return scheduler


def _drawn(curves: Rival, n: int) -> list[float]:
    steps = [curves.step({"arm": 1, "seed": seed}, 1) for seed in range(n)]
    return [step.value for step in steps if step is not None]


@pytest.mark.parametrize("seed", range(4))
def test_a_rival_whose_poor_values_take_long_is_not_certified(seed: int) -> None:
    curves = Rival(seed, poor_share=0.3)
    scheduler = _race(curves)
    told = scheduler.told[Pull(1, 0)]
    assert told == _drawn(curves, len(told))
    answer = scheduler.recommendation()
    assert not (answer.certified and answer.config == {"arm": 1})


def test_the_trial_that_is_waited_for_is_named() -> None:
    curves = Rival(0, poor_share=0.3)
    scheduler = _race(curves, time_budget=250.0)
    waits = scheduler._in_order.waited_for
    assert [each.pull for each in waits] == [Pull(1, 0)]
    assert waits[0].n_held >= 10
    answer = scheduler.recommendation()
    assert not answer.certified
    name = waits[0].run.trial.trial_id
    assert f"and the race waits for trial {name} of arm 1 {{'arm': 1}} on its way" in answer.reason
    assert scheduler.told[Pull(1, 0)] == _drawn(curves, len(scheduler.told[Pull(1, 0)]))


class FirstIsSlow:
    """Three arms that are alike; the first trial of the first takes for ever."""

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        if iteration > 1:
            return None
        random = np.random.default_rng((config["arm"], config["seed"]))
        is_slow = config["arm"] == config["seed"] == 0
        return Step(float(random.normal()), math.inf if is_slow else 1.0)


def test_a_slow_trial_leaves_the_slots_to_what_else_the_race_wants() -> None:
    """This policy takes turns: the other arms get ahead by a few, but do not stop with the slow."""
    trials = [{"arm": arm, "seed": seed} for seed in range(60) for arm in range(3)]
    scheduler = Told(levels=(1,), epsilon=0.0, measure=1, sigma=1.0, bias=[0.0])
    simulate(scheduler, trials, FirstIsSlow(), slots=2, checkpoints=True, time_budget=200.0)
    assert scheduler._in_order.waited_for[0].n_held == 10
    assert not scheduler.told[Pull(0, 0)]
    assert [len(scheduler.told[Pull(arm, 0)]) for arm in (1, 2)] == [15, 15]


class SomeAreLost(FirstIsSlow):
    """The processes of some trials of the second arm are gone before they report."""

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        step = super().step(config, iteration)
        if step is None or config["arm"] != 1 or config["seed"] not in (2, 5, 7):
            return step
        return Step(step.value, step.seconds, failed=True)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """One that each race of a test finds."""
    journal = Journal(LocalFileSystem(), str(tmp_path / "journal"))
    monkeypatch.setattr(Journal, "of", classmethod(lambda cls, trial: journal))
    return journal


def _conditions_on_losses(scheduler: Told) -> list[str]:
    conditions = scheduler.recommendation().conditions
    return [condition for condition in conditions if "left out" in condition]


def test_the_answer_names_what_was_lost_also_after_a_restart(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mfhpo_ray.schedulers.arm_scheduler.was_lost", lambda trial: True)
    trials = [{"arm": arm, "seed": seed} for seed in range(60) for arm in range(3)]
    options: dict[str, Any] = {"levels": (1,), "epsilon": 0.0, "sigma": 1.0, "bias": [0.0]}
    before = Told(**options)
    simulate(before, trials, SomeAreLost(), slots=2, checkpoints=True, time_budget=200.0)
    expected = [
        "the 3 evaluations that were left out, because their process or the driver died, were "
        "like the others"
    ]
    assert _conditions_on_losses(before) == expected
    assert sum(record.get("lost", False) for record in journal.read().values()) == 3
    # These are evaluated again now.
    again = Told(**options)
    simulate(again, trials, FirstIsSlow(), slots=2, checkpoints=True, time_budget=200.0)
    assert _conditions_on_losses(again) == []


def test_the_answer_names_what_was_lost_with_the_driver(journal: Journal) -> None:
    trials = [{"arm": arm, "seed": seed} for seed in range(60) for arm in range(3)]
    options: dict[str, Any] = {"levels": (1,), "epsilon": 0.0, "sigma": 1.0, "bias": [0.0]}
    before = Told(**options)
    simulate(before, trials, FirstIsSlow(), slots=2, checkpoints=True, time_budget=200.0)
    slow = before._in_order.waited_for[0].run.trial.trial_id
    for name, record in journal.read().items():
        text = json.dumps(record).replace(f'"{slow}"', '"forgotten"')
        journal.write(name, json.loads(text))
    after = Told(**options)
    simulate(after, trials, FirstIsSlow(), slots=2, checkpoints=True, time_budget=1.0)
    assert len(after.told[Pull(0, 0)]) >= 10
    assert _conditions_on_losses(before) == []
    assert _conditions_on_losses(after)[0].startswith("the 1 evaluations that were left out")


@pytest.mark.parametrize("lacks", ["places", "lost", "reached"])
def test_a_journal_of_an_earlier_version_is_refused(journal: Journal, lacks: str) -> None:
    _race(Ragged(0), n_replicates=5)
    for name, record in journal.read().items():
        journal.write(name, {key: value for key, value in record.items() if key != lacks})
    with pytest.raises(ValueError, match=f"earlier version of mfhpo: it has no '{lacks}'. Begin"):
        _race(Ragged(0), n_replicates=6)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_waits_in_vain(seed: int) -> None:
    """Pauses, failures and levels of any length: each value is told, and the race ends."""
    scheduler = _race(Ragged(seed), n_replicates=60, levels=(1, 3, 9))
    answer = scheduler.recommendation()
    assert answer.finished
    n_told = sum(map(len, scheduler.told.values()))
    n_seen = sum(map(len, scheduler._observed.values()))
    assert answer.certified or n_told == n_seen


@pytest.mark.parametrize("stopped_at", [30.0, 250.0, 350.0])
@pytest.mark.usefixtures("journal")
def test_after_a_restart_slow_trials_keep_their_places(stopped_at: float) -> None:
    curves = Rival(1, poor_share=0.3)
    before = _race(curves, time_budget=stopped_at, n_replicates=150)
    assert before._in_order.waited_for
    n_before = len(before.told[Pull(1, 0)])
    after = _race(curves, n_replicates=150)
    told = after.told[Pull(1, 0)]
    assert len(told) > n_before
    assert told == _drawn(curves, len(told))
