"""Evaluations that are made twice, to see whether a replicate always gives the same value."""

import pytest

from mfhpo import NoiseContradictedWarning
from mfhpo.experiment import Assignment, Done, Experiment, Found
from tests.core.experiment.story import Story, race
from tests.core.experiment.test_rules_of_claims import moved, two_claims

VALUES = [[0.1, 0.2, 0.35], [0.5, 0.65, 0.7]]


def told_all():
    """A race of two on three replicates, which was told each value once."""
    story = Story(race(2, sigma=None, epsilon=None, shares_replicates=True))
    story._tell(Found, "replicates", replicates=3)
    for number in range(6):
        begun = story.follow(f"first {number}")
        story.end(begun.id, VALUES[begun.configuration["x"]][begun.block])
    return story


def test_it_is_over_once_two_gave_the_same_values():
    story = told_all()
    assert (story.answer.certified, story.answer.finished) == (False, False)
    for id in ("again", "and again"):
        begun = story.follow(id)
        assert story.experiment.settle(id) == begun  # it has not to move
        story.end(id, VALUES[begun.configuration["x"]][begun.block])
    answer = story.answer
    assert isinstance(story.experiment.next(), Done)
    assert (answer.certified, answer.is_exact, answer.cost) == (True, True, 8.0)
    assert answer.to_dict()["is_exact"]
    assert "arms that were compared, sure if a configuration always has the same" in str(answer)
    assert "wrong with" not in str(answer)


@pytest.mark.parametrize("n_known", range(9))
def test_a_restart_goes_on(n_known):
    story = told_all()
    for id in ("again", "and again"):
        begun = story.follow(id)
        story.end(id, VALUES[begun.configuration["x"]][begun.block])
    events = story.experiment.events
    known = Experiment.replay(story.settings, events[: len(events) - n_known])
    for event in events[len(events) - n_known :]:
        known.apply(event)
    assert known.answer() == story.answer


def test_two_workers_make_two_of_them():
    events = told_all().experiment.events
    readers, claims = two_claims(told_all().settings, events)
    assert claims[0].block == claims[1].block
    assert readers[1].settle("2") is None
    other = moved(readers[1], claims[1])
    assert other.configuration != claims[0].configuration
    for reader in readers:
        reader.apply(other)
        assert reader.settle("1") == claims[0]
        assert reader.settle("2") == other


def test_others_are_none_of_this_race():
    """A second evaluation that nobody asked for is paid, and says nothing."""
    story = Story(race(2, sigma=None, epsilon=None, shares_replicates=True))
    story._tell(Found, "replicates", replicates=3)
    for id, value in (("1", 0.1), ("2", 0.3)):
        story.evaluate(id, block=0, value=value)
    assert story.learned == ["1"]


def test_another_value_lets_it_go_on():
    story = told_all()
    begun = story.follow("again")
    story.end("again", VALUES[begun.configuration["x"]][begun.block] + 0.01)
    with pytest.warns(NoiseContradictedWarning, match="on the same replicate"):
        work = story.experiment.next()
    assert not story.answer.is_exact
    assert isinstance(work, Assignment)
    assert work.block == 3  # the first replicate again
    events = story.experiment.events
    assert Experiment.replay(story.settings, events).answer() == story.answer
