"""Bad arguments of the searchers raise where they are given, and say what would be right."""

import inspect

import pytest
from ray import tune

from mfhpo import Fidelity
from mfhpo.censored import Linear
from mfhpo_ray import (
    IISESearch,
    MFGradSearch,
    MFLUCBSearch,
    MFSearch,
    RCUCBSearch,
)
from tests.ray.searchers.searching import ARMS, make

ANY = [
    ({"arms": [{"x": 1}, {"x": 2}, {"x": 1}]}, ValueError, r"arms\[0\] and arms\[2\] are equal"),
    ({"arms": [{"x": 1, "epochs": 3}]}, ValueError, r"arms\[0\] contains 'epochs', which the"),
    ({"arms": [{"x": 1, "seed": 3}]}, ValueError, r"arms\[0\] contains 'seed', which the search"),
    ({"seed_key": "epochs"}, ValueError, "seed_key='epochs' is what the search sets"),
    ({"space": {"x": 1}}, ValueError, r"space and arms=\[...\] are given, but arms come from one"),
    ({"detla": 0.05}, TypeError, "unexpected keyword argument 'detla'"),
    ({"prices": {"CPU": 1}}, ValueError, "prices=.* are for measured seconds, but costs=None"),
]


OWN = [
    (MFGradSearch, {"radius": None}, TypeError, "unexpected keyword argument 'radius'"),
    (MFLUCBSearch, {"best_no_better_than": 0.0}, ValueError, "no part in explore='C'"),
    (
        MFLUCBSearch,
        {"explore": "A", "best_no_better_than": 0.4, "second_no_worse_than": 0.1},
        ValueError,
        "second_no_worse_than=0.1 must be worse than best_no_better_than=0.4",
    ),
    (MFSearch, {"aim": "reward per cost"}, ValueError, "epsilon=0.1 has no part in aim='reward"),
    (
        MFSearch,
        {"aim": "reward per pull", "bias": [0.1, 0.05, 0.0]},
        ValueError,
        "bias=.* has no part in aim='reward per pull'",
    ),
]


ALL = [(cls, *case) for cls in (IISESearch, MFSearch) for case in ANY]


@pytest.mark.parametrize(("cls", "options", "error", "words"), [*ALL, *OWN])
def test_what_races_refuse(cls, options, error, words):
    with pytest.raises(error, match=words):
        make(cls, **options)


def test_a_bias_of_the_fidelity_has_no_part_in_blocks():
    fidelity = Fidelity("epochs", bias=[0.1, 0.0])
    with pytest.raises(ValueError, match=r"bias=\(0.1, 0.0\) has no part in .*replicate='split'"):
        make(MFSearch, fidelity=fidelity, replicate="split")


def test_a_budget_that_pays_for_nothing_is_warned_of():
    words = r"budget=0.5 is less than the 1 .* epochs=1: nothing"
    with pytest.warns(UserWarning, match=words) as caught:
        IISESearch(Fidelity("epochs", levels=[1, 3]), ARMS, budget=0.5)
    assert caught[0].filename == __file__


def test_levels_that_are_no_numbers_need_costs():
    fidelity = Fidelity("size", levels=["small", "large"])
    with pytest.raises(ValueError, match="costs=None takes costs proportional to the levels"):
        make(fidelity=fidelity)
    search = IISESearch("size", ARMS, metric="loss", mode="min")
    with pytest.raises(ValueError, match="costs=None takes costs proportional to the levels"):
        search.set_search_properties(None, None, {"size": tune.choice(["small", "large"])})


def test_what_is_declared_has_to_fit_the_levels_of_the_space():
    search = make(fidelity="epochs")
    with pytest.raises(ValueError, match="fidelity='epochs' has no levels, because there is no"):
        search.suggest("a")
    search = make(fidelity="epochs", bias=[0.1, 0.0])
    assert search.set_search_properties(None, None, {"epochs": tune.randint(1, 10)})
    with pytest.raises(ValueError, match=r"bias has 2 bounds .* there are 3 fidelities"):
        search.suggest("a")


LIMITS = [
    ({"limits": 60}, ValueError, r"for one limit of 60 seconds give limits=\[60\]"),
    ({"longest": 5.0}, ValueError, "longest=5.0 is for limits that are derived"),
    ({"reward_range": (1, 0)}, ValueError, "reward_range"),
    ({"limit_key": "seed"}, ValueError, "seed_key='seed' is what the search sets"),
    ({"arms": [{"x": 1, "time_limit_s": 5}]}, ValueError, "contains 'time_limit_s'"),
]


@pytest.mark.parametrize(("options", "error", "words"), LIMITS)
def test_what_searches_for_limits_refuse(options, error, words):
    with pytest.raises(error, match=words):
        RCUCBSearch(**{"arms": ARMS, "limits": [1, 2], "cost": Linear(0.1), **options})


def test_signatures_show_each_option_with_its_default():
    shown = inspect.signature(IISESearch).parameters
    assert (shown["delta"].default, shown["measure"].default) == (0.05, 10)
    assert (shown["seed_key"].default, shown["seed"].default) == ("seed", None)
    shown = inspect.signature(RCUCBSearch).parameters
    assert (shown["limit_key"].default, shown["confidence"].default) == ("time_limit_s", "kl+")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cls": MFGradSearch}, "that of a IISESearch, but this is a MFGradSearch"),
        *[
            ({"arms": arms}, "which are not the 4 of the saved race")
            for arms in (ARMS[:3], [*ARMS[:3], {"x": 0.7}], [*ARMS, {"x": 0.7}], ARMS[::-1])
        ],
        (
            {"fidelity": Fidelity("epochs", levels=[1, 9])},
            r"are \[1, 9\], but \[1, 3, 9\] in the saved race",
        ),
        ({"metric": "error"}, "metric='loss' .* is not the 'error' of this search"),
    ],
)
def test_a_state_of_another_search_is_refused(options, words):
    search = make()
    search.suggest("a")
    with pytest.raises(ValueError, match=words):
        make(**options).set_state(search.get_state())
