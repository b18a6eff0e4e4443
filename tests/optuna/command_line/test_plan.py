import pytest

from mfhpo import Bias, Problem, SubGaussian, predict_cost

TASK = ("--arms", 8, "--levels", "3,9,27", "--sigma", 0.01, "--gap", 0.03)


def test_without_a_bias_only_the_target_is_evidence(mfhpo):
    plan = mfhpo("plan", *TASK, "--json")
    problem = Problem(8, (27.0,), bias=Bias.max(0.0), noise=SubGaussian(0.01))
    predicted = predict_cost(problem, 0.05, gaps=[0.03] * 7)
    assert plan["expected"] == plan["target_alone"] == predicted.expected
    assert plan["worth_having"] is None
    assert plan["policy"] == "MFTopTwo"


def test_the_policy_needs_no_less_than_any_method_and_not_more_than_is_sure(mfhpo):
    plan = mfhpo("plan", *TASK, "--json")
    assert plan["unfinished"] == 0
    assert len(plan["simulated"]) == 3
    mean = sum(plan["simulated"]) / 3
    assert plan["lower_bound"] < mean < plan["guaranteed"]


@pytest.mark.parametrize(
    ("bias", "worth", "words"),
    [
        ("0.001,0.001,0", True, "The levels are worth having"),
        ("0.1,0.1,0", False, "The levels are not worth having"),
    ],
)
def test_whether_levels_are_worth_having(mfhpo, bias, worth, words):
    options = (*TASK, "--bias", bias)
    assert mfhpo("plan", *options, "--json")["worth_having"] is worth
    assert words in mfhpo("plan", *options).stdout


def test_one_level(mfhpo):
    task = ("--arms", 4, "--levels", "10", "--sigma", 0.1, "--gap", 0.3)
    assert mfhpo("plan", *task, "--json")["worth_having"] is None
    assert "Only values at the target are evidence" in mfhpo("plan", *task).stdout


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"--levels": "3,x"}, "--levels must be numbers with commas"),
        ({"--levels": "9,3"}, "--levels must be positive and finite and increase, and the target"),
        ({"--levels": "3,nan"}, "--levels must be positive and finite"),
        ({"--levels": "0,3"}, "--levels must be positive and finite"),
        ({"--bias": "0.1,0"}, "--bias must be 3 numbers"),
        ({"--arms": 1}, "--arms must be at least 2"),
        ({"--gap": 0}, "--gap must be positive"),
        ({"--sigma": -1}, "--sigma must be positive"),
        ({"--bias": "0.1,0.1,0.1"}, "bias must end with 0"),
        ({"--delta": 2}, "delta must"),
    ],
)
def test_mistakes(mfhpo, changed, words):
    options = dict(zip(TASK[::2], TASK[1::2], strict=True)) | changed
    result = mfhpo("plan", *(part for option in options.items() for part in option), code=2)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
