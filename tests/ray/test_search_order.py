"""Values count in the order in which their trials were begun, quick ones not before slow ones."""

from __future__ import annotations

import heapq
import json
import math

import numpy as np
import pytest

from mfhpo import Bounded, Fidelity
from mfhpo_ray import IISESearch
from tests.ray.searching import Memory, make


def _coin(seed: int, workers: int) -> IISESearch:
    """One arm's low values take long and its high ones are quick; the other arm is better."""
    search = IISESearch(
        Fidelity("epochs", levels=[1]),
        [{"coin": True}, {"coin": False}],
        metric="value",
        mode="max",
        epsilon=0.1,
        sigma=Bounded(0, 1),
        seed=seed,
    )
    search.set_max_concurrency(workers)
    under_way: list[tuple[float, str, float]] = []
    now, number = 0.0, 0
    while not search.finished:
        while isinstance(config := search.suggest(str(number)), dict):
            value, seconds = 0.75, 1.0
            if config["coin"]:
                value = float(np.random.default_rng(config["seed"]).random() < 0.5)
                seconds = 1.0 if value else 1000.0
            heapq.heappush(under_way, (now + seconds, str(number), value))
            number += 1
        now, trial_id, value = heapq.heappop(under_way)
        search.on_trial_complete(trial_id, {"value": value})
    for _, trial_id, _ in under_way:
        search.discard(trial_id)
    return search


@pytest.mark.slow
def test_a_certificate_holds_where_the_time_goes_with_the_value():
    """The mean of the quick ones is 1, that of all is 0.5, and that of the other arm 0.75."""
    answers = [_coin(seed, workers=120).recommendation() for seed in range(10)]
    assert all(answer.certified for answer in answers)
    assert [answer.config["coin"] for answer in answers] == [False] * 10


def _begun(n: int, **options) -> tuple[IISESearch, dict[str, dict]]:
    """A search with n pulls under way of the only arm and level."""
    fidelity = Fidelity("epochs", levels=[1])
    options = {"fidelity": fidelity, "arms": [{"x": 0.0}], "measure": 100, **options}
    search = make(sigma=1.0, **options)
    return search, {str(number): search.suggest(str(number)) for number in range(n)}


def _told(search) -> tuple[int, float | None]:
    answer = search.recommendation()
    return answer.trials, answer.mean


def test_an_early_end_is_held_until_those_before_have_ended():
    search, _ = _begun(4)
    search.on_trial_complete("2", {"loss": 3.0})
    search.on_trial_complete("1", error=True)
    assert _told(search)[0] == 0
    search.on_trial_complete("0", {"loss": 1.0})
    assert _told(search) == (2, 2.0)


def test_what_is_held_is_pending_but_takes_no_slot():
    search, _ = _begun(0, arms=[{"x": 0.0}, {"x": 1.0}], bias=[0.0])
    search.set_max_concurrency(2)
    configs = [search.suggest("0"), search.suggest("1")]
    assert sorted(config["x"] for config in configs) == [0.0, 1.0]
    assert search.suggest("2") is None
    slow = configs[0]["x"]
    for number in range(2, 9):
        search.on_trial_complete(str(number - 1), {"loss": 0.0})
        configs.append(search.suggest(str(number)))
    # The slow arm is not begun again and again because no value of it is told.
    assert 3 <= sum(config["x"] == slow for config in configs) <= 6


def test_what_is_dropped_holds_back_nothing():
    search, _ = _begun(3)
    search.on_trial_complete("2", {"loss": 3.0})
    search.discard("0")
    assert _told(search)[0] == 0
    search.on_trial_complete("1")  # it never ran
    assert _told(search) == (1, 3.0)


def test_one_that_hangs_is_overtaken():
    search, _ = _begun(2)
    for number in range(1, 11):
        assert _told(search)[0] == 0
        search.on_trial_complete(str(number), {"loss": 1.0})
        search.suggest(str(number + 1))
    assert _told(search)[0] == 10
    search.on_trial_complete("0", {"loss": 12.0})
    assert _told(search) == (11, 2.0)


def test_many_workers_are_more_patient():
    search, _ = _begun(20)
    for number in range(1, 60):
        search.on_trial_complete(str(number), {"loss": 1.0})
        search.suggest(str(number + 19))
    assert _told(search)[0] == 0
    search.on_trial_complete("60", {"loss": 1.0})
    assert _told(search)[0] == 60


def test_what_is_held_is_in_the_journal_and_in_the_state():
    search, _ = _begun(3)
    journal = Memory()
    search.connect(journal)
    search.on_trial_complete("1", {"loss": 3.0})
    assert journal.read()["1"]["value"] == 3.0
    state = json.loads(json.dumps(search.get_state()))
    search.on_trial_complete("2", {"loss": 5.0})
    again, _ = _begun(0)
    again.set_state(state)
    again.connect(journal)  # which has the third
    assert _told(again)[0] == 0
    again.on_trial_complete("0", {"loss": 1.0})
    assert _told(again) == (3, 3.0)


def test_what_is_held_when_the_race_ends_is_left_out():
    """Surplus trials are dropped; the quick ones among them say nothing about the others."""
    search, _ = _begun(6, measure=2)
    search.on_trial_complete("5", {"loss": -9.0})
    search.on_trial_complete("4", {"loss": -9.0})
    for number in range(2):
        search.on_trial_complete(str(number), {"loss": 1.0})
    assert search.finished
    for number in (2, 3):
        search.discard(str(number))
    assert _told(search) == (2, 1.0)


def test_a_pull_that_another_trial_repeats_counts_once():
    """Killed before its first snapshot, an experiment begins with the same pulls again."""
    first, _ = _begun(1)
    journal = Memory()
    first.connect(journal)
    first.on_trial_complete("0", {"loss": 1.0})
    again, _ = _begun(0)
    again.suggest("anew")
    again.connect(journal)
    again.on_trial_complete("anew", {"loss": 1.0})
    assert _told(again)[0] == 1
    assert math.isfinite(again.recommendation().mean)
