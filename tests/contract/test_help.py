"""`help` documents each parameter of what is public: its type, its default and its meaning."""

import inspect
import pydoc
import re
import subprocess
import sys
from importlib import import_module

import pytest

from mfhpo._validation.parameters import parameters

PACKAGES = (
    "mfhpo",
    "mfhpo.censored",
    "mfhpo.games",
    "mfhpo.portfolios",
    "mfhpo.search",
    "mfhpo_optuna",
    "mfhpo_optuna.lightgbm",
    "mfhpo_ray",
    "mfhpo_sklearn",
)
PUBLIC = [
    pytest.param(thing, id=f"{package}.{name}")
    for package in PACKAGES
    for name in import_module(package).__all__
    if (thing := getattr(import_module(package), name))
    and (inspect.isclass(thing) or inspect.isfunction(thing))
    and parameters(thing)
]


def described(thing):
    """What `help` shows: type, default and meaning of each parameter, by its name."""
    doc = pydoc.getdoc(thing)
    assert doc == inspect.getdoc(thing)
    _, found, rest = doc.partition("Parameters\n----------\n")
    assert found, doc
    section = re.split(r"\n\S.*\n-+\n", rest)[0]
    entries = re.findall(r"^(\w+) : (.+?)(?:, default=(.+))?\n((?:    .*\n?|\n)+)", section, re.M)
    return {name: (kind, default, " ".join(text.split())) for name, kind, default, text in entries}


@pytest.mark.parametrize("thing", PUBLIC)
def test_each_parameter_has_a_type_a_default_and_a_meaning(thing):
    shown = described(thing)
    assert list(shown) == list(parameters(thing))
    for name, parameter in parameters(thing).items():
        kind, default, told = shown[name]
        assert len(told) > 5, name
        assert not told.startswith("See `"), name
        if isinstance(parameter.annotation, str):
            assert kind == re.sub(r"\b[a-z_]+\.", "", parameter.annotation)
        if parameter.default is parameter.empty:
            assert not default
        elif not callable(parameter.default):
            assert default == repr(parameter.default) != "<factory>"


def test_parameters_are_those_of_the_signature():
    """Where it hides none behind ``**options``."""
    for thing in (param.values[0] for param in PUBLIC):
        signature = inspect.signature(thing).parameters
        named = [name for name, one in signature.items() if one.kind is not one.VAR_KEYWORD]
        assert [name for name in parameters(thing) if name in signature] == named


@pytest.mark.parametrize(
    ("package", "name", "parameter", "words"),
    [
        ("mfhpo", "IISE", "delta", "Probability of a wrong certificate"),
        ("mfhpo", "MFGrad", "audit", "what was declared"),
        ("mfhpo_optuna", "MFEliminationSampler", "epsilon", "derived from the budget"),
        ("mfhpo_optuna", "MFSampler", "arms", "The configurations to compare"),
        ("mfhpo_optuna", "SearchSampler", "lease", "Seconds after which"),
        ("mfhpo_optuna", "SearchSampler", "top", "on the shortlist"),
        ("mfhpo_ray", "MFGradSearch", "epsilon", "0 asks for the very best arm"),
        ("mfhpo_sklearn", "IISESearchCV", "measure", "Least number of full fits"),
    ],
)
def test_a_meaning_is_that_of_the_class_which_documents_it(package, name, parameter, words):
    told = described(getattr(import_module(package), name))[parameter][2]
    assert words in told


def test_what_is_said_about_all_options_is_shown():
    doc = inspect.getdoc(import_module("mfhpo_optuna").SearchSampler)
    assert "**options Instead of `baseline`" in " ".join(doc.split())


@pytest.mark.slow
def test_without_docstrings_all_can_be_imported():
    ours = [package for package in PACKAGES if package != "mfhpo_ray"]  # Ray needs its docstrings
    code = f"import {', '.join(ours)}\nfrom mfhpo_optuna import *"
    command = [sys.executable, "-OO", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
