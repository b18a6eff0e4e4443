import numpy as np
import pytest

from benchmarks.simulation.blocks import run_repeats
from benchmarks.simulation.instances import GaussianInstance
from benchmarks.simulation.runner import run
from benchmarks.simulation.sums import tell_sum
from mfhpo.identification.elimination import IISE
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Observation, Pull

SMALL = GaussianInstance([[0.1, 0.4, 0.2, 0.9], [0.2, 0.5, 0.1, 1.0]], [1.0, 10.0], variance=0.04)


def race():
    return IISE(SMALL.problem(), delta=0.05, audit=False)


class Scripted:
    def __init__(self, pulls):
        self.pulls = list(pulls)
        self.recommend = IISE(SMALL.problem()).recommend
        self.told = []
        self.asked = []

    def ask(self, n=1, pending=()):
        self.asked.append((n, len(pending)))
        begun = len(self.told) + len(pending)
        return self.pulls[begun : begun + n]

    def tell(self, pull, observation):
        self.told.append((pull, observation))

    @property
    def finished(self):
        return len(self.told) == len(self.pulls)


class TestClock:
    def test_tells_in_order_of_completion(self):
        dear, cheap = Pull(0, 1), Pull(1, 0)
        policy = Scripted([dear, cheap, cheap, cheap])
        result = run(policy, SMALL, np.random.default_rng(0), workers=2)
        # The dear one ends at 10; meanwhile the other worker does three cheap ones.
        assert [pull for pull, _ in policy.told] == [cheap, cheap, cheap, dear]
        assert (result.cost, result.elapsed, result.pulls) == (13.0, 10.0, 4)
        assert policy.asked[:3] == [(2, 0), (1, 1), (1, 1)]

    def test_what_is_under_way_at_the_end_is_paid_for(self):
        dear, cheap = Pull(0, 1), Pull(1, 0)

        class Hasty(Scripted):
            @property
            def finished(self):
                return len(self.told) == 1

        result = run(Hasty([dear, cheap]), SMALL, np.random.default_rng(0), workers=2)
        assert (result.pulls, result.elapsed, result.cost) == (1, 1.0, 2.0)

    def test_limits_censor(self):
        policy = Scripted([Pull(0, 1, limit=4.0), Pull(0, 1, limit=10.0)])
        result = run(policy, SMALL, np.random.default_rng(0))
        (_, first), (_, second) = policy.told
        assert first == Observation(None, cost=4.0, censored_at=4.0)
        assert second.value is not None
        assert result.cost == 14.0

    def test_failures_cost_and_give_nothing(self):
        policy = Scripted([Pull(0, 0)] * 2000)
        result = run(policy, SMALL, np.random.default_rng(0), failure_rate=0.25)
        failed = sum(observation.failed for _, observation in policy.told)
        assert failed == pytest.approx(500, abs=80)
        assert result.cost == 2000.0


class TestRepeats:
    @pytest.mark.parametrize("policy", [MFTopTwo, MFGrad])
    @pytest.mark.parametrize("kind", ["max", "order"])
    def test_with_resolution_0_it_is_run(self, policy, kind):
        # Every draw comes from the same place in the stream.
        problem = SMALL.problem(kind)
        options = {"delta": 0.05, "audit": False}  # which sums of values do not allow
        repeats = run_repeats(
            policy(problem, **options), SMALL, np.random.default_rng(1), resolution=0.0
        )
        assert repeats == run(policy(problem, **options), SMALL, np.random.default_rng(1))

    @pytest.mark.parametrize("policy", [MFTopTwo, MFGrad, MFLUCB, IISE])
    @pytest.mark.parametrize("resolution", [0.0, 0.01, 0.5])
    def test_keeps_the_budget(self, policy, resolution):
        twins = GaussianInstance([[1.0, 1.0], [1.0, 1.0]], [1.0, 3.0])
        race = policy(twins.problem(), budget=500.0)
        result = run_repeats(race, twins, np.random.default_rng(0), resolution=resolution)
        assert 497.0 < result.cost <= 500.0
        assert not result.certified


class TestSums:
    """`tell_sum` is telling the values one by one, but for when the rules are checked."""

    @pytest.mark.parametrize("policy", [MFTopTwo, MFGrad, MFLUCB, IISE])
    @pytest.mark.parametrize("kind", ["max", "order"])
    def test_the_same_is_learned(self, policy, kind):
        if policy is MFLUCB and kind == "order":
            return  # takes bounds on every arm's own bias
        problem = SMALL.problem(kind, noise=SubGaussian(0.05))
        summed, single = (policy(problem, delta=0.05, audit=False) for _ in range(2))
        rng = np.random.default_rng(2)
        for fidelity in (0, 1):
            for arm in (3, 0, 1, 2):
                count = int(rng.integers(1, 20))
                # The same value each time, so that nothing is judged differently on the way.
                value = float(SMALL.means[fidelity, arm])
                tell_sum(summed, Pull(arm, fidelity), count, count * value)
                for _ in range(count):
                    single.tell(Pull(arm, fidelity), Observation(value))
                for either in range(4):
                    assert summed.summary(either, fidelity) == pytest.approx(
                        single.summary(either, fidelity)
                    )
        assert summed.active.tolist() == single.active.tolist()
        assert len(summed.active) < 4
        assert (summed.cost, summed.pulls) == pytest.approx((single.cost, single.pulls))
        assert summed.finished == single.finished
        mine, other = summed.recommend(), single.recommend()
        assert (mine.arm, mine.certified, mine.reason) == (other.arm, other.certified, other.reason)
        assert mine.mean == pytest.approx(other.mean)
        assert mine.interval == pytest.approx(other.interval)
