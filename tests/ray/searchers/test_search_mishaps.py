"""What can go wrong around a race: storage, restarts, limits and stops that others set."""

import enum
import json
import logging
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from pyarrow.fs import LocalFileSystem
from ray import cloudpickle
from ray.tune.utils import flatten_dict

from mfhpo import Fidelity
from mfhpo_ray.experiment.journal import Journal
from tests.ray.searchers.searching import SPACE, Memory, bowl, make, run, same_state


class Activation(str, enum.Enum):
    RELU = "relu"
    TANH = "tanh"


class Block:
    def __init__(self, width):
        self.width = width


OBJECTS = {
    "texts that are members of an enum": lambda: [{"a": Activation.RELU}, {"a": Activation.TANH}],
    "NumPy's numbers in a list": lambda: [{"w": [np.float64(0.5)]}, {"w": [np.float64(0.6)]}],
    "arrays in a list": lambda: [{"w": [np.zeros(3)]}, {"w": [np.ones(3)]}],
    "functions and objects": lambda: [{"f": lambda x: x}, {"f": Block(3)}],
    "tuples": lambda: [{"hidden": (1, 2)}, {"hidden": (2, 1)}],
}


@pytest.mark.parametrize("arms", OBJECTS.values(), ids=OBJECTS.keys())
def test_arms_of_any_kind_are_restored(arms):
    search, again = make(arms=arms()), make(arms=arms())
    search.suggest("a")
    search.on_trial_complete("a", {"loss": 0.1})
    again.set_state(json.loads(json.dumps(search.get_state())))
    assert again.recommendation().trials == 1
    copied = cloudpickle.loads(cloudpickle.dumps(again))
    assert copied.recommendation().trials == 1


@pytest.fixture
def again():
    search, again = make(), make()
    search.set_max_concurrency(1)
    search.suggest("a")
    again.set_state(search.get_state())
    return again


def test_a_trial_is_waited_for_if_it_is_run_again(again):
    again.connect(Memory())
    again.evaluations.watch("a")
    assert again.suggest("b") is None
    again.on_trial_complete("a", {"loss": 0.5})
    assert isinstance(again.suggest("b"), dict)


def test_a_trial_that_is_not_run_again_is_not_waited_for(again):
    again.connect(Memory())
    assert isinstance(again.suggest("b"), dict)


@pytest.mark.parametrize("is_told", [True, False])
def test_trials_of_an_earlier_run_take_no_room_in_another(again, is_told):
    """Tune hands its space over before it restores a run, but only if it has a space."""
    if is_told:
        again.set_search_properties(None, None, SPACE)
        assert again.evaluations.log.experiment.open == []
    assert isinstance(again.suggest("b"), dict)
    assert again.suggest("c") is None
    again.connect(Memory())
    again.evaluations.lose_awaited()  # as the scheduler does
    assert again.evaluations.log.experiment.open == ["b"]


def test_a_search_that_is_used_again_leaves_its_earlier_run_as_it_was(tmp_path):
    search = make()
    search.set_max_concurrency(1)
    search.connect(_journal(tmp_path / "run1"))
    search.suggest("interrupted")
    search.set_search_properties(None, None, SPACE)
    assert isinstance(search.suggest("new"), dict)
    search.connect(_journal(tmp_path / "run2"))
    assert search.evaluations.log.experiment.open == ["new"]
    earlier = make()
    earlier.connect(_journal(tmp_path / "run1"))
    assert earlier.evaluations.log.experiment.open == ["interrupted"]


def _journal(folder):
    return Journal(LocalFileSystem(), str(folder))


def _restored_from(search, path):
    search.save(str(path))
    again = make()
    again.restore(str(path))
    return again


def test_a_second_run_goes_on_from_a_checkpoint_of_the_first(tmp_path):
    first = make()
    first.connect(_journal(tmp_path / "run1"))
    run(first, prefix="first", at_most=10)
    first.suggest("open")
    second = _restored_from(first, tmp_path / "state")
    assert "first_" not in (tmp_path / "state").read_text()  # events are in the journal alone
    assert len(second.evaluations.log.experiment.history()) == 10
    config = second.suggest("new")
    second.connect(_journal(tmp_path / "run2"))
    assert second.evaluations.log.experiment.open == ["new"]
    second.on_trial_complete("new", {"loss": bowl(config)})
    run(second, prefix="second")
    assert second.recommendation().certified
    third = make()
    third.connect(_journal(tmp_path / "run2"))
    assert same_state(third, second)
    assert third.recommendation() == second.recommendation()


def test_a_second_run_needs_the_events_of_the_first(tmp_path):
    first = make()
    first.connect(_journal(tmp_path / "run1"))
    run(first, at_most=3)
    first.save(str(tmp_path / "state"))
    shutil.rmtree(tmp_path / "run1")
    second = make()
    second.restore(str(tmp_path / "state"))
    second.suggest("new")
    with pytest.raises(ValueError, match="saved in the run run1, whose events cannot be read"):
        second.connect(_journal(tmp_path / "run2"))


@pytest.mark.parametrize("name", ["a", "anew"])
def test_what_failed_is_evaluated_again_if_tune_is_told_to(name, tmp_path):
    """The trial keeps its name (resume_errored), or gets another one (restart_errored)."""
    search = make(max_failures=1)
    search.connect(_journal(tmp_path / "run"))
    config = search.suggest("a")
    search.on_trial_complete("a", error=True)
    assert search.recommendation().failures == 1
    again = make(max_failures=1)
    again.connect(_journal(tmp_path / "run"))
    trial = SimpleNamespace(
        trial_id=name,
        num_failures=int(name == "a"),
        evaluated_params=flatten_dict(config),
    )
    assert again.evaluations.repeats(trial)
    again.evaluations.watch(name)
    again.on_trial_complete(name, {"loss": bowl(config)})
    answer = again.recommendation()
    assert (answer.failures, answer.trials) == (0, 1)
    assert not again.evaluations.repeats(trial)


def _begun(n, **options):
    """A search with n pulls under way of the only arm and level."""
    fidelity = Fidelity("epochs", levels=[1])
    options = {"fidelity": fidelity, "arms": [{"x": 0.0}], "measure": 100, **options}
    search = make(sigma=1.0, **options)
    return search, {str(number): search.suggest(str(number)) for number in range(n)}


@pytest.mark.parametrize(("workers", "most"), [(2, 10), (20, 60)])
def test_the_log_says_once_for_whom_a_race_waits(workers, most, caplog):
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
    assert again.recommendation().trials == 1
