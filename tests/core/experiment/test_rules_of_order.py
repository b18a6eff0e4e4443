"""Order of learning, losses and retries, worked out by hand (engine-rules.md).

Rules that all hosts show are in tests/contract/experiment_contract.py; R24, R28 and R33 are also
rules of the core's policies (tests/core/racing and censored).
"""

import pytest

from mfhpo import Pull
from mfhpo.experiment import Assignment, Ended, Experiment, key_of
from mfhpo.experiment.kinds.runner import Wanted
from mfhpo.experiment.state import State
from tests.core.experiment.story import LEVELS, Story, race
from tests.core.experiment.workers import limits, search


def test_r13_a_claim_is_later_than_what_its_chooser_knew():
    story = Story(race())
    story.begin("0")
    begun = story.begin("1")
    ended = story.end("0")
    assert begun.order < ended.order < story.follow("2").order
    assert story.experiment.order == 1 + max(event.order for event in story.experiment.events)


def test_r14_a_claim_whose_level_is_not_known_may_be_at_any():
    story = Story(race(levels=LEVELS))
    story.begin("open", levels=None)
    for level in range(3):
        story.evaluate(str(level), levels=(level,))
    assert story.learned == []
    story.end("open", level=1)
    assert story.learned == ["open", "1", "0", "2"]


@pytest.mark.parametrize("content", [{"value": None}, {"value": 0.0, "stopped_at": 3.0}])
def test_r15_failures_and_timeouts_wait_too(content):
    story = Story(race())
    story.begin("slow")
    story.evaluate("quick", **content)
    assert story.learned == []
    assert story.experiment.runner.policy.cost == 0.0
    story.end("slow")
    assert story.learned == ["slow", "quick"]


def test_r16_d6_values_in_blocks_need_no_order():
    story = Story(race(sigma=None, shares_replicates=True))
    story.begin("slow", block=0)
    story.evaluate("quick", block=1)
    assert story.learned == ["quick"]


def test_r17_d6_a_search_needs_no_order_and_its_certificate_does():
    story = Story(search(replicate=None))
    arm = {"x": 0.05, "kind": "a"}
    for id, purpose in (
        ("0", "search"),
        ("1", "search"),
        ("2", "certificate"),
        ("3", "certificate"),
    ):
        shortlist = () if purpose == "search" else (key_of(arm),)
        story.begin(id, configuration=arm, levels=(2,), purpose=purpose, shortlist=shortlist)
    story.end("1")
    story.end("3")
    assert story.learned == ["1"]


def test_r18_d4_others_go_on_while_some_are_full():
    """The policy wants two full ones again and again, which take no more of the budget."""
    story = Story(race(20, budget=33.0))
    runner, arms = story.experiment.runner, []
    for x in range(2):
        story.begin(f"slow {x}", x=x)
        for n in range(10):
            story.evaluate(f"{x} {n}", x=x)

    def next_of(pending):
        arms.append(len(arms) % 2 if len(arms) < 5 else 7)
        pull = Pull(arms[-1], 0)
        fits = runner.fits(pull, pending)
        return Wanted(pull, {"x": arms[-1]}, "given") if fits else None

    runner.next = next_of
    work = story.experiment.next()
    assert isinstance(work, Assignment)
    assert work.configuration == {"x": 7}


def test_d4_a_claim_has_a_place_at_all_levels_that_it_may_report():
    story = Story(race(levels=LEVELS))
    story.evaluate("slow", levels=(0, 1, 2), value=1.0, level=0, last=False)
    story.evaluate("quick", levels=(2,))
    assert story.learned == ["slow"]
    story.end("slow", value=2.0, level=2, last=False)  # it skips a level
    assert story.learned == ["slow", "slow", "quick"]
    story.evaluate("next", levels=(1,))
    assert len(story.learned) == 3
    story.end("slow", value=None, level=1)
    assert story.learned == ["slow", "slow", "quick", "slow", "next"]
    assert story.experiment.runner.policy.cost == 9.0 + 1 + 3 + 9 + 3


def test_r19_all_readers_learn_in_one_order():
    """Ends are learned by their counters, across kinds."""
    story = Story(race())
    for n in range(4):
        story.begin(str(n), x=n % 2)
    for id in "1032":
        story.end(id)
    assert story.learned == ["1", "0", "3", "2"]
    events = story.experiment.events
    assert Story(story.settings, reversed(events)).learned == story.learned


def test_r20_a_lease_is_a_condition():
    story = Story(race(lease_seconds=60.0))
    story.begin("slow")
    for n in range(10):
        story.evaluate(str(n))
        story.begin(f"other {n}", x=1)
    story.lose("slow", is_sure=False)
    assert "evaluations that run for more than 60 seconds have no worker" in story.conditions
    assert len(story.learned) == 10


def test_r22_d7_a_retry_keeps_its_place_and_all_attempts_are_paid():
    story = Story(race())
    story.begin("first")
    story.evaluate("second", value=2.0)
    story.lose("first", cost=0.25, will_retry=True)
    assert story.learned == []
    story.begin("third", retry_of="first")
    story.begin("fourth")
    assert story.learned == []
    story.end("third", value=3.0)
    assert story.learned == ["third", "second"]
    assert story.answer.cost == 2.25
    assert "left out" not in story.conditions


@pytest.mark.parametrize("named", ["first", "again"])
def test_r22_a_retry_is_retried(named):
    """It may name the first claim in its place, as Optuna does, or the last."""
    story = Story(race())
    story.begin("first")
    story.begin("second")
    story.lose("first", will_retry=True)
    story.begin("again", retry_of="first")
    story.lose("again", will_retry=True)
    story.begin("once more", retry_of=named)
    story.end("second")
    assert story.learned == []
    story.end("once more")
    assert story.learned == ["once more", "second"]


def test_r22_a_retry_takes_the_place_of_a_claim_that_nobody_gave_up():
    story = Story(race())
    story.begin("first")
    story.begin("second")
    story.begin("again", retry_of="first")
    story.end("first", cost=5.0)  # its worker lived, but its place is taken
    story.lose("first")
    story.end("second")
    story.end("again")
    assert story.learned == ["again", "second"]
    assert story.answer.cost == 7.0


def test_r35_a_replay_repeats_no_warning(recwarn):
    story = Story(race(3, max_failures=1))
    story.evaluate("0", value=None)
    assert story.learned == ["0"]
    assert len(recwarn) == 1
    resumed = Story(story.settings, story.experiment.events)
    resumed.begin("late", x=2, order=0)  # the past changes
    assert resumed.learned == ["0"]
    assert len(recwarn) == 1
    resumed.begin("1", x=1)
    resumed.end("1", value=None)
    assert resumed.learned == ["0", "1"]
    assert len(recwarn) == 2


def test_r37_late_ones_count_in_a_choice_of_limits():
    """What takes long is the news there; elsewhere what was given up is paid only."""
    for settings, learned in ((limits(), 1), (race(), 0)):
        experiment = Experiment(settings)
        work = experiment.next()
        begun = work.begun("0", 0)
        experiment.apply(begun)
        story = Story(settings, [begun])
        story.lose("0", is_sure=False)
        story.experiment.apply(Ended(id="0", order=5, value=0.5, cost=1.0))
        assert len(story.learned) == learned


def test_r35_a_late_event_takes_the_last_events_anew(monkeypatch):
    story = Story(race())
    for n in range(400):
        story.evaluate(str(n), x=n % 2, value=float(n))
    assert len(story.learned) == 400
    taken, take = [], State.take
    monkeypatch.setattr(
        State, "take", lambda state, event: [taken.append(event), take(state, event)]
    )
    for n in range(20):
        story.begin(f"other {n}", order=story.experiment.order - 5)
        taken.clear()
        story.end(f"other {n}", value=-1.0)
        assert f"other {n}" in story.learned
        assert n == 0 or len(taken) < 250
    assert Story(story.settings, story.experiment.events).learned == story.learned
