import numpy as np
import pytest
from scipy.stats import binom

from mfhpo import IISE, MFLUCB, Bias, MFGrad, MFTopTwo, Problem, Pull, SubGaussian
from tests.core.racing.plays import play, tell_all

POLICIES = (IISE, MFTopTwo, MFLUCB, MFGrad)


def race(policy, means, seed):
    rng = np.random.default_rng(seed)
    noise = 0.02 * rng.standard_normal(20_000)
    play(policy, lambda pull: means[pull.fidelity, pull.arm] + noise[policy.pulls], most=20_000)
    assert policy.finished


def late_bloomer(n_arms, seed):
    rng = np.random.default_rng(seed)
    target = np.append(rng.uniform(0.6, 0.8, n_arms - 1), 0.85)
    biases = np.stack([np.full(n_arms, -0.10), np.full(n_arms, -0.04), np.zeros(n_arms)])
    biases[:2] += 0.005 * rng.standard_normal((2, n_arms))
    biases[:2, -1] -= 0.3
    return target + biases


@pytest.mark.slow
@pytest.mark.parametrize("kind", POLICIES)
def test_a_late_bloomer_is_not_lost(kind):
    n, answers = 20, []
    for seed in range(n):
        policy = kind(Problem(12, costs=(1.0, 3.0, 9.0)), delta=0.05, epsilon=0.01, seed=seed)
        race(policy, late_bloomer(12, seed), seed)
        answers.append(policy.recommend())
    assert all(answer.certified for answer in answers)
    assert sum(answer.arm != 11 for answer in answers) <= binom.isf(0.001, n, 0.05)


def test_elimination_by_estimates_is_an_option_that_says_what_it_covers():
    policy = IISE(
        Problem(32, costs=(1.0, 3.0, 9.0)), epsilon=0.01, estimated_bias="eliminate", seed=0
    )
    race(policy, late_bloomer(32, 0), 0)
    # Of delta, half over ... the pilot's ten arms: 1 - .025^(1/10) = 31 %.
    assert policy.recommend().conditions[-1] == (
        "the arms' biases are alike (10 were seen, which covers all but 31 % of the arms)"
    )


@pytest.mark.parametrize("kind", POLICIES)
def test_only_the_target_is_evidence(kind):
    policy = kind(Problem(3, (1.0, 5.0, 100.0), noise=SubGaussian(0.01)), delta=0.05)
    for arm, value in enumerate((1.0, 5.0, 9.0)):
        for fidelity in (0, 1):
            tell_all(policy, arm, [value] * 20, fidelity)
    assert policy.active.tolist() == [0, 1, 2]
    assert not policy.recommend().certified
    assert np.isinf(policy.interval(2)).all()
    assert policy.recommend().conditions == (
        "evaluations are independent",
        "the noise is sub-Gaussian with the declared sigma",
    )


@pytest.mark.parametrize("kind", [MFTopTwo, MFGrad])
def test_a_glance_where_it_is_cheap_decides_on_the_order(kind):
    policy = kind(Problem(3, (1.0, 100.0), noise=SubGaussian(0.1)))
    first = play(policy, lambda pull: (0.1, 0.9, 0.5)[pull.arm], most=3)
    assert first == [Pull(arm, 0) for arm in range(3)]
    assert play(policy, lambda pull: 0.0, most=3) == [Pull(1, 1), Pull(2, 1), Pull(0, 1)]


def race_with_declared_bias(policy, factor, seed, bound=0.1, **options):
    """Arm 0 is the best. The cheap level is against it and for arm 1, by `factor` times .1."""
    target = np.array([0.05, 0.0, 0.0])
    means = np.stack([target + factor * 0.1 * np.array([-1.0, 1.0, 0.0]), target])
    problem = Problem(3, (1.0, 10.0), Bias.max(bound, 0.0), **options.pop("known", {}))
    made, rng = policy(problem, seed=seed, **options), np.random.default_rng(seed)
    play(made, lambda pull: means[pull.fidelity, pull.arm] + 0.05 * rng.standard_normal(), most=300)
    return made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("policy", POLICIES)
def test_declared_bounds_that_are_half_again_too_small_are_noticed(policy):
    # In at least 80 % of races; and no more than delta of the claims and intervals are wrong, both
    # but for the 1 % quantile of the binomial distribution.
    races, noticed, wrong, missed = 20, 0, 0, 0
    for seed in range(races):
        made = race_with_declared_bias(policy, 1.5, seed)
        answer = made.recommend()
        noticed += any("contradicted them" in words for words in answer.assumptions)
        low, high = answer.interval
        wrong += answer.certified and answer.arm != 0
        missed += answer.certified and not low <= (0.05, 0.0, 0.0)[answer.arm] <= high
    assert noticed >= binom.ppf(0.01, races, 0.8)
    assert max(wrong, missed) <= binom.ppf(0.99, races, 0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("policy", POLICIES)
def test_declared_bounds_that_hold_with_equality_are_left_alone(policy):
    races = 20
    races_of = [race_with_declared_bias(policy, 1.0, seed) for seed in range(races)]
    found = sum(made.bias.source == "widened" for made in races_of)
    assert found <= binom.ppf(0.99, races, 0.01)


def test_a_winner_is_compared_with_itself_where_that_can_be_paid():
    known = {"known": {"noise": SubGaussian(0.05)}}
    made = race_with_declared_bias(MFTopTwo, -1.0, 0, **known)
    assert made.recommend().arm == 0
    assert made.summary(0, 0)[0] >= 20
    assert made.summary(0, 1)[0] >= 20
    # Nothing is waited for where sigma is believed, or where the bound is far below the noise.
    assert race_with_declared_bias(MFTopTwo, -1.0, 0, audit="bias", **known).cost < made.cost
    small = race_with_declared_bias(MFTopTwo, -0.1, 0, 0.01, **known)
    believed = race_with_declared_bias(MFTopTwo, -0.1, 0, 0.01, audit="bias", **known)
    assert small.summary(0, 0)[0] <= believed.summary(0, 0)[0] + 20
