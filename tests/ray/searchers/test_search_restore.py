"""Searchers that are saved and restored: as if they had never stopped."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo_ray import IISESearch, RCUCBSearch
from tests.ray.searchers.searching import (
    ARMS,
    BEST_ARM,
    SPACE,
    WAYS,
    Driver,
    Memory,
    bowl,
    crash,
    killed_again_and_again,
    limited,
    make,
)

pytestmark = pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")


LIMITS = {"limits": 3, "reward_range": None, "horizon": 40, "longest": 9.0}
SEARCHES = {
    **{name: lambda cls=cls: make(cls) for name, cls in BEST_ARM.items()},
    "drawn": lambda: make(arms=5, space=SPACE),
    "seed's own key": lambda: make(seed_key="split"),
    "limits": lambda: limited([{**arm, "epochs": 9} for arm in ARMS], **LIMITS),
}


def _result(config):
    seed = config.get("seed", config.get("split", 0))
    if seed % 11 == 0:
        return {"loss": math.nan, "time_total_s": 0.5}
    limit = config.get("time_limit_s")
    if limit is not None and seed % 3 == 0:
        return {"mfhpo/censored_at": limit}
    return {"loss": bowl({**config, "seed": seed}), "time_total_s": 0.1 + (seed % 7) / 7}


# Each search once, and each way twice.
PAIRS = [*((name, "state") for name in SEARCHES), *(("IISE", way) for way in ("file", "pickle"))]


@pytest.mark.parametrize(("name", "way"), [*PAIRS, ("limits", "file"), ("limits", "pickle")])
def test_restoring_at_every_step_changes_nothing(name, way, tmp_path):
    make_search = SEARCHES[name]
    straight, stopping = Driver(make_search(), _result), Driver(make_search(), _result)
    for _ in range(60):
        straight.step()
        stopping.step()
        stopping.search = WAYS[way](stopping.search, make_search, tmp_path)
        if isinstance(stopping.search, RCUCBSearch):
            stopping.search.note_resources("none", {})
    assert stopping.history == straight.history
    assert stopping.search.get_state() == straight.search.get_state()
    assert stopping.to_the_end().history == straight.to_the_end().history
    assert stopping.search.recommendation() == straight.search.recommendation()


def test_nothing_to_save_is_saved_too(tmp_path):
    for way in WAYS.values():
        again = way(make(arms=3, space=SPACE), lambda: make(arms=3, space=SPACE), tmp_path)
        assert again.suggest("a") == make(arms=3, space=SPACE).suggest("a")


def test_a_restored_search_needs_neither_space_nor_metric(tmp_path):
    """After ``Tuner.restore`` without a ``param_space``, Tune hands over neither."""

    def told():
        search = IISESearch("epochs", 4, epsilon=0.1, seed=0)
        search.set_search_properties("loss", "min", dict(SPACE))
        return Driver(search, _result)

    driver = told().to_the_end(at_most=20)
    driver.search = WAYS["file"](
        driver.search, lambda: IISESearch("epochs", 4, epsilon=0.1, seed=0), tmp_path
    )
    assert driver.to_the_end().history == told().to_the_end().history


def test_a_drawn_seed_and_the_concurrency_are_restored(tmp_path):
    search = make(seed=None)
    search.suggest("a")
    again = WAYS["file"](search, lambda: make(seed=None), tmp_path)
    assert again.suggest("b") == search.suggest("b")
    again.set_max_concurrency(2)
    assert WAYS["file"](again, make, tmp_path).suggest("c") is None


@pytest.mark.parametrize("lacks", ["lost", "policy", "seed", "open"])
def test_a_state_of_an_earlier_version_is_refused(lacks):
    driver = Driver(make(), _result).to_the_end(at_most=10)
    state = driver.search.get_state()
    if lacks == "open":  # what is lacking may be anywhere
        del state["open"]["most_under_way"]
    else:
        del state[lacks]
    with pytest.raises(ValueError, match=r"earlier version of mfhpo: it has no .* anew"):
        make().set_state(state)


def test_a_journal_of_an_earlier_version_is_refused():
    journal = Memory()
    journal.write("trial_1", {"number": 0, "arm": 0, "fidelity": 0, "value": 1.0})
    with pytest.raises(ValueError, match="earlier version of mfhpo: it has no 'limit'"):
        make().connect(journal)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(sorted(SEARCHES)),
    st.tuples(st.integers(0, 60), st.integers(0, 40), st.booleans(), st.booleans()),
)
def test_nothing_is_lost_with_the_driver(name, crash_options):
    driver = Driver(SEARCHES[name](), _result)
    again, records = crash(driver, SEARCHES[name], *crash_options)
    killed = driver.search
    for trial_id in records.keys() - {"recommendation"}:
        assert again.completed(trial_id) is not None
    for trial_id in driver.running:
        assert again.completed(trial_id) is None
    if killed._policy is None or not records:
        return
    # It has learned the same in the same order.
    assert again.get_state()["policy"] == killed.get_state()["policy"]
    assert again.finished == killed.finished
    assert set(again._open.trial_ids) <= set(driver.running)
    # No seed that was observed is used again.
    open_seeds = set(map(_seed, driver.running.values()))
    again.note_resources("none", {})
    going_on = Driver(again, _result, first=10_000).to_the_end(at_most=30)
    new_seeds = list(map(_seed, going_on.configs))
    assert not set(new_seeds) & (set(map(_seed, driver.configs)) - open_seeds)
    assert len(set(new_seeds)) == len(new_seeds)


def _seed(config):
    return config.get("seed", config.get("split"))


def test_killed_again_and_again_the_race_ends_and_counts_each_observation_once():
    # An arm that fails three times in a row by chance would leave.
    answer, records = killed_again_and_again(lambda: make(max_failures=9), _result)
    assert (answer.certified, answer.config) == (True, {"x": 0.0})
    assert answer.trials == sum(record["value"] is not None for record in records.values())


def test_a_pull_that_was_lost_with_the_driver_is_a_condition():
    """It began after the last snapshot, and later ones of its arm had ended."""
    journal = Memory()
    search = make(arms=ARMS[1:3], epsilon=0.05)
    search.connect(journal)
    configs = [search.suggest(f"t{number}") for number in range(3)]
    snapshot = json.dumps(search.get_state())
    for number in range(3):
        search.on_trial_complete(f"t{number}", {"loss": bowl(configs[number])})
    configs += [search.suggest(f"t{number}") for number in range(3, 9)]
    for number in range(4, 9):
        search.on_trial_complete(f"t{number}", {"loss": bowl(configs[number])})
    again = make(arms=ARMS[1:3], epsilon=0.05)
    again.set_state(json.loads(snapshot))
    again.connect(journal)
    again.keep([])
    conditions = again.recommendation().conditions
    assert any("the 1 evaluations that were left out" in condition for condition in conditions)
