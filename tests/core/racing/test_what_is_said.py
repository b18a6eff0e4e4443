import math

import numpy as np
import pytest

from mfhpo import IISE, Bias, Bounded, Gaussian, MFTopTwo, Observation, Problem, Pull, SubGaussian
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.certification.tolerance import tolerance
from mfhpo.racing.noise_evidence import NoNoiseWarning
from mfhpo.racing.recommendation import UserRecommendation
from tests.core.racing.plays import play, tell_all
from tests.core.search.test_budgeted import Run, make

ONE_LEVEL = {"costs": (1.0,), "bias": Bias.max(0.0)}


@pytest.mark.parametrize("options", [{"sigma": 1.0}, {"first_look": 5}])
def test_a_certificate_that_is_withheld_claims_nothing(options):
    candidates = [Candidate(f"row {arm}", {}, 1.0) for arm in range(2)]
    race = Certification(candidates, luckiest=0, maximise=True, epsilon=0.5, **options)
    rng = np.random.default_rng(0)
    while not race.finished:
        pull = race.ask()
        race.tell(pull, rng.normal(3.0 * pull.arm, 1.0))
    race.policy.withheld = "trial 3 began earlier than others and is still under way"
    answer = race.certificate("both", "by hand")
    assert (answer.certified, answer.within) == (False, math.inf)
    assert "wrong with" not in str(answer)
    assert [result.standing for result in answer.candidates] == ["not told apart", "best so far"]


def test_a_race_whose_certificate_is_withheld_shows_no_interval():
    policy = IISE(Problem(2, **ONE_LEVEL, noise=SubGaussian(0.1)), audit=False)
    for arm in (0, 1):
        tell_all(policy, arm, [float(arm)] * 20)
    assert policy.recommend().certified
    policy.withheld = "trial 3 began earlier than others and is still under way"
    answer = policy.recommend()
    assert (answer.certified, answer.reason) == (False, policy.withheld)
    assert answer.interval == (-math.inf, math.inf)
    assert "in [-inf, inf]" in str(UserRecommendation.of(answer, 1.0, {"x": 1}, 9))


def test_a_search_whose_certificate_is_withheld_claims_nothing():
    race = make(certify_share=0.5, epsilon=0.2)
    Run(race).to_end()
    assert race.certificate().certified
    race.withheld = "trial 3 began earlier than others and is still under way"
    answer = race.certificate()
    assert (answer.certified, answer.within, answer.reason) == (False, math.inf, race.withheld)
    assert "wrong with" not in str(answer)


def test_the_tolerance_rests_on_the_event_of_the_certificate_alone():
    policy = MFTopTwo(Problem(2, **ONE_LEVEL, noise=SubGaussian(1.0)), epsilon=0.0)
    for turn in range(3000):
        policy.tell(Pull(1, 0), Observation(0.5 + (-1) ** turn))
    tell_all(policy, 0, [0.0] * 3)
    within = tolerance(policy, 1)
    assert policy.falls_short(1, within) <= 0.0


@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
def test_conditions_name_the_sigma_that_is_believed_on():
    problem = Problem(2, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian((0.1, 0.1)))
    policy = IISE(problem, epsilon=0.01)
    tell_all(policy, 0, [3.0, -3.0] * 4)
    assert policy._evidence.noise.widened
    [_, noise, _] = policy.recommend().conditions
    assert "the noise is normal" in noise
    assert "sub-Gaussian with the declared sigma" in noise


def test_values_beyond_the_declared_bounds_are_noticed():
    policy = IISE(Problem(2, **ONE_LEVEL, noise=Bounded(0.0, 1.0)), epsilon=0.2)
    play(policy, lambda pull: 2.0 + 3.0 * pull.arm)
    assert any("beyond the declared bounds" in notice for notice in policy.recommend().notices)


def test_equal_values_are_noticed_where_normal_noise_is_declared():
    policy = IISE(Problem(2, **ONE_LEVEL, noise=Gaussian()))
    tell_all(policy, 0, [0.5] * 4)
    with pytest.warns(NoNoiseWarning):
        tell_all(policy, 0, [0.5])


@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
def test_who_would_lead_at_the_level_that_decides_refuses_the_certificate():
    problem = Problem(3, (1.0, 10.0), Bias.max(0.01, 0.0), SubGaussian(0.05))
    policy = IISE(problem, audit=False)
    tell_all(policy, 0, [0.9] * 3)
    tell_all(policy, 1, [0.95])
    tell_all(policy, 0, [None] * 40)
    assert policy.active.tolist() == [1, 2]
    tell_all(policy, 1, [0.1] * 60)
    tell_all(policy, 2, [0.8] * 60)
    answer = policy.recommend()
    assert (answer.arm, answer.certified) == (2, False)
    assert "would lead by its values" in answer.reason
