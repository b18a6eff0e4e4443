"""A search in a real experiment: checkpoints, a conditional space, the answer in the storage."""

import json
from pathlib import Path

import numpy as np
import pytest
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray import SpaceSearch, recommendation
from tests.ray.experiments import tuner_of
from tests.ray.searchers.racing_searches import true_loss

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("ray_cluster"),
]


def _square(x):
    return x**2


def _train(config):
    path = Path(config["folder"], config["training"])
    done = json.loads(path.read_text()) if path.exists() else []
    model = {key: value for key, value in config["model"].items() if key != "transform"}
    here = [config["x"], model, config["seed"]]
    assert all(earlier[:3] == here for earlier in done)
    assert config["model"]["transform"](2.0) == 4.0  # an object, not what stands for it
    path.write_text(json.dumps([*done, [*here, config["epochs"]]]))
    noise = 0.02 * np.random.default_rng([config["seed"], config["epochs"]]).normal()
    tune.report({"loss": true_loss(config) + 0.1 / config["epochs"] + noise})


def test_an_experiment_ends_with_a_certificate_in_its_storage(tmp_path):
    folder = tmp_path / "trainings"
    folder.mkdir()
    options = {"budget": 60, "certify_share": 0.3, "top": 2, "sigma": 0.02, "checkpoints": True}
    fidelity = Fidelity("epochs", levels=[1, 3])
    search = SpaceSearch(fidelity, metric="loss", mode="min", seed=0, **options)
    deep = {"kind": "deep", "transform": _square, "depth": tune.randint(1, 6)}
    space = {
        "x": tune.uniform(-1, 1),
        "model": tune.choice([{"kind": "flat", "transform": _square}, deep]),
        "epochs": tune.randint(1, 4),
        "folder": str(folder),
    }
    options = {"search_alg": search, "max_concurrent_trials": 1}
    results = tuner_of(_train, tmp_path, space=space, name="search", **options).fit()
    assert results.num_errors == 0
    answer = recommendation(results)
    assert answer.searched
    assert answer.certificate.to_dict() == search.recommendation().certificate.to_dict()
    assert answer.config.keys() == {"x", "model"}
    restored = tune.Tuner.restore(str(tmp_path / "search"), trainable=_train)
    assert str(recommendation(restored.get_results())) == str(answer)
    # Rising levels, replicates at the target alone, and some were gone on with.
    trainings = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
    for name, steps in trainings.items():
        levels = [step[3] for step in steps]
        assert levels in ([[3]] if "replicate" in name else [[1], [1, 3]])
    assert answer.trials == sum(map(len, trainings.values())) == len(results)
    assert answer.cost <= 60.0
    assert any(len(steps) == 2 for steps in trainings.values())
    assert any("replicate" in name for name in trainings)
