"""Searches that are saved, restored and killed: as if they had never stopped."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray import SpaceSearch, TuneSearchRecommendation
from mfhpo_ray.experiment.recommendation import from_record
from tests.ray.searchers.racing_searches import SPACE, loss, make, true_loss
from tests.ray.searchers.searching import WAYS, Driver, crash, killed_again_and_again

SEARCHES = {
    "levels": lambda: make(budget=80, certify_share=0.4),
    "checkpoints": lambda: make(budget=45, checkpoints=True),
    "no fidelity": lambda: make(fidelity=None, space={"x": tune.uniform(-1, 1)}, budget=15),
    "seconds, checkpoints": lambda: make(budget=None, seconds=40, checkpoints=True),
    "replicate": lambda: make(budget=80, certify_share=0.4, replicate="split"),
    "few": lambda: make(space={"x": tune.choice([-0.5, 0.2, 0.9])}, budget=60),
}


def _result(config):
    value = math.nan if config["seed"] % 11 == 0 else loss({"epochs": 9, "model": {}, **config})
    return {"loss": value, "time_total_s": 1.0 + 0.1 * config.get("epochs", 9)}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("levels", "file"),
        pytest.param("checkpoints", "pickle", marks=pytest.mark.slow),
        pytest.param("no fidelity", "state", marks=pytest.mark.slow),
        pytest.param("seconds, checkpoints", "file", marks=pytest.mark.slow),
        ("few", "pickle"),
        ("replicate", "file"),
    ],
)
def test_a_search_that_is_restored_at_every_step_knows_what_it_knew(name, way, tmp_path):
    make_search = SEARCHES[name]
    driver = Driver(make_search(), _result)
    while driver.step():
        before = driver.search
        driver.search = WAYS[way](before, make_search, tmp_path)
        assert driver.search.get_state() == before.get_state()
        # As a dictionary: what is not a number equals nothing, itself included.
        answer, expected = driver.search.recommendation(), before.recommendation()
        assert answer.to_dict() == expected.to_dict()
    assert driver.search.finished


def test_a_restored_search_needs_neither_space_nor_metric(tmp_path):
    """After ``Tuner.restore`` without a ``param_space``, Tune hands over neither."""

    def bare():
        return SpaceSearch("epochs", budget=120, certify_share=0.3, epsilon=0.1, seed=0)

    search = bare()
    search.set_search_properties("loss", "min", dict(SPACE))
    driver = Driver(search, _result).to_the_end(at_most=20)
    driver.search = WAYS["file"](driver.search, bare, tmp_path)
    configs = driver.to_the_end().configs
    assert all(config.keys() == {"x", "model", "epochs", "seed"} for config in configs)
    assert driver.search.recommendation().certificate is not None


def test_other_levels_are_refused():
    search = make()
    search.suggest("a")
    other = make(fidelity="epochs", space={**SPACE, "epochs": tune.randint(1, 28)})
    other.set_state(search.get_state())  # the saved levels hold where none are declared
    assert other.suggest("b")["epochs"] == 1
    with pytest.raises(ValueError, match="in the saved race"):
        make(fidelity=Fidelity("epochs", levels=[1, 9])).set_state(search.get_state())


def test_another_unit_of_the_budget_is_refused():
    """Epochs that were paid are no seconds."""
    search = make(budget=120)
    search.suggest("a")
    with pytest.raises(ValueError, match="costs that are declared, this race costs that are meas"):
        make(budget=None, seconds=60).set_state(search.get_state())
    search = make(budget=None, seconds=60)
    search.suggest("a")
    with pytest.raises(ValueError, match="costs that are measured, this race costs that are decl"):
        make(budget=120).set_state(search.get_state())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(sorted(SEARCHES)),
    st.tuples(st.integers(0, 90), st.integers(0, 40), st.booleans(), st.booleans()),
)
def test_nothing_is_lost_with_the_driver(name, crash_options):
    driver = Driver(SEARCHES[name](), _result)
    again, records = crash(driver, SEARCHES[name], *crash_options)
    killed = driver.search
    if not records:
        return
    assert isinstance(from_record(records["recommendation"]), TuneSearchRecommendation)
    before, after = killed.recommendation(), again.recommendation()
    for number in ("trials", "cost", "tried", "at_target"):
        assert getattr(after, number) == getattr(before, number)
    for arm in after.survivors:
        assert again._arms.config(arm) == killed._arms.config(arm)
    # It ends, and no seed of a training that was observed is used for another one.
    used = {config["seed"]: config for config in driver.configs}
    lost_seeds = {config["seed"] for config in driver.running.values()}
    going_on = Driver(again, _result, first=10_000)
    going_on.running = {trial: driver.running[trial] for trial in again._open.trial_ids}
    going_on.to_the_end()
    assert again.finished
    for config in going_on.configs:
        if config["seed"] in used.keys() - lost_seeds:
            # The same training goes on, or what had failed is tried again.
            earlier = used[config["seed"]]
            has_failed = math.isnan(_result(earlier)["loss"])
            assert config["epochs"] > earlier["epochs"] or has_failed
            assert {**config, "epochs": 0} == {**earlier, "epochs": 0}
            assert config["training"].startswith("configuration")


def test_killed_again_and_again_it_ends_with_an_answer_and_counts_each_trial_once():
    options = {"budget": 200, "certify_share": 0.3, "sigma": 0.02, "seed": 1}
    answer, records = killed_again_and_again(lambda: make(**options), _result)
    assert isinstance(answer, TuneSearchRecommendation)
    assert answer.certificate is not None
    assert true_loss(answer.config) < 0.15
    assert answer.trials + answer.failures == len(records)
