from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.papers.rcucb_instances import (
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    ArmStreams,
)
from mfhpo import Pull
from mfhpo.censored import LimitThompson, LimitUCB, Linear
from tests.core.censored.naive import charged
from tests.core.censored.test_rcucb import (
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


class TestLimitThompson:
    @staticmethod
    def told(pull: Pull, reward: float, seconds: float, times: int) -> tuple[Any, Any]:
        policy = LimitThompson(2, LIMITS, **CHARGES, seed=3)
        for _ in range(times):
            tell_outcome(policy, pull, reward, seconds)
        state = policy.state_dict()
        return np.array(state["first"]), np.array(state["second"])

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
        for seed in range(600):
            other = LimitThompson(2, [1.0], cost=Linear(0.0), penalty=Linear(0.0), seed=seed)
            other.load_state_dict(policy.state_dict())
            picks.append(other.ask()[0].arm)
        # Four standard errors.
        assert np.mean(picks) == pytest.approx(1.0 / 6.0, abs=0.062)

    @pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (0.5, TypeError)])
    def test_bad_seed(self, seed: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match=f"seed must be .* got {seed}"):
            LimitThompson(2, LIMITS, seed=seed)
