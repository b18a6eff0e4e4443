"""The docstrings of what is public, with every parameter: its type, its default and its meaning.

A docstring need not repeat what is written elsewhere. It may leave out what a base class or the
type of the options documents, or refer to another one, as in "See `IISESampler`.". `documented`
joins all of them: a class's docstring when it is first asked for, so that imports stay quick.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Any, TypeVar, is_typeddict

_T = TypeVar("_T")

_SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", re.M | re.S)
_PARAMETERS = re.compile(r"^Parameters\n-+\n.*?(?=^\S[^\n]*\n-+$|\Z)", re.M | re.S)
_LATER_SECTION = re.compile(r"^\S.*\n-+$|\Z", re.M)
_ENTRY = re.compile(r"^(\S.*)\n((?:[ ]+\S.*(?:\n|\Z)|\n)+)", re.M)
_REFERENCES = re.compile(r"See ((?:`[\w.]+`(?:,\s+|\s+and\s+)?)+)\.(?:\s+|\Z)")
_MODULES = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")
_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]")


class _Docstring:
    """A class's docstring, which is joined when it is first asked for."""

    def __init__(self, of: type, written: str) -> None:
        self.written = written
        self._of = of
        self._joined: str | None = None

    def __get__(self, instance: object, owner: type | None = None) -> str:
        if self._joined is None:
            self._joined = _joined(self._of, self.written)
        return self._joined


def documented(thing: _T) -> _T:
    """Return a class or function whose docstring documents each of its parameters."""
    written = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    if isinstance(thing, type) and isinstance(written, str) and not is_typeddict(thing):
        setattr(thing, "__doc__", _Docstring(thing, written))  # noqa: B010  # no str
    elif inspect.isfunction(thing) and written is not None:  # it is None under -OO
        thing.__doc__ = _joined(thing, written)
    return thing


def document(namespace: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Let each public name of a module be `documented`."""
    for name in names:
        documented(namespace[name])


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """Return what a class or function takes; a policy's ``**options`` are those of its bases."""
    try:
        found = dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # a warning, or a type of options
        return {}
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
    return found


def in_words(parameter: inspect.Parameter) -> str:
    """Return the line that numpydoc has for a parameter: name, type and default."""
    kind, default = parameter.annotation, parameter.default
    line = parameter.name
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
        lines.append(in_words(parameter))
        told = meaning(thing, name)
        if told is not None:
            lines.append(textwrap.indent(told, "    "))
    for name, text in _entries(thing).items():  # what is said about all options
        remark = _REFERENCES.sub("", text, count=1)
        if name.startswith("**") and remark:
            lines += [name, textwrap.indent(_filled(remark), "    ")]
    place = _PARAMETERS.search(doc) or _LATER_SECTION.search(doc)
    assert place is not None
    start, end = place.span() if place[0].startswith("Parameters\n") else (place.start(),) * 2
    parts = (doc[:start].rstrip(), "\n".join(lines), doc[end:])
    return "\n\n".join(part for part in parts if part)


def _filled(text: str) -> str:
    return text if "\n\n" in text else textwrap.fill(text, 92)


def _entries(thing: Any) -> dict[str, str]:
    """What a docstring says about each parameter and attribute, as far as it does."""
    doc = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    written = doc.written if isinstance(doc, _Docstring) else doc
    if not isinstance(written, str):
        return {}
    entries: dict[str, str] = {}
    for section in _SECTION.findall(inspect.cleandoc(written)):
        for head, text in _ENTRY.findall(section):
            for name in head.partition(" : ")[0].split(", "):
                entries.setdefault(name, textwrap.dedent(text).strip())
    return entries


def _sources(thing: Any) -> Iterator[Any]:
    """What else documents parameters: the type of the options, and bases."""
    if is_typeddict(thing):  # before Python 3.12 it does not know its bases; the nearest first
        names = thing.__annotations__.keys()
        known = filter(is_typeddict, vars(sys.modules[thing.__module__]).values())
        bases = [other for other in known if other.__annotations__.keys() < names]
        yield from sorted(bases, key=lambda base: -len(base.__annotations__))
    elif isinstance(thing, type):
        for base in thing.__mro__:
            if "_options_type" in vars(base):
                yield vars(base)["_options_type"]
            if base is not thing:
                yield base


def _named(references: str, thing: Any) -> Iterator[Any]:
    """What a docstring refers to: by a whole path, or as its module or its package calls it."""
    for path in re.findall(r"[\w.]+", references):
        module, _, name = path.rpartition(".")
        for home in [module] if module else [thing.__module__, thing.__module__.split(".")[0]]:
            if hasattr(import_module(home), name):
                yield getattr(import_module(home), name)
                break
