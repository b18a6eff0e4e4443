"""Which trials can be paused without a loss, as trials show it."""

from types import SimpleNamespace

import pytest
from ray.tune import Trainable
from ray.tune.trainable import wrap_function

from mfhpo_ray.experiment.processes import loses_nothing_by_a_pause


class Saved(Trainable):
    def save_checkpoint(self, checkpoint_dir):
        return None


def trial(trainable, saved_at=None):
    saved = None if saved_at is None else SimpleNamespace(metrics={"training_iteration": saved_at})
    return SimpleNamespace(
        get_trainable_cls=lambda: trainable,
        latest_checkpoint_result=saved,
    )


def test_a_function_shows_with_a_result_whether_it_saved_it():
    function = trial(wrap_function(lambda config: None))
    assert not loses_nothing_by_a_pause(function, {"training_iteration": 1})
    saved = {"training_iteration": 3, "should_checkpoint": True}
    assert loses_nothing_by_a_pause(function, saved)
    assert not loses_nothing_by_a_pause(function, {"training_iteration": 4})


@pytest.mark.parametrize(("saved_at", "allowed"), [(3, True), (1, False), (None, False)])
def test_a_checkpoint_from_before_would_lose_what_came_after(saved_at, allowed):
    function = trial(wrap_function(lambda config: None), saved_at)
    assert loses_nothing_by_a_pause(function, {"training_iteration": 3}) == allowed


@pytest.mark.parametrize(("trainable", "allowed"), [(Saved, True), (Trainable, False)])
def test_a_class_is_saved_by_the_pause_if_it_says_how(trainable, allowed):
    assert loses_nothing_by_a_pause(trial(trainable), {"training_iteration": 3}) == allowed
