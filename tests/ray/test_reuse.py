"""Trainables that cannot be given to another trial, where Ray uses processes again."""

from unittest.mock import patch

import pytest
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.trainable import wrap_function

from mfhpo_ray import IISEScheduler, PullScheduler
from tests.ray.schedulers.test_pull_scheduler import Run


class Steps(tune.Trainable):
    """One that Ray cannot reset."""


class Resettable(Steps):
    def reset_config(self, new_config):
        return True


def add(scheduler, trainable, folder, reuse_actors):
    run = Run(folder, scheduler)
    run.controller._reuse_actors = reuse_actors
    with patch.object(Trial, "get_trainable_cls", lambda trial: trainable):
        run.add("a", status=Trial.TERMINATED)


@pytest.mark.parametrize("make", [PullScheduler, lambda: IISEScheduler(max_t=9)])
def test_a_class_that_cannot_be_reset_is_refused(tmp_path, make):
    def scheduler():
        made = make()
        made.set_search_properties("acc", "max")
        return made

    with pytest.raises(ValueError, match="and Steps has none; define it, or drop reuse"):
        add(scheduler(), Steps, tmp_path, reuse_actors=True)
    add(scheduler(), Steps, tmp_path / "anew", reuse_actors=False)
    for trainable in (Resettable, wrap_function(lambda config: None)):
        add(scheduler(), trainable, tmp_path / trainable.__name__, reuse_actors=True)
