import math

import numpy as np
import pytest

from mfhpo import Fidelity
from mfhpo.search import DeclaredSearch, has_levels

COSTLY = Fidelity("epochs", levels=[1, 9], costs=[1.0, 9.0])


@pytest.mark.parametrize(
    ("error", "options", "words"),
    [
        (ValueError, {"budget": 0.0}, ["budget", "0.0", "positive"]),
        (ValueError, {"budget": math.nan}, ["budget", "nan"]),
        (ValueError, {"trials": 0}, ["trials", "0", "at least 1"]),
        (ValueError, {"budget": 50, "trials": 10}, ["budget=50", "trials=10", "give one"]),
        (
            ValueError,
            {"budget": 5, "trials": 10, "seconds": 2},
            ["budget=5", "trials=10", "seconds=2 all"],
        ),
        (ValueError, {"seconds": -1.0}, ["seconds", "-1.0", "positive"]),
        (ValueError, {"seconds": math.nan}, ["seconds", "nan", "positive"]),
        (ValueError, {"fidelity": COSTLY, "seconds": 1.0}, ["'epochs'", "costs=[1.0, 9.0]"]),
        (ValueError, {"fidelity": ""}, ["name", "''"]),
        (ValueError, {"unit": "hours"}, ["unit", "'hours'", "'evaluations'"]),
        (ValueError, {"certify_share": -0.1}, ["certify_share", "-0.1", "[0, 1)"]),
        (ValueError, {"certify_share": 1.0}, ["certify_share", "1.0", "[0, 1)"]),
        (ValueError, {"top": 1}, ["top", "1", "at least 2"]),
        (ValueError, {"delta": 0.0}, ["delta", "0.0", "between 0 and 1"]),
        (ValueError, {"epsilon": -0.5}, ["epsilon", "-0.5", "at least 0"]),
        (ValueError, {"epsilon": math.inf}, ["epsilon", "inf"]),
        (ValueError, {"sigma": -0.5}, ["sigma", "-0.5", "at least 0"]),
        (ValueError, {"sigma": [0.1, 0.2, 0.3]}, ["sigma"]),
        (ValueError, {"max_failures": 0}, ["max_failures", "0", "at least 1"]),
        (TypeError, {"fidelity": 3}, ["fidelity", "name or a Fidelity", "3"]),
        (TypeError, {"seconds": "60"}, ["seconds must be a number or None", "'60'"]),
        (TypeError, {"budget": "100"}, ["budget", "'100'"]),
        (TypeError, {"budget": True}, ["budget", "True"]),
        (TypeError, {"trials": 2.5}, ["trials", "2.5"]),
        (TypeError, {"certify_share": "10%"}, ["certify_share", "10%"]),
        (TypeError, {"top": 3.0}, ["top", "3.0"]),
        (TypeError, {"delta": "5%"}, ["delta", "'5%'"]),
        (TypeError, {"epsilon": "small"}, ["epsilon", "'small'"]),
        (TypeError, {"checkpoints": 1}, ["checkpoints", "True or False", "1"]),
    ],
)
def test_bad_arguments(error, options, words):
    with pytest.raises(error, match=r".") as caught:
        DeclaredSearch.of(**{"fidelity": "epochs"} | options)
    for word in words:
        assert word in str(caught.value)


def test_numpy_s_numbers_are_numbers():
    DeclaredSearch.of(None, budget=np.float32(100), top=np.int64(4), certify_share=np.float64(0.2))
    DeclaredSearch.of(None, trials=np.int32(100))


def test_costs_are_declared_proportional_or_measured():
    for fidelity, options, costs in (
        (COSTLY, {}, (1.0, 9.0)),
        ("epochs", {}, (2.0, 4.0)),
        ("epochs", {"seconds": 9.0}, (2.0, 4.0)),
    ):
        declared = DeclaredSearch.of(fidelity, **options)
        assert has_levels(declared.fidelity)
        assert declared.race([2, 4], seed=0, sign=1.0).search.costs == costs
        assert (declared.fidelity.costs == "measured") == bool(options)
    assert not has_levels(DeclaredSearch.of(None, seconds=9.0).fidelity)


def test_levels_without_costs_raise_when_a_search_is_declared():
    with pytest.raises(ValueError, match="costs=None takes costs proportional to the levels"):
        DeclaredSearch.of(Fidelity("data", levels=["small", "large"]), budget=10.0)
