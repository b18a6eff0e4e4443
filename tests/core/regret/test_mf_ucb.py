import math
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.mf_ucb_regret import regret_per_cost
from benchmarks.papers.mf_ucb_speed import naive_plays
from benchmarks.simulation.instances import BernoulliInstance, GaussianInstance
from benchmarks.simulation.mf_ucb import play as play_at_once
from mfhpo import Bias, EstimatedNoise, Observation, Problem, SubGaussian
from mfhpo.regret import MFUCB
from tests.core.racing.plays import learned, play, tell_all

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


def sums_of(values):
    def running_sums(arms, fidelity, start, sums, totals):
        [arm] = arms
        steps = np.diff(totals, prepend=start)
        assert (steps == 1).all()
        following = values[arm, fidelity, np.arange(start, start + len(totals)) % values.shape[2]]
        return np.cumsum(np.concatenate([sums, following]))[None, 1:]

    return running_sums


def printed_plays(problem, rho, values, capital):
    """Algorithm 1 as it is printed: all arms and fidelities are looked at in every step."""
    instance = SimpleNamespace(
        n_arms=problem.n_arms,
        n_fidelities=problem.n_fidelities,
        xi=np.array(problem.bias.bounds),
        costs=np.array(problem.costs),
        variance=problem.noise.at(0, problem.n_fidelities) ** 2,
        running_sums=lambda rng, *asked: sums_of(values)(*asked),
    )
    cells = naive_plays(instance, np.random.default_rng(0), capital, rho)
    return [divmod(int(cell), problem.n_fidelities) for cell in cells]


def asked_plays(policy, values):
    def value(pull):
        count = policy.summary(pull.arm, pull.fidelity)[0] % values.shape[2]
        return values[pull.arm, pull.fidelity, count]

    return [(pull.arm, pull.fidelity) for pull in play(policy, value)]


def block_plays(policy, values, capitals=(None,), **options):
    cells = []
    for capital in capitals:
        play_at_once(policy, sums_of(values), capital, order=cells, **options)
    n_fidelities = policy.problem.n_fidelities
    return [divmod(int(cell), n_fidelities) for cell in np.concatenate(cells)]


@st.composite
def races(draw):
    n_arms, n_fidelities = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    steps = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0, 10.0]), min_size=4, max_size=4))
    costs = tuple(np.cumsum(steps[:n_fidelities]).tolist())
    zeta = draw(st.lists(st.sampled_from([0.0, 0.05, 0.3, 1.0]), min_size=3, max_size=3))
    sigma = draw(st.sampled_from([0.0, 0.1, 0.5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    means = rng.random((n_arms, n_fidelities, 1))
    if draw(st.booleans()):
        values = (rng.random((n_arms, n_fidelities, 97)) < means).astype(np.float64)
    else:
        values = means + sigma * rng.standard_normal((n_arms, n_fidelities, 97))
    bias = Bias.max(*zeta[: n_fidelities - 1], 0.0)
    problem = Problem(n_arms, costs, bias, SubGaussian(sigma))
    rho = draw(st.sampled_from([0.5, 2.0]))
    return problem, rho, values, 400.0 * draw(st.floats(0.01, 1.0)) * costs[0]


class TestTheSamePlays:
    @settings(max_examples=50)
    @given(race=races(), candidates=st.sampled_from([1, 2, 5, 16]), share=st.floats(0.0, 1.0))
    def test_as_the_naive_rule(self, race, candidates, share):
        problem, rho, values, budget = race
        plays = printed_plays(problem, rho, values, budget)
        asking = MFUCB(problem, rho=rho, budget=budget)
        assert asked_plays(asking, values) == plays
        block = MFUCB(problem, rho=rho, budget=budget)
        capitals = (share * budget, None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("benchmarks.simulation.mf_ucb._CANDIDATES", candidates)
            assert block_plays(block, values, capitals, compiled=False) == plays
        assert block.ask() == asking.ask()
        assert block.counts.tolist() == asking.counts.tolist()
        assert block.cost == asking.cost
        assert block.pulls == asking.pulls == len(plays)
        answers = [policy.recommend().to_dict() for policy in (block, asking)]
        assert answers[0] == answers[1]

    @needs_numba
    @pytest.mark.parametrize("seed", range(3))
    def test_compiled_or_not(self, seed):
        rng = np.random.default_rng(seed)
        targets = rng.random(150)
        zeta = (0.3, 0.1, 0.0)
        means = np.stack([targets + rng.uniform(-z, z, 150) for z in zeta])
        instance = GaussianInstance(means, [1.0, 4.0, 20.0], xi=zeta, variance=0.04)
        orders = []
        for compiled in (True, False):
            policy = MFUCB(instance.problem())
            order = []
            source = partial(instance.running_sums, np.random.default_rng(seed))
            play_at_once(policy, source, 60_000.0, compiled=compiled, order=order)
            orders.append((np.concatenate(order).tolist(), policy.cost, learned(policy)))
        assert orders[0] == orders[1]
        assert len(orders[0][0]) > 10_000


class TestTheRule:
    @pytest.mark.parametrize(
        ("zeta", "costs", "gamma"),
        [
            # Appendix C of Kandasamy et al. (2016).
            ((0.2, 0.1, 0.0), (1.0, 10.0, 1000.0), (0.0632, 0.01)),
            ((1.0, 0.5, 0.2, 0.0), (1.0, 5.0, 20.0, 50.0), (0.447, 0.25, 0.1265)),
            ((0.2, 0.0), (1.0, 10.0), (0.0632,)),
            (
                (0.5, 0.2, 0.1, 0.05, 0.0),
                (1.0, 3.0, 10.0, 30.0, 100.0),
                (0.289, 0.1095, 0.0577, 0.0274),
            ),
        ],
    )
    def test_thresholds_of_the_published_instances(self, zeta, costs, gamma):
        policy = MFUCB(Problem(1, costs, Bias.max(*zeta), SubGaussian(0.02)))
        assert policy.rule.gamma == pytest.approx([*gamma, math.inf], rel=2e-3)

    def test_order_bounds_are_refused(self):
        problem = Problem(3, (1.0, 2.0), Bias.order(0.1, 0.0), SubGaussian(1.0))
        with pytest.raises(ValueError, match=r"declare Bias\.max\(\.\.\.\), or use MFElimination"):
            MFUCB(problem)


def test_a_pending_pull_counts_as_one_with_the_mean_seen_so_far():
    problem = Problem(4, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian(0.2))
    policy, told = MFUCB(problem), MFUCB(problem)
    values = np.random.default_rng(1).normal(0.5, 0.2, (4, 10))
    for each in (policy, told):
        for arm in range(4):
            tell_all(each, arm, values[arm])
    [pull] = policy.ask()
    mean = policy.summary(pull.arm, pull.fidelity)[1]
    told.tell(pull, Observation(mean))
    assert policy.ask(1, [pull]) == told.ask()


class TestWhatIsFoundOut:
    def test_bias_costs_and_noise(self):
        problem = Problem(5, None, noise=EstimatedNoise(), n_fidelities=2)
        policy = MFUCB(problem, budget=2000.0, pilot_arms=3)
        assert policy.piloting
        assert "bias: not known yet" in policy.recommend().assumptions
        assert "the pilot is not complete" in policy.recommend().reason
        rng = np.random.default_rng(3)
        means = np.array([[0.15, 0.1], [0.45, 0.5], [0.85, 0.8], [0.3, 0.35], [0.62, 0.6]])
        play(
            policy,
            lambda pull: means[pull.arm, pull.fidelity] + 0.05 * rng.standard_normal(),
            costs=(1.0, 6.0),
        )
        answer = policy.recommend()
        assert (policy.piloting, answer.arm) == (False, 2)
        low, high = answer.interval
        assert high - 0.2 < low < 0.8 < high
        bias = answer.assumptions[-1]
        assert "max bias bounds" in bias
        assert "estimated from 3 arms at every fidelity" in bias

    def test_a_fidelity_that_is_no_cheaper_is_never_chosen(self):
        problem = Problem(3, None, noise=EstimatedNoise(), n_fidelities=3)
        policy = MFUCB(problem, budget=2000.0, pilot_arms=2)
        rng = np.random.default_rng(0)
        chosen = set()

        def value(pull):
            if not policy.piloting:
                chosen.add(pull.fidelity)
            return 0.3 * pull.arm + 0.1 * rng.standard_normal()

        play(policy, value, costs=(1.0, 12.0, 9.0))
        assert chosen == {0, 2}


class TestReward:
    @pytest.mark.parametrize("seed", range(10))
    def test_it_finds_the_best_arm_and_misses_less_than_ucb(self, seed):
        rng, capital = np.random.default_rng(seed), 100_000.0
        targets = rng.permutation(np.append(np.linspace(0.1, 0.7, 39), 0.9))
        cheap = np.clip(targets + rng.uniform(-0.1, 0.1, 40), 0.0, 1.0)
        instance = BernoulliInstance([cheap, targets], [1.0, 20.0], xi=[0.1, 0.0])
        alone = BernoulliInstance([targets], [20.0])
        policy, ucb = MFUCB(instance.problem()), MFUCB(alone.problem())
        play_at_once(policy, partial(instance.running_sums, rng), capital)
        play_at_once(ucb, partial(alone.running_sums, rng), capital)
        assert policy.recommend().arm == ucb.recommend().arm == instance.best_arm
        assert policy.pulls == policy.counts.sum()
        assert policy.cost == policy.counts.sum(axis=0) @ instance.costs
        assert capital - 20.0 < policy.cost <= capital
        # The bad arms are left at a twentieth of the cost: a fraction of the regret.
        ours = regret_per_cost(policy, instance, capital)
        assert ours / regret_per_cost(ucb, alone, capital) < 0.3

    def test_the_interval_of_the_answer_holds(self):
        missed = 0
        for seed in range(200):
            rng = np.random.default_rng(seed)
            targets = rng.random(8)
            means = [targets + rng.uniform(-0.1, 0.1, 8), targets]
            instance = GaussianInstance(means, [1.0, 5.0], xi=[0.1, 0.0], variance=0.09)
            policy = MFUCB(instance.problem(), delta=0.05, budget=400.0)
            play_at_once(policy, partial(instance.running_sums, rng), 400.0)
            answer = policy.recommend()
            low, high = answer.interval
            missed += not low <= targets[answer.arm] <= high
        assert missed <= 0.05 * 200
