"""The stopper that ends settled experiments."""

import numpy as np
import pytest
from ray import tune

from mfhpo.certification.settling import Settling
from mfhpo_ray import StopWhenSettled
from tests.ray.experiments import tuner_of


def told(stopper, values):
    """Report twice in each trial, and return after how many trials the experiment stops."""
    for n, value in enumerate(values):
        for epoch, part in ((1, value - 1.0), (2, value)):
            assert stopper(f"trial {n}", {"training_iteration": epoch, "loss": part}) is False
        if stopper.stop_all():
            return n + 1
    return None


@pytest.mark.parametrize("mode", ["min", "max"])
def test_it_stops_as_the_rule_says(mode):
    values = np.random.default_rng(1).normal(size=400)
    sign = 1.0 if mode == "max" else -1.0
    stops = told(StopWhenSettled("loss", mode, epsilon=1.0), values)
    rule = Settling(epsilon=1.0)
    seen = sign * values[:stops] - [*[0.0] * (stops - 1), sign]  # the newest has reported once
    assert rule.is_settled(seen)
    seen = sign * values[: stops - 1] - [*[0.0] * (stops - 2), sign]
    assert not rule.is_settled(seen)


def test_a_metric_within_another():
    stopper = StopWhenSettled("eval/loss", "min", epsilon=100.0)
    for n in range(29):
        stopper(f"trial {n}", {"training_iteration": 1, "eval": {"loss": float(n)}})
    assert stopper.stop_all()


def test_what_reports_no_value_is_no_trial():
    stopper = StopWhenSettled("loss", "min", epsilon=100.0)
    for n in range(100):
        stopper(f"trial {n}", {"training_iteration": 1, "accuracy": 1.0})
    assert not stopper.stop_all()
    assert told(stopper, np.random.default_rng(0).normal(size=100)) == 29


@pytest.mark.parametrize(
    ("arguments", "what"),
    [(("", "max"), "metric"), (("loss", "most"), "mode"), (("loss", "min", -1.0), "epsilon")],
)
def test_bad_arguments(arguments, what):
    with pytest.raises(ValueError, match=f"{what} must"):
        StopWhenSettled(*arguments)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("ray_cluster")
def test_it_ends_a_real_experiment(tmp_path):
    def train(config):
        tune.report({"loss": config["x"] ** 2})

    tuner = tuner_of(
        train,
        tmp_path,
        space={"x": tune.uniform(-1.0, 1.0)},
        metric="loss",
        mode="min",
        num_samples=200,
        max_concurrent_trials=2,
        stop=StopWhenSettled("loss", "min", epsilon=0.5),
    )
    reported = [result for result in tuner.fit() if "loss" in (result.metrics or {})]
    assert 29 <= len(reported) < 100
