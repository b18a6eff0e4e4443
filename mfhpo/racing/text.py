"""Configurations and values in words that are safe to show."""

import re
from collections.abc import Mapping
from typing import Any

_MOST_CHARACTERS = 80  # that are shown of a value, about a line
_LONGEST_NAME = 40  # characters of a configuration's name

# What a terminal or a page might obey: control characters, line separators, lone surrogates, and
# the marks that change the direction of a text.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PASSWORDS = (
    re.compile(r"(://[^:/@\s]*:)\S*(?=@)"),
    re.compile(
        r"([?&][^=&\s'\"]{0,50}(?:pass|pwd|secret|token)[^=&\s'\"]{0,50}=)[^&\s'\"]*", re.IGNORECASE
    ),
)


def params_in_words(params: Mapping[str, Any], is_nested: bool = False) -> str:
    """Return a configuration in one line; of a nested one, ``{"net": {"lr": 0.1}}`` is net/lr."""
    shown = _flat(params) if is_nested else params
    return ", ".join(f"{clean(name)}={short(value)}" for name, value in shown.items())


def name_in_words(params: Mapping[str, Any], arm: int) -> str:
    """Return the name of a configuration in a table or a picture: its parameters, if it has any."""
    name = params_in_words(params) or f"configuration {arm}"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _flat(params: Mapping[str, Any]) -> dict[str, Any]:
    inner = {
        f"{name}/{part}": value
        for name, parts in params.items()
        if isinstance(parts, dict)
        for part, value in parts.items()
    }
    own = {name: value for name, value in params.items() if not isinstance(value, dict)}
    return own | _flat(inner) if inner else own


def short(value: Any) -> str:
    """Return a parameter's value as it is shown."""
    return f"{value:.5g}" if isinstance(value, float) else cut(repr(value))


def cut(text: str) -> str:
    """Return a clean text, or its beginning where it is too long for a sentence or a table."""
    text = clean(text)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def clean(text: str) -> str:
    r"""Return a text that is safe to show, in one line: without passwords and escape sequences.

    Names and values come from a storage that others may write to.

    Examples
    --------
    >>> clean("\x1b[31mred"), clean("mysql://ann:secret@host/db")
    ('\\x1b[31mred', 'mysql://ann:***@host/db')
    """
    for password in _PASSWORDS:
        text = password.sub(r"\1***", text)
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    # In JSON, which has escaped the first ones already, this is an escape, too.
    return ascii(found[0])[1:-1] if found[0] < " " else f"\\u{ord(found[0]):04x}"
