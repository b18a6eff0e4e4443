"""Bad arguments of the searchers raise where they are given, and say what would be right."""

import inspect

import pytest
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray import (
    IISESearch,
    MFGradSearch,
    RCUCBSearch,
)
from tests.ray.searchers.searching import ARMS, make

EQUAL = [{"x": 1}, {"x": 2}, {"x": 1}]


@pytest.mark.parametrize("cls", [IISESearch, RCUCBSearch])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arms": []}, r"arms=\[\] is empty"),
        ({"arms": EQUAL}, r"arms\[0\] and arms\[2\] are equal"),
        ({"arms": [{"x": 1, "epochs": 3}]}, r"arms\[0\] contains 'epochs', which the search"),
        ({"arms": [{"x": 1, "seed": 3}]}, r"arms\[0\] contains 'seed', which the search"),
        ({"seed_key": "epochs"}, "seed_key='epochs' is what the search sets"),
        ({"space": {"x": 1}}, r"space and arms=\[...\] are given, but arms come from one"),
    ],
)
def test_what_does_not_go_together_is_refused(cls, options, words):
    owned = {"fidelity": "epochs"} if cls is IISESearch else {"limit_key": "epochs"}
    with pytest.raises(ValueError, match=words):
        cls(**{"arms": ARMS, **owned, **options})


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


def test_signatures_show_each_option_with_its_default():
    shown = inspect.signature(IISESearch).parameters
    assert (shown["delta"].default, shown["measure"].default) == (0.05, 10)
    assert (shown["seed_key"].default, shown["seed"].default) == ("seed", None)
    shown = inspect.signature(RCUCBSearch).parameters
    assert shown["limit_key"].default == "time_limit_s"


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
