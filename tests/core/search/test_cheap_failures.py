"""A failure at a cheap level does not condemn the target, and the lowest level rises."""

from itertools import pairwise

import pytest

from mfhpo.problem import Labels, Observation, Pull
from mfhpo.search import BudgetedSearch, HalvingSearch, ModelSearch
from mfhpo.search.cheap_failures import CheapFailures
from tests.core.search.played import RacePlay, drawn, plane, replayed

COSTS = (1.0, 3.0, 9.0)
BEST = {"x": 0.8, "y": 0.6}


def value_of(point, level):
    """Largest, 0, at `BEST`; lower levels move the place a little."""
    moved = 0.03 * (2 - level)
    return -((point["x"] - BEST["x"] + moved) ** 2) - (point["y"] - BEST["y"]) ** 2


FAILURES = {
    "all at the lowest": lambda point, level: level == 0,
    "most at the lowest": lambda point, level: level == 0 and point["x"] > 0.1,
    "most at two levels": lambda point, level: level < 2 and point["x"] > 0.1 + 0.2 * level,
}


def test_two_that_fail_everywhere_condemn_a_level():
    failures = CheapFailures(3)
    for arm in (0, 1):
        assert not failures.condemns(0)
        for level in range(3):
            failures.add(arm, level)
            failures.give_up(arm, level)
    assert failures.condemns(0)
    assert failures.condemns(1)
    failures.add(2, 0)
    assert not failures.recover(2, 1)  # one of three
    assert not failures.condemns(0)
    assert failures.condemns(1)
    assert (failures.highest(0), failures.highest(2)) == (2, -1)
    assert failures.given_up == {0, 1}
    failures.give_up(3, 0)
    assert failures.chance(3) == (1 + 1) / (3 + 2)  # one of three gave a value
    assert failures.chance(2) == 1.0


def test_a_level_is_too_low_if_most_fail_and_one_of_them_has_a_value_above():
    failures = CheapFailures(2)
    for arm in range(4):
        failures.add(arm, 0)
    assert not failures.are_unexplained(0, 0)  # four
    assert not failures.are_unexplained(0, 4)  # half of them
    assert failures.are_unexplained(0, 3)
    assert not failures.are_of_level(0, 3)
    failures.recover(2, 1)
    assert failures.are_of_level(0, 3)
    assert not failures.are_unexplained(0, 3)
    assert failures.recover(1, 0)  # it has a value there after all
    assert failures.at(0) == [0, 2, 3]


class Race(RacePlay):
    """A race whose configurations may fail, with the names of its levels."""

    def __init__(self, kind, fails, n_given=0, budget=270.0):
        self.kind, self.fails, self.budget = kind, fails, budget
        self.given = [drawn(plane(), arm) for arm in range(n_given)]
        super().__init__(self.new(), lambda arm: drawn(plane(), arm), enumerate(self.given))

    def new(self):
        search = self.kind(COSTS, seed=0)
        search.space = plane()
        if self.given:
            search.give(self.given)
        race = BudgetedSearch(search, budget=self.budget)
        race.labels = Labels(fidelity=lambda level: f"epochs={3**level}")
        return race

    def outcome(self, pull):
        point = self.points[pull.arm]
        failed = self.fails(point, pull.fidelity)
        return Observation(None if failed else value_of(point, pull.fidelity))

    def failed(self, level):
        """Arms in the order in which they failed at a level."""
        return list(dict.fromkeys(p.arm for p, o in self.told if o.failed and p.fidelity == level))


@pytest.mark.parametrize("kind", [ModelSearch, HalvingSearch])
@pytest.mark.parametrize("n_given", [0, 40])
@pytest.mark.parametrize("name", FAILURES)
def test_the_best_is_found_though_most_fail_at_cheap_levels(name, n_given, kind):
    played = Race(kind, FAILURES[name], n_given, budget=90.0 if n_given else 200.0).to_end()
    found = played.points[played.race.recommend().arm]
    distance = max(abs(found[parameter] - BEST[parameter]) for parameter in BEST)
    assert distance < (0.35 if n_given or kind is HalvingSearch else 0.15)
    assert len(played.failed(0)) <= 12
    search = played.race.search
    assert search.lowest == (2 if name == "most at two levels" else 1)
    begun = {pull.fidelity for pull, _ in played.told[-5:]}
    assert min(begun) >= search.lowest


def test_it_rises_one_level_at_a_time_by_what_was_told():
    played, rises = Race(ModelSearch, FAILURES["most at two levels"]), []
    while played.step():
        rises.append(played.race.search.lowest)
        again = replayed(played.new(), played.points, played.told)
        assert again.search.lowest == rises[-1]
        assert again.ask(3) == played.race.ask(3)
    assert all(after - before in (0, 1) for before, after in pairwise(rises))
    assert rises[-1] == 2


@pytest.mark.parametrize("kind", [ModelSearch, HalvingSearch])
@pytest.mark.parametrize("n_given", [0, 40])
def test_of_those_that_fail_at_all_levels_two_are_found_out_about(n_given, kind):
    invalid = lambda point, level: point["x"] < 0.6  # noqa: E731
    played = Race(kind, invalid, n_given, budget=90.0).to_end()
    assert played.race.search.lowest == 0
    assert len(played.failed(2)) == len(played.failed(1)) == 2
    assert set(played.failed(1)) < set(played.failed(0))
    assert played.race.recommend().notices == ()
    assert played.points[played.race.recommend().arm]["x"] > 0.6


@pytest.mark.parametrize("n_given", [0, 12])
def test_where_all_fail_everywhere_the_answer_says_at_which_levels(n_given):
    played = Race(HalvingSearch, lambda point, level: True, n_given, budget=36.0).to_end()
    answer = played.race.recommend()
    at = [sum(pull.fidelity == level for pull, _ in played.told) for level in range(3)]
    assert at[1:] == [2, 2]
    assert answer.arm is None
    assert answer.reason == (
        f"none of {len(played.told)} evaluations gave a value (failed: {at[0]} at epochs=1, 2 at "
        f"epochs=3, 2 at epochs=9)"
    )
    assert played.race.standing.left["failed at epochs=9"] == 2


def test_the_answer_says_that_the_lowest_level_has_risen():
    played = Race(ModelSearch, FAILURES["all at the lowest"], budget=400.0).to_end()
    notice = "5 of 5 configurations failed at epochs=1, so that new ones begin at epochs=3"
    assert notice in played.race.recommend().notices
    assert notice in played.race.certificate().notices


def test_without_a_model_any_third_of_the_few_that_fail_goes_on():
    search = HalvingSearch(COSTS, initial=2)
    for arm, value in enumerate([0.5, 0.4, 0.1, 0.1, 0.1, 0.1]):
        search.tell(Pull(arm, 0), Observation(value))
    for level in (1, 2):
        search.tell(Pull(0, level), Observation(0.5))
    for arm in (6, 7, 8) * 3:
        search.tell(Pull(arm, 0), Observation(None))
    assert search.ask(9) == Pull(1, 1)  # the second of six
    search.tell(Pull(1, 1), Observation(0.4))
    assert search.ask(9, [Pull(6, 1)]) == Pull(9, 0)
    assert search.ask(9) == Pull(6, 1)  # one of the three
    search.tell(Pull(6, 1), Observation(0.9))
    assert search.ask(9) == Pull(6, 2)  # and the best of three at this level


def test_who_had_a_value_and_fails_above_it_leaves_as_before():
    search = HalvingSearch(COSTS, initial=2)
    search.tell(Pull(0, 0), Observation(0.5))
    for _ in range(3):
        assert search.cheap_failures.given_up == set()
        search.tell(Pull(0, 1), Observation(None))
    assert 0 in search._out
    assert search.cheap_failures.given_up == set()
