import re

import numpy as np
import pytest
from scipy import stats

from mfhpo import Gaussian
from mfhpo.certification.certification import Certification
from mfhpo.racing.sentences import unseen_in_words, unseen_share
from tests.core.certification.races import KINDS, by_looks, evaluate, in_blocks, race_of, tell

pytestmark = pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")


def most(runs, level):
    """More errors than this have probability 1e-4 where each run errs with at most the level."""
    return int(stats.binom.isf(1e-4, runs, level))


def test_what_a_sample_cannot_exclude():
    # An outcome of 26 % is missing from ten evaluations with probability .74^10 = .049.
    assert unseen_share(10, 0.05) == pytest.approx(0.259, abs=1e-3)
    assert unseen_share(1, 0.05) == 0.95
    assert unseen_share(0, 0.05) == 1.0
    words = unseen_in_words([("a and b", 20)], 0.05, unit="rounds")
    assert words == "outcomes rarer than 14 % of rounds of a and b (20 seen)"


def is_false(answer, truth):
    """Whether the claim, which is about those that were compared, is not true."""
    standings = [result.standing for result in answer.candidates]
    compared = [arm for arm, standing in enumerate(standings) if standing != "failed"]
    best = max(compared, key=truth.__getitem__)
    return truth[best] - truth[answer.winner] > answer.within or standings[best] == "worse"


def are_missed(answer, truth):
    pairs = zip((result.interval for result in answer.candidates), truth, strict=True)
    return any(not low <= value <= high for (low, high), value in pairs)


def run(race, truth, rates, seed, scale=1.0, most_evaluations=400):
    rng, evaluations = np.random.default_rng(seed), 0

    def outcome(arm):
        return None if rng.random() < rates[arm] else rng.normal(truth[arm], scale)

    while not race.finished and evaluations < most_evaluations:
        evaluate(race, outcome)
        evaluations += 1
    return race.certificate("all 4", "by hand")


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_without_values_is_not_claimed_about(kind):
    race = race_of(kind, 4, epsilon=0.5)
    answer = run(race, [9, 1, 0, 0], [1.0, 0, 0, 0], seed=0, scale=0.3)
    text = str(answer)
    assert text.startswith("CERTIFIED: row 1")
    # In blocks it fails on three replicates, and is asked for again on two of them.
    outcomes = "failed 5 of 5" if race._in_blocks else "failed 3 of 3"
    assert answer.candidates[0].outcomes == outcomes
    assert "within 0.5 of the best of the 3 compared, of all 4, wrong with probability" in text
    assert text.count("not compared  ") == text.count(f"not compared  row 0: {outcomes} eval") == 1
    assert "every other arm was eliminated" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_a_leader_that_leaves_is_not_forgotten(kind):
    race, seen = race_of(kind, 4, epsilon=0.5), np.zeros(4, dtype=int)
    rng = np.random.default_rng(0)

    def outcome(arm):
        seen[arm] += 1
        return None if arm == 3 and seen[arm] > 2 else rng.normal([0, 1, 0, 3][arm], 0.3)

    while not race.finished:
        evaluate(race, outcome)
    answer = race.certificate("all 4", "by hand")
    assert (answer.certified, answer.winner) == (False, 1)
    assert [result.name for result in answer.not_compared] == ["row 3"]
    assert answer.candidates[3].values == 2
    assert re.search("because .*led when it left", str(answer))
    assert f"{answer.candidates[3].outcomes} evaluations" in answer.reason


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4])
def test_failures_at_random_do_not_make_claims_false(kind, rate):
    runs, delta = 500 if kind is by_looks else 100, 0.05
    truth = [2.0, 0.0, -0.5, 0.0]
    found = [run(race_of(kind, 4, epsilon=0.5), truth, [rate] * 4, seed) for seed in range(runs)]
    assert sum(is_false(one, truth) for one in found) <= most(runs, delta)
    # Each of four leaves with probability .01 by its rate, or by three failures before any value.
    leaves = 4 * (0.01 + rate**3)
    assert sum(bool(one.not_compared) for one in found) <= most(runs, leaves)
    assert sum(one.certified for one in found) >= runs * (1 - leaves) - most(runs, leaves)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_about_those_that_were_compared(kind):
    runs, truth, rates = 100, [1.5, 0.0, 1.0, 0.0], [0.85, 0.1, 0.1, 0.1]
    found = [
        run(race_of(kind, 4, epsilon=0.5), truth, rates, seed, most_evaluations=600)
        for seed in range(runs)
    ]
    assert sum(is_false(one, truth) for one in found) <= most(runs, 0.05)
    lost = [one for one in found if one.candidates[0].standing == "failed"]
    assert len(lost) > runs / 2
    assert any(not one.certified for one in lost)


def answers_on_the_way(race, truth, scale, shared, rng):
    """With noise of each evaluation, and of each round."""
    evaluations = 0
    levels = shared * rng.normal(size=1000)
    while not race.finished:
        pull = race.ask()
        race.tell(pull, rng.normal(truth[pull.arm] + levels[pull.block or 0], scale))
        evaluations += 1
        if not evaluations % 6 or race.finished:
            yield race.certificate("", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "truth", "scale", "shared", "budget"),
    [
        (Certification, [0.0, 0.0, 0.3, 0.4], 1.0, 0.0, 60),
        (in_blocks, [0.3, 0.0, 0.25, 0.3, 0.1], 0.5, 1.0, 200),
    ],
)
def test_what_holds_at_any_time_is_wrong_at_most_with_delta(kind, truth, scale, shared, budget):
    delta, runs, wrong, outside = 0.3 if shared else 0.2, 100, 0, 0
    for seed in range(runs):
        race = race_of(
            kind, len(truth), delta=delta, epsilon=0.02 if shared else 0.0, budget=budget
        )
        rng = np.random.default_rng(seed)
        answers = list(answers_on_the_way(race, truth, scale, shared, rng))
        wrong += any(is_false(answer, truth) for answer in answers)
        outside += any(are_missed(answer, truth) for answer in answers)
        assert all(answer.within <= answer.epsilon for answer in answers if answer.certified)
    allowed = runs * delta + 3.0 * np.sqrt(runs * delta * (1.0 - delta))
    assert wrong <= allowed
    assert outside <= allowed
    assert wrong + outside > 0 or not shared  # else the test could not tell


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "scales", "options"),
    [
        ([0.0, 0.0], [1.0, 0.05], {"first_look": 5}),
        ([0.0, 0.0], [1.0, 0.05], {"first_look": 2}),
        ([0.0, 0.0], [1.0, 0.05], {"first_look": 3}),
        ([0.02, 0.0], [1.0, 0.01], {"sigma": Gaussian()}),
        ([0.02, 0.0, 0.01, 0.0], [1.0] * 4, {}),
        ([0.6, 0.0, 0.3, 0.55], [1.0] * 4, {"epsilon": 0.3}),
        ([0.0, 0.0, -0.1, -0.1], [1.0, 1.0, 0.05, 0.05], {}),  # two noisy ones, tied
        ([0.1, 0.0, 0.0, 0.0], [1.0, 0.05, 0.05, 0.05], {}),  # a noisy best
        ([0.1, 0.0, 0.0, 0.0], [0.05, 1.0, 1.0, 1.0], {}),
    ],
)
def test_unequal_variances(truth, scales, options):
    runs, delta, n = 1000, 0.05, len(truth)
    wrong, missed = 0, np.zeros((3, n))
    for seed in range(runs):
        race = race_of(by_looks, n, **{"epsilon": 0.0, "delta": delta, **options})
        size = race.policy.rule.missing(race.policy.known) // n
        values = np.random.default_rng(seed).normal(truth, scales, (4 * size, n))
        false = False
        for number, (start, end) in enumerate([(0, size), (size, 2 * size), (2 * size, 4 * size)]):
            for row in values[start:end].tolist():
                for arm, value in enumerate(row):
                    tell(race, arm, value)
            answer = race.certificate("all", "by hand")
            false |= is_false(answer, truth)
            for arm, (result, mean) in enumerate(zip(answer.candidates, truth, strict=True)):
                if result.evaluations == end:
                    low, high = result.interval
                    missed[number, arm] += not low <= mean <= high
        wrong += false
    assert wrong <= runs * delta + 3.0 * np.sqrt(runs * delta * (1.0 - delta))
    for number, misses in enumerate(missed):
        assert (misses <= most(runs, delta / 2 ** (number + 1) / n)).all()
    assert missed.sum() > 0  # else the test could not tell
