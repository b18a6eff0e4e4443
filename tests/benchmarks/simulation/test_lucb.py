import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulation import lucb as lucb_module
from benchmarks.simulation.blocks import run_lucb
from benchmarks.simulation.instances import BernoulliInstance, GaussianInstance
from benchmarks.simulation.lucb import PublishedLUCB, play
from benchmarks.simulation.published_radius import PublishedRadius
from mfhpo.identification.lucb import MFLUCB
from mfhpo.knowledge.bias import Bias, BiasContradictedWarning
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian
from mfhpo.problem import Observation, Problem, Pull
from tests.core.identification.test_lucb import BETWEEN_TWO, EXPLORE, race
from tests.core.racing.plays import learned


def decided(policy):
    rule = policy.rule if isinstance(policy, MFLUCB) else policy.rule.lucb
    return {"committed": rule.committed.tolist(), "explorations": rule.explorations}


def lucb(problem, schedule=None, **options):
    if schedule is None:
        return MFLUCB(problem, **options)
    return PublishedLUCB(problem, schedule=schedule, **options)


@settings(max_examples=20)
@given(
    explore=st.sampled_from(EXPLORE),
    seed=st.integers(0, 2**32 - 1),
    schedule=st.sampled_from([None, "pulls", "rounds"]),
)
def test_play_is_asking_and_telling(explore, seed, schedule):
    rng = np.random.default_rng(seed)
    n_arms, n_fidelities = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    bounds = np.append(np.sort(rng.uniform(0.05, 0.4, n_fidelities - 1))[::-1], 0.0)
    targets = rng.normal(size=(n_arms, 1))
    means = targets + bounds * rng.uniform(-1.0, 1.0, (n_arms, n_fidelities))
    problem = Problem(
        n_arms,
        np.cumsum(rng.uniform(0.5, 3.0, n_fidelities)).tolist(),
        Bias.max(*bounds),
        SubGaussian(0.4),
    )
    priors = {} if rng.random() < 0.5 else {"best_at_most": 3.0, "second_at_least": -0.5}
    policies = [
        lucb(problem, explore=explore, schedule=schedule, audit=False, **priors) for _ in range(3)
    ]
    values = means[:, :, None] + 0.4 * rng.standard_normal((*means.shape, 2000))

    def running_sums(arm, fidelity, start, total, count):
        return total + np.cumsum(values[arm, fidelity, start : start + count])

    told = race(policies[0], values, most=400)
    race(policies[2], values, most=len(told) // 3)  # some pulls before
    for policy in policies[1:]:
        play(policy, running_sums, max_pulls=len(told))
    first, *others = (learned(policy) | decided(policy) for policy in policies)
    for state in others:
        assert np.allclose(state.pop("means"), first["means"])
        assert state.pop("cost") == pytest.approx(first["cost"])
        assert state == {name: first[name] for name in state}
    assert policies[1].ask() == policies[0].ask()


def test_play_without_numba_gives_the_same(monkeypatch):
    instance = BernoulliInstance([[0.3, 0.5], [0.35, 0.6]], [1.0, 3.0], xi=[0.1, 0.0])
    for explore in ("A", "B", "C", "AB"):
        options = {"explore": explore, "schedule": "pulls", "audit": False}
        policy = lucb(instance.problem(), **options)
        run_lucb(policy, instance, np.random.default_rng(3), max_pulls=1500)
        with monkeypatch.context() as patch:
            patch.setattr(lucb_module, "compiled", lambda function, *helpers: function)
            plain = lucb(instance.problem(), **options)
            run_lucb(plain, instance, np.random.default_rng(3), max_pulls=1500)
        assert learned(plain) | decided(plain) == learned(policy) | decided(policy)


def test_published_radius():
    # beta = sqrt(log(L t^4 / delta) / n) with L / delta = 4 / level = 1000.
    radius = PublishedRadius(0.5)
    assert radius(np.array([100]), 0.004) == pytest.approx([math.sqrt(math.log(1000) / 100)])
    radius.time = 10.0
    assert radius(np.array([25]), 0.004) == pytest.approx([math.sqrt(math.log(1e7) / 25)])
    over_five = PublishedRadius(0.5, n_fidelities=5)
    assert over_five(np.array([100]), 0.02) == pytest.approx(math.sqrt(math.log(1000) / 100))
    wider = PublishedRadius(1.5)
    wider.time = 10.0
    assert wider(np.array([25]), 0.004) == pytest.approx(3.0 * radius(np.array([25]), 0.004))


def test_only_the_safeguard_ends_some_races():
    instance = BETWEEN_TWO
    priors = {"explore": "A", "best_at_most": 0.75, "second_at_least": 0.3}
    options = priors | {"delta": 0.05, "audit": False}
    problem = instance.problem()
    guarded = run_lucb(MFLUCB(problem, **options), instance, np.random.default_rng(0))
    assert guarded.certified
    assert guarded.arm == instance.best_arm
    policy = MFLUCB(problem, **options)
    policy.rule.rules = policy.rule.rules._replace(safeguard=False)
    rng = np.random.default_rng(0)
    most = int(200 * guarded.cost)  # the cheapest pulls cost 1
    result = run_lucb(policy, instance, rng, max_pulls=min(most, 300_000))
    assert not result.certified
    assert result.cost > 20 * guarded.cost


def test_time_counts_pulls_or_rounds():
    problem = Problem(2, (1.0, 2.0, 3.0), Bias.max(0.1, 0.1, 0.0), SubGaussian(0.5))
    level = 0.05 / 6
    for explore, schedule, time in (
        ("A", "pulls", 12.0),
        ("A", "rounds", 6.0),
        ("B", "rounds", 2.0),  # a sweep of three pulls is half a round
    ):
        policy = lucb(problem, explore=explore, schedule=schedule)
        for _ in range(2):
            for arm in (0, 1):
                for m in range(3):
                    policy.tell(Pull(arm, m), Observation(0.5))
        beta = math.sqrt(math.log(4.0 * time**4 / level) / 2.0)
        assert policy.summary(0, 0) == (2, 0.5, pytest.approx(beta))


class TestPlay:
    def test_it_measures_the_winner_and_stops_at_most_pulls(self):
        instance = GaussianInstance([[0.0, 1.0], [0.0, 1.0]], [1.0, 9.0], variance=0.01)
        policy = MFLUCB(instance.problem(), measure=4, audit=False)
        result = run_lucb(policy, instance, np.random.default_rng(0))
        assert result.certified
        assert policy.summary(1, 1)[0] == 4
        assert result.cost == policy.cost
        equal = GaussianInstance([[0.5, 0.5]], [1.0])
        policy = MFLUCB(equal.problem())
        assert run_lucb(policy, equal, np.random.default_rng(0), max_pulls=777).pulls == 777

    def test_a_wrong_bound_is_found_out_at_the_end(self):
        # Declared .05, really .5: the best arm looks the worst at fidelity 0.
        instance = GaussianInstance(
            [[0.5, 0.7], [1.0, 0.7]], [1.0, 2.0], xi=[0.05, 0.0], variance=0.01
        )
        policy = MFLUCB(instance.problem(), explore="B")
        with pytest.warns(BiasContradictedWarning):
            result = run_lucb(policy, instance, np.random.default_rng(0))
        assert policy.bias.bounds[0] > 0.4
        assert result.arm == 0


def test_the_published_radius_needs_a_declared_scale():
    with pytest.raises(ValueError, match="schedule needs a declared noise scale"):
        lucb(Problem(2, (1.0, 2.0), Bias.max(0.1, 0.0), EstimatedNoise()), schedule="pulls")
    bounded = Problem(2, (1.0, 2.0), Bias.max(0.1, 0.0), Bounded(-1.0, 3.0))
    policy = lucb(bounded, schedule="pulls")
    policy.tell(Pull(0, 0), Observation(0.5))
    # Four times that of values within [0, 1].
    assert policy.summary(0, 0)[2] == pytest.approx(4.0 * math.sqrt(math.log(4.0 * 4 / 0.05)))

    with pytest.raises(ValueError, match="schedule must be 'pulls' or 'rounds', got 'time'"):
        lucb(bounded, schedule="time")
