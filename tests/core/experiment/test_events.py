"""Events as JSON, which configurations are equal, and which version of an event holds."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.experiment import (
    Begun,
    Configurations,
    Ended,
    Experiment,
    Found,
    Joined,
    Lost,
    event_of,
    key_of,
)
from mfhpo.knowledge.space import Numeric, OneOf
from tests.core.experiment.story import race

NUMBER = st.floats(allow_nan=True, allow_infinity=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | st.text(max_size=5),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts, max_size=3)
    ),
    max_leaves=6,
)
SIZE = st.floats(0.0, allow_infinity=False)
CONFIGURATION = st.dictionaries(st.text(max_size=5), PLAIN, max_size=3)
POINT = st.dictionaries(st.text(max_size=3), NUMBER, max_size=2)
KINDS = [Numeric((0.25, 0.75)), OneOf(3)]
IDS = {"id": st.text(max_size=5), "order": st.integers(0, 10**9)}
EVENTS = st.one_of(
    st.builds(Joined, **IDS, digest=st.text(max_size=5), version=st.text(max_size=5)),
    st.builds(
        Found,
        **IDS,
        replicates=st.none() | st.integers(1, 10),
        levels=st.none() | st.lists(PLAIN, max_size=3).map(tuple),
    ),
    st.builds(
        Begun,
        **IDS,
        configuration=CONFIGURATION,
        draw=st.none() | st.integers(0, 5),
        levels=st.none() | st.lists(st.integers(0, 5), max_size=3).map(tuple),
        point=st.none() | POINT,
        limit=st.none() | SIZE,
        shortlist=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    ),
    st.builds(
        Ended,
        **IDS,
        value=st.none() | NUMBER,
        values=st.none() | st.lists(st.none() | NUMBER, max_size=3).map(tuple),
        cost=st.none() | SIZE,
        configuration=st.none() | CONFIGURATION,
        parameters=st.dictionaries(st.text(max_size=3), st.sampled_from(KINDS), max_size=2),
        points=st.dictionaries(st.integers(0, 5), POINT, max_size=2),
    ),
    st.builds(Lost, **IDS, why=st.text(max_size=5), is_sure=st.booleans()),
)


@given(event=EVENTS)
def test_an_event_comes_back_from_json(event):
    again = event_of(json.loads(json.dumps(event.to_dict())))
    assert repr(again) == repr(event)  # NaN equals nothing


@given(configuration=CONFIGURATION)
def test_r2_a_configuration_is_the_same_after_json(configuration):
    again = json.loads(json.dumps(configuration, sort_keys=True))
    assert key_of(again) == key_of(configuration)
    arms = Configurations([configuration])
    assert arms.find(again) == arms.add(again) == 0


@pytest.mark.parametrize("record", [{}, {"event": "Other"}, {"event": "Lost", "when": 1}])
def test_what_is_no_event(record):
    with pytest.raises(ValueError, match="record must be what an event's to_dict gave"):
        event_of(record)


def test_r2_d1_equality_is_type_and_representation():
    different = [1, 1.0, True, "1", None, [1], [1.0], (1,), {"a": 1}, {"a": 1.0}, 0.0, -0.0, 2, "a"]
    arms = Configurations([{"a": value} for value in different])
    assert len(arms) == len(different)
    same = [(math.nan, np.float64("nan")), (2, np.int64(2)), ([math.nan], [float("nan")])]
    for left, right in same:
        assert key_of({"a": left}) == key_of({"a": right})
    assert key_of({"a": {"b": 1, "c": 2}}) == key_of({"a": {"c": 2, "b": 1}})


def versions():
    """The end of an evaluation, told again without a change, corrected, and corrected back."""
    first = [
        Begun(id="0", order=0, configuration={"x": 0}, levels=(0,)),
        Begun(id="1", order=3, configuration={"x": 0}, levels=(0,)),
        Ended(id="1", order=4, value=1.0),
    ]
    return first, [
        Ended(id="0", order=2, value=math.nan),
        Ended(id="0", order=5, value=float("nan")),
        Ended(id="0", order=6, value=0.5),
        Ended(id="0", order=8, value=0.5),
    ]


def test_of_several_versions_the_latest_holds_where_it_was_first_told():
    first, ends = versions()
    for n, order, value in ((1, 2, None), (2, 2, None), (3, 6, 0.5), (4, 6, 0.5)):
        for arrived in itertools.permutations(ends[:n]):
            experiment = Experiment(race())
            for event in (*first, *arrived, *arrived):
                experiment.apply(event)
            held, *_ = [e for e in experiment.events if isinstance(e, Ended) and e.id == "0"]
            assert held.order == order
            assert value is None or held.value == value
            assert [result.id for result in experiment.history()] == ["0", "1"]


def test_two_writers_that_read_the_same_are_told_apart():
    """D5: ties of the counter are broken by the id, and of one subject by the content."""
    ends = [Ended(id="0", order=1, value=value) for value in (0.25, None, 0.75)]
    begun = Begun(id="0", order=0, configuration={"x": 0}, levels=(0,))
    found = set()
    for arrived in itertools.permutations(ends):
        experiment = Experiment.replay(race(), [begun, *arrived])
        [result] = experiment.history()
        found.add(result.observation.value)
    assert len(found) == 1
    claims = [Begun(id=str(n), order=1, configuration={"x": 0}, levels=(0,)) for n in (10, 9, 2)]
    experiment = Experiment.replay(race(), claims)
    assert [event.id for event in experiment.events] == ["2", "9", "10"]


def test_what_is_as_by_default_is_not_written():
    record = Ended(id="a", order=1, value=None).to_dict()
    assert record == {"event": "Ended", "id": "a", "order": 1, "value": None}
