import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers.rcucb_baselines import LimitThompson, LimitUCB, drawn_pair
from benchmarks.papers.rcucb_bound import regret_per_log
from benchmarks.papers.rcucb_cases import DEFAULT
from benchmarks.papers.rcucb_instances import (
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    ArmStreams,
    ReplayedCensoredInstance,
)
from benchmarks.papers.rcucb_runs import Row, Settings, rows, what_must_hold
from mfhpo._validation.parameters import parameters
from mfhpo.censored import RCUCB, Linear
from tests.core.censored.naive import charged
from tests.core.censored.test_rcucb import three_arms


def run(cases, methods, repetitions, rounds):
    settings = Settings(repetitions=repetitions, rounds=rounds, cases=cases, methods=methods)
    return list(rows(settings))


PAPER = {"cost": PUBLISHED_COST, "penalty": PUBLISHED_PENALTY}
GRID = (0.3, 0.6, 0.9)


@pytest.mark.parametrize("exploration", [0.5, 1.0, 4.0])
def test_ucb_as_the_naive_rule_compiled_or_not(exploration, monkeypatch):
    histories = []
    for _ in range(2):
        policy = LimitUCB(3, GRID, exploration=exploration, **PAPER)
        policy.play(ArmStreams(three_arms(), 2), 1500)
        histories.append(policy.history.arrays())
        monkeypatch.setattr(
            "benchmarks.papers.rcucb_baselines.compiled", lambda function, *helpers: function
        )
    for values, others in zip(*histories, strict=True):
        assert np.array_equal(values, others, equal_nan=True)
    counts, sums = np.zeros((3, 3)), np.zeros((3, 3))
    penalties = [charged(PUBLISHED_PENALTY, tau) for tau in GRID]
    told = zip(*histories[0], strict=True)
    for t, (arm, limit, reward, seconds) in enumerate(told, start=1):
        point = GRID.index(limit)
        if t > 9:
            indices = sums / counts + np.sqrt(exploration * math.log(t) / (2.0 * counts))
            assert indices[arm, point] >= indices.max() - 1e-9
        else:
            assert (arm, point) == divmod(t - 1, 3)
        worth = -penalties[point] if math.isinf(seconds) else reward - 0.1 * seconds
        counts[arm, point] += 1.0
        sums[arm, point] += (worth + penalties[-1]) / (1.0 + penalties[-1])
    assert policy.pairs.first.tolist() == counts.tolist()


def test_thompson_by_the_chances_of_eq_32():
    # One arm; always .6 after 1.5 seconds: at 1 it is stopped, worth (-.5 + 1) / 2; at 2 it is not,
    # and is worth (.6 - .15 + 1) / 2.
    policy = LimitThompson(1, (1.0, 2.0), cost=Linear(0.1), penalty=Linear(0.5), seed=5)
    policy.play(lambda arm, size: (np.full(size, 0.6), np.full(size, 1.5)), 3000)
    successes, failures = policy.pairs.first[0], policy.pairs.second[0]
    short, long = policy.pairs.plays[0].tolist()
    assert (successes + failures).tolist() == [short + long, long]
    # The longer one is the better one by far.
    assert long > 2900
    assert successes / (successes + failures) == pytest.approx([0.25, 0.725], abs=0.04)


def test_thompson_draws_from_the_posterior():
    # Beta(1 + 9, 1) against Beta(1 + 1, 1): the second is the larger one in 2 of 12 draws.
    rng = np.random.default_rng(0)
    arrays = np.array([[9.0], [1.0]]), np.zeros((2, 1)), np.ones((2, 1))
    picks = [drawn_pair(*arrays, rng) for _ in range(600)]
    # Four standard errors.
    assert np.mean(picks) == pytest.approx(1.0 / 6.0, abs=0.062)


class TestBound:
    def test_arms_that_are_never_censored_are_those_of_lai_and_robbins(self):
        instance = ReplayedCensoredInstance(
            [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], np.full((2, 5), 0.5)
        )
        found = regret_per_log(instance, np.array([1.0]), Linear(0.0), Linear(0.0))
        divergence = 0.2 * math.log(0.2 / 0.4) + 0.8 * math.log(0.8 / 0.6)
        assert found == pytest.approx(0.2 / divergence, rel=0.02)

    def test_a_longer_limit_that_is_better_needs_no_finding_out(self):
        instance = ReplayedCensoredInstance([[0.5, 0.5]], [[0.2, 0.8]])
        assert regret_per_log(instance, np.array([0.5, 1.0]), Linear(0.0), Linear(0.0)) == 0.0

    def test_a_longer_limit_that_is_worse(self):
        # Gains are .25 and .375 - .5 = -.125. Of those that exceed .5, half are worth .5 and half
        # -2, but would have to be worth 0: the nearest law has .5 with probability .8.
        def penalty(seconds):
            return np.where(seconds < 1.0, 0.0, 2.0)

        instance = ReplayedCensoredInstance([[0.5] * 4], [[0.2, 0.2, 0.8, 1.2]])
        found = regret_per_log(instance, np.array([0.5, 1.0]), Linear(0.0), penalty)
        divergence = 0.5 * math.log(0.5 / 0.8) + 0.5 * math.log(0.5 / 0.2)
        assert found == pytest.approx(0.375 / (0.5 * divergence), rel=1e-3)


class TestRows:
    @pytest.mark.slow
    def test_counting_censored_pulls_locks_in(self):
        counted, mended, default = run(
            ["lock-in"], ["published curves", "published curves, Kaplan-Meier", DEFAULT], 8, 20_000
        )
        assert counted.locked_in >= 1
        assert counted.regret > 0.05 * 0.5 * 20_000 * counted.locked_in / 8
        for row in (mended, default):
            assert row.locked_in == 0
            assert row.regret < 50.0


@pytest.mark.slow
def test_figures_are_those_of_an_independent_implementation():
    found = {
        (row.case, row.method): row
        for row in run(
            ["PosCorr", "Indep"],
            [DEFAULT, "KL", "Bernstein", "printed", "published curves", "UCB"],
            3,
            100_000,
        )
    }
    for row in found.values():
        if row.method == DEFAULT:
            assert row.regret < found[row.case, "KL"].regret
            continue
        if row.method == "KL":
            assert row.regret < row.reference_regret
        else:
            assert row.regret == pytest.approx(row.reference_regret, rel=0.12), row
    shares = found["Indep", "published curves"]
    assert shares.censored == pytest.approx(0.4462, abs=0.002 + 4.0 * shares.censored_se)
    holds = what_must_hold(list(found.values()))
    assert all(true for words, true in holds.items() if "regret" in words)


def test_the_default_is_that_of_the_policy():
    default = parameters(RCUCB)["confidence"].default
    assert default == DEFAULT.lower()


class TestWhatMustHold:
    ROW = Row(
        case="PosCorr",
        method=DEFAULT,
        repetitions=3,
        rounds=100_000,
        regret=4400.0,
        regret_se=1.0,
        reference_regret=None,
        lower_bound=1.0,
        censored=0.5,
        censored_se=0.1,
        censored_at_optimum=0.5,
        published_censored=None,
        cpu_s=0.5,
        locked_in=None,
        at=[100_000],
        curve=[4400.0],
        curve_se=[1.0],
    )

    def test_what_does_not(self):
        found = [
            replace(self.ROW, regret=4501.0, cpu_s=0.61),
            replace(self.ROW, method="TS", regret=4500.0),
            replace(self.ROW, method="printed", cpu_s=0.21),
            replace(self.ROW, case="Indep", method="published curves", censored=0.4487),
            replace(self.ROW, case="lock-in", locked_in=1),
            replace(self.ROW, case="lock-in", method="published curves", locked_in=0),
        ]
        holds = what_must_hold(found)
        assert len(holds) == 7
        assert not any(holds.values())
