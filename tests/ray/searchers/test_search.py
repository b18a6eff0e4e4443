"""The searchers, driven by plain calls in the order in which Tune makes them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import tune
from ray.tune.search import ConcurrencyLimiter

from mfhpo import IISE, Fidelity, Observation, Problem
from mfhpo.censored import RCUCB, Linear
from mfhpo.experiment import event_of
from mfhpo_ray import IISESearch, MFSearch
from mfhpo_ray.experiment.configurations import decode
from mfhpo_ray.searchers.trials import replicate_seed
from tests.ray.searchers.searching import (
    Memory,
    bowl,
    experiment_of,
    limited,
    make,
    run,
)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**64), st.integers(1, 60), st.integers(1, 6))
def test_no_two_pulls_share_a_seed(seed, n_arms, n_fidelities):
    seeds = {
        replicate_seed(seed, arm, m, r, n_arms=n_arms, n_fidelities=n_fidelities)
        for arm in range(n_arms)
        for m in range(n_fidelities)
        for r in range(5)
    }
    assert len(seeds) == n_arms * n_fidelities * 5
    assert 0 <= min(seeds) <= max(seeds) < 2**31


def test_the_seed_may_have_another_key_or_none():
    assert "split" in make(seed_key="split").suggest("a")
    assert make(seed_key="data/split").suggest("a")["data"].keys() == {"split"}
    assert set(make(seed_key=None).suggest("a")) == {"x", "epochs"}


def test_a_race_is_repeatable_with_a_seed_alone():
    assert run(make(seed=3)) == run(make(seed=3)) != run(make(seed=4))
    assert make(seed=None).suggest("a")["seed"] != make(seed=None).suggest("a")["seed"]


def _bare():
    return IISE(Problem(4, (1.0, 3.0, 9.0)), epsilon=0.1, seed=0, measure=10)


def _knows_as(search, policy):
    """Whether the search's policy has learned the same."""
    ours = experiment_of(search).runner.policy
    policy.labels = ours.labels
    ours.provisos = ()
    return repr(ours.recommend()) == repr(policy.recommend()) and ours.ask(5) == policy.ask(5)


FAILURES = {
    "NaN": {"result": {"loss": math.nan}},
    "infinity": {"result": {"loss": math.inf}},
    "too large": {"result": {"loss": 1e200}},
    "missing": {"result": {"training_iteration": 1}},
    "nothing reported": {"result": {}},
    "error": {"error": True},
    "error after a report": {"result": {"loss": 0.5}, "error": True},
    "stopped for its time": {"result": {"loss": 0.5, "mfhpo/censored_at": 1.0}},
}


@pytest.mark.parametrize("end", FAILURES.values(), ids=FAILURES.keys())
def test_what_gives_no_value(end):
    search, policy = make(), _bare()
    config = search.suggest("a")
    search.on_trial_complete("a", **end)
    [pull] = policy.ask()
    stopped_at = end.get("result", {}).get("mfhpo/censored_at")  # a third outcome
    policy.tell(pull, Observation(None, censored_at=stopped_at))
    assert _knows_as(search, policy)
    again = search.suggest("b")
    assert again["seed"] != config["seed"]


def test_concurrency_is_kept():
    search = make()
    limited = ConcurrencyLimiter(search, 2)
    assert [bool(limited.suggest(name)) for name in "abc"] == [True, True, False]
    limited.on_trial_complete("a", result={"loss": 0.5})
    assert limited.suggest("d")
    assert limited.suggest("e") is None
    search.evaluations.lose("d")  # it is lost, which Tune's own count would wait for
    assert limited.suggest("f")


def _measured():
    return make(fidelity=Fidelity("epochs", levels=[1, 3, 9], costs="measured"))


MEASURED_ENDS = {
    "its last result says": ({"result": {"loss": 0.5, "time_total_s": 2.5}}, 2.5),
    "an earlier result of a crash": ({"error": True}, 1.5),
    "stopped at its limit": ({"result": {"mfhpo/censored_at": 60.0}}, 60.0),
}


@pytest.mark.parametrize(("end", "cost"), MEASURED_ENDS.values(), ids=MEASURED_ENDS.keys())
def test_measured_costs(end, cost):
    search = _measured()
    search.suggest("a")
    search.on_trial_result("a", {"loss": 0.9, "time_total_s": 1.5})
    search.on_trial_complete("a", **end)
    assert search.recommendation().cost == cost


def test_nested_keys():
    space = {
        "model": {"width": tune.choice([8, 16]), "kind": "mlp"},
        "train": {"epochs": tune.randint(1, 10), "rate": tune.uniform(0, 1)},
    }
    search = IISESearch("train/epochs", 3, seed_key="train/seed", metric="loss", mode="min", seed=1)
    assert search.set_search_properties(None, None, space)
    config = search.suggest("a")
    assert set(config["train"]) == {"epochs", "rate", "seed"}
    assert config["model"] in ({"width": 8}, {"width": 16})  # the Tuner has the constants


def _limited(**options):
    models = [{"model": "quick"}, {"model": "slow"}]
    return limited(models, **{"metric": "score", "mode": "max", **options})


def test_limits_are_in_the_configuration():
    search = _limited()
    config = search.suggest("a")
    assert set(config) == {"model", "time_limit_s", "seed"}
    assert config["time_limit_s"] == 2.0
    assert search.scheduler()._limit_key == "time_limit_s"


LIMITED_ENDS = {
    "in time": ({"score": 0.5, "time_total_s": 1.5}, Observation(0.5, 1.5)),
    "stopped": ({"mfhpo/censored_at": 2.0}, Observation(None, 2.0, 2.0)),
    "stopped after a report": (
        {"score": 0.5, "time_total_s": 1.9, "mfhpo/censored_at": 2.0},
        Observation(None, 2.0, 2.0),
    ),
    "too late, and not stopped": ({"score": 0.5, "time_total_s": 2.5}, Observation(None, 2.5, 2.0)),
    "failed": ({"score": math.nan, "time_total_s": 1.5}, Observation(None, 1.5)),
}


@pytest.mark.parametrize(("result", "seen"), LIMITED_ENDS.values(), ids=LIMITED_ENDS.keys())
def test_what_comes_back_from_a_limited_trial(result, seen):
    search = _limited()
    policy = RCUCB(2, [1.0, 2.0], cost=Linear(0.1), reward_range=(0, 1))
    search._clock = lambda: 0.0
    search.suggest("a")
    search.on_trial_complete("a", result)
    [pull] = policy.ask()
    policy.tell(pull, seen)
    assert _knows_as(search, policy)


def test_each_observation_is_written_at_once():
    search = make(estimated_bias="eliminate")
    journal = Memory()
    search.connect(journal)
    config = search.suggest("a")
    shown = {"loss": 0.4, "time_total_s": 2.0, "note": "fine"}
    search.on_trial_complete("a", {**shown, "curve": [1, 2], "config/x": config["x"]})
    search.suggest("b")
    search.on_trial_complete("b", error=True)
    records = journal.read()
    assert set(records) == {"a", "b", "experiment"}
    assert journal.read_one("recommendation")
    assert records["a"]["result"] == shown
    [begun, ended] = [event_of(decode(event)) for event in records["a"]["events"]]
    assert (begun.configuration, begun.levels) == ({"x": config["x"]}, (0,))
    assert (ended.id, ended.value, ended.cost) == ("a", 0.4, None)
    assert event_of(decode(records["b"]["events"][1])).value is None


def test_the_answer_is_written_at_times_at_the_end_and_when_it_is_saved(tmp_path):
    """Ray saves a search at the end of an experiment, also when that is cut short."""
    search = make()
    search.save(str(tmp_path / "nothing yet"))
    now = [0.0]
    search._clock = lambda: now[0]

    class Slow(Memory):
        def write(self, name, record):
            now[0] += 0.2
            super().write(name, record)

    journal = Slow()
    search.connect(journal)
    written = []
    number = -1
    while isinstance(config := search.suggest(str(number + 1)), dict):
        number += 1
        now[0] += 1.0
        Memory.write(journal, "recommendation", {})
        search.on_trial_complete(str(number), {"loss": bowl(config)})
        if journal.read_one("recommendation"):
            written.append(number)
        elif number == 3:
            search.save(str(tmp_path / "state"))
            assert decode(journal.read_one("recommendation")["answer"]).trials == 4
    assert written[:4] == [0, 7, 11, 15]  # it was written with the fourth, too
    assert written[-1] == number
    assert decode(journal.read_one("recommendation")["answer"]).certified


FOLDS = {
    "choice": tune.choice(["a", "b", "c", "d", "e"]),
    "grid": tune.grid_search([1, 3, 4, 5, 9]),
    "range": tune.randint(0, 5),
}


@pytest.mark.parametrize("folds", FOLDS.values(), ids=FOLDS.keys())
@pytest.mark.parametrize("sd", [0.001, 1.0])
def test_the_space_may_have_few_replicates(folds, sd):
    def on_fold(config):
        rng = np.random.default_rng([ord(str(config["fold"])), int(1000 * (config["x"] + 1))])
        return float(config["x"] ** 2 + ord(str(config["fold"])) + sd * rng.normal())

    search = make(MFSearch, replicate="fold", seed_key=None, epsilon=0.05)
    search.set_search_properties(None, None, {"fold": folds})
    configs = run(search, on_fold)
    restored = make(MFSearch, replicate="fold", seed_key=None, epsilon=0.05)
    restored.set_state(json.loads(json.dumps(search.get_state())))
    for answer in (search.recommendation(), restored.recommendation()):
        assert (answer.finished, answer.certified) == (True, True)
        assert answer.reason == "all 5 replicates were used"
    used = [(config["x"], config["fold"]) for config in configs]
    assert len(used) == len(set(used)) + 4 == 4 * 5 + 4  # each once more
    assert len({fold for _, fold in used}) == 5
