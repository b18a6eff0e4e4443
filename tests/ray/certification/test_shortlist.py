"""What a finished experiment's certificate compares."""

import math

import pytest

from mfhpo_ray.certification import shortlist_of
from tests.ray.certification.grids import Grid, trial


def of(grid, top=8, **options):
    return with_length(grid, top, **options)[0]


def with_length(grid, top=8, **options):
    options = {"metric": "acc", "mode": "max", "fidelity": None, **options}
    return shortlist_of(grid, top, time_attr="training_iteration", owned=["seed"], **options)


def compared(shortlist):
    return [(one.params["model"]["x"], one.claim) for one in shortlist.candidates]


def test_repeats_are_one_configuration_and_the_luckiest_is_kept():
    trials = [(1, 0.8), (2, 0.5), (3, 0.6), (1, 0.2), (4, 0.7)]
    found = of(Grid(*(trial(x, acc, seed=k) for k, (x, acc) in enumerate(trials))), top=3)
    assert compared(found) == [(4, 0.7), (3, 0.6), (1, 0.5)]
    assert (found.luckiest, found.candidates[2].promise) == (2, 0.8)
    assert [one.name for one in found.candidates] == ["trial 4", "trial 2", "trial 0"]
    assert all("seed" not in one.params for one in found.candidates)
    assert found.about == "the 3 best of 5 trials"
    assert "4 configurations in 5 trials (repeats by their mean)" in found.words


def test_only_trials_that_came_farthest_without_an_error_count():
    grid = Grid(
        trial(1, 0.9, iteration=3),
        trial(2, 0.5, iteration=9),
        trial(3, 0.6, iteration=9),
        trial(4, 0.7, error=ValueError(), iteration=27),
        trial(5, math.nan, iteration=27),
        trial(7, 0.8, iteration=math.nan),
        ({"model": {"x": 6}}, None, None),
    )
    found, length = with_length(grid)
    assert compared(found) == [(3, 0.6), (2, 0.5)]
    assert (length, found.luckiest) == (9.0, 0)
    assert found.about == "the 2 best of 2 trials that came to training_iteration=9"
    assert "5 trials left out (stopped earlier or failed)" in found.words


def test_of_one_search_at_several_levels_the_largest_counts():
    grid = Grid(*(trial(x, acc, epochs=e) for x, acc, e in [(1, 0.9, 3), (2, 0.5, 9), (3, 0.6, 9)]))
    found = of(grid, fidelity="epochs", mode="min")
    assert compared(found) == [(2, 0.5), (3, 0.6)]
    assert found.about == "the 2 best of 2 trials at epochs=9"
    with pytest.raises(
        ValueError, match="fidelity='rounds' must name a number, but trial 0 has None"
    ):
        of(grid, fidelity="rounds")


def test_how_far_a_trial_came_is_a_number():
    words = "time_attr='training_iteration' must name a number, but trial 0 has 'a'"
    with pytest.raises(ValueError, match=words):
        of(Grid(trial(1, 0.9, iteration="a"), trial(2, 0.8), trial(3, 0.7)))


def test_one_configuration_is_too_few():
    with pytest.raises(ValueError, match="1 different configurations in its 2 trials that ended"):
        of(Grid(trial(1, 0.9, seed=1), trial(1, 0.8, seed=2)))
