from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.censored import Deadline, GainEstimates, Linear
from mfhpo.censored.gain import Survival
from tests.core.censored.naive import (
    Seen,
    charged,
    counted_survival,
    expected_gain,
    product_limit,
)

LIMITS = (1.0, 2.0, 4.0)
COST = Linear(0.1)
PENALTY = Linear(0.5)

# A reward that ends exactly at a limit, pulls stopped at every limit, and one arm hardly pulled.
HISTORY = (
    Seen(0, limit=4.0, reward=0.8, seconds=1.5),  # gain .65
    Seen(0, limit=2.0, reward=0.9, seconds=9.0),  # stopped
    Seen(1, limit=1.0, reward=0.5, seconds=9.0),  # stopped
    Seen(0, limit=1.0, reward=0.4, seconds=0.5),  # gain .35
    Seen(0, limit=4.0, reward=0.7, seconds=5.0),  # stopped
    Seen(0, limit=1.0, reward=0.7, seconds=1.1),  # stopped
    Seen(0, limit=4.0, reward=1.0, seconds=3.0),  # gain .7
    Seen(0, limit=2.0, reward=0.6, seconds=1.0),  # gain .5
)


def estimates_of(
    history: Sequence[Seen],
    n_arms: int = 2,
    limits: Sequence[float] = LIMITS,
    survival: Survival = "kaplan-meier",
    **options,
) -> GainEstimates:
    scale = {"cost": COST, "penalty": PENALTY} | options
    estimates = GainEstimates(n_arms, limits, survival=survival, **scale)
    for pull in history:
        tell(estimates, pull)
    return estimates


def tell(estimates: GainEstimates, pull: Seen) -> None:
    if pull.stopped:
        estimates.record(pull.arm, pull.limit, None, None)
    else:
        estimates.record(pull.arm, pull.limit, pull.reward, pull.seconds)


def arrays_of(history: Sequence[Seen]) -> tuple[np.ndarray, ...]:
    """What `record_all` takes: a stopped pull has no reward, and took forever."""
    return (
        np.array([pull.arm for pull in history], dtype=np.int64),
        np.array([pull.limit for pull in history]),
        np.array([math.nan if pull.stopped else pull.reward for pull in history]),
        np.array([math.inf if pull.stopped else pull.seconds for pull in history]),
    )


def content(estimates: GainEstimates, arm: int) -> list[list[float]]:
    points = range(len(estimates.limits(arm)))
    return [
        estimates.limits(arm).tolist(),
        estimates.counts(arm).tolist(),
        estimates.gains(arm).tolist(),
        estimates.survival(arm).tolist(),
        [bound for point in points for bound in estimates.bounds(arm, point, 0.1)],
        [bound for point in points for bound in estimates.survival_bounds(arm, point, 0.1)],
    ]


@st.composite
def histories(
    draw: st.DrawFn, limits: Sequence[float] = LIMITS, n_arms: int = 2, most: int = 40
) -> list[Seen]:
    """Pulls at the given limits; durations are often exactly a limit, and alike."""
    seconds = st.sampled_from([0.0, 0.5, 1.0, 1.0001, 1.5, 2.0, 3.0, 4.0, 4.5])
    pull = st.builds(
        Seen,
        arm=st.integers(0, n_arms - 1),
        limit=st.sampled_from(limits),
        reward=st.floats(0.0, 1.0),
        seconds=seconds | st.floats(0.0, 6.0),
    )
    return draw(st.lists(pull, max_size=most))


class TestByHand:
    def test_counts(self) -> None:
        estimates = estimates_of(HISTORY)
        assert estimates.counts(0).tolist() == [7, 5, 3]
        assert estimates.counts(1).tolist() == [1, 0, 0]

    def test_survival_by_kaplan_and_meier(self) -> None:
        # 2 of 7 end by 1; of the 4 that go on beyond 1, 1 ends by 2; of the 2 that go on beyond 2,
        # 1 ends by 4.
        survival = estimates_of(HISTORY).survival(0)
        assert survival == pytest.approx([5 / 7, 5 / 7 * 3 / 4, 5 / 7 * 3 / 4 * 1 / 2])
        assert estimates_of(HISTORY).survival(1).tolist() == [1.0, 1.0, 1.0]

    def test_survival_by_the_papers_count(self) -> None:
        # Beyond 1: all but two. Beyond 2: the three stopped by then, and two longer. Eq. 9.
        survival = estimates_of(HISTORY, survival="count").survival(0)
        assert survival == pytest.approx([5 / 7, 4 / 7, 3 / 7])
        assert estimates_of(HISTORY, survival="count").survival(1).tolist() == [1.0, 1.0, 1.0]

    def test_gains(self) -> None:
        # Eq. 8: (.35 + .5) / 7, (.65 + .5) / 5, (.65 + .7) / 3; Eq. 10 with penalties .5, 1, 2.
        earned = np.array([0.85 / 7, 1.15 / 5, 1.35 / 3])
        fines = np.array([0.5, 1.0, 2.0])
        gains = estimates_of(HISTORY).gains(0)
        assert gains == pytest.approx(earned - fines * [5 / 7, 15 / 28, 15 / 56])
        gains = estimates_of(HISTORY, survival="count").gains(0)
        assert gains == pytest.approx(earned - fines * [5 / 7, 4 / 7, 3 / 7])

    def test_what_was_never_tried_is_unknown(self) -> None:
        gains = estimates_of(HISTORY).gains(1)
        assert gains[0] == pytest.approx(-0.5)
        assert np.isnan(gains[1:]).all()
        assert np.isnan(estimates_of([]).gains(0)).all()

    def test_a_cost_that_does_not_begin_at_0(self) -> None:
        def fee(seconds):
            return 0.2 + 0.1 * seconds

        estimates = estimates_of([Seen(0, 4.0, 1.0, 3.0), Seen(0, 4.0, 0.0, 4.0)], cost=fee)
        # 1 - .5 and 0 - .6, and half of the pulls are beyond 3.
        assert estimates.gains(0)[2] == pytest.approx(-0.05)

    def test_a_pull_stopped_between_two_limits(self) -> None:
        estimates = estimates_of([*HISTORY, Seen(0, 3.0, 1.0, 9.0)])
        assert estimates.counts(0).tolist() == [8, 6, 3]
        assert estimates.survival(0) == pytest.approx([6 / 8, 6 / 8 * 4 / 5, 6 / 8 * 4 / 5 / 2])
        counted = estimates_of([*HISTORY, Seen(0, 3.0, 1.0, 9.0)], survival="count")
        assert counted.survival(0) == pytest.approx([6 / 8, 5 / 8, 4 / 8])

    def test_a_pull_that_ended_between_two_limits_before_its_own(self) -> None:
        # It tells no more of 4 than one that was stopped at 3 would: that it ended is seen only
        # where it did, and to count those alone would make the arm look quick.
        pull = Seen(0, limit=3.0, reward=1.0, seconds=2.5)
        estimates = estimates_of([*HISTORY, pull])
        stopped = estimates_of([*HISTORY, Seen(0, 3.0, 1.0, 9.0)])
        assert content(estimates, 0) == content(stopped, 0)
        # The paper's count knows that it is not beyond 4.
        counted = estimates_of([*HISTORY, pull], survival="count")
        assert counted.survival(0) == pytest.approx([6 / 8, 5 / 8, 3 / 8])

    def test_a_pull_without_a_limit(self) -> None:
        free = Seen(0, limit=math.inf, reward=0.5, seconds=3.0)
        longest = Seen(0, limit=4.0, reward=0.5, seconds=3.0)
        assert content(estimates_of([*HISTORY, free]), 0) == content(
            estimates_of([*HISTORY, longest]), 0
        )

    def test_a_pull_below_all_limits(self) -> None:
        estimates = estimates_of([*HISTORY, Seen(0, 0.5, 1.0, 9.0)])
        assert content(estimates, 0) == content(estimates_of(HISTORY), 0)
        counted = estimates_of([*HISTORY, Seen(0, 0.5, 1.0, 9.0)], survival="count")
        assert counted.survival(0) == pytest.approx([6 / 8, 5 / 8, 4 / 8])


class TestAgainstTheFormulas:
    @given(history=histories())
    def test_survival(self, history: list[Seen]) -> None:
        product = estimates_of(history)
        counted = estimates_of(history, survival="count")
        for arm in range(2):
            mine = [pull for pull in history if pull.arm == arm]
            expected = [product_limit(mine, tau) for tau in LIMITS]
            assert product.survival(arm) == pytest.approx(expected)
            expected = [counted_survival(mine, tau) for tau in LIMITS]
            assert counted.survival(arm) == pytest.approx(expected)

    @given(history=histories())
    def test_gains(self, history: list[Seen]) -> None:
        product = estimates_of(history)
        counted = estimates_of(history, survival="count")
        for arm in range(2):
            mine = [pull for pull in history if pull.arm == arm]
            earned = np.array([expected_gain(mine, tau, COST) for tau in LIMITS])
            for estimates, survival in ((product, product_limit), (counted, counted_survival)):
                fines = [charged(PENALTY, tau) * survival(mine, tau) for tau in LIMITS]
                assert estimates.gains(arm) == pytest.approx(earned - fines, nan_ok=True)

    @given(history=histories())
    def test_survival_never_rises(self, history: list[Seen]) -> None:
        for survival in ("kaplan-meier", "count"):
            curve = estimates_of(history, survival=survival).survival(0)
            assert ((curve >= 0.0) & (curve <= 1.0)).all()
            assert (np.diff(curve) <= 0.0).all()

    @given(history=histories(limits=(4.0,)))
    def test_both_are_shares_where_all_pulls_had_the_longest_limit(
        self, history: list[Seen]
    ) -> None:
        product = estimates_of(history)
        counted = estimates_of(history, survival="count")
        for arm in range(2):
            assert product.survival(arm) == pytest.approx(counted.survival(arm))

    def test_the_count_is_biased_and_the_product_is_not(self) -> None:
        # P(C > 1) = .6, P(C > 2) = .3. Nine in ten pulls are stopped at 1.
        rng = np.random.default_rng(0)
        seconds = rng.choice([0.5, 1.5, 3.0], p=[0.4, 0.3, 0.3], size=20_000)
        limits = rng.choice([1.0, 2.0], p=[0.9, 0.1], size=20_000)
        seconds[seconds > limits] = math.inf
        told = np.zeros(20_000, dtype=np.int64), limits, np.zeros(20_000), seconds
        product = GainEstimates(1, [1.0, 2.0], cost=COST, penalty=PENALTY)
        counted = GainEstimates(1, [1.0, 2.0], cost=COST, penalty=PENALTY, survival="count")
        product.record_all(*told)
        counted.record_all(*told)
        # The standard error at 2 is below .02.
        assert product.survival(0) == pytest.approx([0.6, 0.3], abs=0.04)
        assert counted.survival(0) == pytest.approx([0.6, 0.9 * 0.6 + 0.1 * 0.3], abs=0.02)


class TestSameHistorySameEstimates:
    @given(history=histories(limits=(0.5, *LIMITS, 3.0, math.inf)), seed=st.integers(0, 99))
    def test_in_any_order(self, history: list[Seen], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(history))
        shuffled = [history[k] for k in order]
        for survival in ("kaplan-meier", "count"):
            one = estimates_of(history, survival=survival)
            other = estimates_of(shuffled, survival=survival)
            for arm in range(2):
                for left, right in zip(content(one, arm), content(other, arm), strict=True):
                    assert left == pytest.approx(right, rel=1e-6, abs=1e-9, nan_ok=True)

    @given(history=histories(limits=(0.5, *LIMITS, 3.0, math.inf)), cut=st.integers(0, 40))
    def test_one_by_one_or_all_at_once(self, history: list[Seen], cut: int) -> None:
        one_by_one = estimates_of(history)
        at_once = estimates_of(history[:cut])
        at_once.record_all(*arrays_of(history[cut:]))
        for arm in range(2):
            assert np.array_equal(
                np.concatenate(content(one_by_one, arm)),
                np.concatenate(content(at_once, arm)),
                equal_nan=True,
            )

    def test_very_many_at_once(self) -> None:
        rng = np.random.default_rng(1)
        limits = rng.choice([0.5, *LIMITS], size=20_000).tolist()
        seconds = rng.exponential(2.0, 20_000).tolist()
        rewards = rng.random(20_000).tolist()
        history = [
            Seen(k % 2, *outcome)
            for k, outcome in enumerate(zip(limits, rewards, seconds, strict=True))
        ]
        at_once = estimates_of([])
        at_once.record_all(*arrays_of(history))
        one_by_one = estimates_of(history)
        for arm in range(2):
            for left, right in zip(content(one_by_one, arm), content(at_once, arm), strict=True):
                assert left == pytest.approx(right)

    @given(history=histories(), low=st.floats(-50.0, 50.0), span=st.floats(0.01, 100.0))
    def test_rewards_of_another_range(self, history: list[Seen], low: float, span: float) -> None:
        plain = estimates_of(history)
        moved = [pull._replace(reward=low + span * pull.reward) for pull in history]
        scaled = estimates_of(
            moved,
            cost=Linear(0.1 * span),
            penalty=Linear(0.5 * span),
            reward_range=(low, low + span),
        )
        close = {"rel": 1e-6, "abs": 1e-6 * (span + abs(low)), "nan_ok": True}
        for arm in range(2):
            assert scaled.gains(arm) == pytest.approx(low + span * plain.gains(arm), **close)
            assert scaled.survival(arm).tolist() == plain.survival(arm).tolist()
            for point in range(3):
                bounds = low + span * np.array(plain.bounds(arm, point, 0.1))
                assert scaled.bounds(arm, point, 0.1) == pytest.approx(bounds, **close)

    def test_a_stopped_pull_is_worth_the_lowest_reward(self) -> None:
        # Accuracies above .5, one in two pulls stopped: (.9 - .2) / 2 + (.5 - 1) / 2.
        history = [Seen(0, 2.0, 0.9, 2.0), Seen(0, 2.0, 0.9, 9.0)]
        estimates = estimates_of(history, reward_range=(0.5, 1.0))
        assert estimates.gains(0)[1] == pytest.approx(0.35 - 0.25)


class TestAnUpdateTouchesWhatItTellsOf:
    @given(history=histories(), pull=histories(most=1).filter(len))
    def test_one_pull(self, history: list[Seen], pull: list[Seen]) -> None:
        [new] = pull
        before, after = estimates_of(history), estimates_of([*history, new])
        other = 1 - new.arm
        assert str(content(before, other)) == str(content(after, other))
        told = np.array(LIMITS) <= new.limit
        assert (after.counts(new.arm) - before.counts(new.arm)).tolist() == told.tolist()
        for point, limit in enumerate(LIMITS):
            if limit > new.limit:
                # What it earned is told by longer pulls alone, and bounds rest on them alone.
                for bounds in ("bounds", "survival_bounds"):
                    old = getattr(before, bounds)(new.arm, point, 0.1)
                    assert getattr(after, bounds)(new.arm, point, 0.1) == old
                fine = charged(PENALTY, limit)
                earned = [
                    estimates.gains(new.arm)[point] + fine * estimates.survival(new.arm)[point]
                    for estimates in (before, after)
                ]
                assert earned[0] == pytest.approx(earned[1], nan_ok=True)

    def test_what_is_returned_is_a_copy(self) -> None:
        estimates = estimates_of(HISTORY)
        before = content(estimates, 0)
        for array in (estimates.limits(0), estimates.survival(0), estimates.gains(0)):
            array[:] = 7.0
        assert content(estimates, 0) == before

    def test_the_given_limits_are_copied(self) -> None:
        given = np.array(LIMITS)
        estimates = estimates_of(HISTORY, limits=given)
        given[:] = 7.0
        assert estimates.limits(0).tolist() == list(LIMITS)


class TestLimitsOfAnArm:
    @given(history=histories(limits=(0.5, *LIMITS, 3.0)))
    def test_new_limits_know_what_they_would_have_seen(self, history: list[Seen]) -> None:
        finer = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
        estimates = estimates_of(history)
        other = content(estimates, 1)
        estimates.set_limits(0, np.array(finer))
        for pull in history:
            if pull.arm == 0:
                tell(estimates, pull)
        fresh = estimates_of(history, limits=finer)
        assert str(content(estimates, 0)) == str(content(fresh, 0))
        assert str(content(estimates, 1)) == str(other)

    def test_an_arm_is_forgotten(self) -> None:
        estimates = estimates_of(HISTORY)
        estimates.set_limits(0, np.array([1.0, 4.0]))
        assert str(content(estimates, 0)) == str(content(estimates_of([], limits=[1.0, 4.0]), 0))

    def test_an_arm_that_is_left_out_has_no_limits(self) -> None:
        estimates = estimates_of(HISTORY)
        before = content(estimates, 1)
        estimates.leave_out(0)
        assert estimates.limits(0).tolist() == []
        assert str(content(estimates, 1)) == str(before)
        estimates.record(0, 4.0, 0.5, 0.5)
        assert estimates.gains(0).tolist() == []


class TestRewardsOutsideTheRange:
    @pytest.mark.parametrize(("reward", "inside"), [(7.0, 1.0), (1.05, 1.0), (-0.5, 0.0)])
    def test_they_are_taken_for_the_nearest_inside(self, reward: float, inside: float) -> None:
        outside = estimates_of([*HISTORY, Seen(0, 4.0, reward, 1.5)])
        nearest = estimates_of([*HISTORY, Seen(0, 4.0, inside, 1.5)])
        assert content(outside, 0) == content(nearest, 0)


class TestSurvivalBounds:
    @staticmethod
    def level(n: int, delta: float) -> float:
        return math.log(2.0 / delta) + math.log(n + 1.0) + 1.0

    def test_nothing_known(self) -> None:
        assert estimates_of([]).survival_bounds(0, 0, 0.1) == (0.0, 1.0)

    @pytest.mark.parametrize("n", [1, 10, 1000])
    def test_all_alike_by_hand(self, n: int) -> None:
        # kl(0, q) = -log(1 - q).
        most = 1.0 - math.exp(-self.level(n, 0.1) / n)
        ended = estimates_of([Seen(0, 4.0, 0.5, 0.5)] * n)
        assert ended.survival_bounds(0, 1, 0.1) == pytest.approx((0.0, most), abs=1e-9)
        stopped = estimates_of([Seen(0, 4.0, 0.5, 9.0)] * n)
        assert stopped.survival_bounds(0, 1, 0.1) == pytest.approx((1.0 - most, 1.0), abs=1e-9)

    @given(n=st.integers(2, 300), share=st.floats(0.01, 0.99), delta=st.floats(0.001, 0.5))
    def test_by_the_divergence_of_two_coins(self, n: int, share: float, delta: float) -> None:
        beyond = min(max(round(share * n), 1), n - 1)
        seen = [Seen(0, 2.0, 0.5, 9.0)] * beyond + [Seen(0, 2.0, 0.5, 1.5)] * (n - beyond)
        low, high = estimates_of(seen).survival_bounds(0, 1, delta)
        p = beyond / n
        assert 0.0 < low < p < high < 1.0

        def divergence(q: float) -> float:
            if not 0.0 < q < 1.0:
                return math.inf
            return n * (p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)))

        level = self.level(n, delta)
        assert divergence(low + 1e-9) <= level <= divergence(low - 1e-9)
        assert divergence(high - 1e-9) <= level <= divergence(high + 1e-9)

    def test_only_pulls_that_tell_count(self) -> None:
        short = [Seen(0, 1.0, 0.5, 9.0)] * 50
        seen = [Seen(0, 2.0, 0.5, 1.5)] * 5
        assert estimates_of([*seen, *short]).survival_bounds(0, 1, 0.1) == estimates_of(
            seen
        ).survival_bounds(0, 1, 0.1)


class TestBadInput:
    @pytest.mark.parametrize(
        "limits",
        [[], [0.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, math.inf], [math.nan]],
    )
    def test_limits(self, limits: list[float]) -> None:
        with pytest.raises(ValueError, match=r"limits must be .* got \["):
            GainEstimates(1, limits, cost=COST, penalty=PENALTY)

    @pytest.mark.parametrize("limits", ["ab", [None, object()]])
    def test_limits_that_are_no_seconds(self, limits: object) -> None:
        with pytest.raises(TypeError, match="limits must be a sequence of seconds, got"):
            GainEstimates(1, limits, cost=COST, penalty=PENALTY)

    def test_survival(self) -> None:
        with pytest.raises(ValueError, match=r"survival must be .* got 'breslow'"):
            GainEstimates(1, LIMITS, cost=COST, penalty=PENALTY, survival="breslow")

    @pytest.mark.parametrize("wrong", [(1.0, 0.0), (0.0, 0.0), (0.0, math.inf), (math.nan, 1.0)])
    def test_reward_range(self, wrong: tuple[float, float]) -> None:
        with pytest.raises(ValueError, match=r"reward_range must be two finite .* got \("):
            GainEstimates(1, LIMITS, cost=COST, penalty=PENALTY, reward_range=wrong)

    @pytest.mark.parametrize("wrong", [3.0, (1.0,), ("a", "b"), (0.0, 1.0, 2.0)])
    def test_no_range(self, wrong: object) -> None:
        with pytest.raises(TypeError, match="reward_range must be the least and the largest"):
            GainEstimates(1, LIMITS, cost=COST, penalty=PENALTY, reward_range=wrong)

    @pytest.mark.parametrize(("reward", "seconds"), [(0.5, None), (None, 1.0)])
    def test_half_an_outcome(self, reward: float | None, seconds: float | None) -> None:
        estimates = estimates_of(HISTORY)
        with pytest.raises(ValueError, match=f"reward={reward} and seconds={seconds}: give both"):
            estimates.record(0, 4.0, reward, seconds)

    def test_charges(self) -> None:
        def falling(seconds):
            return 10.0 - seconds

        with pytest.raises(ValueError, match="cost must not decrease"):
            GainEstimates(1, LIMITS, cost=falling, penalty=PENALTY)
        with pytest.raises(ValueError, match="penalty must not decrease"):
            GainEstimates(1, LIMITS, cost=COST, penalty=falling)
        with pytest.raises(TypeError, match="n_arms must be a whole number"):
            GainEstimates(1.5, LIMITS, cost=COST, penalty=PENALTY)
        with pytest.raises(ValueError, match="n_arms must be at least 1, got 0"):
            GainEstimates(0, LIMITS, cost=COST, penalty=PENALTY)


def test_the_papers_penalty_counts_at_the_limit_and_not_before() -> None:
    jump = Deadline(slope=0.1, deadline=2.0, fine=10.0)
    estimates = estimates_of([Seen(0, 4.0, 1.0, 9.0)] * 3, penalty=jump)
    assert estimates.gains(0) == pytest.approx([-0.1, -0.2, -40.0])
