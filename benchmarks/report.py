"""What benchmarks tell while they run, and the files that they leave."""

import json
import sys
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def progress(text: str) -> None:
    """Print a line beside the results."""
    print(text, file=sys.stderr, flush=True)


def verdict(holds: Mapping[str, bool]) -> str:
    """What must hold, in words, a line each, and whether it does."""
    return "\n".join(f"{'yes' if true else 'NO'}: {words}" for words, true in holds.items())


def numba_if_installed() -> list[str]:
    """The name of numba for `provenance`, if the loops were compiled."""
    return ["numba"] if find_spec("numba") is not None else []


def as_json(report: Mapping[str, Any]) -> str:
    """A report as JSON, ending with a new line; no NaN and no infinity, which JSON lacks.

    Raises
    ------
    ValueError
        If there is one.
    """
    return json.dumps(report, indent=1, allow_nan=False) + "\n"


def html_page(title: str, pictures: Mapping[str, Any]) -> str:
    """Plotly figures by their headings, on one page."""
    parts = []
    for number, (heading, picture) in enumerate(pictures.items()):
        library = "cdn" if number == 0 else False
        parts.append(f"<h2>{escape(heading)}</h2>")
        parts.append(picture.to_html(full_html=False, include_plotlyjs=library))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title></head>"
        f'<body style="font-family: sans-serif">\n{chr(10).join(parts)}\n</body></html>\n'
    )


def write(file: Path, text: str) -> None:
    """Write a file, and its folder if that is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
