"""Searches that are saved, restored and killed: as if they had never stopped."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray import RaceSearch, TuneRaceRecommendation
from mfhpo_ray.experiment.encoding import decode
from tests.ray.searchers.racing_searches import SPACE, loss, make, true_loss
from tests.ray.searchers.searching import Memory
from tests.ray.searchers.test_search_restore import WAYS

SEARCHES: dict[str, Callable[[], RaceSearch]] = {
    "levels": lambda: make(budget=80, certify_share=0.4),
    "checkpoints": lambda: make(budget=45, checkpoints=True),
    "no fidelity": lambda: make(fidelity=None, space={"x": tune.uniform(-1, 1)}, budget=15),
    "seconds, checkpoints": lambda: make(budget=None, seconds=40, checkpoints=True),
    "few": lambda: make(space={"x": tune.choice([-0.5, 0.2, 0.9])}, budget=60),
}


def _result(config: dict[str, Any]) -> dict[str, Any]:
    if config["seed"] % 11 == 0:
        return {"loss": math.nan}
    whole = {"epochs": 9, "model": {}, **config}
    return {"loss": loss(whole)}


class Driver:
    """Keeps some trials under way; the one that ends next is a function of the step."""

    def __init__(self, search: RaceSearch, workers: int = 3, first: int = 0) -> None:
        self.search = search
        self.workers = workers
        self.running: dict[str, dict[str, Any]] = {}
        self.history: list[Any] = []
        self.n_trials = first

    def step(self) -> bool:
        """Begin a trial or end one; False when there is neither."""
        if len(self.running) < self.workers:
            trial_id = f"trial_{self.n_trials:05d}"
            config = self.search.suggest(trial_id)
            self.history.append(config)
            if isinstance(config, dict):
                self.n_trials += 1
                self.running[trial_id] = config
                return True
        if not self.running:
            return False
        ending = sorted(self.running)[len(self.history) % len(self.running)]
        config = self.running.pop(ending)
        seconds = 1.0 + 0.1 * config.get("epochs", 9)
        self.search.on_trial_complete(ending, {**_result(config), "time_total_s": seconds})
        self.history.append(ending)
        return True


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("levels", "file"),
        pytest.param("checkpoints", "pickle", marks=pytest.mark.slow),
        pytest.param("no fidelity", "state", marks=pytest.mark.slow),
        pytest.param("seconds, checkpoints", "file", marks=pytest.mark.slow),
        ("few", "pickle"),
    ],
)
def test_a_search_that_is_restored_at_every_step_knows_what_it_knew(name, way, tmp_path):
    make_search = SEARCHES[name]
    driver = Driver(make_search())
    while driver.step():
        before = driver.search
        driver.search = WAYS[way](before, make_search, tmp_path)
        assert driver.search.get_state() == before.get_state()
        # As a dictionary: what is not a number equals nothing, itself included.
        answer, expected = driver.search.recommendation(), before.recommendation()
        assert answer.to_dict() == expected.to_dict()
    assert driver.search.finished


def test_a_restored_search_needs_neither_space_nor_metric(tmp_path):
    """After ``Tuner.restore`` without a ``param_space``, Tune hands over neither."""

    def bare() -> RaceSearch:
        return RaceSearch("epochs", budget=120, certify_share=0.3, epsilon=0.1, seed=0)

    def told() -> RaceSearch:
        search = bare()
        search.set_search_properties("loss", "min", dict(SPACE))
        return search

    driver = Driver(told())
    for _ in range(20):
        driver.step()
    driver.search = WAYS["file"](driver.search, bare, tmp_path)
    while driver.step():
        pass
    configs = [config for config in driver.history if isinstance(config, dict)]
    assert all(config.keys() == {"x", "model", "epochs", "seed"} for config in configs)
    assert driver.search.recommendation().certificate is not None


def test_other_levels_are_refused():
    search = make()
    search.suggest("a")
    other = make(fidelity="epochs", space={**SPACE, "epochs": tune.randint(1, 28)})
    other.set_state(search.get_state())  # the saved levels hold where none are declared
    assert other.suggest("b")["epochs"] == 1
    with pytest.raises(ValueError, match="in the saved race"):
        make(fidelity=Fidelity("epochs", levels=[1, 9])).set_state(search.get_state())


def test_another_unit_of_the_budget_is_refused():
    """Epochs that were paid are no seconds."""
    search = make(budget=120)
    search.suggest("a")
    with pytest.raises(ValueError, match="costs that are declared, this race costs that are meas"):
        make(budget=None, seconds=60).set_state(search.get_state())
    search = make(budget=None, seconds=60)
    search.suggest("a")
    with pytest.raises(ValueError, match="costs that are measured, this race costs that are decl"):
        make(budget=120).set_state(search.get_state())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(sorted(SEARCHES)),
    st.integers(0, 90),
    st.integers(0, 40),
    st.booleans(),
    st.booleans(),
)
def test_nothing_is_lost_with_the_driver(name, saved_at, lost, forgets_trials, never_saved):
    """Killed some steps after the last snapshot, Ray may or may not know the newest trials."""
    journal = Memory()
    driver = Driver(SEARCHES[name]())
    driver.search.connect(journal)
    snapshot = driver.search.get_state()
    known_to_ray: set[str] = set()
    for step in range(saved_at + lost):
        if step == saved_at:
            snapshot = driver.search.get_state()
            known_to_ray = set(driver.running)
        driver.step()
    killed, again = driver.search, SEARCHES[name]()
    if not never_saved:
        again.set_state(json.loads(json.dumps(snapshot)))
    again.connect(journal)
    running = set(driver.running)
    killed.keep(again._open.trial_ids)
    for search in (again, killed):
        search.keep(known_to_ray & running if forgets_trials else running)
    records = journal.read()
    if not records:
        return
    stored = records.pop("recommendation")
    assert again.recommendation().trials == killed.recommendation().trials
    assert isinstance(decode(stored["answer"]), TuneRaceRecommendation)
    before, after = killed.recommendation(), again.recommendation()
    assert (after.cost, after.tried, after.at_target) == (
        before.cost,
        before.tried,
        before.at_target,
    )
    for arm in after.survivors:
        assert again._known_arms().config(arm) == killed._known_arms().config(arm)
    # It ends, and no seed of a training that was observed is used for another one.
    used = {
        config["seed"]: (config.get("x"), config.get("model"))
        for config in driver.history
        if isinstance(config, dict)
    }
    going_on = Driver(again, first=10_000)
    going_on.running = {name: driver.running[name] for name in again._open.trial_ids}
    while going_on.step():
        pass
    assert again.finished
    for config in going_on.history:
        if isinstance(config, dict) and config["seed"] in used:
            # Of the same training, or of a trial that was not observed.
            same = (config.get("x"), config.get("model")) == used[config["seed"]]
            lost_seeds = {other["seed"] for other in driver.running.values()}
            assert config["seed"] in lost_seeds or (same and name == "checkpoints")


def test_killed_again_and_again_it_ends_with_an_answer_and_counts_each_trial_once():
    options: dict[str, Any] = {"budget": 200, "certify_share": 0.3, "sigma": 0.02, "seed": 1}
    journal = Memory()
    driver = Driver(make(**options))
    driver.search.connect(journal)
    snapshot = driver.search.get_state()
    step = 0
    while driver.step():
        step += 1
        if step % 10 == 0:
            snapshot = json.loads(json.dumps(driver.search.get_state()))
        if step % 17 == 16:  # killed
            driver.search = make(**options)
            driver.search.set_state(snapshot)
            driver.search.connect(journal)
            driver.search.keep(driver.running)
            # Ray ends those which it does not find in the search.
            known = set(driver.search._open.trial_ids)
            driver.running = {name: c for name, c in driver.running.items() if name in known}
    answer = driver.search.recommendation()
    assert isinstance(answer, TuneRaceRecommendation)
    assert answer.certificate is not None
    assert true_loss(answer.config) < 0.15
    records = journal.read()
    stored = decode(records.pop("recommendation")["answer"])
    assert stored.arm == answer.arm
    assert answer.trials + answer.failures == len(records)
    assert sorted(record["number"] for record in records.values()) == list(range(len(records)))
