import math

import numpy as np
import pytest

from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.certification.selection import excess, excess_in_blocks, excess_of

# True means in standard errors of a mean of 20 values, and numbers of values.
SETTINGS = {
    "8 tied": ([0.0] * 8, [20] * 8),
    "8 tied, unequal numbers": ([0.0] * 8, [6, 8, 10, 12, 14, 20, 30, 40]),
    "3 tied": ([0.0] * 3, [10, 20, 30]),
    "2 tied": ([0.0] * 2, [10, 20]),
    "8 spread by half a standard error": (np.arange(8) * 0.5, [20] * 8),
    "8 spread by 1 standard error": (np.arange(8), [20] * 8),
    "8 spread by 1 standard deviation": (np.arange(8) * math.sqrt(20), [6, 6, 6, 6, 8, 10, 20, 40]),
    "one ahead by 3": ([3.0, *[0.0] * 7], [20] * 8),
    "one ahead by 5": ([5.0, *[0.0] * 7], [20] * 8),
    "one ahead by 5, rivals with few values": ([5.0, *[0.0] * 7], [20, *[6] * 7]),
    "one of two ahead by 4": ([4.0, 0.0], [20, 20]),
}


def errors(means, counts, runs, seed):
    """Errors of the winner's plain and corrected means in standard errors, shape (runs, 2)."""
    rng = np.random.default_rng(seed)
    counts = np.array(counts)
    true = np.asarray(means) / math.sqrt(20)
    found = []
    for _ in range(runs):
        observed = rng.normal(true, 1.0 / np.sqrt(counts))
        variances = rng.chisquare(counts - 1) / (counts - 1) / counts
        best = int(np.argmax(observed))
        plain = observed[best] - true[best]
        corrected = plain - excess(observed, variances, best)
        found.append(np.array([plain, corrected]) * math.sqrt(counts[best]))
    return np.array(found)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_corrected_mean_is_off_by_less_than_half_a_standard_error(name):
    runs = 800
    plain, corrected = errors(*SETTINGS[name], runs, seed=1).T
    margin = 3.0 / math.sqrt(runs)
    assert abs(corrected.mean()) < 0.45 + margin
    root = np.sqrt(np.mean(corrected**2)), np.sqrt(np.mean(plain**2))
    assert root[0] < 1.25 * root[1]
    if "tied" in name:
        assert abs(corrected.mean()) < 0.35 * plain.mean() + margin
        assert root[0] < root[1]


def test_without_noise_or_rivals_nothing_is_corrected():
    assert excess([3.0], [1.0], 0) == 0.0
    assert excess([1.0, 1.0], [0.0, 0.0], 0) == 0.0
    assert excess_of([[1.0, 1.0, 1.0], [0.0, 0.0]], 0) == 0.0
    assert excess_in_blocks(np.array([[1.0, np.nan], [0.0, 0.5]]), 0) == 0.0


def test_a_rival_with_a_larger_mean_has_no_part():
    assert excess([1.0, 9.0], [1.0, 1.0], 0) == 0.0


def test_equal_values_prove_nothing_about_a_rival():
    values = [[1.0, 2.0, 3.0], [1.9, 1.9, 1.9]]
    expected = excess([2.0, 1.9], [1.0 / 3.0] * 2, 0)
    assert excess_of(values, 0) == pytest.approx(expected)
    assert expected > 0.2


def test_what_blocks_do_to_all_alike_is_no_part_of_the_choice():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4, 12))
    winner = int(np.argmax(values.mean(axis=1)))
    alone = excess_in_blocks(values, winner)
    assert alone > 0.1
    assert excess_in_blocks(values + rng.normal(scale=9.0, size=12), winner) == pytest.approx(alone)
    # Half of the winner's blocks had a part in the choice.
    longer = np.hstack([values, np.full((4, 12), np.nan)])
    longer[winner, 12:] = 0.0
    assert excess_in_blocks(longer, winner) == pytest.approx(alone / 2.0)


def race(sign, seed, means, **options):
    rng = np.random.default_rng(seed)
    candidates = [Candidate(f"trial {k}", {"x": k}, 1.0) for k in range(len(means))]
    running = Certification(candidates, luckiest=0, maximise=sign > 0, epsilon=0.1, **options)
    effects = rng.normal(0.0, 3.0, 100) if options.get("blocks") else np.zeros(100)
    for _ in range(60):
        pull = running.ask()
        value = means[pull.arm] + effects[pull.block or 0] + rng.normal()
        running.tell(pull, sign * value)
    return running.certificate("the 6 best", "by hand")


@pytest.mark.parametrize("options", [{}, {"first_look": 5}, {"blocks": True}])
def test_a_certificate_gives_the_corrected_mean_beside_the_plain_one(options):
    answer = race(1.0, 4, [0.0] * 6, **options)
    assert answer.interval[0] < answer.corrected_mean < answer.mean
    words = f"; {answer.corrected_mean:.5g} when corrected for having been chosen as the best"
    [line] = [line for line in str(answer).splitlines() if line.startswith("  value")]
    assert line.endswith(words)
    mirrored = race(-1.0, 4, [0.0] * 6, **options)
    assert mirrored.corrected_mean == pytest.approx(-answer.corrected_mean)
    assert answer.to_dict()["corrected_mean"] == answer.corrected_mean


def test_a_clear_winner_is_not_corrected():
    answer = race(1.0, 5, [9.0, 0.0, 0.0], first_look=5)
    assert answer.corrected_mean == answer.mean
    assert "corrected" not in str(answer)
