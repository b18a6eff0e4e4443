import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo._validation import check_names
from mfhpo.identification.elimination import IISE
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Observation, Problem, Recommendation, plain


@pytest.mark.parametrize(
    ("observation", "failed"),
    [
        (Observation(0.0), False),
        (Observation(-1e50), False),
        (Observation(-1e51), True),  # its powers soon are no numbers any more
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
def test_failures(observation, failed):
    assert observation.failed is failed


def test_costs_may_be_an_array_and_equal_problems_are_equal():
    left = Problem(3, np.array([1.0, 2.0]), Bias.max(0.1, 0.0), SubGaussian((1.0, 2.0)))
    right = Problem(3, [1, 2], Bias.max(0.1, 0.0), SubGaussian([1.0, 2.0]), n_fidelities=2)
    assert left == right
    assert hash(left) == hash(right)


def test_decimals_arrays_without_an_axis_and_values_of_a_dictionary_are_taken():
    noise = SubGaussian(np.array(0.5))
    left = Problem(3, {"cheap": Decimal(1), "dear": np.array(2)}.values(), noise=noise)
    assert left == Problem(3, [1, 2], noise=SubGaussian(Decimal("0.5")))
    assert Observation(np.array(0.5), Decimal(2)) == Observation(Decimal("0.5"), 2.0)
    assert IISE(left, budget=Decimal(9)).ask()


def test_flags_and_no_seed_are_refused_with_what_to_give():
    with pytest.raises(TypeError, match=r"value must be a number; use 1\.0 or 0\.0, got True"):
        Observation(True)
    with pytest.raises(TypeError, match="seed must be a whole number such as 0, got None"):
        IISE(Problem(2, [1.0]), seed=None)


@pytest.mark.parametrize("names", [np.array(["seed"]), {"seed": 1}.keys(), {"seed"}])
def test_names_may_be_in_any_collection(names):
    assert check_names("replicate", names, "names") == ("seed",)


def test_a_problem_whose_costs_are_measured():
    problem = Problem(3, costs=None, n_fidelities=4)
    assert (problem.costs, problem.n_fidelities, problem.target) == (None, 4, 3)


def test_a_recommendation_is_plain_json():
    content = IISE(Problem(3, (1.0,), noise=SubGaussian(1.0))).recommend().to_dict()
    of_limits = {"limit", "survival", "censored", "estimated"}
    assert set(content) == set(Recommendation.__dataclass_fields__) - of_limits
    assert (content["mean"], content["interval"]) == (None, [None] * 2)
    assert content["survivors"] == [0, 1, 2]
    assert json.loads(json.dumps(content, allow_nan=False)) == content


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(json_like)
@settings(max_examples=30)
def test_plain_values_survive_json(value):
    copy = plain(value)
    assert json.loads(json.dumps(copy, allow_nan=False)) == copy
    assert plain(copy) == copy
