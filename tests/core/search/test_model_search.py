import math
from collections import Counter

import numpy as np
import pytest

from mfhpo.problem import Observation, Pull
from mfhpo.search import (
    BudgetedSearch,
    ModelSearch,
    Numeric,
    OneOf,
    SearchSpace,
    model_search,
)
from mfhpo.search.model.process import LevelProcess
from tests.core.search.played import Play, PlayTogether, drawn, plane, valley

COSTS = (1.0, 3.0, 9.0)


def searching(space=None, **options):
    search = ModelSearch(**{"costs": COSTS, "initial": 5, **options})
    search.space = plane() if space is None else space
    return search


def fill(search, n, objective=valley):
    points = [drawn(search.space, arm) for arm in range(n)]
    for arm, point in enumerate(points):
        search.describe(arm, point)
        for level in range(len(search.costs)):
            search.tell(Pull(arm, level), Observation(objective(point, level)))
    return points


def check(play):
    reached = {}
    for pull, point in play.asked:
        if pull.arm not in reached:
            assert pull.arm == len(reached)
            if point is not None:
                assert set(point) >= set(play.points[pull.arm])
                for name, value in point.items():
                    parameter = play.search.space.parameters[name]
                    if isinstance(parameter, OneOf):
                        assert value in range(parameter.n)
                    else:
                        assert 0.0 <= value <= 1.0
        else:
            # No level is evaluated twice, and where evaluations go on, none is passed over.
            assert pull.fidelity > reached[pull.arm]
            if play.search.continues:
                assert pull.fidelity == reached[pull.arm] + 1
        assert 0 <= pull.fidelity < len(play.search.costs)
        reached[pull.arm] = pull.fidelity


class Watched(PlayTogether):
    """Checks what each worker is given."""

    def begin(self, step):
        assert step == self.search.ask(len(self.points), self.pending)
        if step.arm < len(self.points):
            assert step.arm not in {pull.arm for pull in self.pending}
            assert step.fidelity > self.search.level_of(step.arm)
        pull = super().begin(step)
        here = tuple(self.points[pull.arm].values())
        for arm, point in enumerate(self.points):
            assert arm == pull.arm or math.dist(here, tuple(point.values())) > 1e-6
        return pull


@pytest.mark.parametrize(("workers", "full", "continues"), [(4, 20, True), (12, 30, False)])
def test_workers_do_different_things_and_find_the_top(workers, full, continues):
    play = Watched(searching(continues=continues), valley, workers).until(full * COSTS[-1])
    assert valley(play.best, 2) > -0.01
    # Much is taken to the target, though nothing was known there for half of the time.
    assert len(play.search.finished_arms()) > full / 5
    assert len(play.points) < 3 * full


@pytest.mark.parametrize(("n_levels", "continues"), [(1, False), (4, True)])
def test_any_number_of_levels(n_levels, continues):
    costs = [3.0**level for level in range(n_levels)]

    def objective(point, level):
        return valley(point, level + 3 - n_levels)

    play = Play(searching(costs=costs, continues=continues), objective).until(20 * costs[-1])
    check(play)
    assert valley(play.best, 2) > -0.01


class ConditionalPlay(Play):
    def applying(self, point):
        del point["depth" if point["model"] == 0.0 else "gamma"]
        return point


def test_parameters_that_do_not_always_apply():
    space = SearchSpace({"model": OneOf(2), "gamma": Numeric(), "depth": Numeric()})

    def objective(point, level):
        if point["model"] == 0.0:
            return -abs(point["gamma"] - 0.2) - 0.5
        return -abs(point["depth"] - 0.85 + 0.02 * (2 - level))

    play = ConditionalPlay(searching(space), objective).steps(50)
    check(play)
    assert objective(play.best, 2) > -0.05


def test_arms_that_fail_are_avoided():
    def objective(point, level):
        return None if point["x"] > 0.5 else point["x"] - 0.1 * point["y"] - 0.01 * (2 - level)

    search = searching(initial=8)
    play = Play(search, objective).steps(90)
    late = play.points[20:]
    assert len(late) > 10
    assert sum(point["x"] > 0.5 for point in late) < 0.4 * len(late)
    failed = [pull.arm for pull in play.pulls if play.points[pull.arm]["x"] > 0.5]
    assert failed
    # Two are tried at all levels, and then a failure at the lowest one is enough.
    times = sorted(failed.count(arm) for arm in set(failed))
    assert times[-1] <= 5
    assert times[-3] <= 3
    assert 0.4 < play.best["x"] <= 0.5


@pytest.mark.parametrize("comes_back", [False, True])
def test_one_failure_is_enough_where_none_that_failed_came_back(comes_back):
    search, missing = searching(), Observation(None)
    if comes_back:
        search.tell(Pull(0, 0), missing)
    search.tell(Pull(0, 0), Observation(0.5))
    for arm in (1, 2):
        for failure in range(3):
            assert arm not in search.cheap_failures.given_up, failure
            search.tell(Pull(arm, 0), missing)
        assert arm in search.cheap_failures.given_up
    search.tell(Pull(3, 0), missing)
    assert (3 in search.cheap_failures.given_up) == (not comes_back)


def test_when_everything_fails_arms_are_begun():
    search = searching()
    play = Play(search, lambda point, level: None).steps(40)
    assert all(point is None for _, point in play.asked)
    tried = Counter(pull.arm for pull in play.pulls)
    # Five begin; two of them are tried at the two other levels, and those in between once more.
    assert len(tried) >= 10
    assert [tried[arm] for arm in range(6)] == [3, 3, 2, 2, 2, 1]
    assert search.leader() is None


def test_the_leader_is_finished_as_soon_as_an_arm_is():
    def objective(point, level):
        if point["y"] > 0.8:
            return None
        return valley(point, level) + 10.0 * (2 - level)  # cheap levels flatter

    search = searching()
    play = Play(search, objective)
    assert search.leader() is None
    for _ in range(50):
        play.step()
        finished = search.finished_arms()
        leader = search.leader()
        if finished:
            assert leader in finished
        elif leader is not None:
            assert search.level_of(leader) == max(map(search.level_of, range(len(play.points))))
    assert search.finished_arms()


def test_a_useless_level_is_not_followed():
    def objective(point, level):
        if level == 1:
            return valley(point, 2)
        noise = np.random.default_rng([int(1e6 * point["x"]), int(1e6 * point["y"])]).normal()
        return -3.0 * valley(point, 2) + 0.5 * float(noise)

    for continues in (True, False):
        search = searching(costs=(1.0, 9.0), continues=continues)
        play = Play(search, objective).until(20 * 9.0)
        assert valley(play.best, 2) > -0.01


@pytest.mark.slow
def test_the_model_does_not_grow_with_the_number_of_trials(monkeypatch):
    seen = {"condition": [], "fit": []}
    condition, fit = LevelProcess.condition, LevelProcess.fit

    def watched_condition(process, data):
        seen["condition"].append(len(data.values))
        condition(process, data)

    def watched_fit(process, data, *args, **options):
        seen["fit"].append(len(data.values))
        fit(process, data, *args, **options)

    monkeypatch.setattr(LevelProcess, "condition", watched_condition)
    monkeypatch.setattr(LevelProcess, "fit", watched_fit)
    largest = []
    for n in (300, 600):
        search = searching()
        fill(search, n)
        for counts in seen.values():
            counts.clear()
        search.ask(n, [Pull(n - 1, 2), Pull(n - 2, 2)])
        search.leader()
        assert all(seen.values())
        largest.append({name: max(counts) for name, counts in seen.items()})
    assert largest[0] == largest[1]
    seen["condition"].clear()
    for arm in range(600, 1000):
        search.describe(arm, drawn(search.space, arm))
    search.ask(1000, [Pull(arm, 0) for arm in range(600, 1000)])
    assert max(seen["condition"]) == 2 * model_search._MOST


def test_an_early_arm_that_is_by_far_the_best_leads_however_many_follow():
    search = searching(costs=tuple(3.0**level for level in range(8)), continues=True)
    best = drawn(search.space, 5)
    fill(search, 200, lambda point, level: valley(point, 2) + (point == best))
    assert search.leader() == 5


def test_an_arm_that_was_withdrawn_is_neither_leader_nor_contender():
    race = BudgetedSearch(searching(), budget=1000.0)
    fill(race.search, 8)
    leader = race.recommend().arm
    race.withdraw(leader)
    assert leader not in race.search.finished_arms()
    assert race.recommend().arm != leader
    assert leader not in race.search.contenders(8)


class TestChance:
    def test_needs_a_finished_arm_and_a_model(self):
        search = searching()
        assert math.isnan(search.chance(0, 0.1, {}))
        fill(search, 8)
        assert 0.0 < search.chance(search.leader(), 0.1, {}) <= 1.0
        nameless = searching(SearchSpace({}))
        nameless.tell(Pull(0, 2), Observation(1.0))
        assert math.isnan(nameless.chance(0, 0.1, {}))

    def test_grows_with_the_tolerance_and_is_larger_for_better_arms(self):
        search = searching()
        fill(search, 15, lambda point, level: valley(point, level))
        leader = search.leader()
        found = [search.chance(leader, epsilon, {}) for epsilon in (0.0, 0.01, 0.1, 1.0, 100.0)]
        assert found == sorted(found)
        assert found[-1] == 1.0
        worst = min(search.finished_arms(), key=lambda arm: search.mean(arm, 2))
        assert search.chance(worst, 0.01, {}) < found[1]

    def test_fresh_values_count(self):
        search = searching()
        rng = np.random.default_rng(0)
        fill(search, 8, lambda point, level: valley(point, level) + 0.3 * rng.normal())
        leader = search.leader()
        rival = max(
            (arm for arm in search.finished_arms() if arm != leader),
            key=lambda arm: search.mean(arm, 2),
        )
        before = search.chance(leader, 0.05, {})
        bad = {leader: [search.mean(leader, 2) - 2.0] * 8, rival: [search.mean(rival, 2)] * 8}
        assert search.chance(leader, 0.05, bad) < before
