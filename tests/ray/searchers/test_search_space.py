"""Search spaces of Tune: levels of the fidelity, and configurations drawn from the rest."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray.experiment.configurations import (
    FUNCTIONS,
    assign,
    draw_configs,
    find,
    fingerprint,
    has,
    is_open,
    levels_of,
    placeholders_in,
    without,
)


def test_keys_may_be_nested():
    config = {"a": {"b": 1, "c": {"d": 2}}, "e/f": 3, "g": {"h": 4}}
    assert (find(config, "a/c/d"), find(config, "e/f"), find(config, "g")) == (2, 3, {"h": 4})
    assert not any(has(config, name) for name in ("a/d", "a/c/d/x", "e"))
    assert (find(config, "a/x"), find(config, "a/b/c", 0)) == (None, 0)
    left = without(config, ["a/b", "g/h", "e/f", "x", "a/y/z"])
    assert left == {"a": {"c": {"d": 2}}}
    assert config == {"a": {"b": 1, "c": {"d": 2}}, "e/f": 3, "g": {"h": 4}}  # not changed
    for name, value in (("a/i", 5), ("e/f", 6), ("j/k/l", 7)):
        assign(config, name, value)
    changed = {"a": {"b": 1, "c": {"d": 2}, "i": 5}, "e/f": 6, "g": {"h": 4}}
    assert config == {**changed, "j": {"k": {"l": 7}}}


def test_fingerprints_do_not_depend_on_the_order_of_keys():
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.0})


# Levels.

LEVELS = {
    "randint": (tune.randint(1, 82), (1, 3, 9, 27, 81)),
    "lograndint": (tune.lograndint(1, 28), (1, 3, 9, 27)),
    "qrandint": (tune.qrandint(10, 90, 10), (10, 30, 90)),
    "qrandint with bounds that are no multiples": (tune.qrandint(7, 95, 10), (10, 30, 90)),
    "uniform": (tune.uniform(0.0, 0.9), (0.9 / 243, 0.9 / 81, 0.9 / 27, 0.1, 0.3, 0.9)),
    "loguniform": (tune.loguniform(0.1, 0.9), (0.1, 0.3, 0.9)),
    "quniform": (tune.quniform(0.1, 0.9, 0.1), (0.1, 0.3, 0.9)),
    "choice": (tune.choice(["small", "large"]), ("small", "large")),
    "grid": (tune.grid_search([1, 10]), (1, 10)),
}


@pytest.mark.parametrize(("domain", "levels"), LEVELS.values(), ids=LEVELS.keys())
def test_levels_of_a_domain(domain, levels):
    found = levels_of(Fidelity("epochs"), {"lr": tune.uniform(0, 1), "epochs": domain})
    assert found == levels if isinstance(levels[0], str) else found == pytest.approx(levels)
    nested = {"train": {"epochs": domain}}
    assert levels_of(Fidelity("train/epochs"), nested) == found
    # All of them are in the domain, by its own account.
    assert levels_of(Fidelity("epochs", levels=found), {"epochs": domain}) == found


@pytest.mark.parametrize(
    ("domain", "level", "shown"),
    [
        (tune.randint(1, 82), 500, "(1, 82)"),
        (tune.randint(1, 82), 82, "(1, 82)"),
        (tune.randint(1, 82), 2.5, "(1, 82)"),
        (tune.qrandint(10, 90, 10), 15, "(10, 90)"),
        (tune.uniform(0.1, 0.9), 1.0, "(0.1, 0.9)"),
        (tune.choice(["small", "large"]), "huge", "['small', 'large']"),
        (tune.grid_search([1, 10]), 3, "{'grid_search': [1, 10]}"),
    ],
)
def test_declared_levels_are_in_the_space(domain, level, shown):
    words = f"contain {level!r}, which the search space does not allow: {shown}"
    with pytest.raises(ValueError, match=re.escape(words)):
        levels_of(Fidelity("epochs", levels=[level]), {"epochs": domain})


@pytest.mark.parametrize("space", [{}, {"epochs": 81}, {"epochs": tune.randn()}])
def test_where_the_space_has_no_bounds_levels_are_as_declared(space):
    assert levels_of(Fidelity("epochs", levels=[1, 500]), space) == (1, 500)


def test_constants_and_nesting_are_kept():
    space = {"a": {"b": tune.uniform(0, 1), "c": "fixed"}, "d": [tune.randint(0, 5), 7]}
    [config] = draw_configs(space, 1, seed=0)
    assert 0 <= config["a"]["b"] <= 1
    assert 0 <= config["d"][0] < 5
    assert (config["a"]["c"], config["d"][1]) == ("fixed", 7)
    assert is_open(space)  # it is not written to


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_draws_are_different_and_repeatable(n, seed):
    space = {"lr": tune.loguniform(1e-5, 1e-1), "kind": tune.choice(["a", "b"])}
    drawn = draw_configs(space, n, seed)
    assert len({fingerprint(config) for config in drawn}) == len(drawn) == n
    assert drawn == draw_configs(space, n, seed) != draw_configs(space, n, seed + 1)
    assert all(1e-5 <= config["lr"] <= 1e-1 for config in drawn)


FINITE = {
    "choices": ({"a": tune.choice([1, 2]), "b": tune.choice("xyz")}, 6),
    "repeated categories": ({"a": tune.choice([1, 1, 2])}, 2),
    "integers": ({"a": tune.randint(2, 6)}, 4),
    "multiples": ({"a": tune.qrandint(0, 20, 5)}, 5),
    "multiples of a fraction": ({"a": tune.quniform(0, 1, 0.25)}, 5),
    "grids": ({"a": tune.grid_search([1, 2]), "b": {"c": tune.grid_search([3, 4, 5])}}, 6),
    "grid and choice": ({"a": tune.grid_search([1, 2]), "b": tune.choice([3, 4])}, 4),
    "a function of the rest": (
        {"a": tune.choice([1, 2]), "b": tune.sample_from(lambda config: 2 * config["a"])},
        2,
    ),
    "choices among spaces": ({"a": tune.choice([0, tune.randint(1, 4)])}, 4),
}


@pytest.mark.parametrize(("space", "size"), FINITE.values(), ids=FINITE.keys())
def test_a_small_space_is_drawn_whole(space, size):
    drawn = draw_configs(space, 32, seed=0)
    assert len(drawn) == len({fingerprint(config) for config in drawn}) == size
    if size > 2:
        assert len(draw_configs(space, 2, seed=0)) == 2


def test_the_global_generators_are_left_alone():
    random.seed(0)
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    draw_configs({"a": tune.uniform(0, 1), "b": tune.randint(0, 9), "c": tune.randn()}, 9, seed=0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_placeholders_are_found_by_key():
    config = {"x": 1, "act": ("__ref_ph", "12345678"), "net": {"layers": [("__fn_ph", "1")]}}
    assert placeholders_in(config) == ["act", "net/layers"]
    assert placeholders_in(config, FUNCTIONS) == ["net/layers"]
    assert placeholders_in({"hidden": (32, 32)}) == []
