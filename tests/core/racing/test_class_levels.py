"""How classes of policies may be built: on two levels, overriding nothing but contracts."""

import importlib
import inspect
import pkgutil
from dataclasses import is_dataclass

import pytest

import mfhpo

FOLDERS = (
    "censored",
    "certification",
    "experiment",
    "games",
    "identification",
    "racing",
    "regret",
    "search",
)


def classes(folder):
    """Return the classes that the modules of a folder define."""
    package = importlib.import_module(f"mfhpo.{folder}")
    found = pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
    modules = [package, *(importlib.import_module(module.name) for module in found)]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]


def is_ours(cls):
    return cls.__module__.partition(".")[0] == mfhpo.__name__


def counts(cls):
    """Tell whether a class is one that behaviour is inherited from: no contract, no answer."""
    is_record = is_dataclass(cls) and cls.__dataclass_params__.frozen
    is_protocol = getattr(cls, "_is_protocol", False)
    return is_ours(cls) and not (is_record or is_protocol or issubclass(cls, Exception))


def methods(cls):
    kinds = (property, classmethod, staticmethod)
    return {
        name: member
        for name, member in vars(cls).items()
        if (inspect.isfunction(member) or isinstance(member, kinds)) and not name.startswith("__")
    }


def is_declared(member):
    """Tell whether a method is abstract, or a hook with a default."""
    is_hook = getattr(getattr(member, "fget", member), "is_hook", False)
    return is_hook or getattr(member, "__isabstractmethod__", False)


def overridden(cls):
    """Return methods that a class replaces although no contract declares them."""
    bases = [base for base in cls.__mro__[1:] if is_ours(base)]
    return [
        f"{cls.__name__}.{name} is {base.__name__}'s"
        for name in methods(cls)
        for base in bases
        if name in methods(base) and not is_declared(vars(base)[name])
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_at_most_two_classes_are_above_each_other(folder):
    towers = [list(filter(counts, cls.__mro__)) for cls in classes(folder)]
    assert [tower for tower in towers if len(tower) > 2] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_class_overrides_only_what_a_contract_declares(folder):
    those = filter(counts, classes(folder))
    assert [found for cls in those for found in overridden(cls)] == []


def test_the_checks_see_what_they_look_for():
    class Base(mfhpo.Race):
        def tell(self, pull, observation):
            """Learn twice."""

    class Deep(Base):
        pass

    for cls in (Base, Deep):
        cls.__module__ = "mfhpo.made_up"
    assert overridden(Base) == ["Base.tell is Race's"]
    assert [base.__name__ for base in Deep.__mro__ if counts(base)] == ["Deep", "Base", "Race"]
