"""What certificates of shortlists say, read from their text and compared with the truth."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from scipy import stats

from mfhpo.certification.candidates import Candidate
from mfhpo.certification.group_sequential import GroupSequentialCertification
from mfhpo.certification.paired import PairedCertification
from mfhpo.certification.sequential import Certification
from mfhpo.racing.claims import unseen_in_words, unseen_share
from mfhpo.racing.race import ArmWithdrawnWarning

KINDS = [Certification, GroupSequentialCertification, PairedCertification]


def most(runs, level):
    """More errors than this have probability 1e-4 where each run errs with at most the level."""
    return int(stats.binom.isf(1e-4, runs, level))


# Sentences.


def test_what_a_sample_cannot_exclude():
    # An outcome of 26 % is missing from ten evaluations with probability .74^10 = .049.
    assert unseen_share(10, 0.05) == pytest.approx(0.259, abs=1e-3)
    assert unseen_share(1, 0.05) == 0.95
    assert unseen_share(0, 0.05) == 1.0
    words = unseen_in_words([("a and b", 20)], 0.05, unit="rounds")
    assert words == "outcomes rarer than 14 % of rounds of a and b (20 seen)"


# A reader of certificates.


def statements(text):
    """What a text claims: names of all, of those that were not compared, and numbers."""
    lines = [line.strip() for line in text.splitlines()]
    head = lines[0]
    table = lines[next(k for k, line in enumerate(lines) if line.startswith("candidate ")) + 1 :]
    found = {
        "certified": head.startswith("CERTIFIED"),
        "winner": re.search(r"CERTIFIED: (row \d+)", head)[1],
        "out": [re.match(r"not compared  (row \d+):", x)[1] for x in lines if "not compared" in x],
        "failed": {
            re.match(r"row \d+", row)[0]: tuple(map(int, counts.groups()))
            for row in table
            if (counts := re.search(r"failed (\d+) of (\d+)$", row))
        },
        "worse": [row.split("  ")[0] for row in table if re.search(r"\bworse\b", row)],
        "intervals": {
            row.split("  ")[0]: tuple(float(bound) for bound in bounds.groups())
            for row in table
            if (bounds := re.search(r"\[(.+), (.+)\]", row))
        },
        "within": math.inf,
    }
    claims = [line for line in lines if re.match("claim|what holds", line)]
    assert len(claims) <= 1
    if claims:
        found["within"] = float(re.search(r"within (\S+) of the best of", claims[0])[1])
        compared = re.search(r"the best of the (\d+) compared, of all 4, wrong", claims[0])
        assert (compared is None) == (not found["out"])
        if compared:
            assert int(compared[1]) == 4 - len(found["out"])
        assert " if " in claims[0]
    return found


def is_false(found, truth):
    """Whether a claim about four rows is not true, the rounding of its figure left aside."""
    values = {f"row {arm}": value for arm, value in enumerate(truth)}
    compared = {name: value for name, value in values.items() if name not in found["out"]}
    best = max(compared, key=compared.get)
    behind = compared[best] - compared[found["winner"]]
    return behind > 1.01 * found["within"] or best in found["worse"]


def race_of(kind, n=4, **options):
    candidates = [Candidate(f"row {arm}", {"x": arm}, claim=1.0) for arm in range(n)]
    return kind(candidates, **{"luckiest": 0, "maximise": True, **options})


def run(race, truth, scales, rates, seed, most_evaluations=400):
    """Until it ends: normal values, and failures at random; what the text says then."""
    rng, evaluations = np.random.default_rng(seed), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmWithdrawnWarning)
        while not race.finished and evaluations < most_evaluations:
            asked = race.ask()
            arms = asked if isinstance(asked, list) else [asked]
            values = {
                arm: None if rng.random() < rates[arm] else rng.normal(truth[arm], scales[arm])
                for arm in arms
            }
            evaluations += len(arms)
            if isinstance(asked, list):
                race.tell(values)
            else:
                race.tell(asked, values[asked])
    return str(race.certificate("all 4", "by hand"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_without_values_is_not_claimed_about(kind):
    text = run(race_of(kind, epsilon=0.5), [9, 1, 0, 0], [0.3] * 4, [1.0, 0, 0, 0], seed=0)
    found = statements(text)
    assert (found["certified"], found["winner"], found["out"]) == (True, "row 1", ["row 0"])
    assert found["failed"] == {"row 0": (3, 3)}
    assert "within 0.5 of the best of the 3 compared, of all 4, wrong with probability" in text
    assert "not compared  row 0: failed 3 of 3 evaluations" in text
    assert "every other candidate was found worse" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_a_leader_that_leaves_is_not_forgotten(kind):
    race = race_of(kind, epsilon=0.5)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmWithdrawnWarning)
        seen = np.zeros(4, dtype=int)
        while not race.finished:
            asked = race.ask()
            arms = asked if isinstance(asked, list) else [asked]
            values = {}
            for arm in arms:
                seen[arm] += 1
                breaks = arm == 3 and seen[arm] > 2
                values[arm] = None if breaks else rng.normal([0, 1, 0, 3][arm], 0.3)
            race.tell(values) if isinstance(asked, list) else race.tell(asked, values[asked])
    text = str(race.certificate("all 4", "by hand"))
    found = statements(text)
    assert (found["certified"], found["winner"], found["out"]) == (False, "row 1", ["row 3"])
    failures, evaluations = found["failed"]["row 3"]
    assert evaluations - failures == 2
    assert re.search("because .*led when it left", text)
    assert f"failed {failures} of {evaluations} evaluations" in text


# Claims, counted.


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4])
def test_failures_at_random_do_not_make_claims_false(kind, rate):
    runs, delta = 500 if kind is GroupSequentialCertification else 100, 0.05
    truth = [2.0, 0.0, -0.5, 0.0]
    texts = [
        run(race_of(kind, epsilon=0.5), truth, [1.0] * 4, [rate] * 4, seed) for seed in range(runs)
    ]
    found = [statements(text) for text in texts]
    assert sum(is_false(one, truth) for one in found) <= most(runs, delta)
    # Each of four leaves with probability .01 by its rate, or by three failures before any value.
    leaves = 4 * (0.01 + rate**3)
    assert sum(bool(one["out"]) for one in found) <= most(runs, leaves)
    assert sum(one["certified"] for one in found) >= runs * (1 - leaves) - most(runs, leaves)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_about_those_that_were_compared(kind):
    """The best leaves in almost every race: the claim must not count it."""
    runs, truth = 100, [1.5, 0.0, 1.0, 0.0]
    found = [
        statements(
            run(race_of(kind, epsilon=0.5), truth, [1.0] * 4, [0.85, 0.1, 0.1, 0.1], seed, 600)
        )
        for seed in range(runs)
    ]
    assert sum(is_false(one, truth) for one in found) <= most(runs, 0.05)
    lost = [one for one in found if "row 0" in one["out"]]
    assert len(lost) > runs / 2
    # Where it had the better values, nothing is certified.
    assert any(not one["certified"] for one in lost)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "scales", "options"),
    [
        ([0.0, 0.0], [1.0, 0.05], {"first_look": 5}),
        ([0.0, 0.0], [1.0, 0.05], {"first_look": 2}),
        ([0.0, 0.0], [1.0, 0.05], {"first_look": 3}),
        ([0.0, 0.0, -0.1, -0.1], [1.0, 1.0, 0.05, 0.05], {}),  # two noisy ones, tied
        ([0.1, 0.0, 0.0, 0.0], [1.0, 0.05, 0.05, 0.05], {}),  # a noisy best
        ([0.1, 0.0, 0.0, 0.0], [0.05, 1.0, 1.0, 1.0], {}),
    ],
)
def test_unequal_variances(truth, scales, options):
    """At each of three looks, the interval of each, and the claims of all looks."""
    runs, delta = 1000, 0.05
    best, wrong, missed = int(np.argmax(truth)), 0, np.zeros((3, len(truth)))
    for seed in range(runs):
        race = race_of(
            GroupSequentialCertification, len(truth), epsilon=0.0, delta=delta, **options
        )
        size = race.missing() // len(truth)
        values = np.random.default_rng(seed).normal(truth, scales, (4 * size, len(truth)))
        false = False
        for number, (start, end) in enumerate([(0, size), (size, 2 * size), (2 * size, 4 * size)]):
            for row in values[start:end].tolist():
                for arm, value in enumerate(row):
                    race.tell(arm, value)
            answer = race.certificate("all", "by hand")
            false |= truth[best] - truth[answer.winner] > answer.within
            false |= answer.candidates[best].standing == "worse"
            for arm, (result, mean) in enumerate(zip(answer.candidates, truth, strict=True)):
                if result.evaluations == end:
                    low, high = result.interval
                    missed[number, arm] += not low <= mean <= high
        wrong += false
    assert wrong <= most(runs, delta)
    for number, misses in enumerate(missed):
        level = delta / 2 ** (number + 1) / len(truth)
        assert (misses <= most(runs, level)).all()
    assert missed.sum() > 0  # else the test could not tell


@pytest.mark.slow
def test_a_rival_that_loses_low_values_is_compared_by_its_successes():
    """Half of its values below the mean are lost: the truth is the mean of those that are left."""
    runs, wrong = 200, 0
    # Positive noise has phi(0) as its share of the mean, what is left of the rest half of that.
    kept = (stats.norm.pdf(0.0) - stats.norm.pdf(0.0) / 2.0) / 0.75
    truth = [0.0, kept - 0.2, 0.0, 0.0]
    rng = np.random.default_rng(0)
    for _ in range(runs):
        race = race_of(GroupSequentialCertification, epsilon=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ArmWithdrawnWarning)
            while not race.finished and race.looks < 5:
                arm, noise = race.ask(), rng.normal()
                lost = arm == 1 and noise < 0.0 and rng.random() < 0.5
                race.tell(arm, None if lost else noise - 0.2 * (arm == 1))
        wrong += is_false(statements(str(race.certificate("all 4", "by hand"))), truth)
    assert wrong <= most(runs, 0.05)
