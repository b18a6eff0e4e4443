"""Configurations that a host draws, levels that are found late, and enqueued parts."""

from dataclasses import replace

import pytest

from mfhpo import Fidelity
from mfhpo.experiment import (
    Assignment,
    Done,
    Experiment,
    Found,
    LateSettings,
    LimitSettings,
    RaceSettings,
    Refused,
    SearchSettings,
    Wait,
)
from mfhpo.knowledge.space import Numeric
from mfhpo.search import DeclaredSearch, HalvingSearch
from tests.core.experiment.story import LEVELS, Story

EPOCHS = Fidelity("epochs", levels=LEVELS)


def draws(n=3, **options):
    """A race of draws at one level."""
    return RaceSettings.of(n, **{"sigma": 1.0, "epsilon": 0.1} | options)


class Drawn(Story):
    """Evaluations of draws, given by their numbers."""

    def of(self, id, draw, x, level=0, value=0.0, **known):
        self.begin(id, configuration=known, draw=draw, levels=(level,))
        self.end(id, value=value, configuration={"x": x})


def test_a_draw_is_its_number_and_a_claim_keeps_its_place_as_values_become_known():
    story = Drawn(draws())
    begun = [story.follow(str(n)) for n in range(3)]
    assert [each.draw for each in begun] == [0, 1, 2]
    assert [dict(each.configuration) for each in begun] == [{}] * 3
    story.experiment.apply(replace(begun[0], order=3, configuration={"x": 5}))
    assert [event.order for event in story.experiment.events] == [0, 1, 2, 3]
    assert story.experiment.claim("0") == replace(begun[0], configuration={"x": 5})
    assert story.experiment.runner.configurations.label(0) == "configuration 0 {'x': 5}"
    story.begin("beyond", configuration={}, draw=3)
    story.end("beyond", value=9.0)
    assert story.learned == []


def test_r5_r14_draws_that_turn_out_equal_are_merged_at_the_target_with_one_warning():
    """A mean has the values of its own claims alone; those of the repeat are paid."""
    story = Drawn(RaceSettings.of(4, fidelity=EPOCHS, bias=[0.0] * 3))
    story.of("0", 0, x=1)
    story.of("1", 1, x=1)  # may differ in what the target asks for
    assert len(story.experiment.runner.policy.active) == 4
    story.of("2", 1, x=1, level=2, value=2.0)
    story.of("3", 0, x=1, level=2, value=3.0)
    with pytest.warns(UserWarning, match="configurations 1 and 0 were drawn equal, {'x': 1}"):
        history = story.experiment.history()
    assert [result.pull.arm for result in history] == [0, 1, 1]
    assert story.answer.cost == 1 + 1 + 9 + 9
    assert story.experiment.runner.policy.active.tolist() == [1, 2, 3]


def test_r6_a_bound_draw_is_what_its_first_whole_evaluation_had():
    story = Drawn(draws())
    story.of("0", 0, x=1)
    story.of("1", 0, x=2)
    story.begin("2", configuration={}, draw=0)
    story.end("2", value=None, configuration={})
    assert story.values == {"0": 0.0, "2": None}
    assert story.answer.cost == 3.0
    assert story.experiment.runner.configurations[0] == {"x": 1}


def search(levels=LEVELS, **options):
    """A search in which a host draws all configurations."""
    declared = DeclaredSearch.of(EPOCHS, **{"budget": 200.0} | options)
    return SearchSettings(declared=declared, levels=levels, seed=1)


def late(**options):
    """The same while its levels are not known."""
    return LateSettings(fidelity="epochs", make=search, candidates=None, **options)


class Objective(Story):
    """Draws one number, near where the search wants it; tells what the search has to know."""

    def run(self, id, work=None):
        work = self.experiment.next() if work is None else work
        assert isinstance(work, Assignment), work
        self.experiment.apply(work.begun(id, self.experiment.order))
        x = work.configuration.get("x", (work.point or {}).get("x", 0.1 * (work.draw or 0) % 1.0))
        self.end(id, value=-((x - 0.5) ** 2), **self.known(work.draw, x))
        return work

    def known(self, draw, x):
        """Return what an end tells about a draw."""
        is_new = self.experiment.ledger.n_begun.total() == 1
        parameters = {"x": Numeric()} if is_new else {}
        return {"configuration": {"x": x}, "parameters": parameters, "points": {draw: {"x": x}}}


@pytest.mark.parametrize("kind", [None, HalvingSearch])
def test_a_search_of_draws_learns_their_space_and_goes_to_its_certificate(kind):
    settings = search(budget=400.0)
    settings = settings if kind is None else replace(settings, kind=kind)
    story, draws = Objective(settings), []
    while isinstance(work := story.experiment.next(), Assignment):
        draws.append((work.draw, work.purpose, story.run(str(len(draws)), work).level))
    assert isinstance(work, Done)
    of_search = [draw for draw, purpose, _ in draws if purpose == "search"]
    assert list(dict.fromkeys(of_search)) == list(range(max(of_search) + 1))
    assert any(purpose == "certificate" for _, purpose, _ in draws)
    assert abs(story.answer.params["x"] - 0.5) < 0.1
    searched = story.experiment.runner.policy.search
    assert searched.space.parameters == {"x": Numeric()}
    again = Experiment.replay(settings, story.experiment.events)
    assert repr(again.answer()) == repr(story.answer)


def test_r7_of_two_that_begin_the_same_draw_the_later_one_takes_the_next_number():
    story = Objective(search())
    work = story.experiment.next()
    story.experiment.apply(work.begun("0", 0))
    story.experiment.apply(work.begun("1", 0))
    assert story.experiment.settle("0").draw == 0
    assert story.experiment.settle("1") is None
    moved = story.experiment.next(moving="1")
    story.experiment.apply(moved.begun("1", story.experiment.order))
    assert story.experiment.settle("1").draw == 1
    story.lose("0")  # its number is not used for another one
    assert story.experiment.next().draw == 2


def test_draws_that_are_equal_are_merged_and_none_is_surprised(recwarn):
    story = Objective(search())
    for n, x in enumerate((0.5, 0.5)):
        content = {"configuration": {}, "draw": n, "levels": (2,), "purpose": "search"}
        story.begin(str(n), **content)
        story.end(str(n), value=1.0, **story.known(n, x))
    assert story.experiment.runner.policy.search.finished_arms() == [0]
    assert story.experiment.runner.policy.search.count(0, 2) == 2
    assert not recwarn.list


def test_a_number_of_candidates_is_so_many_draws():
    story = Objective(search(candidates=12, budget=60.0))
    n = 0
    while isinstance(work := story.experiment.next(), Assignment):
        story.run(str(n), work)
        n += 1
    assert len(story.experiment.runner.configurations) == 12
    assert isinstance(story.experiment.next(fixed=({"x": 7.0}, 0)), Refused)


def test_what_tells_a_space_describes_given_draws_before_they_are_begun():
    story = Objective(search(candidates=12))
    work = story.experiment.next()
    story.experiment.apply(work.begun("0", 0))
    points = {draw: {"x": draw / 12} for draw in range(12)}
    story.end("0", configuration={"x": 0.0}, parameters={"x": Numeric()}, points=points)
    searched = story.experiment.runner.policy.search
    assert {arm: searched._points[arm] for arm in range(12)} == points


def test_an_evaluation_of_something_else_does_not_say_where_its_draw_lies():
    story = Objective(search())
    story.run("0")
    story.begin("1", configuration={"x": 0.1}, draw=0, levels=(1,), purpose="search")
    story.end("1", configuration={"x": 0.9}, points={0: {"x": 0.9}, 5: {"x": 0.5}})
    assert story.learned == ["0"]
    searched = story.experiment.runner.policy.search
    assert searched._points[0] == {"x": 0.0}


def test_pulls_of_a_search_in_seconds_have_limits_and_a_stop_is_passed_on():
    timed = DeclaredSearch.of(EPOCHS, seconds=100.0)
    story = Objective(SearchSettings(declared=timed, levels=LEVELS))
    work = story.experiment.next()
    assert work.limit == 10.0
    enqueued = story.experiment.next(fixed=({"x": 0.3}, 0))
    assert (enqueued.limit, enqueued.origin) == (10.0, "enqueued")
    story.experiment.apply(work.begun("0", 0))
    story.end("0", value=None, stopped_at=float("inf"), cost=10.0, configuration={"x": 0.1})
    [result] = story.experiment.history()
    assert result.observation.censored_at == float("inf")
    assert story.experiment.runner.policy.search._out == {0}
    assert story.answer.failures == 0


# Levels that are found late.


def test_r32_a_search_whose_levels_are_found_late_begins_new_draws():
    story = Objective(late(first_limit=2.0))
    begun = [story.follow(str(n)) for n in range(3)]
    assert [each.draw for each in begun] == [0, 1, 2]
    assert {(each.levels, each.purpose, each.limit) for each in begun} == {(None, "search", 2.0)}
    story.end("0", value=None, stopped_at=2.0, cost=2.0)
    assert story.experiment.next().limit == 4.0
    assert story.experiment.next(fixed=({"x": 0.5}, None)).draw == 3
    story.experiment.apply(Found(id="levels", order=story.experiment.order, levels=LEVELS))
    assert story.experiment.runner.n_levels == 3
    assert story.experiment.level_of("1") == 0
    assert story.learned == ["0"]


def test_d8_what_is_stopped_before_levels_are_known_is_an_end_in_the_end():
    story = Objective(late(first_limit=1.0))
    for n in range(30):
        begun = story.follow(str(n))
        story.end(str(n), value=None, stopped_at=begun.limit)
    assert begun.limit == 10.0
    assert isinstance(story.experiment.next(), Done)


@pytest.mark.parametrize("candidates", [40, [{"x": x} for x in range(40)]])
def test_what_levels_tell_decides_between_a_race_and_a_search(candidates):
    known = {"budget": 30.0, "shares_replicates": True}
    story = Story(RaceSettings.of(candidates, fidelity=Fidelity("epochs"), **known))
    assert isinstance(story.settings, LateSettings)
    begun = [story.follow(str(n)) for n in range(41)]
    assert [begun[n].block for n in (0, 39, 40)] == [0, 0, 1]
    story.experiment.apply(Found(id="levels", order=story.experiment.order, levels=LEVELS))
    assert story.experiment.runner.policy.search.n_given == 40
    story.end("40", value=1.0, level=0)  # in a block of the certificate
    story.end("0", value=1.0, level=0)
    assert story.learned == ["0"]
    found = Found(id="levels", order=0, levels=(1,))
    assert Story(story.settings, [found]).experiment.runner.policy.problem.n_arms == 40


# Enqueued parts.


def test_a_part_is_of_the_first_arm_that_has_it():
    candidates = [{"x": x, "y": x % 2} for x in range(4)]
    story = Story(RaceSettings.of(candidates, sigma=1.0, epsilon=0.1, budget=3.0))
    work = story.experiment.next(fixed=({"y": 1}, None))
    assert (work.configuration, work.level, work.origin) == ({"x": 1, "y": 1}, 0, "enqueued")
    anything = story.experiment.next(fixed=({}, 0))
    assert anything.configuration == story.experiment.next().configuration
    refused = story.experiment.next(fixed=({"y": True}, 0))
    assert refused == Refused("{'y': True} is none of the 4 configurations")
    assert isinstance(story.experiment.next(fixed=({"y": 1}, 1)), Refused)
    for n in range(3):
        story.follow(str(n))
    why = story.experiment.next(fixed=({"y": 1}, 0)).why
    assert why == "what is left of the budget does not pay for it beside what is under way"
    assert isinstance(story.experiment.next(fixed=({}, 0)), Wait)


@pytest.mark.parametrize("settings", [LimitSettings(candidates=2, limits=[1.0, 4.0]), None])
def test_a_part_makes_a_draw_that_nobody_has_begun_its_own(settings):
    story = Objective(settings or RaceSettings.of(2, sigma=1.0, epsilon=0.1))
    story.follow("chosen")
    for _ in range(2):  # the second time as it is known to be that one
        work = story.experiment.next(fixed=({"x": 7}, None))
        assert (work.draw, work.configuration) == (1, {"x": 7})
        assert work.limit == (4.0 if settings else None)
        story.experiment.apply(work.begun("enqueued", story.experiment.order))
    assert isinstance(story.experiment.next(fixed=({"x": 8}, 0)), Refused)


def test_what_is_enqueued_in_a_search_is_a_new_draw_which_moves_if_another_has_its_number():
    story = Objective(search())
    fixed = ({"x": 0.25}, 1)
    chosen, enqueued = story.experiment.next(), story.experiment.next(fixed=fixed)
    assert (enqueued.draw, enqueued.level, enqueued.configuration) == (0, 1, {"x": 0.25})
    story.experiment.apply(chosen.begun("0", 0))
    story.experiment.apply(enqueued.begun("1", 0))
    assert story.experiment.settle("1") is None
    moved = story.experiment.next(fixed=fixed, moving="1")
    assert moved.draw == 1
    story.experiment.apply(moved.begun("1", story.experiment.order))
    again = story.experiment.next(fixed=fixed)
    assert (again.draw, again.repeat) == (1, 1)
    story.experiment.apply(again.begun("2", story.experiment.order))
    assert story.experiment.settle("2") is not None
