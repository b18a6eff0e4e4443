"""Peers in environments of their own that evaluate at the target level only."""

import json
import math

import pytest

from tests.benchmarks.peers import apart

pytestmark = pytest.mark.slow
TARGET = 3


@pytest.fixture(scope="module", params=["ax", "hebo"])
def tried(request):
    [played] = apart.tried(request.param).values()
    return played


def test_all_of_its_budget_at_the_target_level_and_in_the_space(tried):
    seen = tried["whole"]["seen"]
    assert [level for _, level, _ in seen] == [TARGET] * 10
    assert {configuration["solver"] for configuration, _, _ in seen} == {"sgd", "adam"}
    for configuration, _, _ in seen:
        assert ("momentum" in configuration) == (configuration["solver"] == "sgd")
        assert 1e-4 <= configuration["rate"] <= 1.0
        assert configuration["layers"] in range(1, 9)
        assert isinstance(configuration["layers"], int)
    assert sum(configuration["rate"] < 0.1 for configuration, _, _ in seen) > 5  # it is logarithmic


def test_it_learns_and_recommends_what_it_has_tried(tried):
    values = [value for _, _, value in tried["whole"]["seen"]]
    assert sum(values[5:]) > sum(values[:5])  # the first five are drawn
    configuration, claim = tried["whole"]["steps"][-1]
    [value] = {value for one, _, value in tried["whole"]["seen"] if one == configuration}
    assert claim == pytest.approx(value, abs=0.5)
    assert value > sorted(values)[-4]


def test_the_seed_decides(tried):
    assert tried["again"]["seen"] == tried["whole"]["seen"][:6]
    assert tried["other"]["seen"] != tried["again"]["seen"]


def test_failures_are_survived_and_not_recommended(tried):
    failing = tried["failing"]
    assert len(failing["seen"]) == 10
    assert failing["failures"] == sum(math.isnan(value) for _, _, value in failing["seen"]) > 0
    different = {json.dumps(configuration) for configuration, _, _ in failing["seen"]}
    assert len(different) == 10  # what failed is not proposed again
    assert failing["steps"]
    assert all(configuration["layers"] % 2 for configuration, _ in failing["steps"])
