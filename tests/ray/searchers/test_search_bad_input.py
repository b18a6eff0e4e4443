"""Bad arguments of the searchers raise where they are given, and say what would be right."""

import pytest
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray import IISESearch, MFGradSearch, SpaceSearch
from tests.ray.searchers.searching import ARMS, make

EQUAL = [{"x": 1}, {"x": 2}, {"x": 1}]


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
def test_what_does_not_go_together_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        IISESearch("epochs", **{"arms": ARMS, **options})


def test_messages_name_the_argument_that_was_given():
    options = {"budget": 9, "seed": 0, "metric": "loss", "mode": "min", "candidates": ARMS}
    words = r"space and candidates=\[...\] are given, but candidates come from one"
    with pytest.raises(ValueError, match=words):
        SpaceSearch(space={"x": 1}, **options)
    with pytest.raises(ValueError, match=r"candidates\[0\].* has no 'y', which param_space leaves"):
        SpaceSearch(**options).set_search_properties(None, None, {"y": tune.uniform(0, 1)})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cls": MFGradSearch}, "search: MFGradSearch, but IISESearch in what was saved"),
        *[
            ({"arms": arms}, "arms: .*, but .* in what was saved")
            for arms in (ARMS[:3], [*ARMS[:3], {"x": 0.7}], [*ARMS, {"x": 0.7}], ARMS[::-1])
        ],
        (
            {"fidelity": Fidelity("epochs", levels=[1, 9])},
            r"levels: \[1, 9\], but \[1, 3, 9\] in what was saved",
        ),
        ({"bias": (0.2, 0.1, 0.0)}, r"bias: \(1.0, 3.0, 9.0\) and Bias.* and None in what"),
        (
            {"fidelity": Fidelity("epochs", levels=[1, 3, 9], costs="measured")},
            r"bias: None and None, but \(1.0, 3.0, 9.0\) and None in what was saved",
        ),
        ({"metric": "error"}, "metric='loss' .* is not the 'error' of this search"),
    ],
)
def test_a_state_of_another_search_is_refused(options, words):
    search = make()
    search.suggest("a")
    with pytest.raises(ValueError, match=words):
        make(**options).set_state(search.get_state())
