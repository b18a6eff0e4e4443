"""Sentences of answers: configurations and values that are safe to show, claims, conditions."""

import math
import re
from collections.abc import Mapping, Sequence
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


FIXED = (
    "the interval covers what varies between evaluations of the same configuration, and not what "
    "the objective keeps fixed, such as folds, a test set or a seed"
)
"""The scope of an interval, in every answer that has one."""


def joined(parts: Sequence[str]) -> str:
    """Join phrases to a list in a sentence: "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def wrong_in_words(delta: float, conditions: Sequence[str]) -> str:
    """Return the probability of a wrong claim, if there is one, with all its conditions."""
    words = f"wrong with probability at most {delta:g}" if delta else "sure"
    return f"{words} if {joined(conditions)}" if conditions else words


def bounds_in_words(delta: float, estimated: str) -> str:
    """Say how often bounds on gains are wrong: with probability delta, or approximately."""
    return f"approximate: {estimated}" if estimated else wrong_in_words(delta, ())


def corrected_in_words(corrected: float, mean: float) -> str:
    """Return what a winner's mean is when corrected for the choice; "" where that is the same."""
    if math.isnan(corrected) or f"{corrected:.5g}" == f"{mean:.5g}":
        return ""
    return f"{corrected:.5g} when corrected for having been chosen as the best"


def never_in_words(epsilon: float) -> str:
    """Say what it takes to certify where no number of evaluations suffices."""
    if epsilon:
        return "more replicates than there are, or a larger epsilon"
    return "no number will do (a tie, or too few replicates); set epsilon above 0"


def unseen_share(evaluations: int, delta: float) -> float:
    """Return the share of outcomes that may be unseen with probability delta: 1 - delta^(1/n)."""
    return 1.0 - delta ** (1.0 / evaluations) if evaluations else 1.0


def evaluations_to_see(share: float, delta: float) -> int:
    """Return how many independent evaluations miss such a share of outcomes with at most delta."""
    return math.ceil(math.log(delta) / math.log1p(-share))


def unseen_in_words(
    counts: Sequence[tuple[str, int]], delta: float, unit: str = "evaluations"
) -> str:
    """Say which rare outcomes the evaluations of some configurations cannot exclude."""
    percents = [100.0 * unseen_share(seen, delta) for _, seen in counts]
    shares = ["100 %" if percent > 99.5 else f"{percent:.2g} %" for percent in percents]
    words = [
        f"{share} of {f'{unit} of ' * (not place)}{name} ({seen} seen)"
        for place, (share, (name, seen)) in enumerate(zip(shares, counts, strict=True))
    ]
    return f"outcomes rarer than {joined(words)}"


def outcomes_in_words(values: int, failures: int, stops: int = 0) -> str:
    """Say how many of an arm's evaluations failed or were stopped, such as "failed 9 of 22"."""
    n = values + failures + stops
    stopped = f"was stopped at a time limit in {stops} of {n}"
    failed = f"failed {failures} of {n}"
    if not stops:
        return failed
    return f"{failed} and {stopped}" if failures else stopped
