from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.papers.rcucb_instances import (
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    ArmStreams,
    positively_correlated,
    published_limits,
)
from mfhpo import Observation, Pull
from mfhpo.censored import LimitThompson, LimitUCB, Linear
from tests.core.censored.naive import charged
from tests.core.censored.test_rcucb import (
    asked_and_told,
    easy_arms,
    pairs_of,
    tell_outcome,
    three_arms,
)

LIMITS = (1.0, 2.0)
CHARGES: dict[str, Any] = {"cost": Linear(0.1), "penalty": Linear(0.5)}
PAPER: dict[str, Any] = {"cost": PUBLISHED_COST, "penalty": PUBLISHED_PENALTY}
GRID = (0.3, 0.6, 0.9)
ALL_PAIRS = [Pull(arm, 0, limit) for arm in range(2) for limit in LIMITS]


@pytest.mark.parametrize("make", [LimitUCB, LimitThompson])
class TestEveryPairOnce:
    def test_in_turn(self, make: Any) -> None:
        policy = make(2, LIMITS, **CHARGES)
        for expected in ALL_PAIRS:
            assert policy.ask() == [expected]
            tell_outcome(policy, expected, 0.5, 1.5)
        assert policy.plays.tolist() == [[1, 1], [1, 1]]

    def test_by_several_workers(self, make: Any) -> None:
        policy = make(2, LIMITS, **CHARGES)
        assert policy.ask(4) == ALL_PAIRS
        assert policy.ask(2, ALL_PAIRS[:2]) == ALL_PAIRS[2:]
        tell_outcome(policy, ALL_PAIRS[2], 0.5, 1.5)
        assert policy.ask(3) == [ALL_PAIRS[0], ALL_PAIRS[1], ALL_PAIRS[3]]

    def test_at_once(self, make: Any) -> None:
        policy = make(3, GRID, **PAPER)
        policy.play(ArmStreams(three_arms(), 0), 9)
        assert policy.plays.tolist() == [[1, 1, 1]] * 3

    def test_what_was_seen_at_other_limits_is_no_play(self, make: Any) -> None:
        policy = make(2, LIMITS, **CHARGES)
        policy.tell(Pull(0, 0, None), Observation(0.5, cost=0.5))
        policy.tell(Pull(0, 0, 1.5), Observation(0.5, cost=0.5))
        assert policy.ask(4) == ALL_PAIRS
        # The estimates know of it all the same.
        assert policy.estimate(0) == pytest.approx([0.45, 0.45])

    def test_if_what_is_drawn_is_none_the_pairs_are_what_the_history_says(self, make: Any) -> None:
        policy = make(2, LIMITS, **CHARGES)
        calls = 0

        def draw(arm: int, size: int) -> tuple[np.ndarray, np.ndarray]:
            nonlocal calls
            calls += 1
            return np.full(size, 0.5), np.full(size, 0.5 if calls < 5 else -1.0)

        with pytest.raises(ValueError, match="draw must return"):
            policy.play(draw, 500)
        state = policy.state_dict()
        told = np.zeros((2, 2))
        for arm, limit in zip(state["arms"], state["limits"], strict=True):
            # UCB counts a pair's own plays; a Thompson pull is a trial for lower limits too.
            told[arm] += (
                np.array(LIMITS) == limit if make is LimitUCB else np.array(LIMITS) <= limit
            )
        counts = np.array(state["first"])
        if make is LimitThompson:
            counts += np.array(state["second"])
        assert counts.tolist() == told.tolist()


class TestLimitUCB:
    def test_by_hand(self) -> None:
        # Penalties .5 and 1: Eq. 31 adds 1 and divides by 2.
        policy = LimitUCB(2, LIMITS, **CHARGES)
        for pull, (reward, seconds) in zip(
            ALL_PAIRS, [(0.9, 0.5), (0.9, 1.5), (0.2, 0.5), (0.0, 9.0)], strict=True
        ):
            tell_outcome(policy, pull, reward, seconds)
        # (.85 + 1) / 2, (.75 + 1) / 2, (.15 + 1) / 2, 0: the first, at equal counts.
        means = [0.925, 0.875, 0.575, 0.0]
        assert policy.ask() == [ALL_PAIRS[0]]
        tell_outcome(policy, ALL_PAIRS[0], 0.0, 9.0)  # stopped: worth (-.5 + 1) / 2 = .25
        means[0] = 0.5 * (0.925 + 0.25)
        # At t = 6: .5875 + sqrt(log 6 / 4) against .875 + sqrt(log 6 / 2) and so on.
        counts = np.array([2, 1, 1, 1])
        indices = np.array(means) + np.sqrt(math.log(6.0) / (2.0 * counts))
        assert indices.argmax() == 1
        assert policy.ask() == [ALL_PAIRS[1]]

    def test_it_learns_from_a_pairs_own_plays_alone(self) -> None:
        policy = LimitUCB(2, LIMITS, **CHARGES)
        for pull in ALL_PAIRS:
            tell_outcome(policy, pull, 0.5, 0.5)
        before = np.array(policy.state_dict()["first"])
        tell_outcome(policy, ALL_PAIRS[1], 0.5, 0.5)
        after = policy.state_dict()
        assert (np.array(after["first"]) - before).tolist() == [[0.0, 1.0], [0.0, 0.0]]
        # (.5 - .05 + 1) / 2 each.
        assert np.array(after["second"]) == pytest.approx(np.array([[1, 2], [1, 1]]) * 0.725)

    @pytest.mark.parametrize("exploration", [0.5, 1.0, 4.0])
    def test_as_the_naive_rule(self, exploration: float) -> None:
        policy = LimitUCB(3, GRID, exploration=exploration, **PAPER)
        policy.play(ArmStreams(three_arms(), 2), 1500)
        state = policy.state_dict()
        counts, sums = np.zeros((3, 3)), np.zeros((3, 3))
        penalties = [charged(PUBLISHED_PENALTY, tau) for tau in GRID]
        told = zip(state["arms"], state["limits"], state["rewards"], state["seconds"], strict=True)
        for t, (arm, limit, reward, seconds) in enumerate(told, start=1):
            point = GRID.index(limit)
            if t > 9:
                indices = sums / counts + np.sqrt(exploration * math.log(t) / (2.0 * counts))
                assert indices[arm, point] >= indices.max() - 1e-9
            worth = -penalties[point] if seconds is None else reward - 0.1 * seconds
            counts[arm, point] += 1.0
            sums[arm, point] += (worth + penalties[-1]) / (1.0 + penalties[-1])
        assert policy.plays.tolist() == counts.tolist()

    @pytest.mark.parametrize("instance", [three_arms(), easy_arms()], ids=["skewed", "ties"])
    def test_played_at_once_or_asked_and_told(self, instance: Any) -> None:
        at_once, one_by_one = LimitUCB(3, GRID, **PAPER), LimitUCB(3, GRID, **PAPER)
        at_once.play(ArmStreams(instance, 6), 300)
        asked_and_told(one_by_one, ArmStreams(instance, 6), 300)
        assert pairs_of(at_once) == pairs_of(one_by_one)
        assert at_once.ask(4) == one_by_one.ask(4)
        for arm in range(3):
            assert at_once.estimate(arm) == pytest.approx(one_by_one.estimate(arm))

    def test_compiled_or_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        states = []
        for plain in (False, True):
            if plain:
                monkeypatch.setattr(
                    "mfhpo.censored.baselines.compiled", lambda function, *helpers: function
                )
            policy = LimitUCB(3, GRID, **PAPER)
            policy.play(ArmStreams(three_arms(), 3), 1000)
            states.append(policy.state_dict())
        assert states[0] == states[1]

    def test_workers_spread(self) -> None:
        policy = LimitUCB(3, GRID, **PAPER)
        policy.play(ArmStreams(three_arms(), 6), 100)
        assert len({(pull.arm, pull.limit) for pull in policy.ask(12)}) >= 3

    @pytest.mark.parametrize("exploration", [0.0, -1.0, math.nan, math.inf])
    def test_bad_exploration(self, exploration: float) -> None:
        with pytest.raises(ValueError, match=f"exploration must be .* got {exploration}"):
            LimitUCB(2, LIMITS, exploration=exploration)


class TestLimitThompson:
    @staticmethod
    def told(pull: Pull, reward: float, seconds: float, times: int) -> tuple[Any, Any]:
        policy = LimitThompson(2, LIMITS, **CHARGES, seed=3)
        for _ in range(times):
            tell_outcome(policy, pull, reward, seconds)
        state = policy.state_dict()
        return np.array(state["first"]), np.array(state["second"])

    def test_all_lower_limits_learn(self) -> None:
        successes, failures = self.told(Pull(0, 0, 2.0), 0.5, 0.5, 50)
        assert (successes + failures).tolist() == [[50.0, 50.0], [0.0, 0.0]]
        successes, failures = self.told(Pull(1, 0, 1.0), 0.5, 0.5, 50)
        assert (successes + failures).tolist() == [[0.0, 0.0], [50.0, 0.0]]

    def test_what_is_certain(self) -> None:
        # A reward of 1 for nothing is the best there is, and being stopped at 2 the worst.
        successes, failures = self.told(Pull(0, 0, 2.0), 1.0, 0.0, 50)
        assert successes.tolist() == [[50.0, 50.0], [0.0, 0.0]]
        successes, failures = self.told(Pull(0, 0, 2.0), 1.0, 9.0, 50)
        assert failures[0, 1] == 50.0
        assert 0.0 < failures[0, 0] < 50.0

    @pytest.mark.parametrize(
        ("reward", "seconds", "chances"),
        [
            # Eq. 32: (.6 - .05 + 1) / 2 at both; (-.5 + 1) / 2 at 1 and (.6 - .15 + 1) / 2 at 2.
            (0.6, 0.5, [0.775, 0.775]),
            (0.6, 1.5, [0.25, 0.725]),
            (0.6, 9.0, [0.25, 0.0]),
        ],
    )
    def test_the_chance_of_a_success(
        self, reward: float, seconds: float, chances: list[float]
    ) -> None:
        successes, _ = self.told(Pull(0, 0, 2.0), reward, seconds, 1500)
        # Four standard errors are below .052.
        assert successes[0] / 1500.0 == pytest.approx(chances, abs=0.052)
        assert 0.0 in chances or (successes[0] != np.round(np.array(chances) * 1500.0)).any()

    def test_the_same_chances_at_once(self) -> None:
        # One arm; always .6 after 1.5 seconds: at 1 it is stopped, at 2 it is not.
        policy = LimitThompson(1, LIMITS, **CHARGES, seed=5)
        policy.play(lambda arm, size: (np.full(size, 0.6), np.full(size, 1.5)), 3000)
        state = policy.state_dict()
        successes, failures = np.array(state["first"])[0], np.array(state["second"])[0]
        short, long = policy.plays[0].tolist()
        assert (successes + failures).tolist() == [short + long, long]
        # The longer one is the better one by far.
        assert long > 2900
        assert successes / (successes + failures) == pytest.approx([0.25, 0.725], abs=0.04)

    def test_it_is_a_draw_from_the_posterior(self) -> None:
        # Beta(1 + 9, 1) against Beta(1 + 1, 1): the second is the larger one in 2 of 12 draws.
        policy = LimitThompson(2, [1.0], cost=Linear(0.0), penalty=Linear(0.0), seed=0)
        for _ in range(9):
            tell_outcome(policy, Pull(0, 0, 1.0), 1.0, 0.5)
        tell_outcome(policy, Pull(1, 0, 1.0), 1.0, 0.5)
        picks = []
        for seed in range(1200):
            other = LimitThompson(2, [1.0], cost=Linear(0.0), penalty=Linear(0.0), seed=seed)
            other.load_state_dict(policy.state_dict())
            picks.append(other.ask()[0].arm)
        # Four standard errors.
        assert np.mean(picks) == pytest.approx(1.0 / 6.0, abs=0.044)

    def test_the_seed_decides(self) -> None:
        plays = []
        for seed in (1, 1, 2):
            policy = LimitThompson(3, GRID, **PAPER, seed=seed)
            policy.play(ArmStreams(three_arms(), 0), 200)
            plays.append(pairs_of(policy))
        assert plays[0] == plays[1]
        assert plays[0] != plays[2]

    def test_workers_draw_anew(self) -> None:
        policy = LimitThompson(3, GRID, **PAPER, seed=1)
        policy.play(ArmStreams(three_arms(), 0), 12)
        assert len({(pull.arm, pull.limit) for pull in policy.ask(20)}) >= 3

    @pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (0.5, TypeError)])
    def test_bad_seed(self, seed: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match=f"seed must be .* got {seed}"):
            LimitThompson(2, LIMITS, seed=seed)


def test_thompson_sampling_shares_and_is_ahead_on_poscorr() -> None:
    # 1900 against 4200 when measured.
    instance, limits = positively_correlated(), published_limits()
    gains = instance.gains(limits, PUBLISHED_COST, PUBLISHED_PENALTY)
    regrets = []
    for policy in (LimitThompson(10, limits, **PAPER), LimitUCB(10, limits, **PAPER)):
        policy.play(ArmStreams(instance, 0), 10_000)
        regrets.append(float(((gains.max() - gains) * policy.plays).sum()))
    assert regrets[0] < 0.7 * regrets[1]
