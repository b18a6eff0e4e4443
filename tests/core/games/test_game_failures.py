import numpy as np
import pytest

from mfhpo.games import MFUCBPNE, UCBPNE, Query
from mfhpo.games.model.fitting import ObservedUtilities
from tests.core.games.known_games import ON_A_GRID, play, tracking

ONE = np.ones(1)


@pytest.mark.parametrize("cheap_level", [True, False])
def test_what_crashes_at_the_target_is_left(cheap_level):
    policy = UCBPNE(ON_A_GRID, (1,), 25, joint=True)
    if cheap_level:
        policy = MFUCBPNE(ON_A_GRID, (1, 9), 200, joint=True)

    def crashes(profile, level):
        return level == int(cheap_level) and profile["y"] > 0.55

    def game(profile, level):
        return [None, None] if crashes(profile, level) else tracking(profile, 1)

    played = play(policy, game)
    failed = [
        tuple(query.profile.values()) for query in played if crashes(query.profile, query.levels[0])
    ]
    assert max(map(failed.count, failed)) <= 3
    assert len(failed) <= 0.5 * len(played)
    answer = policy.recommend()
    assert answer.profile["y"] <= 0.55
    assert answer.profile["y"] == pytest.approx(0.5, abs=0.13)


def test_where_all_failed_so_far_something_else_is_tried():
    policy = UCBPNE(ON_A_GRID, (1,), 20, joint=True)
    queries = play(policy, lambda profile, level: [None, None])
    profiles = [tuple(query.profile.values()) for query in queries]
    assert len(set(profiles)) >= 15
    policy = UCBPNE(ON_A_GRID, (1,), 20, joint=True)
    query = policy.ask()
    policy.tell(query, [None, None])
    pending = []
    while (query := policy.ask(pending)) is not None:
        pending.append(query)
    assert len({tuple(query.profile.values()) for query in pending}) >= 15


def observed(*told):
    seen = ObservedUtilities()
    for place, level, value in told:
        seen.add(place * ONE, level, value)
    failures = seen.failures(0.4 * ONE).items()
    return [(features[0], level, worst) for (features, level), worst in failures]


def test_which_failures_count():
    told = (0.9, 1, 3.0), (0.8, 1, 2.0)
    assert observed(*told, (0.1, 1, None)) == []
    assert observed(*told, (0.1, 1, None), (0.4, 1, None)) == [(0.1, 1, 2.0), (0.4, 1, 2.0)]
    assert observed(*told, (0.1, 1, None), (0.6, 1, None)) == []  # too far apart
    assert observed(*told, (0.1, 1, None), (0.4, 1, None), (0.2, 1, 9.0)) == []
    assert observed(*told, (0.1, 1, None), (0.1, 1, None)) == [(0.1, 1, 2.0)]


def test_a_cheap_success_does_not_undo_a_failure():
    told = (0.9, 1, 3.0), (0.1, 1, None), (0.2, 1, None)
    assert observed(*told, (0.1, 0, 7.0)) == observed(*told) == [(0.1, 1, 3.0), (0.2, 1, 3.0)]
    # But one above tells that what failed at a cheap level can be measured.
    cheap = (0.9, 0, 3.0), (0.1, 0, None), (0.2, 0, None)
    assert observed(*cheap, (0.1, 1, 7.0)) == []


def test_a_failure_is_as_bad_as_the_worst_of_its_own_level_once_there_is_one():
    told = (0.9, 0, 100.0), (0.1, 1, None), (0.2, 1, None)
    assert observed(*told) == [(0.1, 1, 100.0), (0.2, 1, 100.0)]
    assert observed(*told, (0.9, 1, 0.5)) == [(0.1, 1, 0.5), (0.2, 1, 0.5)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("utility", "known"),
    [
        (np.float32(np.inf), None),
        (np.float16(-np.inf), None),
        (np.float32(np.nan), None),
        (np.float16(0.5), 0.5),
        (10**400, None),
    ],
)
def test_short_numbers_are_utilities_only_if_they_are_finite(utility, known):
    policy = UCBPNE(ON_A_GRID, (1,), 25)
    policy.tell(Query({"x": 0.5, "y": 0.5}, (0, 0)), [utility, 1.0])
    assert policy.history[0].utilities == (known, 1.0)
