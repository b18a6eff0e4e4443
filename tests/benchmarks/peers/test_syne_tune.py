"""Syne Tune's schedulers, where the environments of its two releases are."""

import itertools
import math

import pytest

from tests.benchmarks.peers import apart

pytestmark = pytest.mark.slow
METHODS = {
    "syne tune asha": "syne_tune",
    "syne tune bohb": "syne_tune",
    "syne tune mobster": "syne_tune_mobster",
}


@pytest.fixture(scope="module", params=METHODS)
def tried(request):
    return apart.tried(METHODS[request.param])[request.param]


def test_trials_go_up_one_level_at_a_time_in_the_space(tried):
    seen = tried["whole"]["seen"]
    for (before, low, _), (configuration, level, _) in itertools.pairwise(seen):
        assert level == 0 or (level == low + 1 and configuration == before)
        assert ("momentum" in configuration) == (configuration["solver"] == "sgd")
        assert 1e-4 <= configuration["rate"] <= 1.0
        assert configuration["layers"] in range(1, 9)
        assert isinstance(configuration["layers"], int)
    counts = [sum(level == one for _, level, _ in seen) for one in range(4)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 1.5 * counts[3] > 0


def test_the_best_of_all_reports_is_recommended(tried):
    configuration, claim = tried["whole"]["steps"][-1]
    best, _, value = max(tried["whole"]["seen"], key=lambda seen: seen[2])
    assert (configuration, claim) == (best, value)


def test_the_seed_decides(tried):
    again = tried["again"]["seen"]
    assert again == tried["whole"]["seen"][: len(again)]
    assert tried["other"]["seen"] != again


def test_failures_are_survived_and_not_recommended(tried):
    failing = tried["failing"]
    assert failing["failures"] == sum(math.isnan(value) for _, _, value in failing["seen"]) > 0
    assert failing["steps"]
    assert all(configuration["layers"] % 2 for configuration, _ in failing["steps"])
