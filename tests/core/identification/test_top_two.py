import math

import numpy as np
import pytest

from benchmarks.simulation.blocks import run_repeats
from benchmarks.simulation.instances import GaussianInstance
from benchmarks.simulation.runner import run
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias, BiasContradictedWarning
from mfhpo.knowledge.confidence import MixtureRadius
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian
from mfhpo.problem import Observation, Problem, Pull

EASY = GaussianInstance([[0.1, 0.4, 0.2, 0.9], [0.2, 0.5, 0.1, 1.0]], [1.0, 10.0], variance=0.04)


def tell(policy, *told):
    for arm, fidelity, value in told:
        policy.tell(Pull(arm, fidelity), Observation(value))


def three_arms(costs=(1.0, 4.0), **options):
    return MFTopTwo(Problem(3, costs, Bias.max(0.5, 0.0), SubGaussian(1.0)), **options)


class TestByHand:
    def test_first_every_arm_at_the_cheapest_fidelity(self):
        policy = three_arms()
        assert policy.ask(3) == [Pull(0, 0), Pull(1, 0), Pull(2, 0)]
        assert policy.ask(1, [Pull(0, 0)]) == [Pull(1, 0)]
        tell(policy, (1, 1, 0.3))  # nobody asked for it, but it is a value of arm 1
        assert policy.ask(2) == [Pull(0, 0), Pull(2, 0)]

    @pytest.mark.parametrize(("dear", "fidelity"), [(4.0, 0), (1.5, 1)])
    def test_rival_turn_and_fidelity(self, dear, fidelity):
        policy = three_arms((1.0, dear))
        tell(policy, (0, 0, 3.0), (1, 0, 1.0), (2, 0, 0.0))
        # Arm 0 leads. Arm 1 is nearer than arm 2: [0.5, 1.5] and [2.5, 3.5] are 1 apart, the
        # nearest case is at 2. Both arms owe it the same; 3 pulls times the golden ratio are
        # 1.854, and 0.854 is above 1/2: the rival's turn. It may be farther than it looks by
        # sqrt(2 ln 2) = 1.177. Its distance is 2 - 1.5 and its other edge 2 - 0.5, so that the
        # index is 0.5 + 1.177 at the cheap fidelity and (1.5 + 1.177) / sqrt(cost) at the target:
        # 1.339 for a cost of 4, 2.186 for 1.5.
        assert policy.ask() == [Pull(1, fidelity)]

    @pytest.mark.parametrize(("dear", "fidelity"), [(4.0, 0), (1.5, 1)])
    def test_order_bounds(self, dear, fidelity):
        problem = Problem(2, (1.0, dear), Bias.order(0.5, 0.0), SubGaussian(1.0))
        policy = MFTopTwo(problem)
        tell(policy, (0, 0, 2.0), (1, 0, 0.0))
        # The difference is 2, in doubt by 2 sqrt(2 ln 2) = 2.355. At the cheap fidelity
        # 2 - 0.5 + 2.355 = 3.855; at the target at most (2 + 0.5 + 2.355) / sqrt(cost): 2.43 for a
        # cost of 4, 3.96 for 1.5. 2 pulls times the golden ratio leave 0.236: the leader.
        assert policy.ask() == [Pull(0, fidelity)]

    def test_threshold(self):
        bias, unknown = Bias.max(0.5, 0.0), Problem(3, (1.0, 4.0))
        for problem, level, options in (
            (Problem(3, (1.0, 4.0), bias, SubGaussian(1.0)), 0.1, {}),
            (Problem(3, (1.0, 4.0), bias, Bounded(0.0, 1.0)), 0.05, {}),
            (Problem(3, (1.0, 4.0), bias, EstimatedNoise()), 0.1, {}),
            (unknown, 0.1, {}),
            # Half is for bias bounds that are estimated.
            (unknown, 0.05, {"estimated_bias": "eliminate"}),
        ):
            policy = MFTopTwo(problem, delta=0.1, **options)
            found = policy.rule.stop.threshold(policy.known)
            assert found == pytest.approx(math.log(2 / level))


class TestRace:
    @pytest.mark.filterwarnings("ignore::mfhpo.BiasContradictedWarning")
    def test_an_audit_brings_arms_back(self):
        # Arm 0 seems better by 5 at the cheap fidelity, where arm 1 breaks its bound. Arm 2 is
        # so much worse that it leaves again at once.
        policy = three_arms(delta=0.05)
        tell(policy, *[(0, 0, 5.0), (1, 0, 0.0), (2, 0, -9.0)] * 8)
        assert policy.active.tolist() == [0]
        with pytest.warns(BiasContradictedWarning):
            tell(policy, *[(1, 1, 6.0)] * 30)
        assert policy.active.tolist() == [0, 1]
        assert policy.bias.bounds[0] > 3.0
        tell(policy, *[(0, 1, 5.0), (2, 1, -9.0)] * 30, *[(1, 1, 6.0)] * 40)
        assert (policy.finished, policy.recommend().arm) == (True, 1)

    def test_unequal_counts_with_order_bounds(self):
        # What was pulled often at one fidelity cannot be compared with the other's other fidelity.
        problem = Problem(2, (1.0, 4.0), Bias.order(0.5, 0.0), SubGaussian(1.0))
        policy = MFTopTwo(problem)
        tell(policy, *[(0, 0, 9.0)] * 50, *[(1, 1, 0.0)] * 50)
        assert policy.active.tolist() == [0, 1]
        pulls = policy.ask(6)
        assert {(0, 1), (1, 0)} & {(pull.arm, pull.fidelity) for pull in pulls}
        instance = GaussianInstance([[9.0, 6.0], [8.8, 6.2]], [1.0, 4.0])
        result = run(policy, instance, np.random.default_rng(0), max_pulls=200)
        assert (result.arm, result.certified) == (0, True)

    @pytest.mark.parametrize("kind", ["max", "order"])
    @pytest.mark.parametrize("policy", [MFTopTwo, MFGrad])
    def test_lost_pulls_never_stall_it(self, policy, kind):
        # The first pulls of every pair are under way for ever.
        race = policy(EASY.problem(kind))
        lost = [Pull(arm, fidelity) for arm in range(4) for fidelity in range(2)]
        rng = np.random.default_rng(0)
        while not race.finished and race.pulls < 500:
            for pull in race.ask(2, lost):
                race.tell(pull, Observation(EASY.draw(rng, pull.arm, pull.fidelity)))
        assert (race.recommend().arm, race.recommend().certified) == (3, True)

    @pytest.mark.parametrize("sigma", [(0.0, 0.1), 0.0])
    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    @pytest.mark.parametrize("kind", ["max", "order"])
    @pytest.mark.parametrize("policy", [MFTopTwo, MFGrad])
    def test_fidelities_without_noise(self, policy, kind, scale, sigma):
        quiet = GaussianInstance(EASY.means * scale, EASY.costs, variance=0.0)
        noise = SubGaussian((scale * np.array(sigma)).tolist())
        result = run(
            policy(quiet.problem(kind, noise)), quiet, np.random.default_rng(0), max_pulls=500
        )
        assert (result.arm, result.certified) == (3, True)

    def test_a_radius_is_an_error(self):
        with pytest.raises(TypeError, match="radius: MFTopTwo decides by likelihood ratios"):
            three_arms(radius=MixtureRadius(1.0))
        assert three_arms(radius=None).ask() == [Pull(0, 0)]


@pytest.mark.parametrize(("dear", "most"), [(10.0, 200.0), (1e3, 400.0)])
def test_a_dear_target_is_not_pulled_more_than_it_is_worth(dear, most):
    # The target alone takes 60 to 150 of its pulls; the cheap fidelity tells nothing at all.
    instance = GaussianInstance(
        [[0.5, 0.5, 0.5], [0.4, 0.5, 0.6]], [1.0, dear], xi=[0.1, 0.0], variance=0.01
    )
    for seed in range(3):
        policy = MFTopTwo(instance.problem("max"), delta=0.05, audit=False)
        result = run_repeats(policy, instance, np.random.default_rng(seed), resolution=0.02)
        assert (result.arm, result.certified) == (2, True)
        assert result.cost < most * dear
