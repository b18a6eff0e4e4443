import numpy as np
import pytest
from scipy.stats import binom, chi2, t

from mfhpo import (
    IISE,
    Bias,
    MFTopTwo,
    NoiseContradictedWarning,
    Observation,
    Problem,
    Pull,
    SubGaussian,
)
from mfhpo.knowledge.noise import CONTRADICTED, Bounded, NoiseAudit, declared_sigmas
from tests.core.certification.races import by_looks, race_of, tell
from tests.core.racing.plays import play


def test_one_scale_for_each_fidelity():
    noise = SubGaussian([0.5, 0.1])
    assert (noise.at(0, 2), noise.at(1, 2)) == (0.5, 0.1)
    assert noise == SubGaussian((0.5, 0.1))
    assert hash(noise) == hash(SubGaussian((0.5, 0.1)))
    assert declared_sigmas(SubGaussian(2), 3) == [2.0, 2.0, 2.0]
    assert declared_sigmas(Bounded(0.0, 1.0), 2) == [0.5, 0.5]


def test_by_hand():
    # Looked at after 4 values at level .01 / 2: 14.86 times sigma^2 = .25.
    audit = NoiseAudit(0.5)
    for _ in range(3):
        assert audit.add(1.0, 1.0) == ""
    assert audit.missing == 5
    last = 0.25 * float(chi2.isf(0.005, 4)) - 3.0 + 0.01
    assert audit.add(last, 1.0).startswith("values spread by")
    assert audit.contradicted
    assert audit.add(9.0, 1.0) == ""  # said once


def test_a_right_sigma_is_hardly_ever_contradicted():
    rng, n = np.random.default_rng(0), 500
    found = 0
    for _ in range(n):
        audit = NoiseAudit(1.0)
        for square in rng.standard_normal(100) ** 2:
            audit.add(float(square), 0.0)
        found += audit.contradicted
    assert found <= binom.isf(0.001, n, 0.01)


def test_any_spread_but_rounding_contradicts_a_declared_lack_of_noise():
    audit = NoiseAudit(0.0)
    assert not any(audit.add(1e-20, 0.7) for _ in range(20))
    assert audit.missing == 0
    assert "declared sigma=0 allows" in audit.add(1e-6, 0.7)


def tell_noisy_values(policy, rng):
    for n in range(12):
        policy.tell(Pull(n % 2, 0), Observation(n % 2 + rng.standard_normal()))


def race(policy, means, scales, seed, most_pulls):
    rng = np.random.default_rng(seed)
    play(policy, lambda pull: rng.normal(means[pull.arm], scales[pull.arm]), most=most_pulls)
    return policy.recommend()


def test_a_race_warns_widens_and_says_so():
    rng = np.random.default_rng(0)
    policy = MFTopTwo(Problem(2, (1.0,), Bias.max(0.0), SubGaussian(0.1)), delta=0.05)
    with pytest.warns(NoiseContradictedWarning, match=r"declared sigma=0\.1 allows"):
        tell_noisy_values(policy, rng)
    _, _, radius = policy.summary(0, 0)
    assert radius > 1.0
    answer = policy.recommend()
    assert answer.notices[0] == CONTRADICTED
    assert "the noise is normal" in answer.conditions


@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
def test_arms_that_left_by_a_false_sigma_come_back():
    policy = IISE(Problem(2, (1.0,), Bias.max(0.0), SubGaussian(0.01)), delta=0.05)
    for arm, value in ((0, 1.0), (1, 0.0)):
        policy.tell(Pull(arm, 0), Observation(value))
    assert policy.active.tolist() == [0]
    assert not policy.finished  # not before the noise was looked at
    for value in (-1.0, 0.0, 2.0, -2.0):
        policy.tell(Pull(0, 0), Observation(value))
    assert policy.active.tolist() == [0, 1]


def test_a_shortlist_is_compared_again_without_a_false_sigma():
    race = race_of(by_looks, 3, sigma=0.01, epsilon=0.1, first_look=4)
    values = np.random.default_rng(0).standard_normal((4, 3))

    def tell_four_of_each():
        for row in values:
            for arm, value in enumerate(row):
                tell(race, arm, value + (arm == 0))

    with pytest.warns(NoiseContradictedWarning, match=r"declared sigma=0\.01 allows at the target"):
        tell_four_of_each()
    answer = race.certificate("all", "by hand")
    assert not answer.certified
    assert answer.notices[0] == CONTRADICTED
    assert "the noise is normal" in answer.conditions
    # Student's intervals of 4 values each, at level .05 / 2 / 3 on two sides.
    low, high = answer.candidates[0].interval
    assert high - low == pytest.approx(2 * t.isf(0.05 / 12, 3) * values[:, 0].std(ddof=1) / 2)


def test_where_no_more_pulls_come_the_answer_says_what_was_not_audited():
    policy = IISE(Problem(2, (1.0,), Bias.max(0.0), SubGaussian(0.01)), delta=0.05)
    for arm, value in ((0, 1.0), (1, 0.0), (0, 1.0)):
        policy.tell(Pull(arm, 0), Observation(value))
    assert not policy.finished
    policy.stop_measuring()
    answer = policy.recommend()
    assert answer.certified
    [notice] = answer.notices
    assert notice.startswith("too few repeats at fidelity 0 to see whether the declared sigma")


@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
def test_each_arm_has_its_own_variance_where_sigma_is_false():
    missed = certified = 0
    for seed in range(30):
        policy = IISE(Problem(5, (1.0,), Bias.max(0.0), SubGaussian(0.1)), delta=0.05)
        answer = race(policy, [1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.1, 0.1, 0.1, 0.1], seed, 1000)
        certified += answer.certified
        low, high = answer.interval
        missed += answer.certified and not low <= 1.0 <= high
    assert certified >= 15
    assert missed <= binom.isf(0.001, certified, 0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
def test_a_sigma_of_half_the_truth_keeps_delta():
    n, wrong = 80, 0
    for seed in range(n):
        policy = MFTopTwo(Problem(2, (1.0,), Bias.max(0.0), SubGaussian(0.5)), delta=0.05)
        answer = race(policy, [0.2, 0.0], [1.0, 1.0], seed, 300)
        wrong += answer.certified and answer.arm != 0
    assert wrong <= binom.isf(0.01, n, 0.05)
