import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulation.instances import GaussianInstance
from mfhpo.identification.explore import (
    BY_INDEX,
    BY_RADIUS,
    BY_SWEEP,
    INDEX_AND_SWEEP,
    NOT_COMMITTED,
    ONLY_INDEX,
    TARGET_ONLY,
    Cells,
    Duel,
    Rules,
    choose_fidelity,
    commit,
    steer,
    target_bounds,
    top_two,
    usable_fidelities,
)
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias, BiasContradictedWarning
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Observation, Problem, Pull

EXPLORE = ("A", "B", "C", "AB", "top")


def rules(explore=BY_INDEX, costs=(1.0, 4.0), bounds=(0.1, 0.0), **others):
    """Values within [0, 1], L / delta = 1000, best mean at most .9, second-best at least .5."""
    defaults = {
        "explore": explore,
        "bounds": np.array(bounds),
        "roots": np.sqrt(costs),
        "usable": usable_fidelities(np.array(costs, dtype=float)),
        "scales": np.ones(len(bounds)),
        "best_at_most": 0.9,
        "second_at_least": 0.5,
        "logarithm": math.log(1000.0),
        "epsilon": 0.0,
        "safeguard": True,
    }
    return Rules(**(defaults | others))


def cells(means, counts, radii=None, seen=None):
    counts = np.array(counts)
    seen = counts if seen is None else np.array(seen)
    radii = np.full(counts.shape, 0.5) if radii is None else np.array(radii, dtype=float)
    return Cells(counts, seen, np.array(means, dtype=float), np.where(seen > 0, radii, np.inf))


def duel_of(given_rules, known, arms, committed):
    lows, highs = target_bounds(known, given_rules.bounds, np.ones(len(known.seen), dtype=bool))
    return Duel(given_rules, known, lows, highs, arms, np.array(committed))


def choose(given_rules, known, committed=NOT_COMMITTED):
    """The fidelity of the first arm, as the rival."""
    return choose_fidelity(duel_of(given_rules, known, (1, 0), [committed]), 0)


def race(policy, values, workers=1, most=150):
    """The pulls; the n-th value of each arm at each fidelity is given, (K, M, N)."""
    pulls = []
    while not policy.finished and len(pulls) < most:
        for pull in policy.ask(workers):
            n = policy.summary(pull.arm, pull.fidelity)[0]
            policy.tell(pull, Observation(float(values[pull.arm, pull.fidelity, n])))
            pulls.append(pull)
    return pulls


class TestBounds:
    def test_of_all_fidelities_the_tightest(self):
        # Arm 0: fidelity 0 says .5 -+ (.2 + .1), the target .45 -+ .3. Arm 1 was seen only at
        # fidelity 0: .7 -+ (.1 + .1). Arm 2 is out, arm 3 never seen.
        known = cells(
            [[0.5, 0.45], [0.7, 0.0], [0.9, 0.9], [0.0, 0.0]],
            [[9, 2], [20, 0], [5, 5], [0, 0]],
            [[0.2, 0.3], [0.1, 0.0], [0.1, 0.1], [0.0, 0.0]],
        )
        active = np.array([True, True, False, True])
        lows, highs = target_bounds(known, np.array([0.1, 0.0]), active)
        assert lows == pytest.approx([0.2, 0.5, -np.inf, -np.inf])
        assert highs == pytest.approx([0.75, 0.9, -np.inf, np.inf])

    def test_top_two_by_upper_bound_then_by_fewest_pulls(self):
        highs = np.array([0.3, 0.9, 0.8, 0.8])
        assert top_two(highs, np.array([[1], [9], [5], [4]])) == (1, 3)
        everywhere = np.full(4, np.inf)
        assert top_two(everywhere, np.array([[0], [0], [0], [0]])) == (0, 1)
        assert top_two(everywhere, np.array([[2], [1], [0], [1]])) == (2, 1)


class TestIndex:
    def test_the_fidelity_with_the_largest_f_ucb(self):
        # The gap is .9 - .5 - .1 = .3 at fidelity 0 and .9 - .6 = .3 at the target.
        # After 4 and 1 pulls: .3 + sqrt(2 ln 5 / 4) = 1.197; (.3 + sqrt(2 ln 5)) / 2 = 1.047.
        assert choose(rules(), cells([[0.5, 0.6]], [[4, 1]])) == 0
        # After 9 and 1: .3 + sqrt(2 ln 10 / 9) = 1.015; (.3 + sqrt(2 ln 10)) / 2 = 1.223.
        assert choose(rules(), cells([[0.5, 0.6]], [[9, 1]])) == 1

    def test_a_fidelity_never_pulled_is_tried_only_while_it_may_be_the_best(self):
        # At the target the gap is at most .9 - LCB = .9 - (.5 - r - .1), and half of that counts.
        # Fidelity 0 has .3 + sqrt(2 ln 100 / 100) = .603: r = .8 gives .65, r = .7 gives .6.
        assert choose(rules(), cells([[0.5, 0.0]], [[100, 0]], [[0.8, 0.0]])) == 1
        assert choose(rules(), cells([[0.5, 0.0]], [[100, 0]], [[0.7, 0.0]])) == 0


class TestSweeps:
    def test_the_fidelity_with_fewest_pulls(self):
        assert choose(rules(BY_SWEEP), cells([[0.5, 0.6]], [[3, 2]])) == 1
        assert choose(rules(BY_SWEEP), cells([[0.5, 0.6]], [[3, 3]])) == 0
        assert choose(rules(BY_SWEEP), cells([[0.5, 0.6]], [[3, 2]]), committed=0) == 0

    def test_line_10(self):
        # gap / sqrt(cost): (1 - .5 - .1) / 1 = .4 and (1 - .5) / 2 = .25. Needed is
        # .4 >= 3 sqrt(ln 1000 / N), so N >= 9 ln 1000 / .16.
        given_rules = rules(BY_SWEEP, best_at_most=1.0)
        for sweeps, expected in ((388, NOT_COMMITTED), (389, 0)):
            known = cells([[0.1, 0.1], [0.5, 0.5]], [[9, 0], [sweeps + 7, sweeps]])
            duel = duel_of(given_rules, known, (0, 1), [NOT_COMMITTED] * 2)
            commit(duel)
            assert duel.committed.tolist() == [NOT_COMMITTED, expected]

    def test_both_at_once_take_turns_until_one_has_decided(self):
        both = rules(INDEX_AND_SWEEP, scales=np.zeros(2))  # without noise the index is at 0
        counts = np.zeros((1, 2), dtype=int)
        for _ in range(12):
            counts[0, choose(both, cells([[0.5, 0.7]], counts), committed=NOT_COMMITTED)] += 1
        assert counts.tolist() == [[9, 3]]  # three sweeps, six pulls by the index
        assert choose(both, cells([[0.5, 0.7]], [[9, 2]]), committed=ONLY_INDEX) == 0


def test_explore_c_takes_the_cheapest_whose_radius_is_not_below_its_bias():
    given_rules = rules(BY_RADIUS, costs=(1.0, 2.0, 4.0), bounds=(0.3, 0.1, 0.0))
    for radii, expected in (
        ([9.0, 9.0, 9.0], 0),
        ([0.3, 9.0, 9.0], 0),
        ([0.29, 9.0, 9.0], 1),
        ([0.29, 0.09, 9.0], 2),
        ([0.5, 0.09, 9.0], 0),
    ):
        known = cells([[0.5] * 3], [[1, 1, 1]], [radii])
        assert choose(given_rules, known) == expected
    assert choose(given_rules._replace(explore=TARGET_ONLY), known) == 2


class TestSafeguard:
    def steer(self, given_rules, known):
        """Fidelities for l = 0 and u = 1, both committed to fidelity 0."""
        return steer(duel_of(given_rules, known, (0, 1), [0, 0]))

    @pytest.mark.parametrize(("radius", "left"), [(0.06, False), (0.04, True)])
    def test_certainly_of_no_use(self, radius, left):
        # LCB_l rises to at most .6 + r - .1, UCB_u falls to no less than .5 - r + .1: they meet
        # if r > .05.
        known = cells([[0.6, 0.0], [0.5, 0.0]], [[99, 0], [99, 0]], [[radius, 0.0]] * 2)
        expected = (1, 1) if left else (0, 0)
        assert self.steer(rules(BY_SWEEP), known) == expected
        assert self.steer(rules(BY_SWEEP, safeguard=False), known) == (0, 0)
        # A tolerance of .05 brings them together at r = .025 already.
        assert self.steer(rules(BY_SWEEP, epsilon=0.05), known) == (0, 0)

    @pytest.mark.parametrize(("radius", "left"), [(0.0126, False), (0.0124, True)])
    def test_doubtful(self, radius, left):
        # The arms are far apart, but fidelity 0 is left at .1 sqrt(1 / 4) / 4 = .0125.
        known = cells([[0.9, 0.0], [0.2, 0.0]], [[99, 0], [99, 0]], [[radius, 0.0], [0.3, 0.0]])
        expected = (1, 0) if left else (0, 0)
        assert self.steer(rules(BY_SWEEP), known) == expected


# Seen at fidelity 0, the second arm's values are so high, and the best one's so low, that
# mu_1 - xi < mu_2 + xi there: .55 - .1 < .5 + .1. Costs differ so much that it is favoured.
BETWEEN_TWO = GaussianInstance(
    [[0.55, 0.5], [0.6, 0.45]], costs=[1.0, 400.0], xi=[0.1, 0.0], variance=0.01
)


RACES = {explore: partial(MFLUCB, explore=explore) for explore in EXPLORE}
RACES |= {"top two": MFTopTwo, "gradient": MFGrad}


@settings(max_examples=15)
@given(
    name=st.sampled_from(list(RACES)),
    kind=st.sampled_from(["max", "order"]),
    seed=st.integers(0, 2**32 - 1),
    value=st.sampled_from([2.0**-30, 0.25, 1.0, 8.0, 2.0**40]),
    cost=st.sampled_from([4.0**-8, 0.25, 1.0, 16.0, 4.0**10]),
    workers=st.sampled_from([1, 3]),
)
def test_units_do_not_matter(name, kind, seed, value, cost, workers):
    # Powers of two (of four, for their square roots) scale without rounding.
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=(4, 2))
    means[:, 0] = means[:, 1] + rng.uniform(-0.1, 0.1, 4)
    kind = "max" if name in EXPLORE else kind
    values = means[:, :, None] + 0.25 * rng.standard_normal((4, 2, 160))
    pulls = []
    for unit, price in ((1.0, 1.0), (value, cost)):
        bias = Bias(kind, (0.125 * unit, 0.0))
        problem = Problem(4, (price, 5.0 * price), bias, SubGaussian(0.25 * unit))
        priors = {"best_at_most": 1.125 * unit, "second_at_least": 0.25 * unit}
        policy = RACES[name](problem, audit=False, **priors if name in EXPLORE and seed % 2 else {})
        pulls.append(race(policy, unit * values, workers))
    assert pulls[0] == pulls[1]


def test_an_arm_below_a_lower_bound_is_out_and_comes_back_when_the_bounds_are_widened():
    policy = MFLUCB(Problem(3, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian(0.0)))
    for arm, value in ((0, 0.5), (1, 0.45), (2, 0.1)):
        policy.tell(Pull(arm, 0), Observation(value))
    assert policy.active.tolist() == [0, 1]
    with pytest.warns(BiasContradictedWarning, match="widened to 0.3"):
        policy.tell(Pull(1, 1), Observation(0.75))
    assert policy.bias.bounds[0] == pytest.approx(0.3)
    # Arm 1 is at .75 for sure; 0 may reach .8, 2 only .4.
    assert policy.active.tolist() == [0, 1]
    with pytest.warns(BiasContradictedWarning, match="widened to 0.7"):
        policy.tell(Pull(0, 1), Observation(1.2))
    # Now arm 2 may reach .8, which is less than 1.2.
    assert (policy.recommend().arm, policy.recommend().certified) == (0, True)


@pytest.mark.parametrize("explore", [BY_INDEX, BY_SWEEP, BY_RADIUS, INDEX_AND_SWEEP])
def test_a_fidelity_that_costs_more_than_the_target_is_never_chosen(explore):
    given_rules = rules(explore, costs=(1.0, 9.0, 4.0), bounds=(0.3, 0.1, 0.0))
    counts = np.zeros((1, 3), dtype=int)
    for n in range(200):
        known = cells([[0.5, 0.5, 0.5]], counts.copy(), np.full((1, 3), 3.0 / (1 + n)))
        counts[0, choose(given_rules, known)] += 1
    assert counts[0, 1] == 0
    assert counts[0, 2] > 0
