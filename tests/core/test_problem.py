"""The vocabulary: defaults, equality, what is a failure, and every error message."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import EstimatedNoise, SubGaussian
from mfhpo.problem import Observation, Problem, Pull, Recommendation, plain


def test_a_pull_is_a_value() -> None:
    assert Pull(1, 2) == Pull(1, 2, None)
    assert Pull(1, 2) != Pull(1, 2, limit=5.0)
    assert len({Pull(1, 2), Pull(1, 2), Pull(2, 1)}) == 2
    with pytest.raises(FrozenInstanceError):
        Pull(1, 2).arm = 3


@pytest.mark.parametrize(
    ("observation", "failed"),
    [
        (Observation(0.0), False),
        (Observation(-1e100), False),
        (Observation(-1e300), True),  # its square is not a number any more
        (Observation(None), True),
        (Observation(None, cost=3.0), True),
        (Observation(math.nan), True),
        (Observation(math.inf), True),
        (Observation(-math.inf), True),
        (Observation(float(np.float32("nan"))), True),
        (Observation(None, censored_at=5.0), False),  # a timeout is no failure
        (Observation(1.0, censored_at=5.0), False),
    ],
)
def test_failures(observation: Observation, failed: bool) -> None:
    assert observation.failed is failed


# A problem


def test_a_problem_with_costs() -> None:
    problem = Problem(3, costs=[1, 10, 100])
    assert problem.costs == (1.0, 10.0, 100.0)
    assert (problem.n_fidelities, problem.target) == (3, 2)
    assert problem.bias is None
    assert problem.noise == EstimatedNoise()


def test_costs_may_be_an_array_and_equal_problems_are_equal() -> None:
    left = Problem(3, np.array([1.0, 2.0]), Bias.max(0.1, 0.0), SubGaussian((1.0, 2.0)))
    right = Problem(3, [1, 2], Bias.max(0.1, 0.0), SubGaussian([1.0, 2.0]), n_fidelities=2)
    assert left == right
    assert hash(left) == hash(right)


def test_a_problem_whose_costs_are_measured() -> None:
    problem = Problem(3, costs=None, n_fidelities=4)
    assert (problem.costs, problem.n_fidelities, problem.target) == (None, 4, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": 0}, "n_arms must be at least 1, got 0."),
        ({"n_arms": -2}, "n_arms must be at least 1, got -2."),
        ({"costs": ()}, "costs must not be empty."),
        ({"costs": (0.0, 1.0)}, "costs must be positive, got [0.0, 1.0]."),
        ({"costs": (-1.0, 1.0)}, "costs must be positive, got [-1.0, 1.0]."),
        ({"costs": (1.0, math.inf)}, "costs must be finite, got [1.0, inf]."),
        ({"costs": (math.nan, 1.0)}, "costs must be finite, got [nan, 1.0]."),
        (
            {"costs": (1.0, 3.0, 2.0)},
            "costs must increase strictly, cheapest fidelity first, but costs[1]=3.0 is followed "
            "by 2.0; sort them",
        ),
        ({"costs": (1.0, 1.0)}, "costs[0]=1.0 is followed by 1.0; sort them and drop repeats."),
        (
            {"costs": (1.0, 2.0), "n_fidelities": 3},
            "n_fidelities=3 contradicts costs=[1.0, 2.0], which has 2; leave n_fidelities out.",
        ),
        (
            {"costs": None},
            "costs=None needs n_fidelities, the number of fidelities (at least 1).",
        ),
        (
            {"costs": None, "n_fidelities": -1},
            "costs=None needs n_fidelities, the number of fidelities (at least 1).",
        ),
        (
            {"costs": (1.0, 2.0, 3.0), "bias": Bias.max(0.1, 0.0)},
            "bias has 2 bounds [0.1, 0.0] but there are 3 fidelities; give one bound per fidelity, "
            "the last one 0.",
        ),
        (
            {"costs": None, "n_fidelities": 1, "bias": Bias.order(0.1, 0.0)},
            "bias has 2 bounds [0.1, 0.0] but there are 1 fidelities",
        ),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(
    arguments: dict[str, Any], message: str
) -> None:
    given_arguments: dict[str, Any] = {"n_arms": 2, "costs": (1.0, 2.0)} | arguments
    with pytest.raises(ValueError, match=re.escape(message)):
        Problem(**given_arguments)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6))
def test_costs_are_taken_if_and_only_if_they_increase(costs: list[float]) -> None:
    if all(left < right for left, right in itertools.pairwise(costs)):
        assert Problem(1, costs).n_fidelities == len(costs)
    else:
        with pytest.raises(ValueError, match="costs must increase strictly"):
            Problem(1, costs)


# A recommendation


def recommendation(**changes: Any) -> Recommendation:
    content: dict[str, Any] = {
        "arm": 1,
        "mean": 0.5,
        "interval": (0.25, 0.75),
        "fidelity": 2,
        "delta": 0.05,
        "epsilon": 0.0,
        "finished": False,
        "certified": False,
        "reason": "2 arms are not told apart yet",
        "cost": 12.0,
        "pulls": 7,
        "survivors": (1, 4),
        "compared": 5,
    }
    return Recommendation(**(content | changes))


def test_to_dict_is_plain_json() -> None:
    content = recommendation(
        mean=math.nan,
        interval=(-math.inf, math.inf),
        remaining_cost=math.inf,
        assumptions=("one", "two"),
    ).to_dict()
    assert content["mean"] is None
    assert content["interval"] == [None, None]
    assert content["remaining_cost"] is None
    assert content["survivors"] == [1, 4]
    assert content["assumptions"] == ["one", "two"]
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_to_dict_has_every_field() -> None:
    assert set(recommendation().to_dict()) == set(Recommendation.__dataclass_fields__)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(json_like)
def test_plain_values_survive_json(value: Any) -> None:
    copy = plain(value)
    assert json.loads(json.dumps(copy, allow_nan=False)) == copy
    assert plain(copy) == copy
