"""Claims, failures, replicates, budgets, levels and answers, by hand (engine-rules.md)."""

import pytest

from mfhpo import Fidelity
from mfhpo.experiment import (
    Assignment,
    Begun,
    Concluded,
    Done,
    Ended,
    Experiment,
    Found,
    Lost,
    RaceSettings,
    Wait,
)
from mfhpo.experiment.configurations import key_of
from tests.core.experiment.story import Story, race
from tests.core.experiment.workers import limits, search


def two_claims(settings, events=()):
    """Two workers choose at the same moment: return their experiments, and what they claim."""
    readers = [Experiment.replay(settings, events) for _ in range(2)]
    claims = [
        reader.next().begun(id, reader.order)
        for reader, id in zip(readers, ("1", "2"), strict=True)
    ]
    for reader in readers:
        for claim in claims:
            reader.apply(claim)
    return readers, claims


def moved(reader, claim):
    """Return the claim that the second of two writes instead of its first one."""
    work = reader.next(moving=claim.id)
    assert isinstance(work, Assignment)
    return work.begun(claim.id, reader.order)


@pytest.mark.parametrize("kind", ["blocks", "search", "replicates"])
def test_r9_d3_of_equal_claims_the_earlier_stands(kind):
    """The same cell of a block, the same new configuration, the same replicate."""
    blocks = race(4, sigma=None, shares_replicates=True)
    settings = {"blocks": blocks, "search": search(), "replicates": race(4)}[kind]
    readers, claims = two_claims(settings)
    assert claims[0].replicate == claims[1].replicate
    for reader in readers:
        assert reader.settle("1") == claims[0]
        assert reader.settle("2") is None
        assert not reader.is_overtaken("2")
        assert reader.is_overtaken("1")  # by one who may not look again
    other = moved(readers[1], claims[1])
    for reader in readers:
        reader.apply(other)
        assert reader.settle("2") == other
        assert not reader.is_overtaken("1")
    what = [(c.configuration, c.block, c.replicate) for c in (claims[0], other)]
    assert what[0] != what[1]
    if kind != "replicates":
        assert claims[0].configuration != other.configuration


def test_r9_the_first_shortlist_stands():
    settings = search()
    arms = [{"x": 0.05 * k, "kind": "a"} for k in range(3)]
    story = Story(settings)
    for n, arm in enumerate(arms):
        story.begin(str(n), configuration=arm, levels=(2,), purpose="search", block=0)
        story.end(str(n), value=float(n))
    keys = [story.experiment.runner.configurations.key(arm) for arm in range(3)]
    claim = {"levels": (2,), "purpose": "certificate", "block": 1}
    story.begin("a", configuration=arms[2], shortlist=(keys[2], keys[1]), **claim)
    story.begin("b", configuration=arms[1], shortlist=(keys[1], keys[0]), **claim)
    story.begin("c", configuration=arms[0], shortlist=(keys[1], keys[0]), **claim)
    assert story.experiment.settle("b") is not None  # it is in the first list, too
    assert story.experiment.settle("c") is None
    story.end("b")
    assert set(story.experiment.runner.policy.shortlist) == {1, 2}


def test_a_shortlist_waits_for_the_claims_of_its_arms():
    """A reader in the middle of a write knows one of two that are compared."""
    experiment = Experiment(search())
    keys = [key_of({"x": x, "kind": "a"}) for x in (0.1, 0.2)]
    later, first = (
        Begun(id=str(n), order=n, configuration={"x": x, "kind": "a"}, levels=(2,), block=0)
        for n, x in enumerate((0.2, 0.1))
    )
    compared = Begun(
        id="2",
        order=2,
        configuration=first.configuration,
        levels=(2,),
        purpose="certificate",
        block=1,
        shortlist=tuple(keys),
    )
    for event in (first, compared, *(Ended(id=str(n), order=3, value=1.0) for n in range(3))):
        experiment.apply(event)
    assert experiment.runner.policy.shortlist == ()
    assert not experiment.answer().certified
    experiment.apply(later)
    assert set(experiment.runner.policy.shortlist) == {0, 1}


def test_r11_d2_later_workers_may_have_other_options_and_another_order_of_arms():
    story = Story(race(3))
    for n in range(6):
        story.evaluate(str(n), x=n % 3, value=float(n % 3))
    options = {"sigma": 1.0, "epsilon": 0.5, "delta": 0.2, "budget": 100.0}
    later = RaceSettings.of([{"x": 2}, {"x": 0}, {"x": 1}], **options)
    again = Story(later, story.experiment.events)
    assert again.answer.params == story.answer.params == {"x": 2}
    assert again.learned == story.learned
    assert [result.pull.arm for result in again.experiment.history()] == [1, 2, 0] * 2


def test_r8_a_choice_depends_on_what_was_released_and_is_open_alone():
    chosen = []
    for value in (0.0, 50.0, None):
        story = Story(race(3))
        for x in range(3):
            story.begin(f"slow {x}", x=x)
            story.evaluate(f"quick {x}", x=x, value=value)
        chosen.append(story.experiment.next())
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize("shares", [False, True])
def test_r10_what_is_enqueued_keeps_its_configuration_and_level_and_counts(shares):
    sigma = None if shares else 1.0
    settings = race(2, sigma=sigma, shares_replicates=shares)
    first = Experiment(settings).next(fixed=({"x": 1}, 0)).begun("0", 0)
    second = Experiment(settings).next(fixed=({"x": 1}, 0)).begun("1", 0)
    story = Story(settings, [first, second])
    assert first.origin == "enqueued"
    if shares:  # the same evaluation again: it moves to the next replicate
        assert story.experiment.settle("1") is None
        moved = story.experiment.next(fixed=({"x": 1}, 0), moving="1")
        assert (moved.configuration, moved.level, moved.block) == ({"x": 1}, 0, 1)
    else:
        assert story.experiment.settle("1") == second
    assert story.experiment.next(fixed=({"x": 1}, 0)).block == (1 if shares else None)
    story.end("0", value=2.0)
    assert story.values == {"0": 2.0}
    story.begin("none", x=5, origin="enqueued")
    story.end("none", cost=2.0)
    assert story.learned == ["0"]
    assert story.answer.cost == 3.0


def test_r3_r5_r7_a_drawn_configuration_is_one_arm_and_numbered_by_claims():
    story = Story(search())
    first = story.follow("0")
    second = story.follow("1")
    story.lose("0")  # its number is not used for another one
    third = story.follow("2")
    arms = story.experiment.runner.configurations
    drawn = [each.configuration for each in (first, second, third)]
    assert [arms[arm] for arm in range(3)] == drawn
    story.lose("2")
    assert story.follow("4").configuration == third.configuration
    story.begin("3", configuration=dict(reversed(first.configuration.items())), levels=(1,))
    assert len(arms) == 3
    swapped = Begun(id="9", order=0, configuration={"x": 0.55, "kind": "a"}, levels=(0,))
    again = Story(story.settings, [swapped, *story.experiment.events])
    assert again.experiment.runner.configurations[1] == swapped.configuration


def test_r28_a_timeout_is_an_observation_of_a_choice_of_limits():
    story = Story(limits())
    begun = story.follow("0")
    story.end("0", value=None, stopped_at=begun.limit, cost=begun.limit)
    [result] = story.experiment.history()
    assert result.observation.censored_at == begun.limit
    assert not any("stopped at a time limit" in each for each in story.answer.assumptions)


def measured(**options):
    return race(2, fidelity=Fidelity("epochs", levels=(1, 2), costs="measured"), **options)


def test_r30_r31_measured_costs_count_at_their_mean():
    story = Story(measured(bias=[0.0, 0.0], budget=10.0))
    for n, cost in enumerate((1.0, 3.0)):
        story.evaluate(str(n), levels=(1,), cost=cost)
    runner = story.experiment.runner
    story.begin("slow", levels=(1,))
    for n in range(3):
        story.evaluate(f"failed {n}", levels=(1,), value=None, cost=None)
    story.experiment.next()
    assert runner.unlearned_cost == 6.0
    assert story.answer.cost == 10.0
    assert isinstance(story.experiment.next(), Wait)


def late(**options):
    """A race whose levels the objective says."""
    return race(2, fidelity=Fidelity("epochs"), bias=[0.1, 0.0], **options)


def test_r32_claims_before_levels_are_known_get_one_when_asked():
    story = Story(late())
    work = story.experiment.next()
    assert (work.level, work.begun("0", 0).levels) == (-1, None)
    begun = [story.follow(str(n)) for n in range(4)]
    assert [each.configuration["x"] for each in begun] == [0, 1, 0, 1]
    story.end("0", value=None, cost=2.0)  # before it asked for the fidelity
    assert story.answer.reason == "no evaluation has asked for 'epochs' yet"
    assert story.answer.cost == 2.0
    story.experiment.apply(Found(id="1", order=story.experiment.order, levels=(1, 3)))
    assert story.learned == ["0"]  # at the lowest level
    assert [result.pull.fidelity for result in story.experiment.history()] == [0]
    level = story.experiment.level_of("1")
    assert level == story.experiment.next().level
    story.begin("1", x=1, levels=(level,))
    assert story.experiment.level_of("1") == level
    story.end("1", value=1.0)
    story.end("3", value=2.0, level=1)  # without a claim that says it
    assert story.values == {"0": None, "1": 1.0, "3": 2.0}


def test_r25_r32_the_end_if_none_asks_for_the_fidelity():
    story = Story(late())
    for n in range(6):
        story.end(story.follow(str(n)).id, value=None)
    assert isinstance(story.experiment.next(), Done)
    assert story.answer.reason == "6 evaluations failed before any asked for 'epochs'"


def test_r32_a_value_at_no_level_counts_for_nothing():
    story = Story(late())
    story.end(story.follow("0").id, value=1.0, cost=2.0)
    story.experiment.apply(Found(id="1", order=story.experiment.order, levels=(1, 3)))
    assert story.learned == []
    story.begin("1", levels=(5,))  # of other settings
    story.end("1", level=5, cost=3.0)
    assert story.learned == []
    assert (story.answer.failures, story.answer.cost) == (0, 5.0)


def test_r33_what_is_found_first_holds():
    events = [
        Found(id="a", order=1, levels=(1, 3)),
        Found(id="b", order=2, levels=(1, 3, 9)),
        Ended(id="0", order=3, value=1.0, level=1),
        Begun(id="0", order=0, configuration={"x": 0}),
    ]
    for order in (events, events[::-1]):
        story = Story(late(), order)
        assert story.experiment.runner.n_levels == 2
        assert story.values == {"0": 1.0}


def test_settle_names_what_was_begun():
    with pytest.raises(ValueError, match="id 'x' names no evaluation"):
        Story(race()).experiment.settle("x")


def test_d3_a_claim_that_moves_is_not_waited_for():
    readers, claims = two_claims(race(2, budget=2.0))
    assert isinstance(readers[1].next(), Wait)
    assert moved(readers[1], claims[1]).replicate != claims[0].replicate


def test_r9_of_equal_claims_that_both_stay_the_earlier_counts_and_both_are_paid():
    """The second worker was too slow to move, and is the first to end."""
    settings = race(2, sigma=None, shares_replicates=True)
    readers, claims = two_claims(settings)
    ends = [
        Ended(id="2", order=readers[0].order, value=9.0),
        Ended(id="1", order=readers[0].order + 1, value=1.0),
    ]
    readers[0].apply(ends[0])
    assert readers[0].is_overtaken("1")
    told = [*claims, *ends]
    for events in (told, told[::-1], [told[k] for k in (1, 3, 0, 2)]):
        experiment = Experiment.replay(settings, events)
        assert [(result.id, result.observation.value) for result in experiment.history()] == [
            ("1", 1.0)
        ]
        assert experiment.answer().cost == 2.0


def played(settings, late=None):
    """Return a race of two arms in turn that is certified, and the last claim.

    Another one of the other arm is begun before that one, and has not ended.
    """
    story, n = Story(settings), 0
    while not story.experiment.finished:
        if n == late:
            story.begin("late", x=1 - n % 2)
        story.evaluate(str(n), x=n % 2, value=float(n % 2))
        n += 1
    return story, n - 1


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_was_concluded_stays_when_an_earlier_end_comes_late(is_lost):
    settings = race(2, sigma=0.1, epsilon=0.5)
    story, last = played(settings, late=played(settings)[1])
    answer, order = story.answer, story.experiment.order
    assert answer.certified
    said = Concluded(id="said", order=order, open=("late",))
    end = Ended(id="late", order=order - 2, value=0.5)
    if is_lost:
        end = Lost(id="late", order=order - 2, why="its process died")
    events = [*story.experiment.events, said, end]
    for told in (events, events[::-1]):
        later = Experiment.replay(settings, told)
        assert later.concluded == said.order
        assert [result.id for result in later.history()][last:] == [str(last), "late"][
            : 2 - is_lost
        ]
        assert later.answer().certified
        assert later.answer().params == answer.params
        assert Experiment.replay(settings, later.events).answer() == later.answer()
    without = Experiment.replay(settings, [event for event in events if event != said])
    assert [result.id for result in without.history()][-1] == str(last)


def test_claims_that_move_at_the_same_moment_do_not_meet_again():
    settings = race(4, sigma=None, shares_replicates=True)
    first = Experiment(settings).next()
    claims = [first.begun(str(n), 0) for n in range(4)]
    readers = [Experiment.replay(settings, claims) for _ in claims]
    others = [moved(*each) for each in zip(readers, claims, strict=True)]
    cells = [(claim.configuration["x"], claim.block) for claim in others]
    assert len(set(cells)) == 4
