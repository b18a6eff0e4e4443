"""What is paid once, refused, waited for, and stays, by hand (engine-rules.md)."""

import json
import math

import numpy as np
import pytest

from mfhpo import Fidelity
from mfhpo.certification.candidates import Candidate, Shortlist
from mfhpo.experiment import (
    Assignment,
    Begun,
    Done,
    Ended,
    Experiment,
    Found,
    Lost,
    Refused,
    ShortlistSettings,
    Wait,
    event_of,
)
from tests.core.experiment.story import LEVELS, Story, race
from tests.core.experiment.workers import game, search


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (Ended, {"value": 1.0, "cost": -1.0}, "cost must be a finite number of at least 0"),
        (Ended, {"value": 1.0, "cost": math.nan}, "cost must be .* got nan"),
        (Ended, {"value": 1.0, "cost": math.inf}, "cost must be .* got inf"),
        (Ended, {"value": 1.0, "stopped_at": -1}, "stopped_at must be .* got -1"),
        (Ended, {"value": 1.0, "level": -1}, "level must be a whole number of at least 0"),
        (Ended, {"value": "1"}, "value must be a number or None, got '1'"),
        (Ended, {"value": None, "values": (1.0, True)}, "values must be a number or None"),
        (Lost, {"why": "", "cost": math.inf}, "cost must be a finite number"),
        (Begun, {"configuration": {}, "block": -3}, "block must be a whole number of at least 0"),
        (Begun, {"configuration": {}, "levels": (-1,)}, "levels must be a whole number"),
        (Begun, {"configuration": {}, "limit": -1.0}, "limit must be a finite number"),
    ],
)
def test_what_is_malformed_is_refused_where_it_is_made(kind, content, message):
    with pytest.raises(ValueError, match=message):
        kind(id="0", order=0, **content)


def test_too_few_utilities_are_a_failure():
    story = Story(game())
    story.end(story.follow("0").id, value=None, values=(1.0,))
    assert [result.observation for result in story.experiment.history()] == [(None, None)]


def test_numpy_numbers_come_back_from_json():
    configuration = {"d": np.int64(3), "e": [np.float32(0.5)]}
    begun = Begun(id="0", order=0, configuration=configuration, replicate=np.int64(2))
    again = event_of(json.loads(json.dumps(begun.to_dict())))
    assert again == begun
    assert type(again.configuration["d"]) is int


def test_d9_a_claim_is_paid_once_at_each_level():
    story = Story(race(2, budget=100.0))
    story.begin("0")
    story.lose("0", cost=5.0)
    assert story.answer.cost == 5.0
    story.end("0", cost=2.0)  # it lived after all
    assert story.answer.cost == 2.0
    story.lose("0", cost=7.0)
    assert story.answer.cost == 2.0
    story.evaluate("1", cost=1.5)
    story.lose("1", cost=9.0)
    assert story.answer.cost == 3.5


@pytest.mark.parametrize("levels", [None, (0,)])
def test_d9_an_end_that_is_told_again_with_its_level_is_paid_once(levels):
    begun = Begun(id="0", order=0, configuration={"x": 0}, levels=levels)
    first = Ended(id="0", order=1, value=None, cost=2.0)
    again = Ended(id="0", order=2, value=1.0, cost=3.0, level=0)
    for events in ([begun, first, again], [again, begun, first], [first, again, begun]):
        story = Story(race(levels=LEVELS), events)
        assert story.values == {"0": 1.0}
        assert story.answer.cost == 3.0
        assert Story(story.settings, story.experiment.events).values == {"0": 1.0}


def test_d9_what_says_no_cost_is_paid_as_declared():
    story = Story(race(levels=LEVELS, budget=100.0))
    story.evaluate("foreign", levels=(1,), configuration={"x": 1})
    story.begin("lost", levels=(2,))
    story.lose("lost", cost=None)
    assert story.answer.cost == 12.0
    story.end("lost")  # late
    story.evaluate("of no arm", x=7, levels=(0,))
    assert story.answer.cost == 13.0
    story = Story(search())
    story.lose(story.follow("0").id, cost=None)
    assert story.answer.cost == 1.0


def test_d9_losses_are_paid_in_games_and_in_shortlists():
    story = Story(game())
    cost = story.experiment.runner.policy.remaining
    story.lose(story.follow("0").id, cost=36.0)
    assert isinstance(story.experiment.next(), Done)
    assert story.experiment.runner.policy.remaining == cost - 36.0
    candidates = tuple(Candidate(f"trial {k}", {"x": k}, claim=1.0) for k in range(2))
    shortlist = Shortlist(candidates=candidates, luckiest=0, about="", words="")
    story = Story(ShortlistSettings(shortlist=shortlist, options={"budget": 4}))
    for n in range(4):
        story.lose(story.follow(str(n)).id, cost=1.0)
    assert isinstance(story.experiment.next(), Done)
    assert story.answer.cost == 4.0


def test_r10_what_is_enqueued_has_to_be_within_the_budget():
    story = Story(race(2, budget=2.0))
    enqueued = ({"x": 1}, 0)
    for n in range(2):
        work = story.experiment.next(fixed=enqueued)
        story.experiment.apply(work.begun(str(n), story.experiment.order))
        assert story.experiment.settle(str(n)).origin == "enqueued"
    assert isinstance(story.experiment.next(fixed=enqueued), Refused)
    for n in range(2):
        story.end(str(n))
    assert isinstance(story.experiment.next(fixed=enqueued), Done)


def test_r37_open_claims_that_decide_are_waited_for():
    story = Story(race(2, budget=4.0))
    story.begin("slow")
    for n in range(4):
        story.evaluate(str(n))
    assert isinstance(story.experiment.next(), Wait)
    assert not story.answer.finished
    story.end("slow")
    assert isinstance(story.experiment.next(), Done)
    assert story.answer.finished


@pytest.mark.parametrize(
    ("fidelity", "claims", "moves"),
    [
        (None, [(0, None), (0, (0,)), (1, (0,)), (1, None)], [1, 3]),
        (Fidelity("epochs"), [(0, None), (0, None)], [1]),
    ],
)
def test_r9_r14_d3_a_claim_of_unknown_level_overlaps_all_of_its_cell(fidelity, claims, moves):
    story = Story(race(2, fidelity=fidelity, sigma=None, shares_replicates=True))
    for n, (x, levels) in enumerate(claims):
        story.begin(str(n), x=x, levels=levels, block=0)
    settled = [story.experiment.settle(str(n)) for n in range(len(claims))]
    assert [n for n, claim in enumerate(settled) if claim is None] == moves


def test_r9_what_was_evaluated_meanwhile_is_evaluated_in_another_block():
    story = Story(race(2, sigma=None, shares_replicates=True))
    story.evaluate("0", block=0)
    story.begin("1", block=0)
    story.begin("2", x=1, block=0)
    assert [story.experiment.settle(str(n)) is None for n in (1, 2)] == [True, False]


def test_r33_the_first_number_of_replicates_holds():
    events = [Found(id=str(n), order=n, replicates=8 + n) for n in range(3)]
    for told in (events, events[::-1]):
        runner = Story(race(2, sigma=None, shares_replicates=True), told).experiment.runner
        assert runner.policy.most_blocks == 8


@pytest.mark.parametrize("replicate", ["seed", None])
def test_r8_asking_changes_no_choice(replicate):
    """An exhausted space is played with and without a look at the answer after each event."""
    played = []
    for asks in (False, True):
        experiment, assigned = Experiment(search(budget=260.0, replicate=replicate)), []
        while isinstance(work := experiment.next(), Assignment):
            begun = work.begun(str(len(assigned)), experiment.order)
            assigned.append((work.configuration, work.level, work.block, work.replicate))
            last = Ended(id=begun.id, order=experiment.order + 1, value=work.configuration["x"])
            if len(assigned) % 7 == 0:
                last = Lost(id=begun.id, order=experiment.order + 1, why="", cost=1.0)
            for event in (begun, last):
                experiment.apply(event)
                if asks:
                    experiment.answer()
                    experiment.next()
        played.append(assigned)
    assert played[0] == played[1]


def test_d4_a_crash_is_at_the_lowest_level_that_was_not_reported():
    story = Story(race(levels=LEVELS))
    story.evaluate("0", levels=(0, 1, 2), value=1.0, level=0, last=False)
    story.end("0", value=None)
    results = story.experiment.history()
    assert [(result.pull.fidelity, result.observation.value) for result in results] == [
        (0, 1.0),
        (1, None),
    ]
    assert story.experiment.next() is not None
    assert story.answer.cost == 4.0


def test_r32_a_level_that_becomes_known_keeps_the_place():
    story = Story(race(levels=LEVELS))
    story.begin("slow", levels=None)
    story.evaluate("quick")
    story.begin("slow")
    assert story.learned == []
    story.begin("slow", levels=(1,))  # another one than is known
    assert story.learned == ["quick"]


def test_r21_a_hundred_losses_in_a_row_of_all_are_the_last_excused():
    story = Story(race(15))
    for n in range(102):
        story.begin(str(n), x=n % 15)
        story.lose(str(n), cost=0.5)
    assert story.answer.failures == 2
    assert story.answer.cost == 51.0
    story.evaluate("value", x=14)
    story.begin("lost", x=14)
    story.lose("lost")
    assert story.answer.failures == 2
    story.end("101", cost=3.0)  # it is paid as a failure already
    assert story.answer.cost == 52.0


def test_r21_conditions_are_about_what_a_claim_rests_on():
    story = Story(race(sigma=None, shares_replicates=True))
    story.begin("first", block=0)
    story.lose("first", is_sure=False)
    assert "the evaluation that was left out" in story.conditions
    assert "evaluations that were given up have no worker" in story.conditions
    story.evaluate("again", block=0, value=None)
    assert "the evaluation that was left out" in story.conditions
    story.evaluate("once more", block=0)
    assert "left out" not in story.conditions
    assert "no worker" not in story.conditions
    story = Story(search())
    story.lose(story.follow("0").id)
    assert "left out" not in story.conditions


def test_r22_a_retry_of_what_was_given_up_takes_nothing_back():
    story = Story(race())
    story.begin("first")
    story.evaluate("second", value=2.0)
    story.lose("first")
    assert story.learned == ["second"]
    story.begin("third", retry_of="first")
    story.evaluate("fourth")
    assert story.learned == ["second"]  # its place is at the end
    story.end("third")
    assert story.learned == ["second", "third", "fourth"]
    assert "the evaluation that was left out" in story.conditions


def test_r22_a_place_is_given_up_if_no_retry_comes():
    story = Story(race())
    story.begin("first")
    story.evaluate("second")
    story.lose("first", cost=2.0, will_retry=True)
    assert story.learned == []
    story.lose("first", cost=2.0)
    assert story.learned == ["second"]
    assert story.answer.cost == 3.0


@pytest.mark.parametrize("other", [{"x": 1}, {"levels": (1,)}, {"x": 7}, {"block": 0}])
def test_r22_a_retry_of_something_else_has_a_place_of_its_own(other):
    story = Story(race(levels=LEVELS))
    story.begin("first")
    story.evaluate("second")
    story.lose("first", will_retry=True)
    story.begin("third", **{"retry_of": "first"} | other)
    assert story.learned == ["second"]
    assert "the evaluation that was left out" in story.conditions
    story.end("third")
    if other != {"x": 7}:
        assert story.learned == ["second", "third"]
