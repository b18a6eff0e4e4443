"""`certify` of finished experiments."""

import numpy as np
import pytest
from pyarrow.fs import LocalFileSystem
from ray import tune

from mfhpo_ray import certify, recommendation
from mfhpo_ray.certification import ShortlistSearch, TuneCertificate, shortlist_of
from mfhpo_ray.experiment.journal import Journal
from tests.ray.certification.grids import Grid, trial
from tests.ray.experiments import tuner_of
from tests.ray.searchers.searching import run


def search_of(replicate=None, seed_key="seed", replicates=None, **options):
    grid = Grid(*(trial(x, acc=0.5 + 0.1 * x, seed=x) for x in range(6)))
    owned = [key for key in (seed_key, replicate) if key]
    given = {"metric": "acc", "mode": "max", "fidelity": None, "time_attr": "training_iteration"}
    shortlist, _ = shortlist_of(grid, 4, owned=owned, **given)
    host = {"metric": "loss", "mode": "max", "seed": 7, "seed_key": seed_key}
    return ShortlistSearch(shortlist, {"epsilon": 0.1, **options}, replicate, replicates, **host)


def value(config):
    rng = np.random.default_rng(config["seed"])
    return -abs(config["model"]["x"] - 3) + 0.05 * rng.normal() + 3.0 * rng.uniform()


def test_each_evaluation_has_a_seed_of_its_own():
    search = search_of(sigma=1.0)
    configs = run(search, value)
    assert len({config["seed"] for config in configs}) == len(configs)
    assert {config["model"]["x"] for config in configs} == {2, 3, 4, 5}
    answer = search.recommendation().certificate
    assert (answer.certified, answer.params) == (True, {"model": {"x": 3}})
    assert answer.luckiest_result.params == {"model": {"x": 5}}
    assert answer.evaluations == len(configs)


def test_candidates_share_the_seeds_of_a_replicate():
    search = search_of("seed", None)
    configs = run(search, value)
    answer = search.recommendation().certificate
    assert (answer.certified, answer.params) == (True, {"model": {"x": 3}})
    seeds = [config["seed"] for config in configs]
    assert 0.2 < len(set(seeds)) / len(seeds) < 0.6
    # Independent evaluations vary too much for the same answer at this price.
    assert len(configs) < 0.7 * len(run(search_of(), value))


def test_replicates_may_have_an_end():
    def on_fold(config):
        rng = np.random.default_rng([ord(config["fold"]), config["model"]["x"]])
        return float(config["model"]["x"] + ord(config["fold"]) + rng.normal())

    folds = ["a", "b", "c", "d", "e"]
    search = search_of("fold", epsilon=None, replicates=folds)
    configs = run(search, on_fold)
    answer = search.recommendation().certificate
    used = {x: [c["fold"] for c in configs if c["model"]["x"] == x] for x in (2, 3, 4, 5)}
    assert all(sorted(set(seen)) == folds for seen in used.values())
    assert sorted(map(len, used.values())) == [6] * 4  # each once more
    assert used[2] != folds  # in random order
    assert (answer.certified, answer.is_exact, answer.replicates) == (True, True, 5)
    x = answer.params["model"]["x"]
    means = [
        np.mean([on_fold({"fold": f, "model": {"x": k}}) for f in folds]) for k in (2, 3, 4, 5)
    ]
    assert (x, answer.mean) == (2 + int(np.argmax(means)), pytest.approx(max(means)))


def test_a_plan_evaluates_nothing():
    grid = Grid(*(trial(x, acc=0.5 + 0.1 * x, seed=x) for x in range(8)))
    plan = certify(grid, print, metric="acc", mode="max", plan=True)
    assert [one["model"]["x"] for one in plan.finalists] == [7, 6, 5, 4, 3, 2]
    assert plan.noise == pytest.approx(0.5 / 1.5)
    assert plan.evaluations < plan.at_half_epsilon


def test_the_budget_counts_evaluations():
    search = search_of(budget=9)
    assert len(run(search, value)) == 9
    assert not search.recommendation().certificate.certified


def test_it_goes_on_with_other_arguments(tmp_path):
    first, again = search_of(budget=9), search_of(budget=20)
    journals = [Journal(LocalFileSystem(), f"{tmp_path}/mfhpo/{name}") for name in "12"]
    first.connect(journals[0])
    began = run(first, value, at_most=8)
    began.append(first.suggest("killed"))
    # A run that was killed while it took this over.
    journals[1].append([{"trial": "experiment", **journals[0].read()["experiment"]}])
    again.go_on(Journal.of_runs(LocalFileSystem(), str(tmp_path)))
    again.set_max_concurrency(1)
    went_on = run(again, value, prefix="more")
    assert (len(began), len(went_on)) == (9, 12)
    seeds = {config["seed"] for config in [*began, *went_on]}
    assert len(seeds) == 21


def test_arguments_are_checked():
    grid = Grid(trial(1, 0.5), trial(2, 0.6))
    with pytest.raises(ValueError, match="metric and mode are not known; give them: certify"):
        certify(grid, value)
    with pytest.raises(TypeError, match="results must be the ResultGrid"):
        certify("a folder", value)
    for wrong, message in (
        ({"replicate": "split", "sigma": 0.1}, "sigma=0.1 has no part in a race with"),
        ({"replicate": "epochs", "fidelity": "epochs"}, "is the fidelity"),
        ({"top": 1}, "top must be at least 2"),
        ({"name": ""}, "name must be a name or None"),
    ):
        with pytest.raises(ValueError, match=message):
            certify(grid, value, metric="acc", mode="max", **wrong)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_those_that_came_farthest_are_certified_and_a_second_call_goes_on(ray_cluster, tmp_path):
    def train(config):
        rng = np.random.default_rng(config["seed"])
        distance = abs(config["lr"]["x"] - 2)
        most = 2 if distance > 1 else 4
        for _ in range(most if config["seed"] == 0 else 9):
            tune.report({"acc": -distance + 0.05 * rng.normal()})

    space = {"lr": {"x": tune.grid_search([0, 1, 2, 3, 4])}, "seed": 0}
    results = tuner_of(train, tmp_path, space=space, metric="acc", mode="max").fit()
    options = {"epsilon": 0.3, "sigma": 0.1, "reuse_actors": True, "max_concurrent_trials": 3}
    first = certify(results, train, budget=4, **options)
    assert (first.certified, first.evaluations) == (False, 4)
    answer = certify(results, train, **options)
    assert (answer.certified, answer.config["lr"]) == (True, {"x": 2})
    assert answer.evaluations > 4
    assert answer.about == "the 3 best of 3 trials that came to training_iteration=4"
    for shown in ("CERTIFIED: trial", "lr/x=2", f"recorded in {tmp_path}"):
        assert shown in str(answer)
    assert "results" not in answer.to_dict()
    # What still runs when all is known is stopped earlier.
    assert max(result.metrics.get("training_iteration", 0) for result in answer.results) == 4
    stored = recommendation(answer.results)
    assert stored.certificate.to_dict() == answer.to_dict()
    # What is certified is not evaluated again, and is read from the storage.
    again = certify(results, train, **options)
    assert isinstance(again, TuneCertificate)
    assert again.to_dict() == answer.to_dict()
    assert len(again.results) == len(answer.results)
