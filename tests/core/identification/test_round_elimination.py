import math

import numpy as np
import pytest
from scipy.stats import binom

from mfhpo import Observation, Problem, Pull
from mfhpo.identification.round_elimination import PRIOR, RoundElimination
from mfhpo.knowledge.studentised import log_evidence


def race_of(n, **options):
    return RoundElimination(Problem(n, costs=(1.0,)), **options)


def tell(race, arm, *values):
    for value in values:
        race.tell(Pull(arm, 0), Observation(value))


def play(race, draw, most=2_000):
    while not race.finished and race.pulls < most:
        [pull] = race.ask()
        race.tell(pull, Observation(draw(pull.arm)))
    return race.recommend()


def test_a_pair_is_judged_by_the_differences_of_its_nth_values():
    race, gaps = race_of(2, epsilon=0.5, measure=0, delta=0.05), []
    for n in range(1, 30):
        gaps.append(4.0 * (n % 3) - 2.0)
        tell(race, 1, 0.1 * (n % 2))
        tell(race, 0, 0.1 * (n % 2) + gaps[-1])
        if n < 2:
            continue
        found = np.array(gaps)
        evidence = log_evidence(
            np.array([found.mean() + 0.5]),
            np.array([float(n)]),
            np.array([((found - found.mean()) ** 2).sum()]),
            PRIOR,
        )
        is_enough = evidence[0] >= math.log(1.0 / 0.05)
        assert (race.winner == 0) == is_enough
        if is_enough:
            break
    assert is_enough
    assert 8 < n < 29


def test_arms_that_cannot_be_better_are_left_alone():
    race = race_of(3, epsilon=0.5, measure=0)
    rng = np.random.default_rng(0)
    answer = play(race, lambda arm: rng.normal([0.0, 0.0, -20.0][arm], 1.0))
    counts = race.counts[:, 0]
    assert answer.certified
    assert counts[2] < 10
    assert counts[:2].min() > 2 * counts[2]


def test_epsilon_is_the_noise_as_it_is_known():
    race = race_of(2, epsilon=None, measure=0)
    rng = np.random.default_rng(0)
    answer = play(race, lambda arm: rng.normal(0.0, 3.0))
    assert answer.certified
    assert answer.epsilon == pytest.approx(3.0, rel=0.4)


def test_values_that_a_winner_got_alone_count_at_the_end():
    rng = np.random.default_rng(1)
    values = {0: iter([1.0] * 12 + [-100.0] + [1.0] * 200), 1: iter([0.0] * 300)}
    race = race_of(2, measure=0)
    answer = play(race, lambda arm: next(values[arm]) + rng.normal(0.0, 0.01), most=100)
    assert race.counts[0, 0] > 12
    assert not answer.certified


def test_what_fails_is_no_value():
    race = race_of(2, max_failures=2, measure=0)
    tell(race, 0, 1.0, None, 1.1, 0.9)
    tell(race, 1, 0.0, 0.1)
    assert race.counts[:, 0].tolist() == [3, 2]
    with pytest.warns(UserWarning, match="arm 1"):
        tell(race, 1, *[None] * 30)
    assert race.active.tolist() == [0]
    with pytest.warns(UserWarning, match="arm 0"):
        tell(race, 0, *[None] * 60)
    assert race.finished
    assert race.recommend().arm is None


def test_evaluations_under_way_are_counted():
    race = race_of(3)
    pulls = race.ask(7)
    counts = np.bincount([pull.arm for pull in pulls], minlength=3)
    assert sorted(counts.tolist()) == [2, 2, 3]
    assert race.ask(1, pulls)[0].arm != np.argmax(counts)


@pytest.mark.parametrize(
    ("means", "spreads", "epsilon"),
    [
        ([0.6, 0.0, 0.0, 0.0, 0.0], [1.0, 0.1, 0.1, 0.1, 0.1], 0.3),  # the noisy one is the best
        ([0.6, 0.0], [0.1, 2.0], 0.3),
    ],
)
def test_delta_is_kept(means, spreads, epsilon):
    n_races, wrong = 40, 0
    for seed in range(n_races):
        rng = np.random.default_rng(seed)
        race = race_of(len(means), epsilon=epsilon, measure=0, delta=0.1, seed=seed)
        answer = play(race, lambda arm, rng=rng: rng.normal(means[arm], spreads[arm]), most=40)
        wrong += answer.certified and answer.arm != 0
    assert wrong <= binom.ppf(0.999, n_races, 0.1)


@pytest.mark.parametrize(("gap", "epsilon"), [(0.5, 0.0), (0.0, 0.3)])
def test_leader_is_not_evaluated_alone_for_ever(gap, epsilon):
    rng = np.random.default_rng(57)
    race = race_of(2, epsilon=epsilon, measure=10, seed=57)
    play(race, lambda arm: -gap * arm + rng.normal())
    assert race.finished
    assert race.pulls < 300


@pytest.mark.parametrize("seed", [84, 91])
def test_each_winner_is_judged_by_all_its_values(seed):
    """Three of four arms diverge in a quarter of their evaluations."""
    rng = np.random.default_rng(seed)
    race = race_of(4, epsilon=0.2, measure=10, seed=seed)

    def draw(arm):
        return -5.0 if arm and rng.random() < 0.25 else 0.1 * rng.normal() + 0.3 * (arm > 0)

    play(race, draw, most=900)
    seen = race.known.evidence.means(np.arange(4), 0)
    if race.finished:
        assert seen[race.recommend().arm] > seen.max() - 0.4
