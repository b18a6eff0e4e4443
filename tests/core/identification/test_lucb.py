import json
import math
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.blocks import run_lucb
from mfhpo.identification import lucb as lucb_module
from mfhpo.identification.bounds.published_radius import PublishedRadius
from mfhpo.identification.explore import (
    BY_INDEX,
    BY_RADIUS,
    BY_SWEEP,
    INDEX_AND_SWEEP,
    NOT_COMMITTED,
    ONLY_INDEX,
    TARGET_ONLY,
    choose_fidelity,
    commit,
    steer,
    target_bounds,
    top_two,
    usable_fidelities,
)
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB, FidelityExhaustedWarning
from mfhpo.identification.lucb_state import Cells, Rules
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias, BiasContradictedWarning
from mfhpo.knowledge.confidence import HoeffdingRadius
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian
from mfhpo.policy import Labels
from mfhpo.problem import Observation, Problem, Pull
from mfhpo.simulation.instances import BernoulliInstance, GaussianInstance

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
        "factor": 3.0,
        "logarithm": math.log(1000.0),
        "epsilon": 0.0,
        "safeguard": True,
        "schedule": 0,
    }
    return Rules(**(defaults | others))


def cells(means, counts, radii=None, seen=None):
    counts = np.array(counts)
    seen = counts if seen is None else np.array(seen)
    radii = np.full(counts.shape, 0.5) if radii is None else np.array(radii, dtype=float)
    return Cells(counts, seen, np.array(means, dtype=float), np.where(seen > 0, radii, np.inf))


def choose(given_rules, known, arm=0, leads=False, committed=-1):
    lows, highs = target_bounds(known, given_rules.bounds, np.ones(len(known.seen), dtype=bool))
    means = (given_rules.best_at_most, given_rules.second_at_least)
    return choose_fidelity(
        given_rules, known, arm, leads, committed, means, float(lows[arm]), float(highs[arm])
    )


class Tapes:
    def __init__(self, means, sigma, seed, length=2000):
        rng = np.random.default_rng(seed)
        self.values = means[:, :, None] + sigma * rng.standard_normal((*means.shape, length))
        self.used = np.zeros(means.shape, dtype=int)

    def next(self, pull):
        n = self.used[pull.arm, pull.fidelity]
        self.used[pull.arm, pull.fidelity] += 1
        return Observation(float(self.values[pull.arm, pull.fidelity, n]))

    def running_sums(self, arm, fidelity, start, total, count):
        values = self.values[arm, fidelity, start : start + count].copy()
        values[0] += total
        return np.cumsum(values)


def race(policy, tapes, most=1500, workers=1):
    pulls = []
    while not policy.finished and len(pulls) < most:
        for pull in policy.ask(workers):
            policy.tell(pull, tapes.next(pull))
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

    def test_published_radius(self):
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

    @pytest.mark.parametrize(
        ("factor", "sweeps"),
        [
            # gap / sqrt(cost): (1 - .5 - .1) / 1 = .4 and (1 - .5) / 2 = .25. Needed is
            # .4 >= factor sqrt(ln 1000 / N), so N >= factor^2 ln 1000 / .16.
            (3.0, 389),
            (5.0 / 3.0, 120),  # C = 1/4
        ],
    )
    def test_line_10(self, factor, sweeps):
        given_rules = rules(BY_SWEEP, best_at_most=1.0, factor=factor)
        for number, expected in ((sweeps - 1, NOT_COMMITTED), (sweeps, 0)):
            known = cells([[0.5, 0.5]], [[number + 7, number]])
            assert commit(given_rules, known, 0, False, NOT_COMMITTED, (1.0, 0.5)) == expected

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
        """Fidelities for l = 0 and u = 1, both committed to fidelity 0; those that were left."""
        lows, highs = target_bounds(known, given_rules.bounds, np.ones(2, dtype=bool))
        exhausted = np.zeros(len(given_rules.bounds), dtype=bool)
        committed = np.zeros(2, dtype=np.int64)
        chosen = steer(given_rules, known, lows, highs, (0, 1), committed, exhausted)
        return chosen, exhausted.tolist()

    @pytest.mark.parametrize(("radius", "left"), [(0.06, False), (0.04, True)])
    def test_certainly_of_no_use(self, radius, left):
        # LCB_l rises to at most .6 + r - .1, UCB_u falls to no less than .5 - r + .1: they meet
        # if r > .05.
        known = cells([[0.6, 0.0], [0.5, 0.0]], [[99, 0], [99, 0]], [[radius, 0.0]] * 2)
        expected = ((1, 1), [True, False]) if left else ((0, 0), [False, False])
        assert self.steer(rules(BY_SWEEP), known) == expected
        assert self.steer(rules(BY_SWEEP, safeguard=False), known)[0] == (0, 0)
        # A tolerance of .05 brings them together at r = .025 already.
        assert self.steer(rules(BY_SWEEP, epsilon=0.05), known)[0] == (0, 0)

    @pytest.mark.parametrize(("radius", "left"), [(0.0126, False), (0.0124, True)])
    def test_doubtful(self, radius, left):
        # The arms are far apart, but fidelity 0 is left at .1 sqrt(1 / 4) / 4 = .0125.
        known = cells([[0.9, 0.0], [0.2, 0.0]], [[99, 0], [99, 0]], [[radius, 0.0], [0.3, 0.0]])
        expected = ((1, 0), [True, False]) if left else ((0, 0), [False, False])
        assert self.steer(rules(BY_SWEEP), known) == expected


# Seen at fidelity 0, the second arm's values are so high, and the best one's so low, that
# mu_1 - xi < mu_2 + xi there: .55 - .1 < .5 + .1. Costs differ so much that it is favoured.
BETWEEN_TWO = GaussianInstance(
    [[0.55, 0.5], [0.6, 0.45]], costs=[1.0, 400.0], xi=[0.1, 0.0], variance=0.01
)


class TestRacesThatWouldNotEnd:
    def test_only_the_safeguard_ends_them(self):
        instance = BETWEEN_TWO
        priors = {"explore": "A", "best_at_most": 0.75, "second_at_least": 0.3}
        options = priors | {"delta": 0.05, "audit": False}
        problem = instance.problem()
        with pytest.warns(FidelityExhaustedWarning):
            guarded = run_lucb(MFLUCB(problem, **options), instance, np.random.default_rng(0))
        assert guarded.certified
        assert guarded.arm == instance.best_arm
        policy = MFLUCB(problem, safeguard=False, **options)
        rng = np.random.default_rng(0)
        most = int(200 * guarded.cost)  # the cheapest pulls cost 1
        result = run_lucb(policy, instance, rng, max_pulls=min(most, 300_000))
        assert not result.certified
        assert result.cost > 20 * guarded.cost

    def test_it_warns_once_for_a_fidelity_and_never_from_ask(self):
        policy = MFLUCB(
            BETWEEN_TWO.problem(), explore="A", best_at_most=0.75, second_at_least=0.3, audit=False
        )
        policy.labels = Labels(fidelity="{} epochs".format)
        rng = np.random.default_rng(2)
        said = []
        while not policy.finished:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                [pull] = policy.ask()
                policy.ask(5, [pull])
            value = BETWEEN_TWO.draw(rng, pull.arm, pull.fidelity)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                policy.tell(pull, Observation(value))
            said += [str(warning.message) for warning in caught]
        [text] = said
        assert text.startswith("0 epochs is left for the next dearer one: its bias of up to 0.1")


@settings(max_examples=20)
@given(
    explore=st.sampled_from(EXPLORE),
    seed=st.integers(0, 2**32 - 1),
    schedule=st.sampled_from([None, "pulls", "rounds"]),
)
@pytest.mark.filterwarnings("ignore::mfhpo.FidelityExhaustedWarning")
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
        MFLUCB(problem, explore=explore, schedule=schedule, audit=False, **priors) for _ in range(3)
    ]
    told = race(policies[0], Tapes(means, 0.4, seed), most=400)
    for policy in policies[1:]:
        tapes = Tapes(means, 0.4, seed)
        if policy is policies[2]:  # some pulls before
            race(policy, tapes, most=len(told) // 3)
        policy.play(tapes.running_sums, max_pulls=len(told))
    first, *others = (json.loads(json.dumps(policy.state_dict())) for policy in policies)
    statistics = first["evidence"]["statistics"]
    for state in others:
        for name in ("explorations", "committed", "exhausted", "pulls", "certificate"):
            assert state[name] == first[name], name
        assert state["roster"] == first["roster"]
        assert state["evidence"]["statistics"]["counts"] == statistics["counts"]
        assert np.allclose(state["evidence"]["statistics"]["sums"], statistics["sums"])
        assert state["cost"] == pytest.approx(first["cost"])
    assert policies[1].ask() == policies[0].ask()


def test_play_without_numba_gives_the_same(monkeypatch):
    instance = BernoulliInstance([[0.3, 0.5], [0.35, 0.6]], [1.0, 3.0], xi=[0.1, 0.0])
    for explore in ("A", "B", "C", "AB"):
        options = {"explore": explore, "schedule": "pulls", "audit": False}
        policy = MFLUCB(instance.problem(), **options)
        run_lucb(policy, instance, np.random.default_rng(3), max_pulls=1500)
        with monkeypatch.context() as patch:
            patch.setattr(lucb_module, "compiled", lambda function, *helpers: function)
            plain = MFLUCB(instance.problem(), **options)
            run_lucb(plain, instance, np.random.default_rng(3), max_pulls=1500)
        assert plain.state_dict() == policy.state_dict()


RACES = {explore: partial(MFLUCB, explore=explore) for explore in EXPLORE}
RACES |= {"top two": MFTopTwo, "gradient": MFGrad}


@settings(max_examples=30)
@given(
    name=st.sampled_from(list(RACES)),
    kind=st.sampled_from(["max", "order"]),
    seed=st.integers(0, 2**32 - 1),
    value=st.sampled_from([2.0**-30, 0.25, 1.0, 8.0, 2.0**40]),
    cost=st.sampled_from([4.0**-8, 0.25, 1.0, 16.0, 4.0**10]),
    workers=st.sampled_from([1, 3]),
)
@pytest.mark.filterwarnings("ignore::mfhpo.FidelityExhaustedWarning")
def test_units_do_not_matter(name, kind, seed, value, cost, workers):
    # Powers of two (of four, for their square roots) scale without rounding.
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=(4, 2))
    means[:, 0] = means[:, 1] + rng.uniform(-0.1, 0.1, 4)
    kind = "max" if name in EXPLORE else kind
    pulls = []
    for unit, price in ((1.0, 1.0), (value, cost)):
        bias = Bias(kind, (0.125 * unit, 0.0))
        problem = Problem(4, (price, 5.0 * price), bias, SubGaussian(0.25 * unit))
        priors = {"best_at_most": 1.125 * unit, "second_at_least": 0.25 * unit}
        policy = RACES[name](problem, audit=False, **priors if name in EXPLORE and seed % 2 else {})
        tapes = Tapes(means, 0.25, seed)
        tapes.values *= unit
        pulls.append(race(policy, tapes, most=150, workers=workers))
    assert pulls[0] == pulls[1]


class TestRule:
    def test_two_arms_without_noise(self):
        # l and u take turns; without noise the first value of each is enough, at fidelity 0 since
        # .9 - .1 >= .2 + .1.
        problem = Problem(2, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian(0.0))
        policy = MFLUCB(problem)
        assert policy.ask(3) == [Pull(0, 0), Pull(1, 0), Pull(0, 0)]
        policy.tell(Pull(0, 0), Observation(0.9))
        assert policy.ask() == [Pull(1, 0)]
        policy.tell(Pull(1, 0), Observation(0.2))
        recommendation = policy.recommend()
        assert recommendation.certified
        assert recommendation.arm == 0
        assert recommendation.interval == (pytest.approx(0.8), pytest.approx(1.0))
        assert policy.cost == 2.0

    def test_an_arm_below_a_lower_bound_is_out_and_comes_back_when_the_bounds_are_widened(self):
        problem = Problem(3, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian(0.0))
        policy = MFLUCB(problem)
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
        assert policy.recommend().arm == 0
        assert policy.recommend().certified

    def test_time_counts_pulls_or_rounds(self):
        problem = Problem(2, (1.0, 2.0, 3.0), Bias.max(0.1, 0.1, 0.0), SubGaussian(0.5))
        level = 0.05 / 6
        for explore, schedule, time in (
            ("A", "pulls", 12.0),
            ("A", "rounds", 6.0),
            ("B", "rounds", 2.0),  # a sweep of three pulls is half a round
        ):
            policy = MFLUCB(problem, explore=explore, schedule=schedule)
            for _ in range(2):
                for arm in (0, 1):
                    for m in range(3):
                        policy.tell(Pull(arm, m), Observation(0.5))
            beta = math.sqrt(math.log(4.0 * time**4 / level) / 2.0)
            assert policy.summary(0, 0) == (2, 0.5, pytest.approx(beta))


class TestPlay:
    def test_it_refuses_what_it_cannot_do(self):
        bias, noise = Bias.max(0.1, 0.0), SubGaussian(1.0)
        never = Tapes(np.zeros((2, 2)), 0.0, 0).running_sums
        for problem, options, message in (
            (Problem(2, (1.0, 2.0), None, noise), {"estimated_bias": "eliminate"}, "declared bias"),
            (Problem(2, (1.0, 2.0), bias, Bounded(0.0, 1.0)), {}, "depend on the values"),
            (Problem(2, (1.0, 2.0), bias, noise), {"budget": 9.0}, "budget=None, got 9"),
        ):
            with pytest.raises(ValueError, match=message):
                MFLUCB(problem, **options).play(never)

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"best_at_most": 0.5, "second_at_least": 0.6}, "best_at_most=0.5 must exceed"),
        ({"schedule": "pulls", "radius": HoeffdingRadius(1.0)}, "exclude each other"),
    ],
)
def test_wrong_arguments(options, message):
    problem = Problem(2, (1.0, 2.0), Bias.max(0.1, 0.0), SubGaussian(1.0))
    with pytest.raises(ValueError, match=message):
        MFLUCB(problem, **options)


def test_wrong_problems():
    with pytest.raises(ValueError, match=r"declare Bias.max\(...\), or race with IISE"):
        MFLUCB(Problem(2, (1.0, 2.0), Bias.order(0.1, 0.0), SubGaussian(1.0)))
    with pytest.raises(ValueError, match="schedule needs a declared noise scale"):
        MFLUCB(Problem(2, (1.0, 2.0), Bias.max(0.1, 0.0), EstimatedNoise()), schedule="pulls")
    bounded = Problem(2, (1.0, 2.0), Bias.max(0.1, 0.0), Bounded(-1.0, 3.0))
    policy = MFLUCB(bounded, schedule="pulls")
    policy.tell(Pull(0, 0), Observation(0.5))
    # Four times that of values within [0, 1].
    assert policy.summary(0, 0)[2] == pytest.approx(4.0 * math.sqrt(math.log(4.0 * 4 / 0.05)))


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([2.0], [True]),
        ([1.0, 2.0, 4.0], [True, True, True]),
        ([10.0, 1.0], [False, True]),
        ([1.0, 1.0], [False, True]),
        ([1.0, 9.0, 4.0], [True, False, True]),
        ([5.0, 2.0, 4.0], [False, True, True]),
        ([9.0, 6.0, 3.0], [False, False, True]),
    ],
)
def test_usable_fidelities(costs, expected):
    assert usable_fidelities(np.array(costs)).tolist() == expected


@pytest.mark.parametrize("explore", [BY_INDEX, BY_SWEEP, BY_RADIUS, INDEX_AND_SWEEP])
def test_a_fidelity_that_costs_more_than_the_target_is_never_chosen(explore):
    given_rules = rules(explore, costs=(1.0, 9.0, 4.0), bounds=(0.3, 0.1, 0.0))
    counts = np.zeros((1, 3), dtype=int)
    for n in range(200):
        known = cells([[0.5, 0.5, 0.5]], counts.copy(), np.full((1, 3), 3.0 / (1 + n)))
        counts[0, choose(given_rules, known)] += 1
    assert counts[0, 1] == 0
    assert counts[0, 2] > 0
