from dataclasses import replace

import pytest

from mfhpo import RCUCB, MFTopTwo, Observation, Problem, SubGaussian
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.experiment import Answer
from mfhpo.racing.sentences import FIXED
from tests.core.search.test_budgeted import Run, make


def certificate(n):
    candidates = [Candidate(f"row {arm}", {"x": arm}, 1.0) for arm in range(2)]
    race = Certification(candidates, luckiest=0, maximise=True, sigma=1.0, epsilon=0.5)
    for _ in range(n):
        pull = race.ask()
        race.tell(pull, 3.0 * pull.arm + 0.1 * race.evaluations)
    return race.certificate("both", "by hand")


def race(certifies):
    policy = MFTopTwo(Problem(2, costs=(1.0,), noise=SubGaussian(0.1)), epsilon=0.5)
    while not policy.finished:
        for pull in policy.ask(1):
            policy.tell(pull, Observation(float(pull.arm)))
    return Answer.of(policy.recommend(), 1.0, {"x": 1}, 9, certifies=certifies)


def search():
    running = make(certify_share=0.5, epsilon=0.2)
    Run(running).to_end()
    return running.certificate()


def limits():
    policy = RCUCB(2, limits=(1.0, 2.0), horizon=10)
    return Answer.of(policy.recommend(), 1.0, {"x": 1})


@pytest.mark.parametrize(
    "answer",
    [
        lambda: certificate(4),
        lambda: certificate(40),
        lambda: replace(certificate(40), certified=False),
        search,
        lambda: race(True),
        lambda: race(False),
        limits,
    ],
)
def test_every_answer_says_once_what_its_interval_covers(answer):
    lines = str(answer()).splitlines()
    assert lines.count(f"  about       {FIXED}") == 1
