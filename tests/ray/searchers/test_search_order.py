"""Values count in the order in which their trials were begun, quick ones not before slow ones."""

import logging
import math

import numpy as np
import pytest

from mfhpo import Fidelity
from mfhpo_ray import MFSearch
from mfhpo_ray.experiment.time_limits import CENSORED_KEY
from tests.ray.searchers.searching import Memory, history_of, make

THREE = [{"x": 0.0}, {"x": 0.1}, {"x": 1.0}]


def _begun(n, **options):
    """A search with n pulls under way of the only arm and level."""
    fidelity = Fidelity("epochs", levels=[1])
    options = {"fidelity": fidelity, "arms": [{"x": 0.0}], "measure": 100, **options}
    search = make(sigma=1.0, **options)
    return search, {str(number): search.suggest(str(number)) for number in range(n)}


def _told(search):
    answer = search.recommendation()
    return answer.trials, answer.mean


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


def test_what_a_dropped_one_held_back_is_told_in_the_order_of_beginnings():
    search, _ = _begun(3)
    for name in ("2", "1"):
        search.on_trial_complete(name, {"loss": 1.0})
    assert history_of(search) == []
    search.evaluations.lose("0")
    assert [name for name, _, _ in history_of(search)] == ["1", "2"]


@pytest.mark.parametrize(("workers", "most"), [(2, 10), (20, 60)])
def test_one_that_hangs_is_waited_for(workers, most, caplog):
    search, _ = _begun(workers)
    running, number = [str(k) for k in range(1, workers)], workers
    with caplog.at_level(logging.WARNING, logger="mfhpo_ray"):
        search.on_trial_complete(running.pop(0), {"loss": 1.0})
        while isinstance(search.suggest(str(number)), dict):
            running.append(str(number))
            search.on_trial_complete(running.pop(0), {"loss": 1.0})
            number += 1
        assert search.suggest("more") is None
    for trial_id in running:
        search.on_trial_complete(trial_id, {"loss": 1.0})
    assert len(caplog.messages) == 1
    waits = "waits for evaluation 0 of candidate 0 {'x': 0.0} at epochs=1"
    assert f"The race {waits} ({most} later" in caplog.messages[0]
    answer = search.recommendation()
    assert (answer.trials, answer.certified, answer.finished) == (0, False, False)
    assert f"the experiment {waits}" in answer.reason
    search.on_trial_complete("0", {"loss": 2.0})
    assert _told(search) == (number, pytest.approx(1.0 + 1.0 / number))
    assert "waits for" not in search.recommendation().reason
    assert isinstance(search.suggest("more"), dict)


@pytest.mark.parametrize("costs", [None, "measured"])
def test_what_is_held_has_been_paid_for(costs):
    """A budget of 20 evaluations promises what is open to it, too."""
    fidelity = Fidelity("epochs", levels=[3], costs=costs)
    search = make(MFSearch, fidelity=fidelity, arms=THREE, epsilon=0.0, budget=60.0)
    search.suggest("slow")
    number = 0
    while isinstance(config := search.suggest(str(number)), dict):
        noise = np.random.default_rng(number).normal()
        search.on_trial_complete(str(number), {"loss": noise, "time_total_s": 3.0})
        number += 1
    assert (config, number) == (None, 19)
    assert not search.finished
    assert "the experiment waits for evaluation slow" in search.recommendation().reason
    search.on_trial_complete("slow", {"loss": 0.0, "time_total_s": 3.0})
    assert search.suggest("more") == search.FINISHED
    assert search.recommendation().cost == 60.0


def test_one_that_is_stopped_at_its_limit_counts_in_its_turn():
    search, _ = _begun(3)
    search.on_trial_complete("1", {CENSORED_KEY: 5.0, "time_total_s": 5.0})
    search.on_trial_complete("2", {"loss": 1.0})
    assert _told(search)[0] == 0
    assert not any("time limit" in assumed for assumed in search.recommendation().assumptions)
    search.on_trial_complete("0", {CENSORED_KEY: 5.0, "time_total_s": 5.0})
    assert _told(search) == (1, 1.0)
    assumptions = search.recommendation().assumptions
    assert any("2 were stopped at a time limit" in assumed for assumed in assumptions)


def test_what_is_held_when_the_race_ends_is_left_out():
    """Surplus trials are dropped; the quick ones among them say nothing about the others."""
    search, _ = _begun(100, measure=2)
    search.on_trial_complete("99", {"loss": -9.0})
    search.on_trial_complete("98", {"loss": -9.0})
    number = 0
    while not search.finished:
        search.on_trial_complete(str(number), {"loss": 1.0})
        number += 1
    assert 2 <= number < 98
    for surplus in range(number, 98):
        search.evaluations.discard(str(surplus))
    assert _told(search) == (number, 1.0)


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
