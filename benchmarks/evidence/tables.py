"""Results as they are read from their files, and tables of them in Markdown."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


@cache
def result(name: str) -> Any:
    """What a benchmark has written to `benchmarks/results/{name}.json`."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def only(rows: Iterable[dict[str, Any]], **values: Any) -> dict[str, Any]:
    """The one row with these values."""
    (found,) = (row for row in rows if all(row[key] == is_ for key, is_ in values.items()))
    return found


def distinct(rows: Iterable[dict[str, Any]], key: str) -> list[Any]:
    """Values of a column, each once, in their order."""
    return list(dict.fromkeys(row[key] for row in rows))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A table in Markdown: its first columns hold words, the others figures, to the right."""
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def percent(share: float, digits: int = 0) -> str:
    """A share as percent."""
    return f"{100 * share:.{digits}f} %"
