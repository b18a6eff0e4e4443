"""Searchers that are saved, restored and killed: as if they had never stopped."""

import math

import numpy as np
import pytest
from ray import tune

from mfhpo_ray import RCUCBSearch
from tests.ray.searchers import racing_searches
from tests.ray.searchers.searching import (
    ARMS,
    BEST_ARM,
    SPACE,
    WAYS,
    Driver,
    Memory,
    bowl,
    limited,
    make,
    same_state,
)

pytestmark = pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")

LIMITS = {"limits": 3, "reward_range": None, "horizon": 40, "longest": 9.0}
RACES = {
    **{name: lambda cls=cls: make(cls) for name, cls in BEST_ARM.items()},
    "drawn": lambda: make(arms=5, space=SPACE),
    "seed's own key": lambda: make(seed_key="split"),
    "limits": lambda: limited([{**arm, "epochs": 9} for arm in ARMS], **LIMITS),
}
MANY = {"arms": [{"x": float(x)} for x in np.linspace(-1.0, 1.0, 26)], "budget": 26 * 9}
# Races whose budget does not pay for comparing all arms.
FINALISTS = {
    f"finalists of {name}": lambda cls=cls: make(cls, sigma=0.02, max_failures=9, **MANY)
    for name, cls in BEST_ARM.items()
}
_of_space = racing_searches.make
SEARCHES = {
    "levels": lambda: _of_space(budget=80, certify_share=0.4),
    "checkpoints": lambda: _of_space(budget=45, checkpoints=True),
    "no fidelity": lambda: _of_space(fidelity=None, space={"x": tune.uniform(-1, 1)}, budget=15),
    "seconds, checkpoints": lambda: _of_space(budget=None, seconds=40, checkpoints=True),
    "replicate": lambda: _of_space(budget=80, certify_share=0.4, replicate="split"),
    "few": lambda: _of_space(space={"x": tune.choice([-0.5, 0.2, 0.9])}, budget=60),
}
ALL = RACES | FINALISTS | SEARCHES


def _seed(config):
    return config.get("seed", config.get("split", 0))


def _result(config):
    seed = _seed(config)
    if seed % 11 == 0:
        return {"loss": math.nan, "time_total_s": 0.5}
    limit = config.get("time_limit_s")
    if limit is not None and seed % 3 == 0:
        return {"mfhpo/censored_at": limit}
    seconds = 0.1 * config.get("epochs", 9) + (seed % 7) / 7
    return {"loss": bowl({"epochs": 9, **config, "seed": seed}), "time_total_s": seconds}


def _slow(name, way):
    return pytest.param(name, way, marks=pytest.mark.slow)


# Each search once, and each way several times.
PAIRS = [
    *((name, "state") for name in RACES),
    *(("IISE", way) for way in ("file", "pickle")),
    *(("limits", way) for way in ("file", "pickle")),
    *zip(FINALISTS, ["file", "state", "pickle", "state"], strict=True),
    ("levels", "file"),
    _slow("checkpoints", "pickle"),
    _slow("no fidelity", "state"),
    _slow("seconds, checkpoints", "file"),
    ("few", "pickle"),
    ("replicate", "file"),
]


@pytest.mark.parametrize(("name", "way"), PAIRS)
def test_restoring_at_every_step_changes_nothing(name, way, tmp_path):
    make_search = ALL[name]
    straight, stopping = Driver(make_search(), _result), Driver(make_search(), _result)
    for _ in range(60 if name in RACES else 1000):
        goes_on = straight.step()
        assert stopping.step() == goes_on
        if not goes_on:
            break
        stopping.search = WAYS[way](stopping.search, make_search, tmp_path)
        if isinstance(stopping.search, RCUCBSearch):
            stopping.search.evaluations.watch("none")
    assert stopping.history == straight.history
    assert same_state(stopping.search, straight.search)
    assert stopping.to_the_end().history == straight.to_the_end().history
    # As a dictionary: what is not a number equals nothing, itself included.
    answer, expected = stopping.search.recommendation(), straight.search.recommendation()
    assert answer.to_dict() == expected.to_dict()


def test_states_and_journals_of_an_earlier_version_are_refused():
    state = Driver(make(), _result).to_the_end(at_most=10).search.get_state()
    del state["version"]
    with pytest.raises(ValueError, match=r"another version of mfhpo, such as 0\.1\.4, .* anew"):
        make().set_state(state)
    journal = Memory()
    journal.write("trial_1", {"number": 0, "arm": 0, "fidelity": 0, "value": 1.0})
    with pytest.raises(ValueError, match="earlier version of mfhpo: it has no 'events'"):
        make().connect(journal)
