"""Searchers that are saved and restored: as if they had never stopped."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import cloudpickle

from mfhpo.censored import Linear
from mfhpo_ray import IISESearch, RCUCBSearch
from mfhpo_ray.experiment.encoding import decode
from mfhpo_ray.searchers.policy_search import PolicySearch
from tests.ray.searchers.searching import ARMS, BEST_ARM, SPACE, Memory, bowl, make

pytestmark = pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")


def _limits(**options: Any) -> RCUCBSearch:
    arguments: dict[str, Any] = {"limits": 3, "cost": Linear(0.1), "horizon": 40, "longest": 9.0}
    arms = [{"x": x, "epochs": 9} for x in (-0.9, 0.0, 0.6)]
    search = RCUCBSearch(arms, metric="loss", mode="min", seed=0, **{**arguments, **options})
    search.note_resources("none", {})
    return search


SEARCHES: dict[str, Callable[[], PolicySearch[Any]]] = {
    **{name: lambda cls=cls: make(cls) for name, cls in BEST_ARM.items()},
    "drawn": lambda: make(arms=5, space=SPACE),
    "seed's own key": lambda: make(seed_key="split"),
    "limits": _limits,
}


def _result(config: dict[str, Any]) -> dict[str, Any]:
    seed = config.get("seed", config.get("split", 0))
    if seed % 11 == 0:
        return {"loss": math.nan, "time_total_s": 0.5}
    limit = config.get("time_limit_s")
    if limit is not None and seed % 3 == 0:
        return {"mfhpo/censored_at": limit}
    return {"loss": bowl({**config, "seed": seed}), "time_total_s": 0.1 + (seed % 7) / 7}


class Driver:
    """Keeps three trials under way; the one that ends next is a function of the step."""

    def __init__(self, search: PolicySearch[Any]) -> None:
        self.search = search
        self.running: dict[str, dict[str, Any]] = {}
        self.history: list[Any] = []
        self.n_trials = 0
        self.over = False

    def step(self) -> None:
        if len(self.running) < 3 and not self.over:
            trial_id = f"trial_{self.n_trials}"
            config = self.search.suggest(trial_id)
            self.history.append(config)
            if config == self.search.FINISHED:
                self.over = True
                return
            self.n_trials += 1
            self.running[trial_id] = config
        elif self.running:
            ending = sorted(self.running)[len(self.history) % len(self.running)]
            config = self.running.pop(ending)
            self.search.on_trial_complete(trial_id=ending, result=_result(config))
            self.history.append(ending)

    @property
    def ended(self) -> bool:
        return self.over and not self.running


def _to_the_end(driver: Driver, at_most: int = 3000) -> Driver:
    for _ in range(at_most):
        if driver.ended:
            break
        driver.step()
    return driver


def _by_file(search: Any, make_search: Callable[[], Any], folder: Path) -> Any:
    search.save(str(folder / "state"))
    again = make_search()
    again.restore(str(folder / "state"))
    return again


def _by_state(search: Any, make_search: Callable[[], Any], folder: Path) -> Any:
    again = make_search()
    again.set_state(json.loads(json.dumps(search.get_state())))
    return again


def _by_pickle(search: Any, make_search: Callable[[], Any], folder: Path) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(search))


WAYS = {"file": _by_file, "state": _by_state, "pickle": _by_pickle}


# Each search once, and each way twice.
PAIRS = [*((name, "state") for name in SEARCHES), *(("IISE", way) for way in ("file", "pickle"))]


@pytest.mark.parametrize(("name", "way"), [*PAIRS, ("limits", "file"), ("limits", "pickle")])
def test_restoring_at_every_step_changes_nothing(name, way, tmp_path):
    make_search = SEARCHES[name]
    straight = Driver(make_search())
    stopping = Driver(make_search())
    for _ in range(60):
        straight.step()
        stopping.step()
        stopping.search = WAYS[way](stopping.search, make_search, tmp_path)
        if isinstance(stopping.search, RCUCBSearch):
            stopping.search.note_resources("none", {})
    assert stopping.history == straight.history
    assert stopping.search.get_state() == straight.search.get_state()
    assert _to_the_end(stopping).history == _to_the_end(straight).history
    assert stopping.search.recommendation() == straight.search.recommendation()


def test_nothing_to_save_is_saved_too(tmp_path):
    for way in WAYS.values():
        again = way(make(arms=3, space=SPACE), lambda: make(arms=3, space=SPACE), tmp_path)
        assert again.suggest("a") == make(arms=3, space=SPACE).suggest("a")


def test_a_restored_search_needs_neither_space_nor_metric(tmp_path):
    """After ``Tuner.restore`` without a ``param_space``, Tune hands over neither."""
    search = IISESearch("epochs", 4, epsilon=0.1, seed=0)
    search.set_search_properties("loss", "min", dict(SPACE))
    driver = Driver(search)
    for _ in range(20):
        driver.step()
    driver.search = _by_file(search, lambda: IISESearch("epochs", 4, epsilon=0.1, seed=0), tmp_path)
    straight = IISESearch("epochs", 4, epsilon=0.1, seed=0)
    straight.set_search_properties("loss", "min", dict(SPACE))
    assert _to_the_end(driver).history == _to_the_end(Driver(straight)).history


def test_a_drawn_seed_and_the_concurrency_are_restored(tmp_path):
    search = make(seed=None)
    search.suggest("a")
    again = _by_file(search, lambda: make(seed=None), tmp_path)
    assert again.suggest("b") == search.suggest("b")
    again.set_max_concurrency(2)
    assert _by_file(again, make, tmp_path).suggest("c") is None


@pytest.mark.parametrize("lacks", ["lost", "policy", "seed", "open"])
def test_a_state_of_an_earlier_version_is_refused(lacks):
    driver = Driver(make())
    for _ in range(10):
        driver.step()
    state = driver.search.get_state()
    if lacks == "open":  # what is lacking may be anywhere
        del state["open"]["most_under_way"]
    else:
        del state[lacks]
    with pytest.raises(ValueError, match=r"earlier version of mfhpo: it has no .* anew"):
        make().set_state(state)


def test_a_journal_of_an_earlier_version_is_refused():
    journal = Memory()
    journal.write("trial_1", {"number": 0, "arm": 0, "fidelity": 0, "value": 1.0})
    with pytest.raises(ValueError, match="earlier version of mfhpo: it has no 'limit'"):
        make().connect(journal)


# The journal: what Ray's last snapshot lacks.


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(sorted(SEARCHES)),
    st.integers(0, 60),
    st.integers(0, 40),
    st.booleans(),
    st.booleans(),
)
def test_nothing_is_lost_with_the_driver(name, saved_at, lost, forgets_trials, never_saved):
    """Killed some steps after the last snapshot, Ray may or may not know the newest trials."""
    make_search = SEARCHES[name]
    journal = Memory()
    driver = Driver(make_search())
    driver.search.connect(journal)
    snapshot = driver.search.get_state()
    known_to_ray: set[str] = set()
    for step in range(saved_at + lost):
        if step == saved_at:
            snapshot = driver.search.get_state()
            known_to_ray = set(driver.running)
        driver.step()
    killed = driver.search
    # The experiment goes on with the snapshot.
    again = make_search()
    if not never_saved:
        again.set_state(json.loads(json.dumps(snapshot)))
    again.connect(journal)
    # What no trial goes on with holds back nothing any more.
    killed.keep(again._open.trial_ids)
    running = set(driver.running)
    for trial_id in journal.read():
        if trial_id != "recommendation":
            assert again.completed(trial_id) is not None
    for trial_id in running:
        assert again.completed(trial_id) is None
    for search in (again, killed):
        search.keep(known_to_ray & running if forgets_trials else running)
    if killed._policy is None or not journal.read():
        return
    # It has learned the same in the same order.
    assert again.get_state()["policy"] == killed.get_state()["policy"]
    assert again.finished == killed.finished
    assert set(again._open.trial_ids) <= running
    # No seed that was observed is used again.
    used = [
        config.get("seed", config.get("split"))
        for config in driver.history
        if isinstance(config, dict)
    ]
    open_seeds = {config.get("seed", config.get("split")) for config in driver.running.values()}
    going_on = Driver(again)
    going_on.n_trials = 10_000
    again.note_resources("none", {})
    new = [c for c in _to_the_end(going_on, 30).history if isinstance(c, dict)]
    new_seeds = [config.get("seed", config.get("split")) for config in new]
    assert not set(new_seeds) & (set(used) - open_seeds)
    assert len(set(new_seeds)) == len(new_seeds)


def test_killed_again_and_again_the_race_ends_and_counts_each_observation_once():
    journal = Memory()
    # An arm that fails three times in a row by chance would leave.
    driver = Driver(make(max_failures=9))
    driver.search.connect(journal)
    snapshot = driver.search.get_state()
    for step in range(10_000):
        if driver.ended:
            break
        if step % 10 == 0:
            snapshot = json.loads(json.dumps(driver.search.get_state()))
        driver.step()
        if step % 17 == 16:  # killed
            driver.search = make(max_failures=9)
            driver.search.set_state(snapshot)
            driver.search.connect(journal)
            driver.search.keep(driver.running)
    answer = driver.search.recommendation()
    assert answer.certified
    assert answer.config == {"x": 0.0}
    records = journal.read()
    stored = decode(records.pop("recommendation")["answer"])
    assert stored.certified
    assert answer.trials == sum(record["value"] is not None for record in records.values())
    assert sorted(record["number"] for record in records.values()) == list(range(len(records)))


def test_a_pull_that_was_lost_with_the_driver_is_a_condition() -> None:
    """It began after the last snapshot, and later ones of its arm had ended."""
    journal = Memory()
    search = make(arms=ARMS[1:3], epsilon=0.05)
    search.connect(journal)
    configs = {number: search.suggest(f"t{number}") for number in range(3)}
    snapshot = json.dumps(search.get_state())
    for number in range(3):
        search.on_trial_complete(f"t{number}", {"loss": bowl(configs[number])})
    later = {number: search.suggest(f"t{number}") for number in range(3, 9)}
    for number in range(4, 9):
        search.on_trial_complete(f"t{number}", {"loss": bowl(later[number])})
    again = make(arms=ARMS[1:3], epsilon=0.05)
    again.set_state(json.loads(snapshot))
    again.connect(journal)
    again.keep([])
    conditions = again.recommendation().conditions
    assert any("the 1 evaluations that were left out" in condition for condition in conditions)
