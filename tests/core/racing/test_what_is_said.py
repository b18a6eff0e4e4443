import math

import numpy as np
import pytest

from mfhpo import IISE, Bias, Problem, SubGaussian
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.experiment import Answer
from tests.core.racing.plays import tell_all
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
    assert "in [-inf, inf]" in str(Answer.of(answer, 1.0, {"x": 1}, 9))


def test_a_search_whose_certificate_is_withheld_claims_nothing():
    race = make(certify_share=0.5, epsilon=0.2)
    Run(race).to_end()
    assert race.certificate().certified
    race.withheld = "trial 3 began earlier than others and is still under way"
    answer = race.certificate()
    assert (answer.certified, answer.within, answer.reason) == (False, math.inf, race.withheld)
    assert "wrong with" not in str(answer)


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
