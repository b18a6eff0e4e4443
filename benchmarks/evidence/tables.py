"""Results as they are read from their files, and tables of them in Markdown."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


_readers: list[set[str]] = []


def result(name: str) -> Any:
    """What a benchmark has written to `benchmarks/results/{name}.json`."""
    for names in _readers:
        names.add(name)
    return _read(name)


def is_there(name: str) -> bool:
    """Whether a result has been measured."""
    return (RESULTS / f"{name}.json").is_file()


@contextmanager
def reading() -> Iterator[set[str]]:
    """Names of the results that are read inside."""
    names: set[str] = set()
    _readers.append(names)
    try:
        yield names
    finally:
        _readers.remove(names)


@cache
def _read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows(found: Iterable[dict[str, Any]], **values: Any) -> list[dict[str, Any]]:
    """The rows with these values."""
    return [row for row in found if all(row[key] == is_ for key, is_ in values.items())]


def only(found: Iterable[dict[str, Any]], **values: Any) -> dict[str, Any]:
    """The one row with these values."""
    (row,) = rows(found, **values)
    return row


def distinct(rows: Iterable[dict[str, Any]], key: str) -> list[Any]:
    """Values of a column, each once, in their order."""
    return list(dict.fromkeys(row[key] for row in rows))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A table in Markdown: its first columns hold words, the others figures, to the right."""
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def paragraph(text: str, indent: str = "") -> str:
    """A text in lines of at most 100 characters, broken at spaces alone; all but one indented."""
    return fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def percent(share: float, digits: int = 0) -> str:
    """A share as percent."""
    return f"{100 * share:.{digits}f} %"
