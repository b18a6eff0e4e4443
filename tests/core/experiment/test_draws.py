"""Configurations whose values a host draws when they are asked for."""

from dataclasses import replace

import pytest

from mfhpo.experiment import Begun, Ended, RaceSettings, event_of
from mfhpo.knowledge.space import Numeric, OneOf
from tests.core.experiment.story import LEVELS, Story, race


def draws(n=3, **options):
    """A race of draws at one level."""
    return RaceSettings.of(n, **{"sigma": 1.0, "epsilon": 0.1} | options)


class Drawn(Story):
    """Evaluations of draws, given by their numbers."""

    def of(self, id, draw, x, level=0, value=0.0, **known):
        self.begin(id, configuration=known, draw=draw, levels=(level,))
        self.end(id, value=value, configuration={"x": x})


def test_events_of_draws_are_plain_json():
    kinds = {"lr": Numeric((0.25, 0.75)), "kernel": OneOf(3)}
    end = Ended(id="0", order=1, value=1.0, parameters=kinds, points={3: {"lr": 0.25}})
    for event in (end, Begun(id="0", order=0, configuration={}, draw=3)):
        assert event_of(event.to_dict()) == event
    assert "points" not in Ended(id="0", order=1, value=1.0).to_dict()


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
    story = Drawn(race(1, levels=LEVELS))
    story = Drawn(RaceSettings.of(4, **{"fidelity": story.settings.fidelity, "bias": [0.0] * 3}))
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
