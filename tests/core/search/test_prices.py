from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.problem import Observation, Pull
from mfhpo.search import BudgetedSearch, ModelSearch, Numeric, SearchSpace
from mfhpo.search.prices import MeasuredCosts, Prices
from tests.core.search.played import RacePlay

SPACE = SearchSpace({"x": Numeric(), "z": Numeric()})
GUESS = (1.0, 3.0, 9.0)


def drawn(arm):
    x, z = np.random.default_rng([7, arm]).random(2)
    return {"x": float(x), "z": float(z)}


def learned(guess, payments, continues=False, points=None):
    prices = Prices(guess, continues=continues)
    for payment in payments:
        prices.add(*payment)
    known = {arm: drawn(arm) for arm, *_ in payments} if points is None else points
    prices.learn(SPACE, known, 1)
    return prices


def at(z, x=0.5):
    return SPACE.features([{"x": x, "z": z}])


def test_one_level_is_a_regression_by_hand():
    """The textbook's formula: coefficients from the normal equations, with their priors."""
    logs = {0: 0.0, 1: 1.0, 2: 2.0, 3: 0.5}
    prices = learned((1.0,), [(arm, -1, 0, float(np.exp(log))) for arm, log in logs.items()])
    points = np.array([[drawn(arm)["x"], drawn(arm)["z"]] for arm in logs])
    # Columns: one for all, the level, x, z, two squares, x and z with x and z, and the four arms.
    off = points - 0.5
    pairs = (off[:, :, None] * off[:, None, :]).reshape(4, 4)
    design = np.hstack([np.ones((4, 2)), points, 2.0 * off**2, pairs, np.eye(4)])
    spreads = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4, 0.4])
    values = np.array(list(logs.values())) - np.log(np.exp(list(logs.values())).mean())
    precision = design.T @ design / 0.2**2 + np.diag(spreads**-2.0)
    coefficients = np.linalg.solve(precision, design.T @ values / 0.2**2)
    features = SPACE.features([drawn(arm) for arm in logs])
    assert prices.dearness(features, -1, 0, list(logs)) == pytest.approx(
        np.exp(design @ coefficients)
    )
    new = np.array([1.0, 1.0, 0.5, 0.9, 0.0, 0.32, 0.0, 0.0, 0.0, 0.16])
    assert prices.dearness(at(0.9), -1, 0) == pytest.approx([np.exp(new @ coefficients[:10])])


def test_what_a_number_does_is_learned_at_all_levels_from_the_lowest():
    """Hundred times as dear at one end: seen at the lowest level, and of two arms above it."""
    payments = [(arm, -1, 0, 2.0 * 100.0 ** drawn(arm)["z"]) for arm in range(30)]
    payments += [(arm, 0, 1, 4.0 * 100.0 ** drawn(arm)["z"]) for arm in range(2)]
    prices = learned(GUESS, payments, continues=True)
    for start, end in ((-1, 0), (-1, 2), (0, 1), (1, 2)):
        dear = prices.dearness(at(0.9), start, end) / prices.dearness(at(0.1), start, end)
        assert 20.0 < dear[0] < 80.0  # 100 ** .8 is 40


def test_an_arm_is_expected_to_stay_as_dear_as_it_was():
    """Its configuration does not say why; nobody else is thought to be dear for it."""
    points = {arm: {"x": 0.5, "z": 0.5} for arm in range(9)}
    payments = [(arm, -1, 0, 20.0 if arm == 8 else 1.0) for arm in range(9)]
    prices = learned(GUESS, payments, points=points)
    dear, other, new = (prices.dearness(at(0.5), -1, 2, arms)[0] for arms in ([8], [0], []))
    assert dear > 8.0 * other
    assert new < 1.5 * other


def test_nothing_is_said_about_configurations_before_three_of_them_were_paid_for():
    payments = [(arm, -1, 0, 10.0**arm) for arm in range(4)]
    two_known = {arm: drawn(arm) for arm in range(2)}
    assert learned(GUESS, payments[:2]).dearness(at(0.5), -1, 2).tolist() == [1.0]
    assert learned(GUESS, payments, points=two_known).dearness(at(0.5), -1, 2).tolist() == [1.0]
    assert learned(GUESS, payments).dearness(at(0.5), -1, 2).tolist() != [1.0]


some_payments = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-1, 1), st.integers(0, 2), st.floats(1e-3, 1e4)),
    min_size=3,
    max_size=20,
)


def valid(payments, continues):
    anew = [(arm, start if continues else -1, level, cost) for arm, start, level, cost in payments]
    return [payment for payment in anew if payment[1] < payment[2]]


@given(payments=some_payments, continues=st.booleans(), z=st.floats(0.0, 1.0))
def test_a_higher_level_never_costs_less(payments, continues, z):
    prices = learned(GUESS, valid(payments, continues), continues)
    own = prices.dearness(np.repeat(at(z), 3, axis=0), -1, np.arange(3)) * prices.usual.costs()
    assert (own > 0.0).all()
    assert np.isfinite(own).all()
    assert (np.diff(own) >= -1e-9 * own[1:]).all()


class Timed(RacePlay):
    """A search whose best value is at x = .3, where time grows with z, which does nothing else."""

    def __init__(self, ratio=100.0, unit=1.0, continues=False, costs=GUESS, **options):
        search = ModelSearch(costs, continues=continues, seed=1)
        search.space = SPACE
        super().__init__(BudgetedSearch(search, **{"measured": True} | options), drawn)
        self.ratio, self.unit = ratio, unit

    def outcome(self, pull):
        level, point = self.search.level_of(pull.arm), self.points[pull.arm]
        done = GUESS[level] if self.search.continues and level >= 0 else 0.0
        seconds = self.unit * (2.0 + GUESS[pull.fidelity] - done) * self.ratio ** point["z"]
        return Observation(-((point["x"] - 0.3) ** 2), seconds)


@pytest.mark.parametrize("continues", [False, True])
def test_a_search_finds_out_which_configurations_are_cheap(continues):
    play = Timed(continues=continues).steps(50)
    assert np.median([play.points[pull.arm]["z"] for pull in play.pulls[20:]]) < 0.1
    assert abs(play.points[play.race.leader()[0]]["x"] - 0.3) < 0.1


def test_a_search_in_another_unit_is_the_same():
    """A power of two, so that rounding is the same too."""
    one, other = Timed().steps(40), Timed(unit=2.0**20).steps(40)
    limits = [[pull.limit or 0.0 for pull in play.pulls] for play in (one, other)]
    assert limits[1] == pytest.approx([2.0**20 * limit for limit in limits[0]], rel=1e-9)
    without = [[replace(pull, limit=None) for pull in play.pulls] for play in (one, other)]
    assert (without[0], one.points) == (without[1], other.points)


def test_declared_costs_are_the_same_for_all_whatever_is_paid():
    """Nothing is learned from what evaluations say that they have cost."""
    cheap, dear = (Timed(ratio=ratio, measured=False).steps(40) for ratio in (1.0, 1000.0))
    assert (cheap.pulls, cheap.points) == (dear.pulls, dear.points)
    assert cheap.search.prices is None
    assert cheap.search.dearness(at(0.9), -1, 2).tolist() == [1.0]


@pytest.mark.parametrize("budget", [300.0, 1000.0])
def test_the_budget_is_missed_by_less_than_the_last_evaluation(budget):
    play = Timed(costs=(1.0,), budget=budget, certify_share=0.0).to_end()
    paid = [observation.cost for _, observation in play.told]
    assert play.race.finished
    assert budget < play.race.cost + max(paid)
    assert play.race.cost < budget + paid[-1]


def test_what_is_under_way_counts_at_the_price_of_its_configuration():
    play = Timed(costs=(1.0,), budget=1000.0, certify_share=0.0)
    for arm in range(30):
        play.search.describe(arm, drawn(arm))
        play.race.tell(Pull(arm, 0), Observation(0.0, 100.0 ** drawn(arm)["z"]))
    for arm, z in ((30, 0.0), (31, 1.0)):
        play.search.describe(arm, {"x": 0.5, "z": z})
    left = 1000.0 - play.race.cost
    assert left > 150.0
    cheap, dear = ([Pull(arm, 0)] * 20 for arm in (30, 31))
    assert play.race.fits(Pull(32, 0), cheap)
    assert not play.race.fits(Pull(32, 0), dear)


# Costs of levels, whatever the configuration.


def costs_after(guess, paid, *, continues=False):
    measured = MeasuredCosts(guess, continues=continues)
    for start, level, cost in paid:
        measured.add(start, level, cost)
    return measured


def test_the_guess_holds_until_something_was_paid():
    measured = costs_after((1.0, 3.0, 9.0), [])
    assert measured.costs() == (1.0, 3.0, 9.0)
    assert not measured.any_known
    assert not measured.is_unknown(2)


@pytest.mark.parametrize(
    ("continues", "paid", "costs"),
    [
        # Between: ten times the guess at the top, the guess below; geometrically half-way the mean.
        (False, [(-1, 0, 0.5), (-1, 0, 1.5), (-1, 2, 90.0)], (1.0, 3.0 * 5.5, 90.0)),
        # 10 for setting up and .5 for each unit: the third costs 14.5, not 3 * 11.5.
        (False, [(-1, 0, 10.5), (-1, 1, 11.5)], (10.5, 11.5, 14.5)),
        # A dear arm at the second level: the line would say 5 + 2 * 6 = 17, the guess 9 * 5 / 3.
        (False, [(-1, 0, 1.0), (-1, 1, 5.0)], (1.0, 5.0, 15.0)),
        # A dearer level is never cheaper.
        (False, [(-1, 0, 5.0), (-1, 1, 4.0)], (5.0, 5.0, 5.0)),
        # Dear arms stay behind: what the others add is not lost in the first level's mean.
        (True, [(-1, 0, 10.0)] * 9 + [(-1, 0, 0.1), (0, 1, 0.2), (1, 2, 0.6)], (9.01, 9.21, 9.81)),
        # 10 for each trial and 1 for each unit: steps of 11, 12 and, to come, 16.
        (True, [(-1, 0, 11.0), (0, 1, 12.0)], (11.0, 23.0, 39.0)),
    ],
)
def test_costs_by_hand(continues, paid, costs):
    measured = costs_after((1.0, 3.0, 9.0), paid, continues=continues)
    assert measured.costs() == pytest.approx(costs)


def test_steps_made_at_once_share_what_was_paid_where_nothing_else_is_known():
    measured = costs_after((1.0, 3.0, 9.0), [(-1, 2, 18.0)], continues=True)
    assert measured.costs() == pytest.approx((2.0, 6.0, 18.0))
    measured.add(-1, 0, 5.0)
    assert measured.costs() == pytest.approx((5.0, 9.0, 21.0))


def test_from_scratch_everything_is_set_up_once():
    """10 for each trial and 1 for each unit: 10 + 27 at the top, not the sum of four steps."""
    paid = [(-1, 0, 11.0), (0, 1, 12.0), (1, 2, 16.0), (2, 3, 28.0)]
    measured = costs_after((1.0, 3.0, 9.0, 27.0), paid, continues=True)
    assert measured.costs()[-1] == pytest.approx(67.0)
    assert [measured.from_scratch(level) for level in range(4)] == pytest.approx(
        [11.0, 23.0, 39.0, 37.0]
    )
    measured.add(-1, 3, 40.0)  # a replicate says what it really is, of steps it says nothing
    assert measured.from_scratch(3) == 40.0
    assert measured.costs()[-1] == pytest.approx(67.0)


def test_a_level_is_unknown_while_a_single_lower_one_was_paid_for():
    measured = costs_after((1.0, 3.0, 9.0), [(-1, 0, 1.0)])
    assert [measured.is_unknown(level) for level in range(3)] == [False, True, True]
    measured.add(-1, 1, 3.0)
    assert not any(measured.is_unknown(level) for level in range(3))
    above = costs_after((1.0, 3.0, 9.0), [(-1, 2, 9.0)])
    assert not any(above.is_unknown(level) for level in range(3))


@given(
    guess=st.lists(st.floats(0.01, 1e4), min_size=1, max_size=6, unique=True).map(sorted),
    entries=st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 5), st.floats(0.0, 1e6))),
    continues=st.booleans(),
)
def test_whatever_was_paid_costs_are_positive_and_increase(guess, entries, continues):
    top = len(guess) - 1
    paid = [
        (start if continues else -1, level, cost)
        for start, level, cost in entries
        if start < level <= top
    ]
    measured = costs_after(tuple(guess), paid, continues=continues)
    costs = np.array(measured.costs())
    assert np.isfinite(costs).all()
    assert (costs > 0.0).all()
    assert (np.diff(costs) > 0.0).all()
