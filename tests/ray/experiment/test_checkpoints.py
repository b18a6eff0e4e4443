"""Which trials can be paused without a loss, as trials show it."""

from types import SimpleNamespace

import pytest
from ray.tune import Trainable
from ray.tune.trainable import wrap_function

from mfhpo_ray.experiment.checkpoints import Checkpoints


class Saved(Trainable):
    def save_checkpoint(self, checkpoint_dir):
        return None


def trial(trainable, saved_at=None, name="trainable"):
    saved = None if saved_at is None else SimpleNamespace(metrics={"training_iteration": saved_at})
    return SimpleNamespace(
        trainable_name=name,
        get_trainable_cls=lambda: trainable,
        latest_checkpoint_result=saved,
        has_checkpoint=lambda: saved is not None,
    )


def test_a_function_shows_with_a_result_whether_it_saved_it():
    function = trial(wrap_function(lambda config: None))
    checkpoints = Checkpoints()
    assert not checkpoints.allow_pause(function, {"training_iteration": 1})
    saved = {"training_iteration": 3, "should_checkpoint": True}
    assert checkpoints.allow_pause(function, saved)
    assert not checkpoints.allow_pause(function, {"training_iteration": 4})


@pytest.mark.parametrize(("saved_at", "allowed"), [(3, True), (1, False), (None, False)])
def test_a_checkpoint_from_before_would_lose_what_came_after(saved_at, allowed):
    function = trial(wrap_function(lambda config: None), saved_at)
    assert Checkpoints().allow_pause(function, {"training_iteration": 3}) == allowed


@pytest.mark.parametrize(("trainable", "allowed"), [(Saved, True), (Trainable, False)])
def test_a_class_is_saved_by_the_pause_if_it_says_how(trainable, allowed):
    assert Checkpoints().allow_pause(trial(trainable), {"training_iteration": 3}) == allowed


@pytest.mark.parametrize("saves", [True, False])
def test_where_nothing_is_known_one_trial_pauses_to_show_it(saves):
    checkpoints = Checkpoints()
    first, second = trial(None), trial(None)
    result = {"training_iteration": 3}
    assert checkpoints.allow_pause(first, result)
    assert not checkpoints.allow_pause(second, result)
    checkpoints.note_pause(second)  # was put to rest by something else, and shows nothing
    assert not checkpoints.allow_pause(second, result)
    first.has_checkpoint = lambda: saves
    checkpoints.note_pause(first)
    assert checkpoints.allow_pause(second, result) == saves
