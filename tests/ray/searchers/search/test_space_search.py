"""The searcher that searches a space and certifies what it has found, by plain calls."""

import numpy as np
import pytest

from mfhpo_ray import recommendation
from mfhpo_ray.experiment.configurations import decode, encode
from tests.ray.searchers.racing_searches import loss, make, true_loss
from tests.ray.searchers.searching import run


@pytest.fixture(scope="module")
def finished():
    search = make(budget=400, certify_share=0.5, sigma=0.02, seed=1)
    return search, run(search, loss)


def test_it_finds_and_certifies_a_good_configuration(finished):
    search, configs = finished
    answer = recommendation(search)
    assert answer.searched
    assert (answer.certified, answer.finished) == (True, True)
    assert answer.config.keys() == {"x", "model", "data"}
    low, high = answer.interval
    assert low < true_loss(answer.config) + 0.1 / 9 < high
    assert true_loss(answer.config) < 0.1
    assert answer.cost == sum(config["epochs"] for config in configs) <= 400
    assert answer.trials == len(configs)
    assert 2 <= answer.compared <= 8
    assert answer.tried == len({repr((c["x"], c["model"])) for c in configs})
    text = str(answer)
    assert "CERTIFIED" in text
    assert "model/kind=" in text
    assert f"{answer.tried} configurations tried, {answer.at_target} of them" in text


def test_checkpoints_are_gone_on_with_and_only_the_rest_is_paid():
    search = make(checkpoints=True, budget=150, certify_share=0.3)
    trainings = {}
    paid = 0
    for config in run(search, loss):
        training = trainings.setdefault(config["training"], [])
        paid += config["epochs"] - (training[-1]["epochs"] if training else 0)
        training.append(config)
    answer = search.recommendation()
    assert "training" not in answer.config
    assert answer.cost == paid <= 150
    for name, configs in trainings.items():
        # One configuration with one seed, at rising levels.
        assert len({repr((c["x"], c["model"], c["seed"])) for c in configs}) == 1
        levels = [c["epochs"] for c in configs]
        assert levels == ([9] if "replicate" in name else [1, 3, 9][: len(levels)])
    seeds = [configs[0]["seed"] for configs in trainings.values()]
    assert len(set(seeds)) == len(seeds)
    assert any("replicate" in name for name in trainings)
    assert max(map(len, trainings.values())) == 3


def run_with_limits(search, at_most):
    """Every seventh configuration takes 50 times as long as others, if it may."""
    limits, stopped = [], 0
    for number in range(at_most):
        trial_id = str(number)
        config = search.suggest(trial_id)
        if not isinstance(config, dict):
            break
        search.evaluations.watch(trial_id)
        limit = search.evaluations.limit_of(trial_id)
        seconds = config["epochs"] * (50.0 if int(config["x"] * 1e6) % 7 == 3 else 1.0)
        limits.append(limit)
        result = {"loss": loss(config), "time_total_s": seconds}
        if limit is not None and seconds > limit:
            stopped += 1
            result = {"time_total_s": limit, "mfhpo/censored_at": limit}
        search.on_trial_complete(trial_id, result)
    return limits, stopped


def test_trials_that_were_stopped_for_their_time_are_no_failures():
    search = make(budget=None, seconds=500, certify_share=0.0, seed=1)
    limits, stopped = run_with_limits(search, 1000)
    answer = search.recommendation()
    assert limits[0] == pytest.approx(50.0)
    assert None not in limits
    assert (answer.stopped, answer.failures) == (stopped, 0)
    assert stopped > 3
    assert not any("were stopped" in assumption for assumption in answer.assumptions)
    assert decode(encode(answer)).to_dict() == answer.to_dict()


@pytest.mark.parametrize("kind", ["list", "number"])
def test_it_chooses_among_candidates(kind):
    models = [{"kind": "svm", "C": 1.0}, {"kind": "tree"}]
    rng = np.random.default_rng(0)
    given = [{"x": float(x), "model": models[i % 2]} for i, x in enumerate(rng.uniform(-1, 1, 30))]
    options = {"space": None} if kind == "list" else {}
    search = make(budget=30 * 9, candidates=given if kind == "list" else 30, seed=1, **options)
    configs = run(search, loss)
    answer = recommendation(search)
    assert answer.finished
    assert f"the {answer.compared} finalists of 30 candidates" in str(answer)
    tried = {repr((config["x"], config["model"])) for config in configs}
    assert len(tried) == answer.tried <= 30
    if kind == "list":
        assert tried <= {repr((each["x"], each["model"])) for each in given}
        assert true_loss(answer.config) < min(map(true_loss, given)) + 0.1
