"""Peers in environments of their own, where those are."""

import itertools
import math

import pytest

from tests.benchmarks.peers import apart

pytestmark = pytest.mark.slow
TARGET = 3
SYNE_TUNE = {
    "syne tune asha": "syne_tune",
    "syne tune bohb": "syne_tune",
    "syne tune mobster": "syne_tune_mobster",
}


def in_the_space(configuration):
    assert ("momentum" in configuration) == (configuration["solver"] == "sgd")
    assert 1e-4 <= configuration["rate"] <= 1.0
    assert configuration["layers"] in range(1, 9)
    assert isinstance(configuration["layers"], int)


@pytest.fixture(scope="module", params=["ax", "hebo"])
def at_target(request):
    [played] = apart.tried(request.param).values()
    return played


@pytest.fixture(scope="module", params=SYNE_TUNE)
def upwards(request):
    return apart.tried(SYNE_TUNE[request.param])[request.param]


@pytest.fixture(scope="module", params=["ax", "hebo", *SYNE_TUNE])
def tried(request):
    played = apart.tried(SYNE_TUNE.get(request.param, request.param))
    return played.get(request.param) or next(iter(played.values()))


def test_all_of_its_budget_at_the_target_level_and_in_the_space(at_target):
    seen = at_target["whole"]["seen"]
    assert [level for _, level, _ in seen] == [TARGET] * 10
    assert {configuration["solver"] for configuration, _, _ in seen} == {"sgd", "adam"}
    for configuration, _, _ in seen:
        in_the_space(configuration)
    assert sum(configuration["rate"] < 0.1 for configuration, _, _ in seen) > 5  # it is logarithmic


def test_it_learns_and_recommends_what_it_has_tried(at_target):
    values = [value for _, _, value in at_target["whole"]["seen"]]
    assert sum(values[5:]) > sum(values[:5])  # the first five are drawn
    configuration, claim = at_target["whole"]["steps"][-1]
    [value] = {value for one, _, value in at_target["whole"]["seen"] if one == configuration}
    assert claim == pytest.approx(value, abs=0.5)
    assert value > sorted(values)[-4]


def test_trials_go_up_one_level_at_a_time_in_the_space(upwards):
    seen = upwards["whole"]["seen"]
    for (before, low, _), (configuration, level, _) in itertools.pairwise(seen):
        assert level == 0 or (level == low + 1 and configuration == before)
        in_the_space(configuration)
    counts = [sum(level == one for _, level, _ in seen) for one in range(4)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 1.5 * counts[3] > 0


def test_failures_are_survived_and_not_recommended(tried):
    failing = tried["failing"]
    assert failing["failures"] == sum(math.isnan(value) for _, _, value in failing["seen"]) > 0
    assert failing["steps"]
    assert all(configuration["layers"] % 2 for configuration, _ in failing["steps"])
