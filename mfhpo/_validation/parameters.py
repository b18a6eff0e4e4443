"""The docstrings of what is public, with every parameter: its type, its default and its meaning.

A docstring need not repeat what is written elsewhere. It may leave out what a base class or the
type of the options documents, or refer to another one, as in "See `IISESampler`.". `document`
joins all of them: a class's when its docstring is first asked for, so that imports stay quick.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, SupportsIndex, is_typeddict

_SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", re.M | re.S)
# The section of parameters or, where there is none, the place before the first section.
_PLACE = re.compile(r"^Parameters\n-+\n.*?(?=^\S[^\n]*\n-+$|\Z)|(?=^\S[^\n]*\n-+$|\Z)", re.M | re.S)
_ENTRY = re.compile(r"^(\S.*)\n((?:[ ]+\S.*(?:\n|\Z)|\n)+)", re.M)
_REFERENCES = re.compile(r"See ((?:`[\w.]+`(?:,\s+|\s+and\s+)?)+)\.(?:\s+|\Z)")
_MODULES = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")
_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]")


class _Docstring(str):
    """A class's docstring as it is written, which is joined when it is asked for."""

    of: type

    @cached_property
    def joined(self) -> str:
        return _joined(self.of, str(self))

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return self.joined

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        # `help` takes the docstring of an abstract class from its namespace, and begins with this.
        return self.joined.expandtabs(tabsize)


def document(*public: Any) -> None:
    """Let the docstrings of classes and functions document each of their parameters."""
    for thing in public:
        written = _written(thing)
        if not isinstance(written, str):  # it is None under -OO
            continue
        if inspect.isfunction(thing):
            thing.__doc__ = _joined(thing, written)
        elif isinstance(thing, type) and not is_typeddict(thing):
            thing.__doc__ = _Docstring(written)
            vars(thing)["__doc__"].of = thing


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """Return what a class or function takes; a policy's ``**options`` are those of its bases."""
    if getattr(thing, "_is_protocol", False):
        return {}
    try:
        found = dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # a warning, or a type of options
        return {}
    for each in fields(thing) if is_dataclass(thing) else ():
        if each.default_factory is not MISSING and each.name in found:
            found[each.name] = found[each.name].replace(default=each.default_factory())
    for base in thing.__mro__ if isinstance(thing, type) else ():
        passed_on = [name for name, one in found.items() if one.kind is one.VAR_KEYWORD]
        if not passed_on:
            break
        if "__init__" in vars(base):
            for name in passed_on:
                del found[name]
            for name, one in inspect.signature(vars(base)["__init__"]).parameters.items():
                if one.kind in (one.KEYWORD_ONLY, one.VAR_KEYWORD):
                    found.setdefault(name, one)
    return {name: one for name, one in found.items() if one.kind is not one.VAR_KEYWORD}


def _in_words(parameter: inspect.Parameter) -> str:
    """Return the line that numpydoc has for a parameter: name, type and default."""
    line, kind, default = parameter.name, parameter.annotation, parameter.default
    if kind is not parameter.empty:
        words = kind if isinstance(kind, str) else inspect.formatannotation(kind)
        line += f" : {_ARRAY.sub('ndarray', _MODULES.sub('', words))}"
    if default is not parameter.empty:
        line += f", default={getattr(default, '__qualname__', None) or repr(default)}"
    return line


def meaning(thing: Any, name: str) -> str | None:
    """Return what a parameter means, by a docstring or by those that it rests on."""
    text = _entries(thing).get(name, "")
    references = _REFERENCES.match(text)
    if text and references is None:
        return text
    sources = _sources(thing) if references is None else _named(references[1], thing)
    found = (meaning(source, name) for source in sources)
    told = next((told for told in found if told is not None), None)
    if told is None or references is None:
        return told
    return f"{told}\n{_filled(text[references.end() :])}".strip()


def _joined(thing: Any, written: str) -> str:
    doc = inspect.cleandoc(written)
    taken = parameters(thing)
    if not taken:
        return doc
    lines = ["Parameters", "----------"]
    for name, parameter in taken.items():
        lines += [_in_words(parameter), textwrap.indent(meaning(thing, name) or "", "    ")]
    for name, text in _entries(thing).items():  # what is said about all options
        remark = _REFERENCES.sub("", text, count=1)
        if name.startswith("**") and remark:
            lines += [name, textwrap.indent(_filled(remark), "    ")]
    before, after = _PLACE.split(doc, maxsplit=1)
    return "\n\n".join(part for part in (before.rstrip(), "\n".join(lines), after) if part)


def _filled(text: str) -> str:
    return text if "\n\n" in text else textwrap.fill(text, 92)


def _written(thing: Any) -> Any:
    return vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__


@cache
def _entries(thing: Any) -> dict[str, str]:
    """Return what a docstring says about each parameter and attribute."""
    entries: dict[str, str] = {}
    for section in _SECTION.findall(inspect.cleandoc(str(_written(thing) or ""))):
        for head, text in _ENTRY.findall(section):
            for name in head.partition(" : ")[0].split(", "):
                entries.setdefault(name, textwrap.dedent(text).strip())
    return entries


def _sources(thing: Any) -> Iterator[Any]:
    """Return what else documents parameters: the type of the options, and bases."""
    if is_typeddict(thing):  # before Python 3.12 it does not know its bases; the nearest first
        names = thing.__annotations__.keys()
        named = vars(sys.modules[thing.__module__]).items()
        known = [it for name, it in named if is_typeddict(it) and not name.startswith("_")]
        bases = [other for other in known if other.__annotations__.keys() < names]
        yield from sorted(bases, key=lambda base: -len(base.__annotations__))
    elif isinstance(thing, type):
        for base in thing.__mro__:
            if "_options_type" in vars(base):
                yield vars(base)["_options_type"]
            if base is not thing:
                yield base


def _named(references: str, thing: Any) -> Iterator[Any]:
    """Return the object that a docstring names, by a path or by a name of its module or package."""
    for path in re.findall(r"[\w.]+", references):
        module, _, name = path.rpartition(".")
        for home in [module] if module else [thing.__module__, thing.__module__.split(".")[0]]:
            if hasattr(import_module(home), name):
                yield getattr(import_module(home), name)
                break
