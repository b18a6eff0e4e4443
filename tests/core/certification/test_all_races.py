import json
import math

import pytest

from mfhpo import Bounded
from mfhpo.certification.certification import Certification
from tests.core.certification.races import KINDS, by_looks, in_blocks, race_of, tell


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
def test_all_fail(kind):
    race = race_of(kind, max_failures=1)
    for failure in (None, math.nan, math.inf):
        for arm in (0, 1):
            tell(race, arm, failure)
    answer = race.certificate("both", "by hand")
    assert race.finished
    assert race.ask() is None
    assert (answer.winner, answer.params, answer.certified, answer.compared) == (None, {}, False, 0)
    assert math.isnan(answer.mean)
    assert answer.evaluations == 6
    assert str(answer).startswith("NOT CERTIFIED: no candidate gave a value")
    json.dumps(answer.to_dict(), allow_nan=False)


@pytest.mark.filterwarnings("ignore::mfhpo.NoNoiseWarning")
@pytest.mark.parametrize(
    ("kind", "options", "needed"),
    [
        (Certification, {}, 3),
        (by_looks, {}, 3),
        (by_looks, {"sigma": 1.0}, 3),
        (by_looks, {"sigma": Bounded(0.0, 1.0)}, 3),
        (in_blocks, {}, 10),
    ],
)
def test_noise_that_is_hidden(kind, options, needed):
    race = race_of(kind, **options)
    for block in range(needed):
        assert not race.finished
        assert not race.noise_is_hidden
        for arm, value in enumerate([0.0, 0.1]):
            tell(race, arm, value, block)
    answer = race.certificate("both", "by hand")
    assert race.finished
    assert race.noise_is_hidden
    assert (answer.winner, answer.certified, answer.evaluations) == (1, False, 2 * needed)
    assert "exactly the same value" in answer.reason
    assert math.isinf(answer.within)
    assert math.isnan(answer.epsilon)
    assert answer.interval == (-math.inf, math.inf)
    assert answer.assumptions == answer.conditions == answer.notices == ()


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        (in_blocks, {"n": 3, "budget": 2}, "budget must be at least 3, got 2"),
        (in_blocks, {"sigma": 1.0}, "sigma=1.0 has no part in blocks"),
        (by_looks, {"sigma": [1.0, 2.0]}, "sigma has 2 values"),
        (by_looks, {"first_look": 1}, "first_look must be"),
        (by_looks, {"budget": 9}, "budget=9 has no part beside first_look"),
    ],
)
def test_wrong_arguments(kind, options, match):
    with pytest.raises(ValueError, match=match):
        race_of(kind, **options)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (by_looks, {}, "declare Bounded(0, 1) if no value can lie outside"),
        (Certification, {}, "declare Bounded(0, 1) if no value can lie outside"),
        (in_blocks, {}, "take a finer score or more data"),
        (by_looks, {"sigma": Bounded(0.0, 1.0)}, None),
        (by_looks, {"sigma": 0.0}, None),
    ],
)
@pytest.mark.parametrize(("largest", "finest"), [(1.0, 0.0), (1.2, 0.0), (1.0, 0.001)])
@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
def test_coarse_scores(kind, options, said, largest, finest):
    race = race_of(kind, **options)
    for block in range(6):
        for arm, value in enumerate((largest - 0.02 * (block == 2), 0.9 - 0.02 * (block % 3))):
            tell(race, arm, value - finest * block, block)
    notices = [words for words in race.certificate("both", "by hand").notices if "equal" in words]
    if said is None or largest > 1.0 or finest:
        assert notices == []
    else:
        [words] = notices
        assert words.startswith("more than half of the values of row 0 are equal")
        assert said in words
        assert ("Bounded" in words) == ("Bounded" in said)


# Which intervals a certificate states: none that says nothing, and no value that cannot be.


def answer_after(pairs, **options):
    race = race_of(by_looks, first_look=2, claims=[0.97, 0.96], delta=0.05, **options)
    for pair in pairs:
        for arm, value in enumerate(pair):
            tell(race, arm, value)
    return race, race.certificate("both", "by hand")


TWO = [(0.971, 0.962), (0.979, 0.971)]


def test_an_interval_wider_than_all_that_was_seen_is_not_stated():
    race, answer = answer_after(TWO)
    _, high = race.interval(answer.winner)
    assert high > 1.05, "which no accuracy is"
    assert answer.interval == (-math.inf, math.inf)
    assert "0.975 (no interval yet), of 2 new evaluations" in str(answer)
    assert f"{high:.5g}" not in str(answer)


def test_with_more_evaluations_there_is_an_interval():
    race, answer = answer_after(4 * TWO)
    assert answer.interval == race.interval(answer.winner)
    assert answer.interval[1] < 1.0


@pytest.mark.parametrize(("maximise", "bounds"), [(True, (0, 1)), (False, (-1, 0.99))])
def test_an_interval_is_cut_to_the_declared_range(maximise, bounds):
    race, answer = answer_after(4 * TWO, sigma=Bounded(*bounds), maximise=maximise)
    low, high = race.interval(answer.winner)
    assert high > bounds[1]
    assert answer.interval == (max(low, bounds[0]), bounds[1])
    assert all(one.interval[1] == bounds[1] for one in answer.candidates)


def test_a_declared_noise_states_its_intervals_however_wide():
    race, answer = answer_after(TWO, sigma=0.2)
    assert answer.interval == race.interval(answer.winner)
