"""The winner beside the baseline: by how much it is better, and how often that is wrong."""

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, t

from mfhpo import Bounded, Gaussian
from mfhpo.certification.candidates import best_of
from mfhpo.certification.certification import Certification
from mfhpo.certification.tolerance import lead, tolerance
from tests.core.certification.races import KINDS, PATTERN, by_looks, in_blocks, race_of, tell

EVERY_KIND = [
    *KINDS,
    partial(Certification, sigma=1.0),
    partial(Certification, sigma=0.0),
    partial(Certification, sigma=Gaussian()),
    partial(Certification, sigma=Bounded(-9.0, 9.0)),
]
every_kind = pytest.mark.parametrize("kind", EVERY_KIND)


def play(race, truth, seed=0, at_most=80, noise=1.0):
    """Evaluate what a race asks for, with an effect of each block on all."""
    rng, effects = np.random.default_rng(seed), np.random.default_rng(seed + 1).normal(size=999)
    for _ in range(at_most):
        pull = None if race.finished else race.ask()
        if pull is None:
            break
        shared = 0.0 if pull.block is None else effects[pull.block]
        race.tell(pull, truth[pull.arm] + shared + noise * rng.normal())
    return race.certificate("", "")


def told_by_looks(*own, blocks=False, **options):
    """A race by looks that was told five values of each candidate, around these means."""
    kind = partial(by_looks, blocks=blocks)
    race = race_of(kind, len(own), **{"epsilon": 0.0, "baseline": 0, **options})
    for block, value in enumerate(PATTERN):
        for arm, mean in enumerate(own):
            tell(race, arm, mean + (value if arm == len(own) - 1 or not blocks else 0.0), block)
    return race


def test_bound_is_students_of_the_differences_in_blocks():
    """Their standard error is the root of 2.5 / 5; half of delta, and half of that for look 1."""
    delta, quantile = 0.08, t.ppf(1.0 - 0.02, 4)
    answer = told_by_looks(0.0, 3.0, blocks=True, delta=delta).certificate("", "")
    found = answer.baseline
    assert found.verdict == "better"
    assert found.difference == pytest.approx(3.0)
    assert found.at_least == pytest.approx(3.0 - quantile * math.sqrt(0.5))
    assert (found.delta, answer.delta) == (delta, delta)


def test_bound_of_independent_values_has_both_variances_and_all_comparisons():
    answer = told_by_looks(0.0, 2.0, 1.0, delta=0.08).certificate("", "")
    quantile = t.ppf(1.0 - 0.01, 4)  # a quarter of delta, for two comparisons
    assert answer.winner == 1
    assert answer.baseline.at_least == pytest.approx(2.0 - quantile * math.sqrt(2.0 * 0.5))
    assert answer.baseline.verdict == "not told apart"
    words = f"(2 better so far, at least {answer.baseline.at_least:.3g})"
    assert str(answer.baseline) == f"not told apart from the baseline: keep it {words}"


def test_second_line_of_the_answer_says_it():
    better = told_by_looks(0.0, 9.0).certificate("", "")
    line = str(better).splitlines()[1]
    assert line.startswith("  baseline    better than the baseline by 9, at least ")
    assert line.endswith("(delta 0.05)")
    assert "row 0 (baseline)" in str(better)
    own = told_by_looks(9.0, 0.0).certificate("", "")
    assert str(own).splitlines()[1] == "  baseline    the baseline is the winner: keep it"
    assert (own.baseline.difference, own.baseline.at_least) == (0.0, 0.0)
    record = json.loads(json.dumps(better.to_dict(), allow_nan=False))["baseline"]
    assert (record["verdict"], record["words"]) == ("better", str(better.baseline))
    without = told_by_looks(0.0, 9.0, baseline=None).certificate("", "")
    assert without.baseline is None
    assert "baseline" not in without.to_dict()
    assert "baseline" not in str(without)


def test_values_that_are_minimised_are_better_where_they_are_smaller():
    answer = told_by_looks(9.0, 0.0, maximise=False).certificate("", "")
    assert answer.baseline.verdict == "better"
    assert answer.baseline.difference == pytest.approx(9.0)


@every_kind
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 999), gaps=st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=4))
def test_no_lead_is_larger_than_the_difference_and_none_contradicts_another(kind, seed, gaps):
    race = race_of(kind, len(gaps) + 1, baseline=0, epsilon=0.1)
    answer = play(race, [0.0, *gaps], seed, at_most=30, noise=float(race._noiseless is False))
    policy, arms = race.policy, range(len(gaps) + 1)
    means = [answer.candidates[arm].mean for arm in arms]
    for one in arms:
        for other in set(arms) - {one}:
            bound = lead(policy, one, other)
            assert bound + lead(policy, other, one) <= 1e-6  # not both are better
            if not race._in_blocks and policy.counts[[one, other]].all():
                looks = kind in EVERY_KIND[:4] and kind is not Certification
                assert looks or bound <= means[one] - means[other] + 1e-6
    if answer.winner is not None and answer.baseline.verdict == "better":
        assert answer.baseline.at_least >= 0.0


def test_what_is_known_when_the_baseline_leaves_stays_true():
    """It has a few values alone, and the winner's further ones are lower."""
    race = race_of(partial(Certification, sigma=1.0), 3, baseline=0, epsilon=0.0)
    for turn in range(4):
        for arm, value in enumerate((-3.5, 0.0, 0.1)):
            tell(race, arm, value + 0.3 * (-1.0) ** turn)
    before = race.certificate("", "").baseline
    assert not race.policy.known.roster.active[0]
    assert before.verdict == "better"
    for turn in range(6):
        tell(race, 1, -2.5 + 0.3 * (-1.0) ** turn)
        tell(race, 2, -2.5 + 0.3 * (-1.0) ** turn)
    after = race.certificate("", "")
    now = lead(race.policy, after.winner, 0)
    assert now < 0.0 < before.at_least
    (by, *_), known = race._baseline._exit
    behind = tolerance(race.policy, after.winner)
    kept = known - (0.0 if by == after.winner else behind)
    assert after.baseline.at_least == max(now, -behind, kept)


def test_elimination_by_an_arm_that_turns_out_worst_is_forgotten():
    race = race_of(partial(Certification, sigma=1.0), 3, baseline=0, epsilon=0.0)
    for turn in range(3):
        tell(race, 0, -3.5 + 0.3 * (-1.0) ** turn)
        tell(race, 1, 0.3 * (-1.0) ** turn)
    assert race.certificate("", "").baseline.verdict == "better"
    race.rule_out(1)
    tell(race, 2, -3.4)
    found = race.certificate("", "").baseline
    assert race._baseline._exit is None
    assert found.verdict in ("winner", "not told apart")


def test_failing_baseline_is_not_compared():
    race = race_of(Certification, 3, baseline=1, epsilon=0.5)
    tell(race, 1, None)
    tell(race, 1, None)
    with pytest.warns(match="row 1"):
        tell(race, 1, None)
    for value in PATTERN:
        tell(race, 0, 9.0 + value)
        tell(race, 2, value)
    found = race.certificate("", "").baseline
    assert found.verdict == "failed"
    assert str(found) == "the baseline was not compared, because its evaluations fail too often"


def test_baseline_with_the_worst_value_is_worse_than_any():
    race = race_of(Certification, 3, baseline=1, epsilon=0.5)
    race.rule_out(1)
    for value in PATTERN:
        tell(race, 0, 9.0 + value)
        tell(race, 2, value)
    found = race.certificate("", "").baseline
    assert (found.verdict, found.at_least) == ("better", math.inf)
    assert str(found) == "better than the baseline, which gave the worst value there is"
    assert found.to_dict()["at_least"] is None


def test_means_alone_are_told_where_the_noise_cannot_be_seen():
    race = race_of(in_blocks, 2, baseline=0)
    for block in range(12):
        tell(race, 0, 0.5, block)
        tell(race, 1, 0.9, block)
    assert race.noise_is_hidden
    words = "not told apart from the baseline: keep it (0.4 better so far)"
    assert str(race.certificate("", "").baseline) == words


@pytest.mark.parametrize("seed", range(8))
def test_baseline_is_compared_on_the_blocks_that_it_has(seed):
    """The winner has others besides, and what a block does to all is large."""
    race = race_of(in_blocks, 2, baseline=1, epsilon=0.0)
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=2_000)
    while not race.finished:
        pull = race.ask()
        race.tell(pull, (0.15, 0.0)[pull.arm] + effects[pull.block] + 0.02 * rng.normal())
    answer = race.certificate("", "")
    assert (answer.certified, answer.baseline.verdict) == (True, "better")
    assert 0.0 < answer.baseline.at_least < 0.2


def test_leading_baseline_is_no_winner_before_the_certificate():
    race = race_of(Certification, 2, baseline=1, epsilon=0.0)
    for value in (0.0, 1.0):
        tell(race, 0, value)
        tell(race, 1, value + 0.5)
    answer = race.certificate("", "")
    assert (answer.certified, answer.winner) == (False, 1)
    assert str(answer.baseline) == "not told apart from the baseline: keep it"


def test_baseline_may_have_no_claim():
    race = race_of(Certification, 2, claims=[1.0, math.nan], baseline=1, epsilon=0.5)
    answer = play(race, [0.0, -9.0])
    assert answer.baseline.verdict == "better"
    row = next(line for line in str(answer).splitlines() if line.startswith("  row 1 (baseline)"))
    assert row.split()[3] == "-"
    assert answer.to_dict()["candidates"][1]["claim"] is None


@pytest.mark.parametrize("baseline", [2, -1])
def test_baseline_is_one_of_the_candidates(baseline):
    with pytest.raises(ValueError, match="baseline must be 0 to 1"):
        race_of(Certification, 2, baseline=baseline)


def test_shortlist_has_the_baseline_besides_the_best():
    ranked = list("abcdef")
    assert best_of(ranked, 0, 2) == (["a", "b"], 0, None)
    assert best_of(ranked, 4, 2, ranked[1]) == (["a", "e", "b"], 1, 2)
    assert best_of(ranked, 0, 2, ranked[1]) == (["a", "b"], 0, 1)
    assert best_of(ranked, 5, 1, "new") == (["f", "new"], 0, 1)
    # Where it is the best alone, the next one is there, too.
    assert best_of(ranked, 0, 1, ranked[0]) == (["a", "b"], 0, 0)
    with pytest.raises(ValueError, match="the baseline is the only configuration"):
        best_of(ranked[:1], 0, 1, ranked[0])


# Wrong at most as often as delta says, also for the best of several that are equal.

_RACES, _FEWER, _DELTA = 150, 50, 0.2


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("truth", [[0.0] * 5, [0.3, 0.0, 0.0, 0.0]])
def test_the_best_of_equal_ones_is_wrongly_better_at_most_as_often_as_delta_says(kind, truth):
    n_wrong = n_better = 0
    n = _FEWER if kind is in_blocks else _RACES
    for seed in range(n):
        race = race_of(kind, len(truth), baseline=0, epsilon=0.0, delta=_DELTA, seed=seed)
        answer = play(race, truth, seed, at_most=8 * len(truth))
        if answer.winner is None:
            continue
        true = truth[answer.winner] - truth[0]
        is_claim_wrong = answer.certified and max(truth) > truth[answer.winner]
        is_bound_wrong = answer.winner != 0 and answer.baseline.at_least > true
        n_better += answer.baseline.verdict == "better"
        n_wrong += is_bound_wrong or is_claim_wrong
    most = binom.ppf(0.999, n, _DELTA)
    assert n_wrong <= most
    assert n_better <= most  # it is as good as any


# A race with a winner goes on until it is told from the baseline, for half of what it had cost.


@pytest.mark.parametrize("kind", [Certification, in_blocks, partial(Certification, sigma=1.0)])
def test_winner_and_baseline_go_on_alone_until_they_are_told_apart(kind):
    n_better = n_longer = 0
    for seed in range(6):
        race = race_of(kind, 3, baseline=0, epsilon=1.0, seed=seed)
        rng, certified_at = np.random.default_rng(seed), math.inf
        while not race.finished:
            pull = race.ask()
            if race.policy.known.duel:
                assert race.certificate("", "").certified
                assert pull.arm in (0, race.policy.winner)
                certified_at = min(certified_at, race.evaluations)
            race.tell(pull, (0.0, 1.4, 1.0)[pull.arm] + rng.normal())
        answer = race.certificate("", "")
        assert answer.certified
        assert answer.evaluations <= 1.5 * certified_at + 1.0
        n_better += answer.baseline.verdict == "better"
        n_longer += certified_at < math.inf
    assert n_better >= 4
    assert n_longer >= 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("truth", [(0.0, 0.1), (0.0, -0.1), (0.0, 0.0)])
def test_it_ends_where_there_is_hardly_a_difference(kind, truth):
    answer = play(race_of(kind, 2, baseline=0, epsilon=1.0), truth, at_most=400)
    assert (answer.finished, answer.certified) == (True, True)


def test_a_lead_that_is_no_lead_is_not_followed_up():
    """The winner is within epsilon of the best, and the baseline seems better."""
    race = race_of(partial(Certification, sigma=1.0), 2, baseline=0, epsilon=50.0, measure=0)
    while race.policy.winner is None:
        race.tell(pull := race.ask(), (0.2, 0.1)[pull.arm])
    assert not race.policy.known.duel


def test_the_budget_ends_it_with_the_claim_certified():
    race = race_of(partial(Certification, sigma=1.0), 2, baseline=0, epsilon=2.0, budget=40)
    answer = play(race, [0.0, 0.6], at_most=100)
    assert (answer.finished, answer.certified) == (True, True)
    assert answer.evaluations <= 40


@pytest.mark.parametrize("kind", [Certification, in_blocks, partial(Certification, sigma=1.0)])
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_to_go_on_until_it_is_better_is_wrong_at_most_as_often_as_delta_says(kind, gap):
    """The baseline is as good as the best of the others, or better, but not by epsilon."""
    n_wrong, truth = 0, [gap, 0.0, 0.0]
    for seed in range(_FEWER):
        race = race_of(kind, 3, baseline=0, epsilon=1.0, delta=_DELTA, seed=seed)
        found = play(race, truth, seed, at_most=300).baseline
        n_wrong += found.verdict == "better"
    assert n_wrong <= binom.ppf(0.999, _FEWER, _DELTA)
