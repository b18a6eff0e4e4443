"""At what cost a search stops evaluations, and what it makes of those that were stopped."""

import math

import numpy as np
import pytest

from mfhpo import Observation, Pull
from mfhpo.knowledge.space import Numeric, SearchSpace
from mfhpo.search import BudgetedSearch, ModelSearch
from mfhpo.search.prices import Prices
from tests.core.search.played import RacePlay, drawn, replayed

SPACE = SearchSpace({"x": Numeric()})
COSTS = (1.0, 3.0, 9.0)


def learned(costs, stopped=()):
    """Prices of one level after payments of as many arms, and of those stopped at some costs."""
    prices = Prices((1.0,), continues=False)
    paid = [(cost, False) for cost in costs] + [(cost, True) for cost in stopped]
    for arm, (cost, was_stopped) in enumerate(paid):
        prices.add(arm, -1, 0, cost, stopped=was_stopped)
    points = {arm: {"x": 0.5} for arm in range(len(paid))}
    prices.learn(SPACE, points, version=1)
    return prices


def limit(prices, worth, arm=99):
    return prices.limit(Pull(arm, 0), expected=2.0, worth=worth)


def test_the_limit_is_twice_what_is_expected_where_nothing_takes_longer():
    assert limit(learned([1.0] * 20), worth=1.0) == pytest.approx(4.0)
    assert limit(learned([1.0] * 20), worth=100.0) == pytest.approx(4.0)


def test_while_few_have_ended_the_limit_is_twice_what_took_longest():
    for n, at_least in ((8, 30.0), (30, 4.0)):
        found = limit(learned([1.0] * n + [8.0]), worth=1.0)
        assert found > at_least if n == 8 else found == pytest.approx(at_least)


def test_only_what_hangs_is_stopped_where_little_is_known():
    assert limit(learned([1.0] * 20), worth=None) == pytest.approx(20.0)
    assert limit(learned([1.0] * 2), worth=1.0) == pytest.approx(20.0)


def test_a_new_configuration_may_take_three_times_the_median_price():
    """Runaways move the mean, which is expected of it, and not the median."""
    assert learned([1.0, 2.0, 3.0, 90.0], stopped=[5.0]).limit_of_any(0) == pytest.approx(9.0)
    assert learned([1.0]).limit_of_any(0) == pytest.approx(3.0)
    assert Prices((1.0,), continues=False).limit_of_any(0) == math.inf
    race = BudgetedSearch(ModelSearch(COSTS, seed=1), measured=True)
    for seconds in (90.0, 1.0, 1.0):
        race.tell(race.ask()[0], Observation(0.0, seconds))
    assert race.ask()[0].limit == pytest.approx(3.0)


def test_the_limit_is_the_best_of_all():
    """By hand for multiples 1 (20 times), 4 (10 times) and 40 (once), from the definition."""
    prices = learned([1.0] * 20 + [4.0] * 10 + [40.0])
    multiples = np.sort(prices._multiples)
    for worth in (1.0, 3.0, 20.0, 99.0):
        tried = np.append(multiples[multiples > 2.0], 2.0)
        gains = [
            worth * np.mean(multiples <= one) - np.minimum(multiples, one).mean() for one in tried
        ]
        best = float(tried[np.argmax(gains)])
        assert limit(prices, worth) == pytest.approx(2.0 * best * (1.1 if best > 2.0 else 1.0))


def test_what_was_stopped_tells_that_it_takes_longer_but_not_how_long():
    """A limit beyond which nothing was seen to end is worth nothing."""
    prices = learned([1.0] * 27, stopped=[3.0] * 3)
    assert limit(prices, worth=100.0) == pytest.approx(4.0)
    features = SPACE.features([{"x": 0.5}])
    stopped, usual = (prices.dearness(features, -1, 0, [arm])[0] for arm in (28, 5))
    assert stopped > 2.0 * usual


def test_who_was_stopped_gets_twice_the_time_at_least():
    prices = learned([1.0] * 20, stopped=[50.0])
    assert limit(prices, worth=1.0, arm=20) == pytest.approx(100.0)
    assert limit(prices, worth=1.0, arm=19) == pytest.approx(4.0)


class Slow(RacePlay):
    """A search whose best value is at .3, and of whose arms every seventh takes `times` longer."""

    def __init__(self, times=50.0, **options):
        search = ModelSearch(COSTS, seed=1)
        search.space = SPACE
        race = BudgetedSearch(search, **{"measured": True} | options)
        super().__init__(race, lambda arm: drawn(SPACE, arm))
        self.times = times

    def outcome(self, pull):
        seconds = COSTS[pull.fidelity] * (self.times if pull.arm % 7 == 3 else 1.0)
        if pull.limit is not None and seconds > pull.limit:
            return Observation(None, pull.limit, censored_at=pull.limit)
        return Observation(-((self.points[pull.arm]["x"] - 0.3) ** 2), seconds)

    @property
    def stopped(self):
        return [pull for pull, observation in self.told if observation.censored_at is not None]


def test_a_search_does_not_wait_for_runaways():
    play = Slow(math.inf, budget=600.0).to_end()
    assert play.stopped
    assert play.race.finished
    assert play.race.cost < 700.0
    assert abs(play.points[play.race.leader()[0]]["x"] - 0.3) < 0.05
    assert play.race.standing.findings()["stopped"] == len(play.stopped)
    assert play.race.recommend().failures == 0


def test_what_was_not_enough_is_doubled_while_nothing_is_known():
    """Each evaluation takes more than the first limit."""
    race = BudgetedSearch(ModelSearch(COSTS), budget=1000.0, measured=True)
    limits = []
    while not limits or limits[-1] < 350.0:
        [pull] = race.ask()
        limits.append(pull.limit)
        race.tell(pull, Observation(None, pull.limit, censored_at=pull.limit))
    assert limits == pytest.approx([100.0, 200.0, 400.0])
    [pull] = race.ask()
    assert pull.limit == pytest.approx(300.0)  # what is left


def test_limits_do_not_exceed_what_is_left():
    """Arms whose first step ends, and nothing else: their limits grow, but the budget does not."""
    race = BudgetedSearch(ModelSearch(COSTS, seed=1), budget=500.0, measured=True)
    race.search.space = SPACE
    play = RacePlay(race, lambda arm: {"x": arm / 1000.0})
    play.outcome = lambda pull: (
        Observation(pull.arm / 1000.0, 3.0**pull.fidelity)
        if pull.fidelity == 0 or pull.limit is None
        else Observation(None, pull.limit, censored_at=pull.limit)
    )
    play.to_end(workers=16)
    assert race.finished
    assert 400.0 < race.cost < 800.0


def test_a_search_that_is_resumed_goes_on_with_the_same_limits():
    play = Slow(budget=1e5).steps(40)
    assert play.stopped
    other = Slow(budget=1e5)
    replayed(other.race, play.points, play.told)
    other.points = dict(play.points)
    for _ in range(15):
        assert other.race.ask() == play.race.ask()
        play.step()
        other.step()


def of_four(kind, **options):
    """A search after four arms with values at the lowest level."""
    search = kind(COSTS, initial=4, **options)
    search.space = SPACE
    for arm in range(4):
        search.describe(arm, {"x": arm / 4.0})
        search.tell(Pull(arm, 0), Observation(float(arm)))
    return search


def test_that_it_takes_long_is_no_poor_value():
    search = of_four(ModelSearch)
    search.prices = Prices(COSTS, continues=False)
    before = list(search._history)
    for _ in range(3):
        search.tell(Pull(3, 1), Observation(None, censored_at=5.0))
    assert search._history == before


@pytest.mark.parametrize(
    ("limits", "stays"), [([5.0], True), ([5.0] * 3, False), ([math.inf], False)]
)
def test_an_arm_for_which_no_limit_is_large_enough_leaves(limits, stays):
    search = of_four(ModelSearch)
    search.prices = Prices(COSTS, continues=False)
    for one in limits:
        search.tell(Pull(3, 1), Observation(None, censored_at=one))
    assert (search.leader() == 3) == stays
